"""Export to the servo drive of Isaac Lab and Newton: ``BamActuatorCfg`` as Python, and the same numbers as YAML.

``import-params`` reads the YAML back. The drive runs with Newton's MJWarp solver and ``use_newton_actuators=True`` alone
(:mod:`stribeck.exports.bam_drive`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import yaml

from stribeck.errors import ConfigError
from stribeck.exports.bam_drive import BamDrive, delay_of, drive_of
from stribeck.exports.bam_drive import drive_motion as stepped
from stribeck.exports.task import ExportTask, Written, identifier, ramp_notes, title_of
from stribeck.files.schema import Positive, Schema, read_yaml

__all__ = ["stepped", "write"]

SETTINGS = ("armature", "actuator_effort_limit", "kp_fw", "vin", "min_delay", "max_delay")
"""Fields of ``BamActuatorCfg`` beside the motor and the joint."""


class IsaacLabBamFile(Schema):
    """Drives of joints.

    :param schema: version of the format.
    :param timestep: physics step in which delays are counted [s].
    :param drives: by joint.
    """

    schema: Literal[1]
    timestep: Positive
    drives: dict[str, BamDrive]


def read_isaaclab_bam(path: Path) -> IsaacLabBamFile:
    """Read the YAML file of an export.

    :raises ConfigError: for an invalid file.
    """
    return read_yaml(path, IsaacLabBamFile)


def write(task: ExportTask) -> Written:
    """The Python module and the YAML file.

    :raises ConfigError: for an output that is neither, and for servos that the drive lacks.
    """
    if task.output.suffix not in (".py", ".yaml"):
        raise ConfigError(
            f"isaaclab-bam writes a .py and a .yaml file: name one of them, found {task.output}"
        )
    drives = {one.joint: drive_of(one, task.timestep) for one in task.joints}
    python, data = task.output.with_suffix(".py"), task.output.with_suffix(".yaml")
    files: dict[Path, str | bytes] = {python: _module(task, drives), data: _data(task, drives)}
    return Written({task.output: files[task.output], **files}, drive_notes(task))


def drive_notes(task: ExportTask) -> tuple[str, ...]:
    """Remarks on what the drive leaves to others."""
    delays = [
        note
        for joint, servo in task.joints
        for note in delay_of(servo.parameters, task.timestep).notes(joint)
    ]
    return (
        "the drive runs with Newton's MJWarp solver and use_newton_actuators=True alone; it cannot switch torque off",
        *delays,
        *ramp_notes(task),
    )


def motor_fields(drive: BamDrive) -> dict[str, Any]:
    """Fields of ``BamMotorCfg`` in order; those of laws that the drive does not use are left out."""
    motor = drive.motor
    unused = {"m1": ("stribeck", "alpha", "load", "quad"), "m2": ("load", "quad"), "m5": ("quad",)}
    words = unused.get(motor.model, ())
    return {
        name: getattr(motor, name)
        for name in motor.__struct_fields__
        if not any(word in name for word in words)
    }


def _data(task: ExportTask, drives: dict[str, BamDrive]) -> str:
    content = {
        joint: {
            "servo": drive.servo,
            "motor": motor_fields(drive),
            **{name: getattr(drive, name) for name in SETTINGS},
        }
        for joint, drive in drives.items()
    }
    step = delay_of(task.joints[0].servo.parameters, task.timestep).timestep
    return yaml.safe_dump({"schema": 1, "timestep": step, "drives": content}, sort_keys=False)


def _module(task: ExportTask, drives: dict[str, BamDrive]) -> str:
    lines = [
        '"""Servo drives of identified joints for Isaac Lab with Newton."""',
        "",
        "from isaaclab.actuators import BamActuatorCfg, BamMotorCfg",
        "",
        "ACTUATORS = {",
    ]
    for one in task.joints:
        drive = drives[one.joint]
        lines += [f"    # {title_of(one)}", f'    "{identifier(one.joint)}": BamActuatorCfg(']
        lines += [f"        joint_names_expr=[{re.escape(one.joint)!r}],", "        motor=BamMotorCfg("]
        lines += [f"            {name}={value!r}," for name, value in motor_fields(drive).items()]
        lines += ["        ),"]
        lines += [f"        {name}={getattr(drive, name)!r}," for name in SETTINGS]
        lines += ["    ),"]
    return "\n".join([*lines, "}", ""])
