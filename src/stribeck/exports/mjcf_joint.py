r"""A servo as joint and actuator of MJCF, for law M1.

A servo with a voltage bridge becomes a ``<dcmotor>`` where the installed MuJoCo has it (4.0 and newer): resistance, motor
constant, controller, voltage and current limits, goal ramp and delay are those of
:class:`stribeck.model.control_laws.VoltageControl`, and the joint is free of back-EMF while its actuator group is disabled.
Every other servo becomes an affine actuator with a force range, and its back-EMF part of ``damping``:

.. math::

    \tau_m = clip(k(\theta_d - \theta) - c\,\dot\theta, \pm\tau_{max}) - c_e\,\dot\theta

The coefficients are differences of the piecewise linear control law of :mod:`stribeck.model.actuator`. A joint whose commands
are torques has an actuator with :math:`\tau_m = clip(u, \pm\tau_{max})`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import mujoco

from stribeck.errors import ConfigError
from stribeck.exports.affine import affine
from stribeck.model.control_laws import CurrentControl, VoltageControl
from stribeck.model.joint import Servo

ROUNDING = 1e-9
"""Share by which a time step may exceed the longest one: quotients of times have rounding errors."""

DC_MOTOR = hasattr(mujoco.MjsActuator, "set_to_dcmotor")
"""Whether the installed MuJoCo has ``<dcmotor>`` and delays of actuators."""


class DcMotor(NamedTuple):
    r"""A voltage servo as ``<dcmotor>``.

    :param motorconst: :math:`k_t` [N m/A].
    :param resistance: R [ohm].
    :param controller: gains of position [N m/rad], its integral [N m/(rad s)] and velocity [N m s/rad], largest slope of the
        goal [rad/s], largest integral [rad s], largest voltage [V]; 0 for none. The gain of velocity contains
        :math:`k_t^2/R`, with which MuJoCo's controller does not compensate the back-EMF.
    :param current: limit of the current [A], 0 for none.
    """

    motorconst: float
    resistance: float
    controller: tuple[float, ...]
    current: float


@dataclass(frozen=True)
class PlainJoint:
    r"""A servo as attributes of plain MJCF.

    :param armature: apparent inertia of the rotor [kg m²].
    :param frictionloss: Coulomb friction [N m].
    :param damping: viscous friction and back-EMF, :math:`K_v + c_e` [N m s/rad].
    :param stiffness: torque per position error k [N m/rad].
    :param feedback: velocity feedback c within the force range [N m s/rad].
    :param force: maximum torque at rest :math:`\tau_{max}` [N m].
    :param notes: description of differences between the servo and plain MJCF.
    :param motor: the servo as ``<dcmotor>`` in place of stiffness, feedback and force; ``damping`` is then viscous alone.
    :param delay: of commands [s].
    :param by_torque: whether ``ctrl`` is the torque [N m] in place of a goal position; stiffness and feedback are unused then.
    """

    armature: float
    frictionloss: float
    damping: float
    stiffness: float
    feedback: float
    force: float
    notes: tuple[str, ...]
    motor: DcMotor | None = None
    delay: float = 0.0
    by_torque: bool = False

    @property
    def gain(self) -> float:
        """Torque per unit of ``ctrl``."""
        return 1.0 if self.by_torque else self.stiffness

    @property
    def bias(self) -> tuple[float, float, float]:
        """Torque per constant, position and velocity."""
        return (0.0, 0.0, 0.0) if self.by_torque else (0.0, -self.stiffness, -self.feedback)

    def longest_step(self, inertia: float | None = None) -> float:
        """Time in which the damping, taken as constant, stops the joint [s]; a longer explicit step overshoots; infinite without inertia."""
        damping = self.damping - self.bias[2]
        if self.motor is not None:
            damping += self.motor.motorconst**2 / self.motor.resistance
        moved = self.armature if inertia is None else inertia
        return moved / damping if damping and moved else math.inf

    def check_timestep(self, timestep: float, joint: str, inertia: float | None = None) -> None:
        """Check that explicit damping is stable with this time step.

        :param inertia: of the joint with what it carries [kg m²]; default: of the bare shaft.
        :raises ConfigError: if it is not.
        """
        longest = self.longest_step(inertia)
        if timestep > longest * (1.0 + ROUNDING):
            raise ConfigError(
                f"joint {joint!r}: with a time step of {timestep:g} s the damping is unstable, because it "
                f"stops the joint within {longest:.3g} s: use a shorter step"
            )


def exported(servo: Servo, by_torque: bool = False, *, dc_motor: bool = DC_MOTOR) -> PlainJoint:
    """A servo as attributes of plain MJCF.

    :param by_torque: whether its commands are torques.
    :param dc_motor: whether a voltage servo may become a ``<dcmotor>``.
    :raises ConfigError: for laws, terms and effects that plain MJCF cannot express.
    """
    control, p = servo.parameters.actuator.control, servo.parameters.values
    motor = control.bridge == "brake" and dc_motor
    _check_expressible(servo, dc_motor=motor)
    motor_law = affine(servo)
    plain = PlainJoint(
        armature=p["armature"],
        frictionloss=p["friction_base"],
        damping=p["friction_viscous"] + motor_law.back_emf,
        stiffness=motor_law.stiffness,
        feedback=motor_law.feedback,
        force=motor_law.force,
        notes=(*_notes(servo), *(("ctrl is the motor torque at the joint [N m]",) if by_torque else ())),
        by_torque=by_torque,
    )
    if not (motor and isinstance(control, VoltageControl)):
        return plain
    note = "disabling the actuator group switches the motor off, including its back-EMF; ctrl is the goal position"
    return replace(
        plain,
        damping=p["friction_viscous"],
        feedback=0.0,
        motor=_dc_motor(servo, control),
        delay=p.get("command_delay", 0.0),
        notes=(note,),
    )


def _dc_motor(servo: Servo, control: VoltageControl) -> DcMotor:
    p, (kp, ki, kd) = servo.parameters.values, servo.gains
    kt, resistance = p["kt"], p["R"]
    torque = kt / resistance * servo.voltage  # of full duty
    integral = (control.integral_gain or 0.0) * ki
    controller = (
        torque * control.gain * kp,
        torque * integral,
        kt * kt / resistance + torque * (control.derivative_gain or 0.0) * kd,
        control.goal_speed or 0.0,
        control.duty_max / integral if integral else 0.0,
        control.duty_max * servo.voltage,
    )
    return DcMotor(kt, resistance, controller, p.get("current_limit", 0.0))


def _check_expressible(servo: Servo, *, dc_motor: bool) -> None:
    file, control = servo.parameters, servo.parameters.actuator.control
    held = {"supply", *(["delay"] if DC_MOTOR or dc_motor else []), *(["current-limit"] if dc_motor else [])}
    effects = sorted(file.actuator.active_effects - held)
    instead = "use stribeck.mujoco.Controller, which computes it in every step, or fit law m1 to the same recordings"
    beyond = [
        (file.law.name != "m1", f"law {file.law.name.upper()} ({file.law.title})"),
        *((True, term.title) for term in file.law.of_kind("sides", "offset")),
        (bool(effects), f"the effect {', '.join(effects)}"),
        (control.bridge == "coast", "a drive/coast bridge"),
        (bool(servo.ki) and not dc_motor, "an integral gain"),
        (bool(servo.supply_resistance), "the voltage drop of a supply under load"),
        (servo.period is not None, "a firmware period"),
    ]
    for present, feature in beyond:
        if present:
            raise ConfigError(f"plain MJCF cannot express {feature}: {instead}")
    if not servo.kp:
        raise ConfigError(
            "kp is 0: without a proportional gain a servo does not move: give the gain of the firmware"
        )


def _notes(servo: Servo) -> tuple[str, ...]:
    control, p = servo.parameters.actuator.control, servo.parameters.values
    notes = []
    if isinstance(control, VoltageControl):
        notes.append(
            "damping includes the back-EMF; therefore the joint is braked even when torque is off, unlike a real servo"
        )
        if control.goal_speed is not None:
            notes.append(
                f"the firmware limits the speed of its goal: do not change ctrl faster than {control.goal_speed:.4g} rad/s"
            )
    if isinstance(control, CurrentControl) and "R" in p:
        fastest = (servo.voltage - p["R"] * control.current_max) / p["kt"]
        if fastest <= 0.0:
            raise ConfigError(
                f"plain MJCF cannot express that {servo.voltage:g} V are too little for the current at rest: "
                "use stribeck.mujoco.Controller, or a higher supply voltage"
            )
        notes.append(
            f"above {fastest:.3g} rad/s the supply voltage reduces the torque of the real motor; the model does not include this"
        )
    return tuple(notes)
