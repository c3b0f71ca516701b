r"""The servo drive of Isaac Lab, Newton and mjlab that has the laws of the paper: its law, its parameters, its time step.

In every physics step, with the motor torque :math:`\tau_m^-` that was applied in the step before and the external torque
:math:`\tau_e^-` of the solution before, it computes

.. math::

    d = clip(clip(g K_p e, \frac{k_t\dot\theta \mp R I_{max}}{V}), \pm d_{max}),\quad
    \tau_m = clip(\frac{k_t}{R}(dV - k_t\dot\theta), \pm\tau_{max})

and the budget of dry friction of M1, M2, M5 or M6 from :math:`\dot\theta, \tau_m^-, \tau_e^-`, with which the solver stops the
joint; :math:`K_v` is damping of the joint, which the solver integrates implicitly. M3 and M4 are M5 with
:math:`K_m = K_e = K_l` and :math:`K_m^s = K_e^s = K_l^s`. Its quadratic term of M6 counts in both directions, also where motor and
load do not oppose.

Sources, from which names and formulas were read: isaac-sim/IsaacLab, ``source/isaaclab/isaaclab/actuators/actuator_bam_cfg.py``
(commit 9955178), ``source/isaaclab/isaaclab/sim/schemas/schemas_actuators.py`` (0120677) and
``source/isaaclab_newton/isaaclab_newton/actuators/bam_kernels.py`` (0f2b84a); Rhoban/bam, ``bam/mjlab.py`` (1b5a1ce).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from stribeck.errors import ConfigError
from stribeck.exports.task import JointServo
from stribeck.files.schema import NotNegative, Positive, Schema
from stribeck.model.actuator import motor_torque
from stribeck.model.arrays import Array
from stribeck.model.bench import gravity_torque, inertia
from stribeck.model.control_laws import ServoCommand, VoltageControl
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import FrictionLaw, friction_budget, friction_torque, stopping_torque
from stribeck.model.log import Batch
from stribeck.model.step import batch_for
from stribeck.model.terms import TERMS
from stribeck.model.terms.term import Conditions

TIMESTEP = 0.005
"""Physics step of the drive unless a time step gives another one [s]."""

DriveModel = Literal["m1", "m2", "m5", "m6"]
"""Laws that the drive has."""

MODELS: dict[str, DriveModel] = {"m1": "m1", "m2": "m2", "m3": "m5", "m4": "m5", "m5": "m5", "m6": "m6"}
"""The drive's law for each law of the paper."""


def _in_both_directions(x: Conditions, xp: Any, backdriven: Any, driving: Any) -> Any:
    by_external, by_motor = driving * x.external * x.external, backdriven * x.motor * x.motor
    return xp.where(xp.abs(x.motor) > xp.abs(x.external), by_external, by_motor)


QUADRATIC_IN_BOTH_DIRECTIONS = replace(
    TERMS["quadratic_load"],
    title="the quadratic load term, which also acts when motor torque and load have the same direction",
    formula=_in_both_directions,
)
"""The quadratic term of M6 as the drive has it."""


class BamMotor(Schema):
    """Fields of ``BamMotorCfg`` of Isaac Lab: motor and friction of a servo.

    :param model: friction law.
    :param kt: torque constant [N m/A].
    :param resistance: [ohm].
    :param error_gain: duty per firmware gain and position error [1/rad].
    :param max_pwm: largest duty.
    :param max_current: current limit of the firmware [A], 0 for none.
    :param friction_base, friction_stribeck: [N m].
    :param friction_viscous: [N m s/rad].
    :param dtheta_stribeck: [rad/s].
    :param alpha: exponent.
    :param load_friction_motor, load_friction_external, load_friction_motor_stribeck, load_friction_external_stribeck:
        shares of the torques [1].
    :param load_friction_motor_quad, load_friction_external_quad: [1/(N m)].
    """

    model: DriveModel
    kt: Positive
    resistance: Positive
    error_gain: Positive
    max_pwm: Positive
    max_current: NotNegative
    friction_base: NotNegative
    friction_viscous: NotNegative
    friction_stribeck: float = 0.0
    dtheta_stribeck: Positive = 1.0
    alpha: Positive = 1.0
    load_friction_motor: NotNegative = 0.0
    load_friction_external: NotNegative = 0.0
    load_friction_motor_stribeck: NotNegative = 0.0
    load_friction_external_stribeck: NotNegative = 0.0
    load_friction_motor_quad: NotNegative = 0.0
    load_friction_external_quad: NotNegative = 0.0


class BamDrive(Schema):
    """The drive of one joint.

    :param servo: servo family.
    :param motor: what was identified.
    :param armature: [kg m²].
    :param actuator_effort_limit: largest motor torque [N m].
    :param kp_fw: firmware gain.
    :param vin: supply voltage [V].
    :param min_delay, max_delay: delay of commands [physics steps].
    """

    servo: str
    motor: BamMotor
    armature: NotNegative
    actuator_effort_limit: Positive
    kp_fw: Positive
    vin: Positive
    min_delay: int = 0
    max_delay: int = 0


LOADS = {
    "load_friction_base": ("load_friction_motor", "load_friction_external"),
    "load_friction_stribeck": ("load_friction_motor_stribeck", "load_friction_external_stribeck"),
}
"""Coefficients of M5 that equal one of M3 and M4."""


