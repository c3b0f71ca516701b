"""Friction compensation in a loop of one's own, without ROS."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stribeck.api.recordings import PathLike
from stribeck.errors import ConfigError, check_valid
from stribeck.files.drives import read_drives
from stribeck.live.friction import EFFORT_MEANINGS
from stribeck.live.learning.external import ExternalTorque
from stribeck.live.parameters import CompensatedJointParameters, CompensationParameters
from stribeck.live.setup import compensated_joints, compensator_of, learning_of
from stribeck.model.arrays import Array

MANAGED = (
    "joints",
    "by_joint",
    "drives_file",
    "output_mode",
    "output_type",
    "command_type",
    "urdf",
    "effort_meaning",
)
"""Parameters of the compensation node that the arguments of the constructor stand for."""


class Compensator:
    """Torque that cancels the identified friction of joints, for a loop that reads states and writes torques or goals.

    It is the compensator of the ROS node: bad states do not raise, the torque goes to zero and :attr:`doubt` says why; after
    that, as after the start, it rises again within ``ramp_time``. Arrays have one number for each joint, in the order of
    :attr:`joints`, in the robot's coordinates.

    :param path: file of drives, as every identification of servos, joints, arms and robots writes it.
    :param urdf: of the robot; with it the present friction is learnt, if ``effort_meaning`` is ``motor``.
    :param joints: names, in the order of the arrays; by default all joints of the file, in its order.
    :param effort_meaning: what the ``effort`` of states is: ``motor`` (torque of the motor), ``link`` (torque at the link) or
        ``none``.
    :param gain: share of the friction that is cancelled.
    :param p_gain: firmware gain of position servos, one for all or one for each, in firmware units; :meth:`goal` needs it.
    :param max_torque: limit of the friction torque [N m], one for all or one for each; by default half the stall torque of the
        servo, and needed where the file states none.
    :param settings: further parameters of the compensation node by name, for example ``state_timeout=0.1`` for slow loops; see
        ``config/compensation.yaml``.
    :raises ParameterFileError: for a file that cannot be read.
    :raises ConfigError: for values that are not valid or would not be stable.
    """

    def __init__(
        self,
        path: PathLike,
        urdf: PathLike | None = None,
        *,
        joints: Sequence[str] | None = None,
        effort_meaning: str = "none",
        gain: float = 0.8,
        p_gain: float | Sequence[float] | None = None,
        max_torque: float | Sequence[float] | None = None,
        **settings: Any,
    ) -> None:
        check_valid(effort_meaning, EFFORT_MEANINGS, "unknown effort_meaning")
        names = _names(Path(path), joints)
        parameters = CompensationParameters(
            joints=list(names),
            by_joint=_by_joint(names, p_gain, max_torque),
            drives_file=str(path),
            output_mode="friction_only" if p_gain is None else "goal_offset",
            effort_meaning=effort_meaning,
            urdf="" if urdf is None else str(urdf),
            gain=gain,
        )
        parameters = replace(parameters, **_checked(settings))
        loaded = compensated_joints(parameters)
        learning = learning_of(parameters, loaded)
        self._engine = compensator_of(parameters, loaded, learning.dynamics)
        self.joints: tuple[str, ...] = names
        self.notes: tuple[str, ...] = learning.words
        self._has_effort, self._moves_goals = effort_meaning != "none", p_gain is not None
        self._engine.enable()

    def torque(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike | None = None,
        *,
        effort: npt.ArrayLike | None = None,
        q_goal: npt.ArrayLike | None = None,
        qd_goal: npt.ArrayLike | None = None,
        t: float | None = None,
    ) -> Array:
        """Torque to add to the controller's (n,) [N m]; zero for states that cannot be trusted.

        :param q: measured positions [rad].
        :param qd: measured velocities [rad/s]; by default the slope of the positions.
        :param effort: measured torques [N m], with the meaning given to the constructor.
        :param q_goal, qd_goal: what the controller wants [rad, rad/s]; without them only the guaranteed part of the friction
            is cancelled at rest and at reversals.
        :param t: time of the measurement on any clock that runs evenly [s]; by default now.
        :raises ConfigError: for arrays of another length, and an effort whose meaning is not given.
        """
        now = time.monotonic() if t is None else float(t)
        if effort is not None and not self._has_effort:
            raise ConfigError(
                "effort is given, but not what it is: say effort_meaning='motor' or 'link' once"
            )
        position, velocity = self._numbers("q", q), self._numbers("qd", qd)
        measured = self._numbers("effort", effort)
        if q_goal is not None or qd_goal is not None:
            goal, rate = self._numbers("q_goal", q_goal), self._numbers("qd_goal", qd_goal)
            self._engine.on_command(now, now, None, goal, rate, ())
        self._engine.expire(now)
        return self._engine.on_state(now, now, self.joints, position, velocity, measured).copy()

    def goal(self, q: npt.ArrayLike, q_goal: npt.ArrayLike, t: float | None = None) -> Array:
        """Goals for position servos, moved so that their firmware applies the torque against friction (n,) [rad].

        Where the state cannot be trusted they are the given goals.

        :param q: measured positions [rad].
        :param q_goal: goals of the controller [rad].
        :param t: time of the measurement on any clock that runs evenly [s]; by default now.
        :raises ConfigError: if the firmware gain was not given, and for arrays of another length.
        """
        if not self._moves_goals:
            raise ConfigError("goals need the gain of the servos' firmware: give p_gain once")
        now = time.monotonic() if t is None else float(t)
        self.torque(q, q_goal=q_goal, t=now)
        found = self._engine.output(now)
        return np.array(q_goal, dtype=float) if found is None else np.array(found.values, dtype=float)

    def _numbers(self, name: str, given: npt.ArrayLike | None) -> list[float]:
        if given is None:
            return []
        array = np.asarray(given, dtype=float)
        if array.shape != (len(self.joints),):
            raise ConfigError(
                f"{name}: expected {len(self.joints)} numbers ({', '.join(self.joints)}), found an array of shape {array.shape}"
            )
        numbers: list[float] = array.tolist()
        return numbers

    def telemetry(
        self, joint: str, *, p_gain: float = np.nan, voltage: float = np.nan, temperature: float = np.nan
    ) -> None:
        """Firmware gain, supply voltage [V] and temperature [°C] of a servo; NaN where unknown.

        :raises ConfigError: for a joint that is not compensated.
        """
        check_valid(joint, self.joints, "no joint")
        self._engine.on_telemetry(joint, kp=p_gain, supply_voltage=voltage, temperature=temperature)

    @property
    def doubt(self) -> str | None:
        """Why the torque is zero, in words; ``None`` if it is not held at zero."""
        return self._engine.doubt

    @property
    def external_torque(self) -> ExternalTorque | None:
        """What something outside exerts on the joints, ``torque`` with a ``band`` of 97 % (n,) [N m].

        ``None`` without a URDF or without the torques of the motors, and for states that cannot be trusted. Source and limits:
        :mod:`stribeck.live.learning.external`.
        """
        return self._engine.external_torque

    @property
    def gain(self) -> float:
        """Share of the friction that is cancelled; may be set while running."""
        return self._engine.gain

    @gain.setter
    def gain(self, value: float) -> None:
        self._engine.set_gain(value)

    def restart(self) -> None:
        """Begin again with a torque of zero, as after a pause of the loop; what was learnt stays."""
        self._engine.enable()

    def stop(self) -> None:
        """Torque zero until :meth:`restart`."""
        self._engine.disable("stopped")


def _names(path: Path, joints: Sequence[str] | None) -> tuple[str, ...]:
    """The joints to compensate, of those of a file."""
    drives = read_drives(path)
    in_file = tuple(name or "joint" for name in drives.joints)
    if joints is None:
        return in_file
    for name in joints if len(drives.joints) > 1 else ():
        drives.drive(name, path)
    return tuple(joints)


def _by_joint(
    names: Sequence[str],
    p_gain: float | Sequence[float] | None,
    max_torque: float | Sequence[float] | None,
) -> Mapping[str, CompensatedJointParameters]:
    gains, limits = _each("p_gain", p_gain, names), _each("max_torque", max_torque, names)
    return {
        name: CompensatedJointParameters(p_gain=gain, max_torque=limit)
        for name, gain, limit in zip(names, gains, limits, strict=True)
    }


def _each(what: str, given: float | Sequence[float] | None, names: Sequence[str]) -> list[float]:
    """One number for each joint; 0 for none."""
    if given is None:
        return [0.0] * len(names)
    numbers: list[float] = np.asarray(given, dtype=float).ravel().tolist()
    if np.ndim(given) == 0:
        numbers *= len(names)
    if len(numbers) != len(names):
        raise ConfigError(f"{what}: expected one number, or {len(names)}, found {len(numbers)}")
    return numbers


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Further parameters of the node, of the right type and within their range."""
    specs = {spec.name: spec for spec in CompensationParameters.specs() if spec.name not in MANAGED}
    check_valid(settings, specs, "unknown setting")
    return {name: specs[name].check(value) for name, value in settings.items()}
