r"""Nominal geometry from a URDF, and the calibrated geometry back into it.

Pinocchio gives the placement :math:`M_j` of each joint behind the one before, with fixed joints merged, and its
axis. Frames here have z along the axis, :math:`A_j e_z = a_j`, so that :math:`P_j = A_{j-1}^T M_j A_j`. A
calibrated placement :math:`M_j' = A_{j-1} P_j' A_j^T` changes the origin :math:`O_j` of the joint in the file
to :math:`O_j M_j^{-1} M_j'`: fixed joints before it stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from stribeck.errors import ConfigError
from stribeck.io.files import write_atomically
from stribeck.kinematics.calibrated_chain import origin_of
from stribeck.kinematics.chain import SerialChain

FloatArray = npt.NDArray[np.float64]


def read_urdf_chain(path: Path, joints: Sequence[str] = ()) -> SerialChain:
    """The chain of some joints of a URDF; all others stay at 0.

    :param joints: their names from the base on; all that move if empty.
    :raises ConfigError: for files that are no URDF, unknown joints, and joints that form no chain.
    """
    model, axes = _reduced(path, joints)
    turns = [_frame_along(axis) for _, axis in axes]
    placements, before = [], np.eye(4)
    for placement, turn in zip(_placements(model), turns, strict=True):
        placements.append(before.T @ placement @ turn)
        before = turn
    flange = np.eye(4)
    flange[:3, :3] = before[:3, :3].T
    return SerialChain(
        tuple(model.names)[1:], np.stack(placements), flange, tuple(slides for slides, _ in axes)
    )


def _reduced(path: Path, joints: Sequence[str]) -> tuple[pin.Model, list[tuple[bool, FloatArray]]]:
    """Pinocchio's model of the joints alone, and kind and axis of each."""
    try:
        model = pin.buildModelFromUrdf(str(path))
    except (ValueError, RuntimeError) as problem:
        raise ConfigError(f"{path} is not a valid URDF: {problem}") from None
    moving = list(model.names)[1:]
    wanted = list(joints) or moving
    unknown = [joint for joint in wanted if joint not in moving]
    if unknown:
        raise ConfigError(f"{path} has no joint {', '.join(unknown)}; it has {', '.join(moving)}")
    locked = [model.getJointId(name) for name in moving if name not in wanted]
    model = pin.buildReducedModel(model, locked, pin.neutral(model))
    if list(model.names)[1:] != wanted:
        raise ConfigError(
            f"{path}: joints must be named from the base on: {', '.join(list(model.names)[1:])}"
        )
    if list(model.parents)[1:] != list(range(model.njoints - 1)):
        raise ConfigError(f"{path}: {', '.join(wanted)} are no chain: name the joints of one arm")
    return model, [_kind(model, path, j) for j in range(1, model.njoints)]


def _kind(model: pin.Model, path: Path, joint: int) -> tuple[bool, FloatArray]:
    """Whether a joint is prismatic, and its axis."""
    data = model.createData()
    position = pin.neutral(model)
    pin.computeJointJacobians(model, data, position)
    if model.joints[joint].nv != 1:
        raise ConfigError(
            f"{path}: joint {model.names[joint]} has {model.joints[joint].nv} degrees of freedom, not 1"
        )
    motion = pin.getJointJacobian(model, data, joint, pin.ReferenceFrame.LOCAL)[:, model.joints[joint].idx_v]
    slides = bool(np.linalg.norm(motion[3:]) < 1e-9)
    axis: FloatArray = motion[:3] if slides else motion[3:]
    return slides, axis


def _placements(model: pin.Model) -> list[FloatArray]:
    """Placement of each joint in the frame of the one before (4, 4)."""
    return [model.jointPlacements[j].homogeneous for j in range(1, model.njoints)]


def _frame_along(axis: FloatArray) -> FloatArray:
    """A rotation (4, 4) that carries z to an axis; the identity for z itself."""
    z = np.array([0.0, 0.0, 1.0])
    pose = np.eye(4)
    pose[:3, :3] = pin.Quaternion.FromTwoVectors(z, axis).toRotationMatrix()
    return pose


def write_calibrated_urdf(path: Path, nominal: Path, chain: SerialChain) -> None:
    """Write a copy of a URDF with the origins of a calibrated chain.

    :param path: the file to write.
    :param nominal: the URDF that the chain came from.
    :param chain: its placements are the calibrated ones.
    :raises OutputError: if the file cannot be written.
    """
    model, axes = _reduced(nominal, chain.names)
    tree = ElementTree.parse(nominal)  # noqa: S314 - the same file that Pinocchio has read
    elements = {joint.get("name"): joint for joint in tree.getroot().findall("joint")}
    before = np.eye(4)
    for j, (placement, (_, axis)) in enumerate(zip(_placements(model), axes, strict=True)):
        turn = _frame_along(axis)
        calibrated = before @ chain.placements[j] @ turn.T
        _change_origin(elements[chain.names[j]], np.linalg.inv(placement) @ calibrated)
        before = turn
    ElementTree.indent(tree)
    text = ElementTree.tostring(tree.getroot(), encoding="unicode")
    write_atomically(path, '<?xml version="1.0"?>\n' + text + "\n")


def _change_origin(joint: ElementTree.Element, change: FloatArray) -> None:
    """Put a pose behind the origin of a joint."""
    origin = joint.find("origin")
    if origin is None:
        origin = ElementTree.SubElement(joint, "origin")
    xyz = [float(word) for word in origin.get("xyz", "0 0 0").split()]
    roll, pitch, yaw = (float(word) for word in origin.get("rpy", "0 0 0").split())
    pose = np.eye(4)
    pose[:3, :3] = pin.rpy.rpyToMatrix(roll, pitch, yaw)
    pose[:3, 3] = xyz
    position, angles = origin_of(pose @ change)
    origin.set("xyz", " ".join(repr(value) for value in position))
    origin.set("rpy", " ".join(repr(value) for value in angles))
