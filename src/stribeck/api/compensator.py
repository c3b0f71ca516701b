"""Friction compensation in a loop of one's own, without ROS."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stribeck.api.recordings import PathLike, warn
from stribeck.errors import ConfigError, StribeckError, check_valid
from stribeck.files.drives import read_drives
from stribeck.live.compensator import Compensator as Engine
from stribeck.live.friction import EFFORT_MEANINGS
from stribeck.live.handover import Handover
from stribeck.live.learning.external import ExternalTorque
from stribeck.live.parameters import CompensatedJointParameters, CompensationParameters
from stribeck.live.setup import compensated_joints, compensator_of, learning_of
from stribeck.live.zero_torque import GuidingSettings, ZeroTorque
from stribeck.model.arrays import Array
from stribeck.model.joint import STIFFNESS, Drive
from stribeck.rigid.rigid_body import RigidBodyModel
from stribeck.rigid.wrench import Wrench, wrench_of

GAIN_RATIO = 1.5
"""Ratio of a given gain to the identified one, or its inverse, from which on the user is warned."""

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
    :param urdf: of the robot; with it the present friction is learnt, if ``effort_meaning`` is ``motor``, and :meth:`goal` bears
        its weight.
    :param joints: names, in the order of the arrays; by default all joints of the file, in its order.
    :param effort_meaning: what the ``effort`` of states is: ``motor`` (torque of the motor), ``link`` (torque at the link) or
        ``none``.
    :param gain: share of the friction that is cancelled.
    :param p_gain: firmware gain of position servos, one for all or one for each, in firmware units, for :meth:`goal`; by default
        that of the recordings, which a file of ``identify robot`` states as stiffness [N m/rad].
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
        drives, names = _drives(Path(path), joints)
        self._drives = drives
        late = settings.get("loop_delay", 0.0) > 0.0 and all(STIFFNESS in drive.stated for drive in drives)
        moves_goals = p_gain is not None or late  # torques refuse delays that goals do not
        if p_gain is not None:
            _compare_gains(path, names, drives, _each("p_gain", p_gain, names))
        parameters = CompensationParameters(
            joints=list(names),
            by_joint=_by_joint(names, p_gain, max_torque),
            drives_file=str(path),
            output_mode="goal_offset" if moves_goals else "friction_only",
            effort_meaning=effort_meaning,
            urdf="" if urdf is None else str(urdf),
            gain=gain,
        )
        self._parameters = replace(parameters, **_checked(settings))
        self.joints: tuple[str, ...] = names
        self._has_effort, self._moves_goals, self._begun = effort_meaning != "none", moves_goals, False
        self._first_goal: float | None = None
        self._zero: ZeroTorque | None = None
        self._handover = Handover(self._build(), self._parameters.ramp_time)
        self._former = self._in_use
        self._handover.enable()

    def _build(self) -> Engine:
        """A compensator of the present parameters."""
        loaded = compensated_joints(self._parameters)
        learning = learning_of(self._parameters, loaded)
        engine = compensator_of(self._parameters, loaded, learning.dynamics)
        self._dynamics, self.notes = learning.dynamics, learning.words
        return engine

    @property
    def _engine(self) -> Engine:
        return self._handover.present

    def exchange(self, path: PathLike) -> None:
        """Take over another file of drives of the same joints while running, without a step in the torque.

        The new compensation starts beside the present one, and takes its place between one and two ``ramp_time`` later. What the present one has
        learnt is kept for :meth:`revert`.

        :raises ParameterFileError: for a file that cannot be read; the present one goes on.
        :raises ConfigError: for one that lacks a joint or would not be stable, or while another one is being taken over; the present one goes on.
        """
        before = self._in_use
        drives, _ = _drives(Path(path), self.joints)
        try:
            self._parameters = replace(self._parameters, drives_file=str(path))
            self._handover.exchange(self._build())
        except StribeckError:
            self._in_use = before
            raise
        self._drives, self._former = drives, before

    def revert(self) -> None:
        """Go back to the file before the last :meth:`exchange`, in the same way.

        :raises ConfigError: if there was none, or while another one is being taken over.
        """
        self._handover.revert()
        self._in_use, self._former = self._former, self._in_use

    @property
    def _in_use(self) -> tuple[Any, ...]:
        """What belongs to the present file of drives."""
        return self._parameters, self._dynamics, self.notes, self._drives

    @_in_use.setter
    def _in_use(self, former: tuple[Any, ...]) -> None:
        self._parameters, self._dynamics, self.notes, self._drives = former

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
        now, self._begun = time.monotonic() if t is None else float(t), True
        if effort is not None and not self._has_effort:
            raise ConfigError(
                "effort is given, but its meaning is not known: set effort_meaning to 'motor' or 'link' when creating the compensator"
            )
        position, velocity = self._numbers("q", q), self._numbers("qd", qd)
        measured = self._numbers("effort", effort)
        handover = self._handover
        if q_goal is not None or qd_goal is not None:
            goal, rate = self._numbers("q_goal", q_goal), self._numbers("qd_goal", qd_goal)
            handover.on_command(now, now, None, goal, rate, self._weight(goal, now))
        handover.expire(now)
        return np.array(handover.on_state(now, now, self.joints, position, velocity, measured))

    def goal(
        self,
        q: npt.ArrayLike,
        q_goal: npt.ArrayLike,
        t: float | None = None,
        qd_goal: npt.ArrayLike | None = None,
        *,
        effort: npt.ArrayLike | None = None,
    ) -> Array:
        r"""Goals for position servos, moved so that their firmware applies the torque against friction (n,) [rad].

        With a URDF it applies the torque that holds the robot at its goals, too, rising within ``ramp_time`` after the first call. Friction
        that depends on the load is that under about half of this weight, because a model may be wrong
        (:data:`stribeck.live.loads.MODELLED_SHARE`); with ``effort_meaning="motor"`` it is that under the torque of the firmware, and
        ``effort`` adapts it to the present friction.
        With the velocities of the goals they are sent as they will be when the servos answer, after the delay T of a file of ``identify robot``:
        :math:`\theta^* + T\dot\theta^* + \tau/K`. Where the state cannot be trusted, there is no torque against friction. A compensator is for
        goals or for torques.

        :param q: measured positions [rad].
        :param q_goal: goals of the controller [rad].
        :param t: time of the measurement on any clock that runs evenly [s]; by default now.
        :param effort: measured torques [N m], with the meaning given to the constructor.
        :param qd_goal: velocities of the goals [rad/s], where they are planned; goals that a hand gives or that come in steps are better not led.
        :raises ConfigError: if the firmware gain is neither given nor in the file, after :meth:`torque`, and for arrays of another
            length.
        """
        if not self._moves_goals:
            self._turn_to_goals()
        now = time.monotonic() if t is None else float(t)
        self.torque(q, q_goal=q_goal, qd_goal=qd_goal, effort=effort, t=now)
        found = self._handover.output(now)
        goal = np.array(q_goal if found is None else found.values, dtype=float)
        if qd_goal is None:
            return goal
        delays = [drive.stated["delay"].value if "delay" in drive.stated else 0.0 for drive in self._drives]
        rates: Array = np.nan_to_num(np.asarray(qd_goal, dtype=float))
        return np.asarray(goal + np.maximum(delays, 0.0) * rates)

    def _turn_to_goals(self) -> None:
        """Begin again with the gains of the file."""
        if any(drive.gains is None for drive in self._drives):
            raise ConfigError("goals need the gain of the servos' firmware: give p_gain in the first call")
        if self._begun:
            raise ConfigError("this compensator was created for torques: create another one for goals")
        self._parameters = replace(self._parameters, output_mode="goal_offset")
        self._moves_goals, gain = True, self._engine.gain
        self._handover = Handover(self._build(), self._parameters.ramp_time)
        self._handover.set_gain(gain)
        self._handover.enable()

    def zero_torque(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        *,
        effort: npt.ArrayLike | None = None,
        t: float | None = None,
        fastest: float = 1.0,
        gravity_error: float = 0.1,
    ) -> Array:
        """The whole motor torque with which a hand guides the robot: its weight and the guaranteed part of its friction (n,) [N m].

        At the first call, and after :meth:`restart`, it holds the robot where it is and lets go within ``ramp_time``. Joints that nobody touches are
        held against ``gravity_error`` of their weight; :attr:`holding` names those that their friction alone would not keep. For states
        that cannot be trusted it is the weight at the last pose, without friction; after ``state_timeout`` that fades within ``ramp_time``, and
        :attr:`zero_torque_ended` says why: brakes, or a mode of the servos that holds or damps, have to take over. Source: :mod:`stribeck.live.zero_torque`.

        :param q, qd: measured positions [rad] and velocities [rad/s].
        :param effort: measured torques of the motors [N m]; with them the friction that was learnt in motions with goals counts, too.
        :param t: time of the measurement on any clock that runs evenly [s]; by default now.
        :param fastest: speed above which joints are braked [rad/s].
        :param gravity_error: relative error of the robot's weight.
        :raises ConfigError: without a URDF, and for arrays of another length.
        """
        now = time.monotonic() if t is None else float(t)
        if self._zero is None:
            self._zero = ZeroTorque(self._engine, self._dynamics, GuidingSettings(fastest, gravity_error))
            self._zero.begin(now)
        friction, engine = self.torque(q, qd, effort=effort, t=now), self._engine
        return self._zero.torque(now, engine.trusted_state, friction, engine.servos.temperature)

    def release(self) -> None:
        """Leave the mode of :meth:`zero_torque`: joints are damped, and gravity compensation ramps down within ``ramp_time``; it has ended once they rest."""
        if self._zero is not None:
            self._zero.release("released")

    @property
    def zero_torque_ended(self) -> str:
        """Why :meth:`zero_torque` gives no torque until :meth:`restart`; empty while it does."""
        return "" if self._zero is None or self._zero.on else self._zero.reason

    @property
    def holding(self) -> tuple[str, ...]:
        """Joints that :meth:`zero_torque` holds because their friction alone is less than the error of their weight."""
        return () if self._zero is None else self._zero.holding

    def _weight(self, goal: Sequence[float], now: float) -> list[float]:
        """Torque that holds the robot at its goals [N m], empty without a URDF or for torques."""
        if not self._moves_goals or not self._parameters.urdf or self._dynamics is None:
            return []
        if self._first_goal is None:
            self._first_goal = now
        ramp = self._parameters.ramp_time
        share = min(max((now - self._first_goal) / ramp, 0.0), 1.0) if ramp > 0.0 else 1.0
        at = np.asarray(goal, dtype=float)
        _, torque = self._dynamics.mass_matrix_and_bias(at, np.zeros(len(at)))
        numbers: list[float] = (share * torque).tolist()
        return numbers

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
        self._handover.on_telemetry(joint, kp=p_gain, supply_voltage=voltage, temperature=temperature)

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

    def wrench(self, q: npt.ArrayLike, point: npt.ArrayLike = (0.0, 0.0, 0.0)) -> Wrench | None:
        """Force and moment that something outside exerts on a tool, in the frame of the robot's base; ``None`` as for :attr:`external_torque`.

        :param q: positions [rad].
        :param point: where it acts, in the frame of the last joint (3,) [m].
        :raises ConfigError: for fewer than three joints; with three to five the force alone is determined.
        """
        found = self.external_torque
        if found is None or not isinstance(self._dynamics, RigidBodyModel):
            return None
        return wrench_of(found.torque, found.band, self._dynamics.jacobian(self._numbers("q", q), point))

    @property
    def gain(self) -> float:
        """Share of the friction that is cancelled; may be set while running."""
        return self._engine.gain

    @gain.setter
    def gain(self, value: float) -> None:
        self._handover.set_gain(value)

    def restart(self) -> None:
        """Begin again with a torque of zero, as after a pause of the loop; what was learnt stays."""
        self._first_goal = self._zero = None
        self._handover.enable()

    def stop(self) -> None:
        """Torque zero until :meth:`restart`."""
        self._handover.disable("stopped")


def _drives(path: Path, joints: Sequence[str] | None) -> tuple[list[Drive], tuple[str, ...]]:
    """The drives of the joints to compensate, of those of a file, and the names of the joints."""
    drives = read_drives(path)
    if joints is None:
        return list(drives.joints.values()), tuple(name or "joint" for name in drives.joints)
    if len(drives.joints) == 1:
        return list(drives.joints.values()) * len(joints), tuple(joints)
    return [drives.drive(name, path) for name in joints], tuple(joints)


def _compare_gains(
    path: PathLike, names: Sequence[str], drives: Sequence[Drive], given: Sequence[float]
) -> None:
    """Warn of gains that are far from those that the file states: a firmware gain in place of a stiffness."""
    for name, drive, gain in zip(names, drives, given, strict=True):
        if drive.gains is None or not gain > 0.0:
            continue
        known = float(drive.gains.kp)
        if not 1.0 / GAIN_RATIO < gain / known < GAIN_RATIO:
            warn(
                f"{path}: joint {name!r} was identified with a gain of {known:.3g}, a stiffness in N m/rad, but p_gain is {gain:g}, probably in the units of "
                "the firmware: omit p_gain if the servo is set as in the recordings"
            )


def _by_joint(
    names: Sequence[str], p_gain: float | Sequence[float] | None, max_torque: float | Sequence[float] | None
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
