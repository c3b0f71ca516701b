"""Import of parameters from exported files and from those of others: BAM, MJCF, Isaac Lab, URDF.

What a format holds comes back; the control law is that of the servo's file with the gain that the format states. MJCF and
Isaac Lab hold torques at one firmware gain and one voltage, which the caller gives. A position controller without a
motor becomes the torque control of :func:`stribeck.exports.affine.as_torque_control`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stribeck.core.actuator import Actuator
from stribeck.core.control_laws import TorqueControl, VoltageControl
from stribeck.core.friction import FrictionLaw, law_named
from stribeck.errors import ConfigError, check_valid
from stribeck.estimates.estimate import CONFIDENCE
from stribeck.exports.isaaclab import IsaacActuator, read_isaaclab
from stribeck.exports.xml_text import XmlText
from stribeck.io.parameter_file import ParameterFile, Provenance, read_parameter_file

M1: FrictionLaw = law_named("m1")


@dataclass(frozen=True)
class ImportTask:
    """A file to read.

    :param actuator: the servo.
    :param joint: name of the joint; ``None``: the only one.
    :param kp: firmware gain of the file's stiffness.
    :param supply: voltage of the file's torques [V]; ``None``: the servo's nominal one.
    :param motor: parameter file with the motor, for formats without one.
    """

    path: Path
    actuator: Actuator
    joint: str | None = None
    kp: float | None = None
    supply: float | None = None
    motor: ParameterFile | None = None

    def gain(self) -> float:
        """The firmware gain.

        :raises ConfigError: if it is not given.
        """
        if self.kp is None:
            raise ConfigError(
                f"{self.path} holds a stiffness: give the firmware gain that it belongs to with --kp (evaluate: --file-kp)"
            )
        return self.kp

    def one_of(self, joints: Mapping[str, object]) -> str:
        """The joint to read, of those in the file.

        :raises ConfigError: if it is not there, or not named and not the only one.
        """
        if self.joint is None and len(joints) == 1:
            return next(iter(joints))
        if not joints:
            raise ConfigError(f"{self.path} has no joint with the parameters of a servo")
        if self.joint not in joints:
            listed = ", ".join(joints)
            wanted = (
                "several joints; name one with --joint (evaluate: --file-joint)"
                if self.joint is None
                else f"no joint {self.joint!r}"
            )
            raise ConfigError(f"{self.path} has {wanted}; it has: {listed}")
        return str(self.joint)


def import_bam(task: ImportTask) -> ParameterFile:
    """The parameters of a BAM file."""
    file = read_parameter_file(task.path, task.actuator)
    if file.actuator.name != task.actuator.name:
        raise ConfigError(f"{task.path} is of {file.actuator.name!r}, --actuator is {task.actuator.name!r}")
    return file


def import_isaaclab(task: ImportTask) -> ParameterFile:
    """The parameters of the YAML file of an export to Isaac Lab.

    :raises ConfigError: for static friction that differs from the dynamic one, which no law M1 has.
    """
    actuators = read_isaaclab(task.path).actuators
    one = actuators[task.one_of(actuators)]
    if one.friction != one.dynamic_friction:
        raise ConfigError(
            f"{task.path}: friction {one.friction:g} differs from dynamic_friction {one.dynamic_friction:g}: law M1 has one; "
            "set them equal"
        )
    friction = {"friction_base": one.dynamic_friction, "friction_viscous": one.viscous_friction}
    if one.kind == "DCMotorCfg":
        return _dc_motor(task, one, friction)
    return torque_controlled(
        task, one.stiffness, one.damping, one.effort_limit, {"armature": one.armature, **friction}
    )


def _dc_motor(task: ImportTask, one: IsaacActuator, friction: dict[str, float]) -> ParameterFile:
    control = _voltage(task)
    if one.velocity_limit is None or one.saturation_effort is None:
        raise ConfigError(f"{task.path}: a DCMotorCfg needs velocity_limit and saturation_effort")
    full = control.duty_max * (task.supply or task.actuator.supply.nominal)
    kt = full / one.velocity_limit
    return voltage_controlled(
        task,
        kt,
        kt * full / one.saturation_effort,
        one.stiffness,
        full,
        {"armature": one.armature, **friction},
    )


def import_urdf(task: ImportTask) -> ParameterFile:
    """Damping and friction of a joint of a URDF, with the motor of another parameter file.

    :raises ConfigError: without that file, or for joints without friction.
    """
    if task.motor is None:
        raise ConfigError(
            f"{task.path} has friction and no motor: give a parameter file of the servo with --motor (evaluate: --file-motor)"
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
    return ParameterFile(replace(task.motor.actuator, active_effects=frozenset()), M1, {**kept, **friction})


def torque_controlled(
    task: ImportTask, stiffness: float, damping: float, limit: float, values: Mapping[str, float]
) -> ParameterFile:
    """Law M1 with a position controller in place of the firmware."""
    control = TorqueControl(gain=stiffness / task.gain(), damping=damping, torque_max=limit)
    actuator = replace(
        task.actuator, control=control, active_effects=frozenset(), datasheet_prior={}, effects={}
    )
    return ParameterFile(_bounded(actuator), M1, {"q_offset": 0.0, "ratio": 1.0, **values})


def voltage_controlled(
    task: ImportTask,
    kt: float,
    resistance: float,
    stiffness: float,
    voltage: float,
    values: Mapping[str, float],
) -> ParameterFile:
    r"""Law M1 with a motor; the firmware's gain follows from the stiffness, :math:`g = k R d_{max} / (k_t U K_p)`.

    :param voltage: of full duty, U [V].
    """
    control = _voltage(task)
    gain = stiffness * resistance / kt * control.duty_max / (voltage * task.gain())
    if abs(gain - control.gain) > 1e-4 * control.gain:
        control = replace(control, gain=gain)
    effects = ("current-limit",) if "current_limit" in values else ()
    actuator = replace(task.actuator, control=control).with_effects(effects)
    return ParameterFile(actuator, M1, {"q_offset": 0.0, "kt": kt, "R": resistance, **values})


def _voltage(task: ImportTask) -> VoltageControl:
    control = task.actuator.control
    if not isinstance(control, VoltageControl):
        raise ConfigError(
            f"{task.path} holds a motor with a voltage bridge; {task.actuator.name} is a servo of kind {control.kind}: name the "
            "servo with --actuator"
        )
    return control


def _bounded(actuator: Actuator) -> Actuator:
    """The servo with the bounds that its file needs for torque control."""
    kept = {name: bounds for name, bounds in actuator.bounds.items() if name not in ("kt", "R")}
    return replace(actuator, bounds={"ratio": (0.5, 2.0), **kept}, datasheet_bounds={})


def import_mjcf(task: ImportTask) -> ParameterFile:
    """The parameters of a joint of an MJCF file; needs MuJoCo."""
    from stribeck.exports.mjcf_import import import_joint

    return import_joint(task)


def imported(form: str, task: ImportTask) -> ParameterFile:
    """The parameters of a file, with a block that describes the servo and where they come from.

    :raises ConfigError: for an unknown format, and for files that do not hold what is asked for.
    """
    check_valid(form, IMPORTS, "unknown format")
    file = IMPORTS[form](task)
    known = file.actuator.parameters(file.law)
    told = Provenance(
        units={name: known[name].unit for name in file.values if name in known},
        bounds={},
        fixed=tuple(file.values),
        intervals={},
        confidence=CONFIDENCE,
        not_determined={},
        at_bounds={},
        statements=(f"imported from {task.path.name} ({form}), which gives values alone",),
        loss={},
        split={},
        simulation={},
        effects=tuple(sorted(file.actuator.active_effects)),
        supply_voltage=None,
        temperature=None,
        data={},
        search={},
        versions={},
    )
    return replace(file, provenance=told)


IMPORTS: dict[str, Callable[[ImportTask], ParameterFile]] = {
    "bam": import_bam,
    "mjcf": import_mjcf,
    "isaaclab": import_isaaclab,
    "urdf": import_urdf,
}
"""Formats that can be read back."""
