r"""A joint of a position servo, reduced to what decides where it sticks and hunts.

.. math:: J\ddot\theta = clip(K\,(\theta^* - \theta(t-T)), \pm\tau_{max}) - D\dot\theta + \tau_e - \tau_f

with the inertia J, the stiffness K, the damping D of motor and firmware, the load :math:`\tau_e` of a pose, the delay T in the servo's
own loop, and the friction :math:`\tau_f` of the identified law. Everything is in SI units at the joint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stribeck.errors import ConfigError
from stribeck.exports.affine import affine
from stribeck.model.arrays import Array
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import FrictionLaw, friction_budget

DELAY = 0.005
"""Delay in the loop of a hobby servo where none is given [s]: its control period, the filter of its encoder and half a period of its PWM
are some milliseconds together."""

SLOWEST, FASTEST, SPEEDS = 1e-4, 3.0, 200
"""Range of speeds at which a law is sampled [rad/s], and the number of samples."""

FIXED_POINT = 20
"""Iterations in which the friction at rest and the motor torque that it holds agree."""


@dataclass(frozen=True)
class JointPlant:
    r"""A joint; see the module docstring.

    :param stiffness: K [N m/rad].
    :param damping: D [N m s/rad].
    :param inertia: J, rotor and load [kg m²].
    :param largest: :math:`\tau_{max}` [N m], infinite if unknown.
    :param load: :math:`\tau_e` of the pose [N m].
    :param delay: T [s].
    :param resolution: of the encoder [rad].
    :param law, values: friction.
    """

    stiffness: float
    damping: float
    inertia: float
    largest: float
    load: float
    delay: float
    resolution: float
    law: FrictionLaw
    values: Mapping[str, float]

    def friction(self, velocity: Array, motor: Array | float) -> tuple[Array, Array]:
        """Budgets against positive and negative motion at a velocity and a motor torque [N m]."""
        speed = np.asarray(velocity, dtype=float)
        plus, minus = friction_budget(self.law, self.values, np.asarray(motor), -self.load, speed)
        return np.broadcast_to(plus, speed.shape), np.broadcast_to(minus, speed.shape)

    def breakaway(self) -> tuple[float, float]:
        r"""Friction that a standing joint overcomes in positive and negative direction under its load [N m].

        The motor holds :math:`-\tau_e \pm \tau_f`, and laws may let friction depend on it: a fixed point.
        """
        found = []
        for side, sign in enumerate((1.0, -1.0)):
            friction, before = 0.0, -1.0
            for _ in range(FIXED_POINT):
                if friction == before:
                    break
                motor, before = -self.load + sign * friction, friction
                friction = float(friction_budget(self.law, self.values, motor, -self.load, 0.0)[side])
            found.append(friction)
        return found[0], found[1]

    @property
    def dead_band(self) -> float:
        """Width in which the joint rests anywhere [rad]."""
        return sum(self.breakaway()) / self.stiffness

    def viscous(self, speed: float) -> float:
        """Mean slope of friction over speed between rest and a speed, without damping [N m s/rad]."""
        slow, fast = (
            friction_budget(self.law, self.values, -self.load, -self.load, one)[0] for one in (SLOWEST, speed)
        )
        return max(float(fast - slow) / speed, 0.0)


def plant_of(
    drive: Drive,
    *,
    kp: float | None,
    inertia: float = 0.0,
    load: float = 0.0,
    delay: float = DELAY,
    supply: float | None = None,
) -> JointPlant:
    """The joint of a drive at a gain.

    :param kp: gain in the units of the drive; ``None``: that of the recordings.
    :param inertia: of the load [kg m²].
    :param supply: voltage [V]; ``None``: that of the recordings.
    :raises ConfigError: if gain or voltage are needed and neither given nor in the file.
    """
    gains = drive.gains
    if kp is None and gains is None:
        raise ConfigError("the file does not state the gain of the servo: give `kp`")
    gain = float(gains.kp) if kp is None and gains is not None else float(kp or 0.0)
    derivative = 0.0 if gains is None else float(gains.kd)
    motor = affine(Servo(drive, gain, kd=derivative, supply_voltage=voltage_of(drive, supply)))
    return JointPlant(
        stiffness=motor.stiffness,
        damping=motor.feedback + motor.back_emf,
        inertia=inertia + drive.values.get("armature", 0.0),
        largest=motor.force if motor.force > 0.0 else math.inf,
        load=load,
        delay=delay,
        resolution=drive.actuator.resolution,
        law=drive.law,
        values=drive.values,
    )


def voltage_of(drive: Drive, supply: float | None) -> float | None:
    """Supply voltage of a joint [V]: the given one, else that of the recordings; ``None`` where neither is known and it does not count.

    :raises ConfigError: if it is needed and missing.
    """
    recorded = None if drive.provenance is None else drive.provenance.supply_voltage
    stated = None if recorded is None else recorded.nominal
    if supply is None and stated is None and drive.actuator.control.kind == "voltage":
        raise ConfigError(
            "the stiffness depends on the supply voltage, but the file does not state one: give `supply`"
        )
    return supply or stated