class Delay(NamedTuple):
    """A command delay [s] in whole physics steps of ``timestep`` [s]."""

    wanted: float
    steps: int
    timestep: float

    def notes(self, joint: str) -> tuple[str, ...]:
        """A remark on what rounding changes."""
        if not self.wanted:
            return ()
        given = self.steps * self.timestep
        return (
            f"{joint}: the command delay of {1e3 * self.wanted:.3g} ms is rounded to {self.steps} steps of {1e3 * self.timestep:g} ms, {1e3 * given:.3g} ms "
            "in all: export again if the step of the simulator changes",
        )


def delay_of(file: Drive, timestep: float | None) -> Delay:
    """The command delay of a servo in physics steps.

    :raises ConfigError: if there is one and the step is not known.
    """
    wanted = float(file.values.get("command_delay", 0.0))
    if wanted and timestep is None:
        raise ConfigError(
            f"the drive counts delays in simulation steps, and {file.actuator.name} has a delay of {1e3 * wanted:.3g} ms: give the `step` of the simulator"
        )
    timestep = timestep or TIMESTEP
    return Delay(wanted, round(wanted / timestep), timestep)


def drive_of(joint: JointServo, timestep: float | None) -> BamDrive:
    """The drive of a joint.

    :raises ConfigError: for servos that do not switch their supply onto the motor, and values that the drive refuses.
    """
    file = joint.servo.parameters
    control = voltage_control(joint)
    motor = file.values["kt"] / file.values["R"]
    delay = delay_of(file, timestep)
    return BamDrive(
        servo=file.actuator.name,
        motor=_motor(joint, control),
        armature=file.values["armature"],
        actuator_effort_limit=2.0 * motor * joint.servo.voltage,
        kp_fw=joint.servo.kp,
        vin=joint.servo.voltage,
        min_delay=delay.steps,
        max_delay=delay.steps,
    )


def voltage_control(joint: JointServo) -> VoltageControl:
    """The control law of a servo that the drive has.

    :raises ConfigError: for any other control law.
    """
    actuator = joint.servo.parameters.actuator
    control = actuator.control
    if not isinstance(control, VoltageControl) or control.bridge == "coast":
        found = "drive/coast bridge" if isinstance(control, VoltageControl) else f"{control.kind} control"
        raise ConfigError(
            f"the drive is for servos with a drive/brake bridge only, found joint {joint.joint!r} with "
            f"{actuator.name}, a {found}: choose the format isaaclab or mjcf"
        )
    if joint.servo.kp == 0.0:
        raise ConfigError(
            f"joint {joint.joint!r}: the drive needs a firmware gain above zero, found 0: give `kp`"
        )
    return control


def _motor(joint: JointServo, control: VoltageControl) -> BamMotor:
    file = joint.servo.parameters
    friction = {name: float(file.values[name]) for name in file.law.parameter_names}
    for one, both in LOADS.items():
        if one in friction:
            friction |= dict.fromkeys(both, friction.pop(one))
    return BamMotor(
        model=MODELS[file.law.name],
        kt=file.values["kt"],
        resistance=file.values["R"],
        error_gain=control.gain,
        max_pwm=control.duty_max,
        max_current=file.values.get("current_limit", 0.0),
        **friction,
    )


def law_of_drive(law: FrictionLaw) -> FrictionLaw:
    """The law that the drive has in place of a law: without optional terms, and with its own quadratic term."""
    kept = law.with_terms().terms
    terms = tuple(
        QUADRATIC_IN_BOTH_DIRECTIONS if term.name == QUADRATIC_IN_BOTH_DIRECTIONS.name else term
        for term in kept
    )
    return replace(law, terms=terms)


def drive_motion(servo: Servo, runs: Batch, timestep: float, *, limit: float = 2.0) -> Array:
    r"""Positions (T, R) [rad] of runs with the drive's explicit step of ``timestep`` [s].

    The velocity after a step is :math:`\frac{\Delta t}{J + \Delta t K_v}(\tau_f - \tau_{stop})`, the position
    :math:`\theta + \Delta t\dot\theta`; a goal ramp of the firmware is done by whoever sends the goals.

    :param limit: largest motor torque, relative to that at rest with the whole supply.
    """
    file = servo.parameters
    p = file.values
    dry = {**p, "friction_viscous": 0.0}
    grid = batch_for(runs.logs, timestep, "semi-implicit")
    moment = inertia(grid.pendulum, p["armature"])
    supply = grid.supply(file.actuator.uses_measured_supply)
    most = limit * p["kt"] / p["R"] * np.max(supply, axis=0)
    delay = delay_of(file, timestep).steps
    position, velocity = runs.position[0], runs.velocity[0]
    applied = np.zeros_like(position)
    external = gravity_torque(grid.pendulum, position, p["q_offset"])
    state = file.actuator.control.first_state(grid.goal[0])
    found = np.empty_like(grid.goal)
    for k in range(len(grid.time)):
        found[k] = position
        late = max(k - delay, 0)
        command = ServoCommand(grid.goal[late], grid.torque_enable[late], supply[k], grid.temperature[k])
        torque, state = motor_torque(
            file.actuator, p, grid.gains, state, command, position, velocity, timestep
        )
        budget = friction_budget(file.law, dry, applied, external, velocity, position)
        applied = np.clip(torque, -most, most)
        external = gravity_torque(grid.pendulum, position, p["q_offset"])
        stop = stopping_torque(velocity, applied + external, moment, timestep)
        friction = friction_torque(stop, budget)
        sticks = friction == stop
        mobility = timestep / (moment + timestep * p["friction_viscous"])
        velocity = np.where(sticks, 0.0, mobility * (friction - stop))
        position = position + timestep * velocity
    columns = [np.interp(runs.time, grid.time, column) for column in found.T]
    return np.stack(columns, axis=1)
