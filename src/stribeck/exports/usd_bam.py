"""Export to USD: ``NewtonActuator`` prims with ``NewtonBamDriveAPI`` for joints, as a layer over a robot's stage.

Names are the drive's parameters in camel case under ``newton:``, flags and steps as ``int``, all else as ``float``; the joint gets
``newton:armature`` [kg m²], ``newton:damping`` (along angular axes N m s/deg) and a friction constraint, which the drive
overwrites in every step. Source: isaac-sim/IsaacLab, ``source/isaaclab/isaaclab/sim/schemas/schemas_actuators.py`` (0120677);
newton-physics/newton, ``newton/_src/usd/schemas.py`` (41a5392).
"""

from __future__ import annotations

import math
from typing import Any

from pxr import Sdf, Usd

from stribeck.exports.bam_drive import BamDrive, drive_of
from stribeck.exports.bam_drive import drive_motion as stepped
from stribeck.exports.isaaclab_bam import drive_notes
from stribeck.exports.task import ExportTask, JointServo, Written, identifier
from stribeck.exports.usd_layer import joint_path, layer_text, over_robot

__all__ = ["stepped", "write"]

SCHEMA = "NewtonBamDriveAPI"


def write(task: ExportTask) -> Written:
    """The layer, as text (``.usda``).

    :raises ConfigError: for stages that cannot be read, joints that are missing, there twice or of another kind, and servos that
        the drive lacks.
    """
    stage, layer = over_robot(task, "usd-bam")
    edited = Usd.Stage.Open(layer)
    for one in task.joints:
        _apply(edited, joint_path(stage, task, one), one, drive_of(one, task.timestep))
    return Written({task.output: layer_text(task, layer)}, drive_notes(task))


def attributes(drive: BamDrive) -> dict[str, float | int]:
    """Attributes of the prim by the name of the drive's parameter."""
    motor = drive.motor
    coefficients = {
        name: float(getattr(motor, name))
        for name in motor.__struct_fields__
        if name not in ("model", "friction_viscous")
    }
    return {
        **coefficients,
        "stribeck": int(motor.model != "m1"),
        "load_dependent": int(motor.model in ("m5", "m6")),
        "quadratic": int(motor.model == "m6"),
        "kp_fw": float(drive.kp_fw),
        "vin": float(drive.vin),
        "max_effort": float(drive.actuator_effort_limit),
        "min_delay": drive.min_delay,
        "max_delay": drive.max_delay,
    }


def _apply(stage: Any, path: Any, one: JointServo, drive: BamDrive) -> None:
    joint = stage.GetPrimAtPath(path)
    per_degree = math.radians(1.0) if one.servo.parameters.actuator.units == "rotary" else 1.0
    _set(joint, "armature", drive.armature)
    _set(joint, "damping", drive.motor.friction_viscous * per_degree)
    _set(joint, "friction", 1.0)
    prim = stage.DefinePrim(
        path.GetParentPath().AppendChild(f"{identifier(one.joint)}_actuator"), "NewtonActuator"
    )
    prim.AddAppliedSchema(SCHEMA)
    prim.CreateRelationship("newton:targets").SetTargets([path])
    for name, value in attributes(drive).items():
        _set(prim, name, value)


def _set(prim: Any, name: str, value: float) -> None:
    first, *others = name.split("_")
    kind = Sdf.ValueTypeNames.Int if isinstance(value, int) else Sdf.ValueTypeNames.Float
    camel = first + "".join(word.capitalize() for word in others)
    prim.CreateAttribute(f"newton:{camel}", kind, custom=False).Set(value)
