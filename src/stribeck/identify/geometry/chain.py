r"""Position kinematics of serial arms as a product of elementary transforms, with exact derivatives.

Frame 0 is the base; frame j = 1…n moves with joint j and has its z axis along that joint's axis. The measuring system
sees a point :math:`p` of the flange frame at

.. math:: y = B\,E_0\,P_1 E_1(q_1)\,P_2 E_2(q_2) \cdots P_n E_n(q_n)\,F\,p

with the constant base pose B, nominal placements :math:`P_j` and flange F, and blocks :math:`E_j` of six elementary
transforms. Each is a translation along or a rotation about one axis of the frame by a *magnitude*. The first transform
of block j is the motion of the joint; the other five are deviations from the nominal geometry. The parameters of
:mod:`stribeck.identify.geometry.model` act on the magnitudes only. Between parallel axes the rotation about y is Hayati's
parameter, so parallel axes need no special case. Lengths are in m, angles in rad.

Sources: Denavit and Hartenberg 1955; Hayati and Mirmirani 1985; Corke 2007 (chains of elementary transforms).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Literal

import numpy as np

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array, Indices

AXES = ("x", "y", "z", "rx", "ry", "rz")
"""Elementary transforms: translations along, and rotations about, the axes of a frame."""

BLOCK = 6
"""Elementary transforms per block."""

BASE_ORDER = (0, 1, 2, 3, 4, 5)
REVOLUTE_ORDER = (5, 0, 1, 2, 3, 4)
PRISMATIC_ORDER = (2, 0, 1, 3, 4, 5)
"""Order of the transforms in the blocks of the base and of each joint type; the joint's own motion comes first."""


@dataclass(frozen=True, eq=False)
class SerialChain:
    """The nominal geometry of a serial chain of revolute and prismatic joints.

    :param placements: pose of each joint frame in the previous frame at joint position 0 (n, 4, 4); its z axis is the
        joint axis.
    :param flange: flange pose in the frame of the last joint (4, 4).
    :param prismatic: whether a joint is prismatic (n,).
    :raises ConfigError: for arrays of different lengths, or matrices that are not poses.
    """

    names: tuple[str, ...]
    placements: Array
    flange: Array
    prismatic: tuple[bool, ...]

    def __post_init__(self) -> None:
        n = len(self.names)
        if n == 0 or self.placements.shape != (n, 4, 4) or self.flange.shape != (4, 4):
            raise ConfigError(
                f"for {n} joints {n} placements of 4×4 and a flange are needed, found {self.placements.shape} and {self.flange.shape}"
            )
        if len(self.prismatic) != n or len(set(self.names)) != n:
            raise ConfigError(f"each joint needs a kind and a unique name, found {self.names}")
        for pose in (*self.placements, self.flange):
            gram = pose[:3, :3] @ pose[:3, :3].T
            if not np.allclose(gram, np.eye(3), atol=1e-9) or not np.isfinite(pose).all():
                raise ConfigError("a placement in the chain must consist of a rotation and a translation")

    @cached_property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """Order of the elementary transforms in each block, base first."""
        joints = (PRISMATIC_ORDER if slides else REVOLUTE_ORDER for slides in self.prismatic)
        return (BASE_ORDER, *joints)

    @cached_property
    def kinds(self) -> Indices:
        """Kind of each elementary transform as an index into :data:`AXES` (6n + 6,)."""
        return np.array([kind for order in self.orders for kind in order])

    @property
    def reach(self) -> float:
        """Sum of the distances between neighbouring frames [m], an upper bound of the flange's distance from the base."""
        lengths = np.linalg.norm(self.placements[:, :3, 3], axis=1).sum()
        return float(lengths + np.linalg.norm(self.flange[:3, 3]))

    def element(self, frame: int, axis: str) -> int:
        """Index of the elementary transform of a frame (0: base) along or about an axis of :data:`AXES`."""
        return BLOCK * frame + self.orders[frame].index(AXES.index(axis))

    def joint_element(self, joint: int) -> int:
        """Index of the elementary transform of the motion of joint 0…n−1."""
        return BLOCK * (joint + 1)

    def magnitudes(self, positions: Array) -> Array:
        """Magnitudes of the elementary transforms of the nominal chain (poses, 6n + 6).

        :param positions: joint positions (poses, n) [rad, m].
        """
        magnitudes = np.zeros((len(positions), len(self.kinds)))
        magnitudes[:, BLOCK::BLOCK] = positions
        return magnitudes


