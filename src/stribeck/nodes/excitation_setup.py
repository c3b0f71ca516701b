"""Session and recording of the excitation node, from its parameters and YAML file. No ROS here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stribeck.core.trajectories import Trajectory
from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.io.actuators import load_actuator
from stribeck.nodes.parameters import ExcitationParameters
from stribeck.servo.record_config import read_record_config
from stribeck.session.bags import BenchJoint
from stribeck.session.config import JOINT_KEYS, SessionConfig, session_config
from stribeck.session.limits import SessionJoint, check_plays, extent, followed

RATE = 200.0
"""Goals per second, if neither file nor parameter sets them [Hz]."""

TOP_KEYS = ("joints", "plays", "output")
TOP_OPTIONS = ("soft_start", "supply_voltage", "position_margin", "state_timeout", "rate")
JOINT_OPTIONS = ("position_limits", "actuator", "i_gain", "d_gain")


@dataclass(frozen=True)
class Excitation:
    """What to play on which joints, and how recordings describe them.

    :param session: plays, limits, loads.
    :param joints: in the order of all arrays.
    :param output: folder for the bags.
    :param rate: goals per second [Hz].
    :param supply_voltage: as set on the power supply [V]; ``None``: as telemetry says.
    :param rated_voltage: highest supply of each joint's servo [V], infinity if unknown.
    """

    session: SessionConfig
    joints: tuple[BenchJoint, ...]
    output: Path
    rate: float
    supply_voltage: float | None
    rated_voltage: tuple[float, ...]


def excitation_of(parameters: ExcitationParameters) -> Excitation:
    """The excitation that the parameters of the node describe, checked.

    :raises ConfigError: for a missing or invalid file, plays beyond the limits, or plays that the
        commander cannot execute.
    """
    if not parameters.config:
        raise ConfigError(
            "config is empty: name the YAML file of joints and plays (config/record.yaml is an example)"
        )
    excitation = read_excitation(Path(parameters.config).expanduser())
    session, commander = excitation.session, parameters.commander
    check_plays(session.plays, session.joints, releases_torque=commander == "servo")
    _check_gains(session, commander, parameters.gain_node)
    if commander.startswith("trajectory"):
        _check_jumps(session)
    return replace(
        excitation,
        output=Path(parameters.output).expanduser() if parameters.output else excitation.output,
        rate=parameters.rate or excitation.rate,
    )


def read_excitation(path: Path) -> Excitation:
    """Read joints and plays from a file for ``stribeck record``, or from one without the bus.

    :raises ConfigError: for a file that is not valid.
    """
    data = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
    if "port" in strict.mapping(data, str(path), ConfigError):
        config = read_record_config(path)
        return Excitation(
            session=config.session,
            joints=config.bench_joints,
            output=config.output,
            rate=config.driver.rate,
            supply_voltage=config.supply_voltage,
            rated_voltage=tuple(joint.servo.model.rated_max for joint in config.driver.joints),
        )
    return _without_bus(data, str(path))


def _without_bus(data: Any, what: str) -> Excitation:
    """An excitation of joints that another driver moves."""
    found = strict.mapping(data, what, ConfigError)
    strict.check_keys(found, TOP_KEYS, TOP_OPTIONS, what, ConfigError)
    joints = strict.mapping(found["joints"], f"{what}: joints", ConfigError)
    for name, joint in joints.items():
        strict.check_keys(
            strict.mapping(joint, f"{what}: joint {name!r}", ConfigError),
            ("position_limits", "actuator", "limits", "bench"),
            (*JOINT_KEYS, *JOINT_OPTIONS),
            f"{what}: joint {name!r}",
            ConfigError,
        )
    margin = found.get("position_margin")
    session = session_config(
        joints,
        found["plays"],
        found.get("soft_start", {}),
        what,
        position_margin=None if margin is None else _positive(margin, f"{what}: position_margin"),
        state_timeout=found.get("state_timeout"),
    )
    voltage = found.get("supply_voltage")
    return Excitation(
        session=session,
        joints=tuple(
            BenchJoint(
                name,
                _actuator(joint, f"{what}: joint {name!r}"),
                load,
                *(_gain(joint, key, f"{what}: joint {name!r}") for key in ("i_gain", "d_gain")),
            )
            for (name, joint), load in zip(joints.items(), session.benches, strict=True)
        ),
        output=Path(strict.text(found["output"], f"{what}: output", ConfigError)),
        rate=_positive(found.get("rate", RATE), f"{what}: rate"),
        supply_voltage=None if voltage is None else _positive(voltage, f"{what}: supply_voltage"),
        rated_voltage=(math.inf,) * len(joints),
    )


def _actuator(joint: Mapping[str, Any], what: str) -> str:
    name = strict.text(joint["actuator"], f"{what}: actuator", ConfigError)
    load_actuator(name)
    return name


def _gain(joint: Mapping[str, Any], key: str, what: str) -> float:
    return strict.number(joint.get(key, 0.0), f"{what}: {key}", ConfigError)


def _positive(value: Any, what: str) -> float:
    found = strict.number(value, what, ConfigError)
    if found <= 0.0:
        raise ConfigError(f"{what} must be positive, found {found:g}")
    return found


def _check_gains(session: SessionConfig, commander: str, gain_node: str) -> None:
    """Several gains need a node that sets them."""
    gains = sorted({play.kp for play in session.plays})
    if commander != "servo" and not gain_node and len(gains) > 1:
        raise ConfigError(
            f"plays: gains: commander {commander} cannot set gains, found {', '.join(f'{gain:g}' for gain in gains)}: "
            "keep only the one that is set on the robot, or name a gain_node"
        )


def _followed(trajectory: Trajectory, joints: Sequence[SessionJoint]) -> list[Trajectory]:
    """What joints follow: one trajectory for all, or one for each."""
    if not trajectory.joint_goals:
        return [trajectory]
    return [followed(trajectory, joint)[0] for joint in joints]


def _check_jumps(session: SessionConfig) -> None:
    """A trajectory controller interpolates, so it cannot follow a goal that jumps."""
    for trajectory in {play.trajectory.name: play.trajectory for play in session.plays}.values():
        if any(math.isinf(extent(one).velocity) for one in _followed(trajectory, session.joints)):
            raise ConfigError(
                f"trajectory {trajectory.name!r} jumps, which a joint_trajectory_controller cannot: leave it out, or use "
                "commander servo or forward"
            )
