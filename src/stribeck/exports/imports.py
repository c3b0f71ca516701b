"""Import of parameters from exported files and from those of others: BAM, MJCF, Isaac Lab and its servo drive, URDF.

What a format holds comes back; the control law is that of the servo's file with the gain that the format states. MJCF and
Isaac Lab hold torques at one firmware gain and one voltage, which the caller gives. A position controller without a
motor becomes the torque control of :func:`stribeck.exports.affine.as_torque_control`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stribeck.errors import ConfigError, check_valid
from stribeck.exports.import_task import M1, ImportTask, torque_controlled, voltage_controlled, voltage_of
from stribeck.exports.isaaclab import IsaacActuator, IsaacLabFile
from stribeck.exports.isaaclab_bam import IsaacLabBamFile
from stribeck.exports.xml_text import XmlText
from stribeck.files.drives import read_drive
from stribeck.files.schema import read_yaml
from stribeck.model.estimate import fixed
from stribeck.model.joint import Drive
from stribeck.model.law import LAWS


def import_bam(task: ImportTask) -> Drive:
    """The parameters of a BAM file."""
    file = read_drive(task.path, task.actuator)
    task.check_servo(file.actuator.name)
    return file


def import_isaaclab(task: ImportTask) -> Drive:
    """The parameters of the YAML file of an export to Isaac Lab.

    :raises ConfigError: for static friction that differs from the dynamic one, which no law M1 has.
    """
    actuators = read_yaml(task.path, IsaacLabFile).actuators
    one = actuators[task.one_of(actuators)]
    if one.friction != one.dynamic_friction:
        raise ConfigError(
            f"{task.path}: friction is {one.friction:g} and dynamic_friction is {one.dynamic_friction:g}, but law M1 has only one coefficient: set them equal"
        )
    friction = {"friction_base": one.dynamic_friction, "friction_viscous": one.viscous_friction}
    if one.kind == "DCMotorCfg":
        return _dc_motor(task, one, friction)
    return torque_controlled(
        task, one.stiffness, one.damping, one.effort_limit, {"armature": one.armature, **friction}
    )


def import_isaaclab_bam(task: ImportTask) -> Drive:
    """The parameters of the YAML file of an export to the drive of Isaac Lab; M3 and M4 come back as M5.

    :raises ConfigError: for another servo than the file's, or one without a voltage bridge.
    """
    file = read_yaml(task.path, IsaacLabBamFile)
    drive = file.drives[task.one_of(file.drives)]
    task.check_servo(drive.servo)
    motor, law = drive.motor, LAWS[drive.motor.model]
    control = replace(voltage_of(task), gain=motor.error_gain, duty_max=motor.max_pwm)
    values = {
        "q_offset": 0.0,
        "kt": motor.kt,
        "R": motor.resistance,
        "armature": drive.armature,
        **{name: float(getattr(motor, name)) for name in law.parameter_names},
    }
    effects = []
    if motor.max_current > 0.0:
        effects, values["current_limit"] = ["current-limit"], motor.max_current
    if drive.max_delay > 0:
        effects, values["command_delay"] = [*effects, "delay"], drive.max_delay * file.timestep
    actuator = replace(task.actuator, control=control).with_effects(effects)
    return Drive(actuator, law, values)


def _dc_motor(task: ImportTask, one: IsaacActuator, friction: dict[str, float]) -> Drive:
    control = voltage_of(task)
    if one.velocity_limit is None or one.saturation_effort is None:
        raise ConfigError(f"{task.path}: a DCMotorCfg needs velocity_limit and saturation_effort")
    if task.supply is None:
        raise ConfigError(
            f"{task.path} does not state the supply voltage of its torques: give `supply` ({task.actuator.title}: usually {task.actuator.supply.nominal:g} V)"
        )
    full = control.duty_max * task.supply
    kt = full / one.velocity_limit
    resistance, values = kt * full / one.saturation_effort, {"armature": one.armature, **friction}
    return voltage_controlled(task, kt, resistance, one.stiffness, full, values)


def import_urdf(task: ImportTask) -> Drive:
    """Damping and friction of a joint of a URDF, with the motor of another parameter file.

    :raises ConfigError: without that file, or for joints without friction.
    """
    if task.motor is None:
        raise ConfigError(
            f"{task.path} contains friction, but no motor: give a parameter file of the servo as `file_motor`"
        )
    text = XmlText(task.path)
    dynamics = {
        joint.attributes.get("name", ""): child.attributes
        for joint in text.root.all("joint")
        if (child := joint.child("dynamics")) is not None
    }
    found = dynamics[task.one_of(dynamics)]
    try:
        friction = {
            "friction_viscous": float(found.get("damping", 0.0)),
            "friction_base": float(found.get("friction", 0.0)),
        }
    except ValueError as problem:
        raise ConfigError(f"{task.path}: dynamics: {problem}") from None
    kept = {
        name: task.motor.values[name]
        for name in (*task.motor.actuator.control.motor_parameters, "q_offset")
        if name in task.motor.values
    }
    return Drive(replace(task.motor.actuator, active_effects=frozenset()), M1, {**kept, **friction})


def import_mjcf(task: ImportTask) -> Drive:
    """The parameters of a joint of an MJCF file; needs MuJoCo."""
    from stribeck.exports.mjcf_import import import_joint

    return import_joint(task)


def imported(form: str, task: ImportTask) -> Drive:
    """The parameters of a file, with a block that describes the servo and where they come from.

    :raises ConfigError: for an unknown format, and for files that do not hold what is asked for.
    """
    check_valid(form, IMPORTS, "unknown format")
    file = IMPORTS[form](task)
    known = file.actuator.parameters(file.law)
    units = {name: known[name].unit if name in known else "" for name in file.values}
    return replace(
        file,
        stated={name: fixed(value, units[name]) for name, value in file.values.items()},
        statements=(f"imported from {task.path.name} ({form}), which states values without intervals",),
    )


IMPORTS: dict[str, Callable[[ImportTask], Drive]] = {
    "bam": import_bam,
    "mjcf": import_mjcf,
    "isaaclab": import_isaaclab,
    "isaaclab-bam": import_isaaclab_bam,
    "urdf": import_urdf,
}
"""Formats that can be read back."""
