r"""Nominal geometry from a URDF, and the calibrated geometry written back into it.

With the placement :math:`M_j` of joint j in the frame of the previous joint, fixed joints merged, and a rotation
:math:`A_j` that takes z to the joint axis, the placement in a :class:`~stribeck.identify.geometry.chain.SerialChain` is
:math:`P_j = A_{j-1}^T M_j A_j`. A calibrated placement :math:`M_j' = A_{j-1} P_j' A_j^T` changes the joint's origin
:math:`O_j` in the file to :math:`O_j M_j^{-1} M_j'`; fixed joints before it are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from stribeck.errors import ConfigError
from stribeck.files.folders import write_atomically
from stribeck.identify.geometry.chain import AXES, BLOCK, SerialChain, elementary, product
from stribeck.identify.geometry.model import KinematicModel
from stribeck.model.arrays import Array
from stribeck.rigid.tree import TreeJoint, cross_matrix, pose_of
from stribeck.rigid.urdf import read_urdf, robot_element


def read_urdf_chain(path: Path, joints: Sequence[str] = ()) -> SerialChain:
    """Read the serial chain of some joints of a URDF; all other joints stay at 0.

    :param joints: joint names, starting at the base; empty for all movable joints.
    :raises ConfigError: for an invalid URDF, unknown joints, or joints that form no serial chain.
    """
    chain, axes = _joints(path, joints), [np.eye(4)]
    for joint in chain:
        axes.append(_rotation_to(joint.axis))
    placements = [
        before.T @ joint.placement @ axis
        for before, joint, axis in zip(axes[:-1], chain, axes[1:], strict=True)
    ]
    prismatic = tuple(joint.kind == "prismatic" for joint in chain)
    return SerialChain(tuple(joint.name for joint in chain), np.stack(placements), axes[-1].T, prismatic)


def _joints(path: Path, names: Sequence[str]) -> tuple[TreeJoint, ...]:
    """The joints of a chain, each placed in the frame of the previous one."""
    urdf = read_urdf(path)
    wanted = list(names) or list(urdf.movable)
    unknown = [name for name in wanted if name not in urdf.movable]
    if unknown:
        raise ConfigError(f"{path} has no joint {', '.join(unknown)}; it has {', '.join(urdf.movable)}")
    in_order = [name for name in urdf.movable if name in wanted]
    joints = urdf.tree.reduced(in_order).joints
    if [joint.parent for joint in joints] != list(range(-1, len(joints) - 1)):
        raise ConfigError(
            f"{path}: {', '.join(wanted)} do not form a serial chain: name only joints of one arm"
        )
    if wanted != in_order:
        raise ConfigError(f"{path}: joints must be in order from the base: {', '.join(in_order)}")
    return joints


def _rotation_to(axis: Array) -> Array:
    """The smallest rotation (4, 4) that takes z to a unit vector; for -z, half a turn about x."""
    pose = np.eye(4)
    if axis[2] < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0, 1.0])
    turn = cross_matrix(np.cross([0.0, 0.0, 1.0], axis))
    pose[:3, :3] += turn + turn @ turn / (1.0 + axis[2])
    return pose


def write_calibrated_urdf(path: Path, nominal: Path, chain: SerialChain) -> None:
    """Write a copy of a URDF with the joint origins of a calibrated chain.

    :param nominal: the URDF from which the nominal chain was read.
    :raises OutputError: if the file cannot be written.
    """
    root = robot_element(nominal)
    elements = {element.get("name"): element for element in root.findall("joint")}
    before = np.eye(4)
    for joint, placement in zip(_joints(nominal, chain.names), chain.placements, strict=True):
        axis = _rotation_to(joint.axis)
        _append_pose(elements[joint.name], np.linalg.inv(joint.placement) @ before @ placement @ axis.T)
        before = axis
    ElementTree.indent(root)
    write_atomically(path, '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n")


def _append_pose(joint: ElementTree.Element, change: Array) -> None:
    """Multiply the origin of a joint by a pose (4, 4) from the right."""
    origin = joint.find("origin")
    if origin is None:
        origin = ElementTree.SubElement(joint, "origin")
    xyz, rpy = ([float(word) for word in origin.get(key, "0 0 0").split()] for key in ("xyz", "rpy"))
    for key, values in zip(("xyz", "rpy"), origin_of(pose_of(xyz, rpy) @ change), strict=True):
        origin.set(key, " ".join(map(repr, values)))


GIMBAL_LOCK = 1e-9
"""Cosine of the pitch below which roll and yaw are about the same axis."""


def calibrated_chain(model: KinematicModel, values: Array) -> tuple[Array, SerialChain]:
    r"""Base pose (4, 4), and the chain with the constant parameters folded into its placements and flange.

    With the correction :math:`C_j` (block j without the joint's own motion) and the joint offset :math:`o_j`, the calibrated
    placements are :math:`P_j' = C_{j-1} P_j T(o_j)`, where T is the joint's own transform; :math:`C_0` belongs to the base.
    Gains, deflections and harmonics depend on the pose and are left out.
    """
    constants = {
        term.element: value
        for term, value in zip(model.terms, values, strict=False)
        if term.feature.kind == "constant"
    }
    chain = model.chain

    def transform(element: int) -> Array:
        return elementary(AXES[chain.kinds[element]], constants.get(element, 0.0))

    corrections = [
        product(*map(transform, range(BLOCK * frame + (frame > 0), BLOCK * (frame + 1))))
        for frame in range(len(chain.names) + 1)
    ]
    placements = [
        (corrections[j] if j > 0 else np.eye(4)) @ placement @ transform(chain.joint_element(j))
        for j, placement in enumerate(chain.placements)
    ]
    flange = corrections[-1] @ chain.flange
    return model.base @ corrections[0], replace(chain, placements=np.stack(placements), flange=flange)


def origin_of(pose: Array) -> tuple[list[float], list[float]]:
    """A pose in URDF form: xyz [m], and rpy about fixed axes [rad], with zero yaw in gimbal lock."""
    r = pose[:3, :3]
    cosine = float(np.hypot(r[0, 0], r[1, 0]))
    pitch = float(np.arctan2(-r[2, 0], cosine))
    if cosine > GIMBAL_LOCK:
        roll, yaw = float(np.arctan2(r[2, 1], r[2, 2])), float(np.arctan2(r[1, 0], r[0, 0]))
    else:
        roll, yaw = float(np.arctan2(-r[1, 2], r[1, 1])), 0.0
    return pose[:3, 3].tolist(), [roll, pitch, yaw]
