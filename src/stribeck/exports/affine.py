r"""Firmware and motor of a servo as an affine position controller with a torque limit, in SI units.

.. math::

    \tau_m = clip(k(\theta_d - \theta) - c\,\dot\theta, \pm\tau_{max}) - c_e\,\dot\theta

The coefficients are differences of the piecewise linear control law of :mod:`stribeck.model.actuator`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from stribeck.model.actuator import motor_torque
from stribeck.model.control_laws import ServoCommand, TorqueControl
from stribeck.model.joint import Drive, Servo

SMALL = 1e-6
"""Position error [rad] and speed [rad/s] within which a control law is linear."""

LARGE = 1e6
"""Position error [rad] that saturates every servo."""


class Affine(NamedTuple):
    r"""Coefficients of the controller.

    :param stiffness: torque per position error k [N m/rad].
    :param feedback: velocity feedback c within the limit [N m s/rad].
    :param back_emf: :math:`c_e`, velocity feedback beyond the limit [N m s/rad].
    :param force: largest torque at rest :math:`\tau_{max}` [N m].
    :param speed: speed at which the torque of full output is zero [rad/s]; ``None`` if the servo's file does not tell.
    """

    stiffness: float
    feedback: float
    back_emf: float
    force: float
    speed: float | None


def affine(servo: Servo) -> Affine:
    """The coefficients of a servo at its gains and voltage."""
    force = _torque(servo, LARGE, 0.0)
    outside = (force - _torque(servo, LARGE, SMALL)) / SMALL
    inside = -_torque(servo, 0.0, SMALL) / SMALL - outside
    return Affine(
        stiffness=_torque(servo, SMALL, 0.0) / SMALL,
        feedback=_clean(inside, force),
        back_emf=_clean(outside, force),
        force=force,
        speed=_speed(servo),
    )


def as_torque_control(servo: Servo) -> Drive:
    r"""The servo as :math:`\tau_m = clip(k(\theta_d - \theta) - (c + c_e)\dot\theta, \pm\tau_{max})`, the controller of most engines.

    The back-EMF is clipped with the torque, which a saturated motor exceeds at speed.
    """
    file, motor = servo.parameters, affine(servo)
    control = TorqueControl(
        gain=motor.stiffness / servo.kp, damping=motor.feedback + motor.back_emf, torque_max=motor.force
    )
    actuator = replace(file.actuator, control=control, active_effects=frozenset())
    kept = {name: value for name, value in file.values.items() if name not in ("kt", "R", "current_limit")}
    return Drive(actuator, file.law, {**kept, "ratio": 1.0})


def _speed(servo: Servo) -> float | None:
    actuator, p = servo.parameters.actuator, servo.parameters.values
    known = actuator.control.no_load_speed(p, servo.voltage)
    return actuator.datasheet.figures.get("no_load_speed") if known is None else known


def _torque(servo: Servo, error: float, velocity: float) -> float:
    """Motor torque at a position error and a velocity [N m]."""
    actuator = servo.parameters.actuator.with_used_terms(servo.gains)
    values = dict(servo.parameters.values)
    command = ServoCommand(error, 1.0, servo.voltage)
    state = actuator.control.first_state(error)
    torque, _ = motor_torque(actuator, values, servo.gains, state, command, 0.0, velocity, 0.0)
    return float(torque)


def _clean(slope: float, force: float) -> float:
    """Round a slope to zero if it is only the rounding error of a difference of torques."""
    return slope if abs(slope) > 1e-8 * force else 0.0
