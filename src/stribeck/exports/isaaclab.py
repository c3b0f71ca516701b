r"""Export to Isaac Lab: actuator configurations as Python, and the same numbers as YAML, which ``import-params`` reads.

A servo with a voltage bridge becomes a ``DCMotorCfg``, whose law :math:`\tau = clip(k e - d\dot\theta,\;
[-\tau_s(1 + \dot\theta/\omega_0), \tau_s(1 - \dot\theta/\omega_0)])` is that of a saturated bridge with
:math:`\tau_s = k_t V d_{max}/R` (``saturation_effort``), :math:`\omega_0 = V d_{max}/k_t` (``velocity_limit``) and
:math:`d = c + k_t^2/R`. Every other servo becomes an ``IdealPDActuatorCfg``. Armature, static, dynamic and viscous friction are
those of PhysX (Isaac Sim 5: N m, N m, N m s/rad).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import yaml

from stribeck.errors import ConfigError
from stribeck.exports.affine import affine
from stribeck.exports.task import ExportTask, JointServo, Written, identifier, ramp_notes, title_of
from stribeck.files.schema import NotNegative, Positive, Schema
from stribeck.model.control_laws import VoltageControl


class IsaacActuator(Schema, kw_only=True):
    """The actuator of one joint.

    :param kind: configuration class of Isaac Lab.
    :param servo: servo family.
    :param stiffness: [N m/rad].
    :param damping: [N m s/rad].
    :param effort_limit: [N m].
    :param velocity_limit: [rad/s].
    :param saturation_effort: torque at standstill with full output [N m], of a DC motor.
    :param armature: [kg m²].
    :param friction: static friction [N m].
    :param dynamic_friction: [N m].
    :param viscous_friction: [N m s/rad].
    """

    kind: Literal["DCMotorCfg", "IdealPDActuatorCfg"]
    servo: str
    stiffness: Positive
    damping: NotNegative
    effort_limit: Positive
    velocity_limit: Positive | None = None
    saturation_effort: Positive | None = None
    armature: NotNegative
    friction: NotNegative
    dynamic_friction: NotNegative
    viscous_friction: NotNegative


class IsaacLabFile(Schema):
    """Actuators for Isaac Lab.

    :param schema: version of the format.
    :param actuators: by joint.
    """

    schema: Literal[1]
    actuators: dict[str, IsaacActuator]


FIELDS = IsaacActuator.__struct_fields__[2:]
"""Numbers of an actuator that are fields of its configuration class."""


def write(task: ExportTask) -> Written:
    """The Python module and the YAML file.

    :raises ConfigError: for an output that is neither, and for control laws that Isaac Lab lacks.
    """
    if task.output.suffix not in (".py", ".yaml"):
        raise ConfigError(f"isaaclab writes a .py and a .yaml file: name one of them, found {task.output}")
    actuators = {servo.joint: _actuator(servo) for servo in task.joints}
    python, data = task.output.with_suffix(".py"), task.output.with_suffix(".yaml")
    files: dict[Path, str | bytes] = {python: _module(task, actuators), data: _data(actuators)}
    ordered = {task.output: files[task.output], **files}
    notes = [
        "Isaac Sim before 5.0 uses a friction coefficient instead of friction torques, and ignores viscous friction"
    ]
    return Written(ordered, (*notes, *ramp_notes(task)))


def fields(servo: JointServo, timestep: float | None) -> dict[str, float]:
    """Numbers of the actuator of one joint, by field."""
    return _numbers(_actuator(servo))


def _numbers(actuator: IsaacActuator) -> dict[str, float]:
    return {name: value for name in FIELDS if (value := getattr(actuator, name)) is not None}


def _actuator(servo: JointServo) -> IsaacActuator:
    file = servo.servo.parameters
    control, p, motor = file.actuator.control, file.values, affine(servo.servo)
    voltage = isinstance(control, VoltageControl)
    if control.bridge == "coast":
        raise ConfigError(
            f"isaaclab does not support a drive/coast bridge, found joint {servo.joint!r} with {file.actuator.name}: choose the format c or bam"
        )
    limit = p["kt"] * p["current_limit"] if "current_limit" in p else motor.force
    return IsaacActuator(
        kind="DCMotorCfg" if voltage else "IdealPDActuatorCfg",
        servo=file.actuator.name,
        stiffness=motor.stiffness,
        damping=motor.feedback + motor.back_emf,
        effort_limit=min(motor.force, limit),
        velocity_limit=motor.speed,
        saturation_effort=_stall(servo) if voltage else None,
        armature=p["armature"],
        friction=p["friction_base"],
        dynamic_friction=p["friction_base"],
        viscous_friction=p["friction_viscous"],
    )


def _stall(servo: JointServo) -> float:
    """Torque at standstill with full output, without the current limit [N m]."""
    p, control = servo.servo.parameters.values, servo.servo.parameters.actuator.control
    return p["kt"] / p["R"] * servo.servo.voltage * getattr(control, "duty_max", 1.0)


def _data(actuators: dict[str, IsaacActuator]) -> str:
    content = {
        joint: {"kind": one.kind, "servo": one.servo, **_numbers(one)} for joint, one in actuators.items()
    }
    return yaml.safe_dump({"schema": 1, "actuators": content}, sort_keys=False)


def _module(task: ExportTask, actuators: dict[str, IsaacActuator]) -> str:
    kinds = ", ".join(sorted({one.kind for one in actuators.values()}))
    lines = [
        '"""Actuators of identified joints for Isaac Lab."""',
        "",
        f"from isaaclab.actuators import {kinds}",
        "",
    ]
    lines += ["ACTUATORS = {"]
    for servo in task.joints:
        one = actuators[servo.joint]
        lines += [f"    # {title_of(servo)}", f'    "{identifier(servo.joint)}": {one.kind}(']
        lines += [f"        joint_names_expr=[{re.escape(servo.joint)!r}],"]
        lines += [f"        {name}={value!r}," for name, value in _numbers(one).items()]
        lines += ["    ),"]
    return "\n".join([*lines, "}", ""])
