r"""Feed-forward torque that cancels the identified friction of joints.

The feed-forward torque of a joint is :math:`\tau_{ff} = g\,\left(d\,\tau_f^{m\pm} - |d|\,\tau_0\right)`, with gain g,
direction :math:`d \in [-1, 1]` of the actual or intended motion
(:func:`~stribeck.live.direction.motion.intended_direction`), and the friction budget against motion in that direction.
All arrays are (n,), one number per joint, in the coordinates of the joints' parameter files.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from stribeck.live.direction.motion import Tuning, clipped
from stribeck.live.formulas import Compiler, Formula, as_written, compiled_by
from stribeck.model.actuator import Actuator, motor_torque
from stribeck.model.arrays import Array, Mask
from stribeck.model.control_laws import ControlState, Gains, ServoCommand, VoltageControl
from stribeck.model.electrics import motor_current
from stribeck.model.law import (
    FrictionLaw,
    friction_budget,
    less_offset,
    offset_torque,
    viscous_friction,
)
from stribeck.model.namespace import array_namespace
from stribeck.model.terms.term import Values

EffortMeaning = Literal["motor", "link", "none"]
EFFORT_MEANINGS: tuple[EffortMeaning, ...] = get_args(EffortMeaning)

LARGEST_FEEDBACK = 0.9
"""Largest friction that feed-forward torque may add by loading the transmission, relative to that torque [1]."""


FASTEST = 10.0
"""Speed up to which viscous friction counts where the datasheet gives no no-load speed [rad/s]."""

PROBE = 1e-7
"""Step for the numerical slope of the budget against motor torque, as a fraction of the torque limit."""


class Scales(NamedTuple):
    """Ratio of present to identified friction, numbers or arrays [1].

    :param dry: of all friction except viscous friction.
    :param viscous: of viscous friction.
    """

    dry: Any
    viscous: Any


AS_IDENTIFIED = Scales(1.0, 1.0)


def cancelling_torque(
    law: FrictionLaw,
    p: Mapping[str, Any],
    share: Any,
    velocity: Any,
    motor: Any,
    external: Any,
    scales: Scales = AS_IDENTIFIED,
    position: Any = 0.0,
) -> Any:
    r"""Torque that cancels a fraction of the friction against a motion, and of the offset torque [N m].

    :math:`s\,(s_c(\tau_f^m - K_v|\dot\theta|) + s_v K_v|\dot\theta|) - |s|\,\tau_0`.

    :param share: gain times direction, :math:`s = g d`.
    :param motor: motor torque :math:`\tau_m`, including the feed-forward torque [N m].
    :param scales: :math:`s_c, s_v`.
    :param position: :math:`\theta` [rad], for laws that depend on it.
    """
    xp = array_namespace(share, velocity, motor, external, *p.values())
    positive, negative = friction_budget(law, p, motor, external, velocity, position)
    against = positive if positive is negative else xp.where(share > 0.0, positive, negative)
    if scales is not AS_IDENTIFIED:
        against = scales.dry * against + (scales.viscous - scales.dry) * viscous_friction(
            law, p, share, velocity
        )
    return less_offset(law, p, share * against, share, position)


def probed(guess: Any, probe: Any, share: Any) -> Any:
    """A point next to the guess of a torque, on the side of the solution."""
    return guess + array_namespace(guess, probe, share).where(share < 0.0, -probe, probe)


def fixed_point(guess: Any, share: Any, probe: Any, wider: Any, here: Any, there: Any, limit: Any) -> Any:
    r"""One Newton step from a guess towards the solution of :math:`x = f(x)`, clipped to ± limit.

    :param here: f at :func:`probed` ``(guess, probe, share)``.
    :param there: f at :func:`probed` ``(guess, wider, share)``.

    The slope is clipped to ± :data:`LARGEST_FEEDBACK`, the largest that :func:`~stribeck.live.stability.check_gain` accepts.
    """
    near, other = probed(guess, probe, share), probed(guess, wider, share)
    slope = clipped((there - here) / (other - near), LARGEST_FEEDBACK)
    return clipped(near + (here - near) / (1.0 - slope), limit)


def goal_offset(
    actuator: Actuator, p: Mapping[str, Any], kp: Any, supply_voltage: Any, torque: Any, acting: Any = 0.0
) -> Any:
    r"""Offset of the goal position that makes the firmware add a torque [rad].

    Voltage law: :math:`\Delta\theta_d = R\,(I(\tau_0 + \tau) - I(\tau_0)) / (V g K_p)` with the current I of
    :func:`~stribeck.model.electrics.motor_current`, without iron saturation :math:`\tau R / (k_t V g K_p)`; current law:
    :math:`\tau / (k_t g K_p)`; torque law: :math:`\tau / (\rho g K_p)` (see the control laws of
    :mod:`stribeck.model.actuator`), valid while the output is below its limit.

    :param kp: firmware gain, in firmware units.
    :param supply_voltage: V [V].
    :param acting: motor torque :math:`\tau_0` without the offset [N m].
    """
    control = actuator.control
    if isinstance(control, VoltageControl):
        current = motor_current(p, acting + torque) - motor_current(p, acting)
        return current * p["R"] / (supply_voltage * control.gain * kp)
    return torque / (p[control.scaled_by] * control.gain * kp)


def stall_torque(actuator: Actuator, p: Mapping[str, Any]) -> float:
    """Torque of the motor at standstill with full output and the highest rated supply [N m].

    It equals :func:`~stribeck.model.actuator.motor_torque` for a distant goal.
    """
    far = 1e9
    command, reached = ServoCommand(far, 1.0, actuator.supply.rated_max), ControlState(far, 0.0)
    return float(motor_torque(actuator, p, Gains(1.0, 0.0, 0.0), reached, command, 0.0, 0.0, 0.0)[0])


@dataclass(frozen=True)
class JointModel:
    """Friction model and limits of one joint, from its parameter file.

    :param max_torque: bound of the absolute feed-forward torque, in the file's coordinates [N m].
    :param source: where the values come from, for messages.
    :param tuning: behaviour at rest and at reversals, in the file's coordinates; ``None``: from the servo's resolution.
    :param temperature: temperature at which the values were identified [°C].
    :param per_kelvin: identified relative decrease of friction per kelvin [1/K]; ``None``: not known.
    :param enabled: whether the joint is compensated; otherwise its torque is zero.
    """

    name: str
    actuator: Actuator
    law: FrictionLaw
    values: Mapping[str, float]
    max_torque: float
    source: str = ""
    tuning: Tuning | None = None
    temperature: float | None = None
    per_kelvin: float | None = None
    enabled: bool = True


def initial_tuning(joints: Sequence[JointModel], common: Tuning | None, ratio: float | Array) -> Tuning:
    """Tuning of each joint in the coordinates of the parameter files.

    :param common: of all joints, in the robot's coordinates; by default each joint has its own.
    :param ratio: turns of the servo per turn of the joint.
    """
    if common is None:
        return Tuning.stacked([j.tuning or Tuning.of_resolution(j.actuator.resolution) for j in joints])
    ratios = {name: 1.0 if name == "overshoot_fraction" else ratio for name in vars(common)}
    n = len(joints)
    return Tuning(**{name: np.zeros(n) + ratios[name] * getattr(common, name) for name in ratios})


class FrictionModel:
    """Friction budgets and firmware torques of several joints, whose laws may differ.

    Joints with the same law are evaluated together.
    """

    def __init__(self, joints: Sequence[JointModel], compiler: Compiler = as_written) -> None:
        self.joints = tuple(joints)
        self.limit: Array = np.array([joint.max_torque for joint in joints], dtype=np.float64)
        self.off: Mask = np.array([not joint.enabled for joint in joints])
        self.stall: Array = np.array(
            [stall_torque(joint.actuator, joint.values) for joint in joints], dtype=np.float64
        )
        self.saturated = np.array([joint.values.get("torque_saturation", 0.0) > 0.0 for joint in joints])
        self._probe = np.stack([PROBE * self.limit, 2.0 * PROBE * self.limit])
        self._probes = self._probe[0], self._probe[1]
        self._none: Array = np.zeros_like(self.limit)
        one: Array = np.ones_like(self.limit)
        self._as_identified = Scales(one, one)
        self._offset = self._offset_at(self._none)
        self._repeating = any("position" in t.inputs for j in joints for t in j.law.of_kind("offset"))
        self.at_rest = np.maximum(self._friction_at_rest(joints), 1e-9)
        """Friction of each joint without load at the onset of motion [N m]."""
        self.load_dependent = any(joint.law.load_inputs for joint in joints)
        self._fixed_point = compiled_by(compiler, fixed_point)
        laws = list(dict.fromkeys(joint.law for joint in joints))
        self._groups: list[tuple[Any, Formula, Formula]] = []
        for law in laws:
            members = [k for k, joint in enumerate(joints) if joint.law == law]
            index: Any = slice(None) if len(laws) == 1 else np.array(members)
            values = [joints[k].values for k in members]
            self._groups.append((index, _cancelling(law, values, compiler), _viscous(law, values, compiler)))

    @staticmethod
    def _friction_at_rest(joints: Sequence[JointModel]) -> Array:
        rests = [max(friction_budget(j.law, j.values, 0.0, 0.0, 0.0)) for j in joints]
        return np.array(rests, dtype=np.float64)

    def _cancelling(
        self,
        share: Array,
        velocity: Array,
        motor: Array,
        external: Array,
        position: Array,
        scales: Scales,
        guess: Array,
        probe: Array,
    ) -> Array:
        """:func:`cancelling_torque` of all joints with a guess of it on the motor [N m]; shaped like ``probe``."""
        if len(self._groups) == 1:
            found: Array = self._groups[0][1](
                share, velocity, motor, external, position, scales.dry, scales.viscous, guess, probe
            )
            return found
        found = np.empty_like(probe)
        for index, formula, _ in self._groups:
            group_inputs = (
                array[index] for array in (share, velocity, motor, external, position, *scales, guess)
            )
            found[..., index] = formula(*group_inputs, probe[..., index])
        return found

    def opposing(
        self, direction: Array, velocity: Array, motor: Array, external: Array, position: Array
    ) -> Array:
        r"""Identified friction that opposes a motion less the offset torque, :math:`d\,\tau_f^m - |d|\,\tau_0`, without limits [N m].

        :param direction: :math:`d \in [-1, 1]`, whose sign the friction has.
        """
        return self._cancelling(
            direction, velocity, motor, external, position, self._as_identified, self._none, self._none
        )

    def offset(self, position: Array) -> Array:
        """Torque beside friction, which the scales leave unchanged [N m]."""
        return self._offset_at(position) if self._repeating else self._offset

    def _offset_at(self, position: Array) -> Array:
        places = zip(self.joints, position.tolist(), strict=True)
        return np.array([offset_torque(one.law, one.values, at) for one, at in places], dtype=np.float64)

    def viscous(self, direction: Array, velocity: Array) -> Array:
        """Identified viscous friction that opposes a motion, with the sign of the direction [N m]."""
        if len(self._groups) == 1:
            return np.asarray(self._groups[0][2](direction, velocity))
        found = np.empty_like(velocity)
        for index, _, formula in self._groups:
            found[index] = formula(direction[index], velocity[index])
        return found

    def firmware_torque(
        self, goal: Array, position: Array, velocity: Array, kp: Array, supply: Array
    ) -> Array:
        """Motor torque of position-controlled servos for a goal [N m], NaN without a goal."""
        found = np.full(len(self.joints), np.nan)
        rest = ControlState(0.0, 0.0)
        for k, joint in enumerate(self.joints):
            if math.isfinite(goal[k]) and kp[k] > 0.0:
                gains = Gains(float(kp[k]), 0.0, 0.0)
                command = ServoCommand(float(goal[k]), 1.0, float(supply[k]))
                ramps = joint.actuator.control.goal_speed is not None
                state = ControlState(float(goal[k]), 0.0) if ramps else rest
                at, speed = float(position[k]), float(velocity[k])
                found[k], _ = motor_torque(
                    joint.actuator, joint.values, gains, state, command, at, speed, 0.0
                )
        return found

    def offsets(self, torque: Array, kp: Array, supply: Array, acting: Array | None = None) -> Array:
        """Goal offsets that make the firmware add ``torque`` (:func:`goal_offset`) [rad], 0 without firmware gain.

        Torques, and their sums with those that act, are clipped to the stall torque of the motors.

        :param acting: motor torques without the offsets, NaN or ``None`` if unknown; they matter where the iron saturates.
        """
        start = self._none
        if acting is not None:
            start = np.where(self.saturated & np.isfinite(acting), acting, 0.0)
        possible = np.clip(start + torque, -self.stall, self.stall) - start
        found = [0.0] * len(self.joints)
        for k, joint in enumerate(self.joints):
            if kp[k] > 0.0:
                found[k] = goal_offset(joint.actuator, joint.values, kp[k], supply[k], possible[k], start[k])
        return np.array(found)

    def currents(self, torque: Array) -> Array:
        """Currents of motors without other torques (:func:`~stribeck.model.electrics.motor_current`), at most those at stall [A]."""
        possible = np.clip(torque, -self.stall, self.stall)
        return np.array([motor_current(joint.values, possible[k]) for k, joint in enumerate(self.joints)])

    def feed_forward(
        self,
        gain: float | Array,
        direction: Array,
        velocity: Array,
        motor: Array,
        external: Array,
        guess: Array | None = None,
        scales: Scales | None = None,
        position: Array | None = None,
    ) -> Array:
        r"""Feed-forward torque within the limits [N m].

        :param motor: motor torque :math:`\tau_m`; with a ``guess``, that of the controller alone, to
            which the feed-forward torque is added.
        :param external: external torque :math:`\tau_e` [N m].
        :param guess: feed-forward torque of the previous cycle, from which one Newton step leads to the fixed
            point :math:`\tau_{ff} = g (d\,\tau_f^m(\tau_m + \tau_{ff}, \tau_e) - |d|\,\tau_0)`. The step is exact
            where the budget is linear in the torque (M3, M4; M5 unless a load term changes sign; M6 nearly);
            elsewhere it converges within a few cycles because the budget is convex in the torque.
        :param scales: scales of the identified friction; 1 if left out.
        :param position: of the joints [rad], for laws that depend on it.
        """
        share, at = gain * direction, self._none if position is None else position
        if scales is None:
            scales = self._as_identified
        if guess is None or not self.load_dependent:
            torque = self._cancelling(share, velocity, motor, external, at, scales, self._none, self._none)
            return np.asarray(clipped(torque, self.limit))
        # Two points in one call cost as much as one. Both lie on the side of the solution, because the quadratic
        # term of M6 jumps at zero torque.
        cancelling = self._cancelling(share, velocity, motor, external, at, scales, guess, self._probe)
        near, far = self._probes
        return np.asarray(
            self._fixed_point(guess, share, near, far, cancelling[0], cancelling[1], self.limit)
        )


def _cancelling(law: FrictionLaw, values: Sequence[Mapping[str, float]], compiler: Compiler) -> Formula:
    """:func:`cancelling_torque` of joints with the same law, with a guess of it and a probe added to the motor torque."""

    def formula(
        p: Values,
        share: Any,
        velocity: Any,
        motor: Any,
        external: Any,
        position: Any,
        dry: Any,
        viscous: Any,
        guess: Any,
        probe: Any,
    ) -> Any:
        total = motor + probed(guess, probe, share)
        return cancelling_torque(law, p, share, velocity, total, external, Scales(dry, viscous), position)

    return _of_joints(law, values, formula, compiler)


def _viscous(law: FrictionLaw, values: Sequence[Mapping[str, float]], compiler: Compiler) -> Formula:
    def formula(p: Values, direction: Any, velocity: Any) -> Any:
        return direction * viscous_friction(law, p, direction, velocity)

    return _of_joints(law, values, formula, compiler)


def _of_joints(
    law: FrictionLaw, values: Sequence[Mapping[str, float]], formula: Formula, compiler: Compiler
) -> Formula:
    """A formula of values and further arguments, compiled for joints with the same law but values of their own."""
    names, further = law.parameter_names, tuple(inspect.signature(formula).parameters)[1:]
    arrays = [np.array([found[name] for found in values], dtype=np.float64) for name in names]

    def joined(*arguments: Any) -> Any:
        return formula(dict(zip(names, arguments, strict=False)), *arguments[len(names) :])

    return partial(compiler(joined, (*names, *further)), *arrays)
