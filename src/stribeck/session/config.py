"""What to excite, and how: joints, plays and soft starts from YAML, read strictly.

.. code-block:: yaml

    joints:
      elbow:
        position_limits: [-1.9, 1.9]     # rad
        limits: {velocity: 12.5, acceleration: 150, following_error: 1.2, temperature: 65}
        bench: {mass: 0.1, length: 0.1, arm_mass: 0.02}
        center: 0                        # rad
        scale: 1
    plays: {trajectories: [sin_sin, up_and_down], gains: [200, 400], repetitions: 1}
    soft_start: {speed: 1, acceleration: 4}

A trajectory is one of ours by name, or a file of ``stribeck excite`` (``*.yaml``), which moves all joints together, each
in its own coordinates: center and scale do not count for it.
A joint may hold more, which belongs to whoever drives it. Limits may be ``.inf``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stribeck.core.bench import Pendulum
from stribeck.core.log import Setup
from stribeck.core.trajectories import Trajectory, trajectory_named
from stribeck.errors import ConfigError, RecordingError
from stribeck.io import strict
from stribeck.io.excitation_file import read_excitation_file
from stribeck.session.directive import SessionOptions
from stribeck.session.limits import Limits, Play, SessionJoint, plays_of

JOINT_KEYS = ("limits", "bench", "center", "scale")
"""Keys of a joint that are read here alone; ``position_limits`` is shared with the driver."""

LIMIT_KEYS = ("velocity", "acceleration", "following_error", "temperature")


@dataclass(frozen=True)
class SessionConfig:
    """A session as a file describes it.

    :param plays: runs to make.
    :param joints: who takes part.
    :param benches: the load of each joint, in the same order.
    :param options: speeds and times.
    """

    plays: tuple[Play, ...]
    joints: tuple[SessionJoint, ...]
    benches: tuple[Pendulum, ...]
    options: SessionOptions


def session_config(
    joints: Any,
    plays: Any,
    soft_start: Any,
    what: str,
    *,
    position_margin: float | None = None,
    state_timeout: Any = None,
) -> SessionConfig:
    """A session from what YAML holds.

    :param joints: mapping of names to joints.
    :param plays: trajectories, gains and repetitions.
    :param soft_start: speed and acceleration, both may be missing.
    :param what: where it stands, for messages.
    :param position_margin: how far beyond its limits a joint may swing [rad].
    :param state_timeout: states older than this stop the session [s].
    :raises ConfigError: for what is not valid.
    """
    found = {
        name: strict.mapping(data, f"{what}: joint {name!r}", ConfigError)
        for name, data in strict.mapping(joints, f"{what}: joints", ConfigError).items()
    }
    for name, data in found.items():
        missing = [key for key in ("position_limits", "limits", "bench") if key not in data]
        if missing:
            raise ConfigError(f"{what}: joint {name!r}: {', '.join(missing)} missing")
    options = _options(soft_start, f"{what}: soft_start")
    if position_margin is not None:
        options["position_margin"] = position_margin
    if state_timeout is not None:
        options["state_timeout"] = _time(state_timeout, f"{what}: state_timeout")
    return SessionConfig(
        plays=_plays(plays, f"{what}: plays"),
        joints=tuple(_joint(name, data, f"{what}: joint {name!r}") for name, data in found.items()),
        benches=tuple(
            _bench(data["bench"], f"{what}: joint {name!r}: bench") for name, data in found.items()
        ),
        options=SessionOptions(**options),
    )


def position_limits(value: Any, what: str) -> tuple[float, float]:
    """``[lower, upper]``, where either may be infinite.

    :raises ConfigError: for anything else.
    """
    if not isinstance(value, list) or len(value) != 2:
        raise ConfigError(f"{what}: expected [lower, upper] in rad, found {value!r}")
    return _limit(value[0], what), _limit(value[1], what)


def _joint(name: str, data: Mapping[str, Any], what: str) -> SessionJoint:
    limits = strict.mapping(data["limits"], f"{what}: limits", ConfigError)
    strict.check_keys(limits, LIMIT_KEYS[:2], LIMIT_KEYS[2:], f"{what}: limits", ConfigError)
    lower, upper = position_limits(data["position_limits"], f"{what}: position_limits")
    numbers = {key: _limit(limits[key], f"{what}: limits: {key}") for key in LIMIT_KEYS if key in limits}
    try:
        found = Limits(lower, upper, **numbers)
    except ConfigError as error:
        raise ConfigError(f"{what}: {error}") from None
    return SessionJoint(
        name,
        found,
        strict.number(data.get("center", 0.0), f"{what}: center", ConfigError),
        strict.number(data.get("scale", 1.0), f"{what}: scale", ConfigError),
    )


def _bench(value: Any, what: str) -> Pendulum:
    numbers = strict.mapping(value, what, ConfigError)
    strict.check_keys(numbers, Pendulum._fields, (), what, ConfigError)
    pendulum = Pendulum(
        **{key: strict.number(numbers[key], f"{what}: {key}", ConfigError) for key in numbers}
    )
    try:
        Setup(**pendulum._asdict(), supply_voltage=1.0, kp=1.0)
    except RecordingError as error:
        raise ConfigError(f"{what}: {error}") from None
    return pendulum


def _plays(value: Any, what: str) -> tuple[Play, ...]:
    data = strict.mapping(value, what, ConfigError)
    strict.check_keys(data, ("trajectories", "gains"), ("repetitions",), what, ConfigError)
    names = [
        strict.text(name, f"{what}: trajectories", ConfigError)
        for name in _list(data["trajectories"], f"{what}: trajectories")
    ]
    gains = [
        strict.number(gain, f"{what}: gains", ConfigError) for gain in _list(data["gains"], f"{what}: gains")
    ]
    repetitions = strict.number(data.get("repetitions", 1), f"{what}: repetitions", ConfigError)
    if repetitions != round(repetitions):
        raise ConfigError(f"{what}: repetitions: expected a whole number, found {repetitions:g}")
    try:
        return plays_of([_trajectory(name) for name in names], gains, int(repetitions))
    except ConfigError as error:
        raise ConfigError(f"{what}: {error}") from None


def _trajectory(name: str) -> Trajectory:
    """One of ours by name, or that of a file."""
    if not name.endswith((".yaml", ".yml")):
        return trajectory_named(name)
    path = Path(name).expanduser()
    return read_excitation_file(path).trajectory.to_play(path.stem)


def _options(value: Any, what: str) -> dict[str, float]:
    data: Mapping[str, Any] = strict.mapping(value, what, ConfigError)
    strict.check_keys(data, (), ("speed", "acceleration"), what, ConfigError)
    found = {}
    for key in data:
        found[f"soft_{key}"] = strict.number(data[key], f"{what}: {key}", ConfigError)
        if found[f"soft_{key}"] <= 0.0:
            raise ConfigError(f"{what}: {key} must be positive, found {data[key]:g}")
    return found


def _time(value: Any, what: str) -> float:
    found = strict.number(value, what, ConfigError)
    if found <= 0.0:
        raise ConfigError(f"{what} must be positive, found {found:g} s")
    return found


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError(f"{what}: expected a list in brackets, found {value!r}")
    return value


def _limit(value: Any, what: str) -> float:
    """A number, or an infinity where there is no limit."""
    if isinstance(value, float) and math.isinf(value):
        return value
    return strict.number(value, what, ConfigError)
