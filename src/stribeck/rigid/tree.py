r"""Joints and bodies of a robot as a tree, with poses and inertias as matrices (4, 4).

A pose is :math:`T = \begin{pmatrix} R & p \\ 0 & 1 \end{pmatrix}` with rotation R and origin p [m]. The inertia of a
body is its second moment of mass in homogeneous coordinates, the pseudo-inertia

.. math:: P = \int \begin{pmatrix} x \\ 1 \end{pmatrix} \begin{pmatrix} x \\ 1 \end{pmatrix}^T dm
    = \begin{pmatrix} \frac12 tr(I)\,1 - I + m c c^T & m c \\ m c^T & m \end{pmatrix}

with mass m [kg], centre of mass c [m] and inertia I about it [kg m²]. In another frame it is :math:`T P T^T`. The
pseudo-inertia of rigidly connected bodies is the sum of theirs, so locking a joint needs no parallel-axis theorem
(Wensing, Kim, Slotine 2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from stribeck.model.arrays import Array, Mask

BASE = -1
"""Index of the fixed base, as the parent of a joint."""


@dataclass(frozen=True, eq=False)
class TreeJoint:
    """A joint and the body that it moves.

    :param kind: ``revolute`` (including continuous), ``prismatic`` or ``fixed``.
    :param parent: index of the joint whose body carries this one, or :data:`BASE`.
    :param placement: pose (4, 4) of the joint's frame, at position 0, in the frame of the parent.
    :param axis: unit vector (3,) of the rotation or translation in the joint's frame.
    :param pseudo_inertia: pseudo-inertia (4, 4) of the body, in the joint's frame [kg, kg m, kg m²].
    """

    name: str
    kind: str
    parent: int
    placement: Array
    axis: Array
    pseudo_inertia: Array


@dataclass(frozen=True, eq=False)
class KinematicTree:
    """Joints on a fixed base, in any order.

    :param joints: the joints, each with its body.
    :param frames: further named frames: index of the body that carries each, and its pose (4, 4) in the frame of
        that body's joint.
    """

    joints: tuple[TreeJoint, ...]
    frames: Mapping[str, tuple[int, Array]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints, in order."""
        return tuple(joint.name for joint in self.joints)

    def ancestors(self) -> Mask:
        """Whether joint k carries body i, (n, n) at [i, k]; each joint carries its own body."""
        carries = np.zeros((len(self.joints),) * 2, dtype=bool)
        for i in range(len(self.joints)):
            k = i
            while k != BASE:
                carries[i, k] = True
                k = self.joints[k].parent
        return carries

    def reduced(self, names: Sequence[str]) -> KinematicTree:
        """The tree of the named joints, in that order; all others are locked at 0 and their bodies merged."""
        new = {self.names.index(name): k for k, name in enumerate(names)}
        places: dict[int, tuple[int, Array]] = {BASE: (BASE, np.eye(4))}
        for start in range(len(self.joints)):
            path = [start]  # iterative, because chains can be longer than Python's recursion limit
            while path[-1] not in places and self.joints[path[-1]].parent not in places:
                path.append(self.joints[path[-1]].parent)
            for i in reversed(path):
                joint = self.joints[i]
                body, pose = places[joint.parent]
                if i in new:
                    places[i] = (new[i], np.eye(4))
                else:
                    places[i] = (body, pose @ joint.placement)
        inertias = np.zeros((len(new) + 1, 4, 4))  # the last one, at BASE, belongs to the base
        for i, joint in enumerate(self.joints):
            body, pose = places[i]
            inertias[body] += pose @ joint.pseudo_inertia @ pose.T
        kept = []
        for i, k in new.items():
            body, pose = places[self.joints[i].parent]
            kept.append(
                replace(
                    self.joints[i],
                    parent=body,
                    placement=pose @ self.joints[i].placement,
                    pseudo_inertia=inertias[k],
                )
            )
        frames = {name: (places[i][0], places[i][1] @ pose) for name, (i, pose) in self.frames.items()}
        return KinematicTree(tuple(kept), frames)

    def with_inertias(self, change: Callable[[int], Array]) -> KinematicTree:
        """The tree with ``change(i)`` (4, 4) added to the pseudo-inertia of body i."""
        joints = tuple(
            replace(joint, pseudo_inertia=joint.pseudo_inertia + change(i))
            for i, joint in enumerate(self.joints)
        )
        return replace(self, joints=joints)


def cross_matrix(vector: npt.ArrayLike) -> Array:
    r"""Matrix (3, 3) of the vector product: :math:`\hat a\,b = a \times b`."""
    x, y, z = np.asarray(vector, dtype=np.float64)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def pose_of(xyz: npt.ArrayLike = (0.0, 0.0, 0.0), rpy: npt.ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    r"""Pose (4, 4) from the origin and angles of a URDF: :math:`R = R_z(y)\,R_y(p)\,R_x(r)`.

    :param xyz: origin (3,) [m].
    :param rpy: roll, pitch, yaw (3,) [rad].
    """
    pose = np.eye(4)
    pose[:3, 3] = xyz
    for axis, angle in zip(np.eye(3), np.asarray(rpy, dtype=np.float64), strict=True):
        turn = cross_matrix(axis)
        pose[:3, :3] = (np.eye(3) + math.sin(angle) * turn + (1.0 - math.cos(angle)) * turn @ turn) @ pose[
            :3, :3
        ]
    return pose


def pseudo_inertia_of(mass: float, com: npt.ArrayLike, inertia: npt.ArrayLike) -> Array:
    """Pseudo-inertia (4, 4) of a mass [kg], its centre (3,) [m] and its inertia about it (3, 3) [kg m²]."""
    centre, about = np.asarray(com, dtype=np.float64), np.asarray(inertia, dtype=np.float64)
    pseudo_inertia = mass * np.outer([*centre, 1.0], [*centre, 1.0])
    pseudo_inertia[:3, :3] += 0.5 * np.trace(about) * np.eye(3) - about
    return pseudo_inertia