@dataclass(frozen=True, eq=False)
class ChainMotion:
    """Frames of a chain in several poses, in the frame of the measuring system.

    :param rotation: flange rotation (poses, 3, 3).
    :param position: flange position (poses, 3) [m].
    :param axes: axis of each elementary transform (poses, 6n + 6, 3).
    :param origins: a point on each of these axes (poses, 6n + 6, 3) [m].
    """

    rotation: Array
    position: Array
    axes: Array
    origins: Array

    def points(self, behind_flange: Array) -> Array:
        """Transform points (k, 3) from the flange frame to the measuring system (poses, k, 3) [m]."""
        return np.asarray(behind_flange @ self.rotation.transpose(0, 2, 1) + self.position[:, None])


def move(chain: SerialChain, base: Array, magnitudes: Array) -> ChainMotion:
    """Multiply all elementary transforms, for all poses at once.

    :param base: pose of the nominal base in the frame of the measuring system (4, 4).
    :param magnitudes: magnitudes of the elementary transforms (poses, 6n + 6) [m, rad].
    """
    poses, elements = magnitudes.shape
    rotation = np.tile(base[:3, :3], (poses, 1, 1))
    position = np.tile(base[:3, 3], (poses, 1))
    axes, origins = np.empty((poses, elements, 3)), np.empty((poses, elements, 3))
    for e, kind in enumerate(chain.kinds):
        if e % BLOCK == 0 and e > 0:
            rotation, position = _placed(rotation, position, chain.placements[e // BLOCK - 1])
        axis, magnitude = rotation[:, :, kind % 3].copy(), magnitudes[:, e]
        axes[:, e], origins[:, e] = axis, position
        if kind < 3:
            position = position + axis * magnitude[:, None]
        else:
            _turn(rotation, kind % 3, magnitude)
    rotation, position = _placed(rotation, position, chain.flange)
    return ChainMotion(rotation, position, axes, origins)


def _placed(rotation: Array, position: Array, pose: Array) -> tuple[Array, Array]:
    """Multiply moving frames by a constant pose."""
    return rotation @ pose[:3, :3], position + rotation @ pose[:3, 3]


def _turn(rotation: Array, axis: int, angle: Array) -> None:
    """Rotate frames (poses, 3, 3) about one of their axes, in place."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    first, second = rotation[:, :, i].copy(), rotation[:, :, j].copy()
    rotation[:, :, i] = first * c + second * s
    rotation[:, :, j] = second * c - first * s


def point_derivatives(chain: SerialChain, motion: ChainMotion, points: Array) -> Array:
    r"""Derivative of points with respect to the magnitudes (poses, k, 3, 6n + 6).

    :math:`\partial y/\partial m_e = a_e` for a translation along the axis :math:`a_e` and
    :math:`a_e \times (y - o_e)` for a rotation about it through :math:`o_e`.

    :param points: points in the frame of the measuring system (poses, k, 3) [m].
    """
    axes = motion.axes[:, None]
    rotations = np.cross(axes, points[:, :, None] - motion.origins[:, None])
    return np.where((chain.kinds >= 3)[:, None], rotations, axes).transpose(0, 1, 3, 2)


def elementary(axis: str, magnitude: float) -> Array:
    """One elementary transform of :data:`AXES` as a matrix (4, 4)."""
    pose = np.eye(4)
    kind = AXES.index(axis)
    if kind < 3:
        pose[kind, 3] = magnitude
    else:
        _turn(pose[None, :3, :3], kind % 3, np.array([magnitude]))
    return pose


def product(*poses: Array) -> Array:
    """Product of matrices (4, 4)."""
    return reduce(np.matmul, poses, np.eye(4))


def dh_chain(
    rows: Sequence[tuple[float, float, float, float]],
    names: Sequence[str],
    convention: Literal["standard", "modified"] = "standard",
) -> SerialChain:
    r"""Chain of revolute joints from a Denavit-Hartenberg table.

    :param rows: :math:`(\theta_j, d_j, a_j, \alpha_j)` of each joint [rad, m, m, rad], where the joint position
        is added to :math:`\theta_j`. The transform to frame j is :math:`R_z(\theta)T_z(d)T_x(a)R_x(\alpha)` in the
        standard convention and :math:`R_x(\alpha)T_x(a)R_z(\theta)T_z(d)` in the modified one (Craig).
    :raises ConfigError: unless there is one row for each name.
    """
    if len(rows) != len(names):
        raise ConfigError(
            f"the table has {len(rows)} rows for {len(names)} joints, but one row for each joint is needed"
        )
    placements, rest = [], np.eye(4)
    for theta, d, a, alpha in rows:
        along = product(elementary("rz", theta), elementary("z", d))
        across = product(elementary("x", a), elementary("rx", alpha))
        if convention == "standard":
            placements.append(rest @ elementary("rz", theta))
            rest = elementary("z", d) @ across
        else:
            placements.append(across @ along)
    return SerialChain(tuple(names), np.stack(placements), rest, (False,) * len(names))
