"""Export to USD: drives, limits, armature and friction of joints, as a layer that overrides those of a robot's stage.

The layer sublayers the robot and has opinions on its joints alone: ``UsdPhysics.DriveAPI``, and PhysX's ``PhysxJointAxisAPI``
(armature, largest velocity, static, dynamic and viscous friction; PhysX 5.6, joints of articulations). Along angular axes USD has degrees:
N m/deg, N m s/deg, deg/s; efforts and armature do not change.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from pxr import Sdf, Usd, UsdPhysics

from stribeck.errors import ConfigError
from stribeck.exports.affine import affine
from stribeck.exports.loss import as_controller as simulated
from stribeck.exports.task import ExportTask, JointServo, Written, ramp_notes

__all__ = ["simulated", "write"]

KINDS = {"rotary": ("PhysicsRevoluteJoint", "angular"), "linear": ("PhysicsPrismaticJoint", "linear")}


OF_THE_STAGE = ("upAxis", "metersPerUnit", "kilogramsPerUnit")
"""What a stage takes from the layer that is opened alone, not from the layers below it."""


def write(task: ExportTask) -> Written:
    """The layer, as text (``.usda``).

    :raises ConfigError: for stages that cannot be read, and joints that are missing, there twice or of another kind.
    """
    stage, layer = over_robot(task, "usd")
    edited = Usd.Stage.Open(layer)
    for servo in task.joints:
        _apply(edited.GetPrimAtPath(joint_path(stage, task, servo)), servo)
    notes = (
        "the drive's limit also limits the back-EMF; PhysX before 5.6 does not know the friction attributes",
    )
    return Written({task.output: layer_text(task, layer)}, (*notes, *ramp_notes(task)))


def over_robot(task: ExportTask, name: str) -> tuple[Any, Any]:
    """The stage of a task's robot, and an empty layer over it.

    :param name: of the format.
    :raises ConfigError: for an output that is no text layer, and a stage that cannot be read.
    """
    model = task.robot(name)
    if task.output.suffix != ".usda":
        raise ConfigError(
            f"{name} writes a text layer: choose a file name that ends in .usda, found {task.output}"
        )
    try:
        stage = Usd.Stage.Open(str(model))
    except Exception as problem:  # pxr raises its own types for each kind of damage
        raise ConfigError(
            f"{model} cannot be read as a USD stage: {' '.join(str(problem).split())[:200]}"
        ) from None
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.subLayerPaths.append(str(model.resolve()))
    if stage.HasDefaultPrim():
        layer.defaultPrim = stage.GetDefaultPrim().GetName()
    for name in OF_THE_STAGE:
        if stage.HasAuthoredMetadata(name):
            layer.pseudoRoot.SetInfo(name, stage.GetMetadata(name))
    return stage, layer


def layer_text(task: ExportTask, layer: Any) -> str:
    """A layer of :func:`over_robot` as text, with the path of the robot relative to the output."""
    model = task.robot("usd")
    relative = Path(os.path.relpath(model.resolve(), task.output.resolve().parent)).as_posix()
    # Not in the layer itself: a stage that is still open would look for the relative path, and warn.
    written = Sdf.Layer.CreateAnonymous(".usda")
    written.TransferContent(layer)
    written.subLayerPaths[0] = relative if relative.startswith(".") else f"./{relative}"
    return str(written.ExportToString())


def joint_path(stage: Any, task: ExportTask, servo: JointServo) -> Any:
    """Path of the joint with the servo's name, or with its path."""
    joints = [prim for prim in stage.Traverse() if prim.IsA(UsdPhysics.Joint)]
    found = [prim for prim in joints if servo.joint in (prim.GetName(), str(prim.GetPath()))]
    if len(found) != 1:
        what = f"{len(found)} joints" if found else "no joint"
        names = ", ".join(str(prim.GetPath()) for prim in joints) or "none"
        raise ConfigError(f"{task.model} has {what} named {servo.joint!r}; it has: {names}")
    units = servo.servo.parameters.actuator.units
    if found[0].GetTypeName() != KINDS[units][0]:
        raise ConfigError(
            f"{task.model}: joint {servo.joint!r} is a {found[0].GetTypeName()}, but {units} servos need a {KINDS[units][0]}"
        )
    return found[0].GetPath()


def _apply(prim: Any, servo: JointServo) -> None:
    file = servo.servo.parameters
    p, motor, axis = file.values, affine(servo.servo), KINDS[file.actuator.units][1]
    per_degree = math.radians(1.0) if axis == "angular" else 1.0
    drive = UsdPhysics.DriveAPI.Apply(prim, axis)
    drive.CreateTypeAttr("force")
    drive.CreateStiffnessAttr(motor.stiffness * per_degree)
    drive.CreateDampingAttr((motor.feedback + motor.back_emf) * per_degree)
    drive.CreateMaxForceAttr(motor.force)
    prim.AddAppliedSchema(f"PhysxJointAxisAPI:{axis}")
    physx = {
        "armature": p["armature"],
        "staticFrictionEffort": p["friction_base"],
        "dynamicFrictionEffort": p["friction_base"],
        "viscousFrictionCoefficient": p["friction_viscous"] * per_degree,
    }
    if motor.speed is not None:
        physx["maxJointVelocity"] = motor.speed / per_degree
    for name, value in physx.items():
        attribute = prim.CreateAttribute(
            f"physxJointAxis:{axis}:{name}", Sdf.ValueTypeNames.Float, custom=False
        )
        attribute.Set(value)
