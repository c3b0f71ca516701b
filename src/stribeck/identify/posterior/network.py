r"""Mechanical link parameters of an arm, and their relation to measurements (Reiners et al. 2025, §II-A).

Each link has a mass m, a centre of mass c and an inertia I about it, both in axes whose z points along the link's translation
to the next joint, and the inertia J that the motor adds to its joint. The axis inertias, :math:`X = Y(q)\,\Lambda(\delta)`, and
joint torques are linear in the standard inertial parameters :math:`\pi(\delta)` of :mod:`stribeck.identify.arm.model` and in J.
The paper lists Λ for one robot; here it is computed from the URDF.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from stribeck.identify.arm.base_parameters import BaseParameters, base_parameters
from stribeck.identify.arm.inertia import about_com, inertials_of
from stribeck.identify.arm.jax_chain import chain_of
from stribeck.identify.arm.model import INERTIALS, ArmModel
from stribeck.model.arrays import Array

INERTIA_NAMES = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
LINK_NAMES = ("m", "rx", "ry", "rz", *INERTIA_NAMES, "J")
"""Mechanical parameters of one link [kg, m, kg m²]."""

_ROWS, _COLUMNS = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)


class Mechanical(NamedTuple):
    """Mechanical parameters of n links.

    :param mass: (…, n) [kg].
    :param com: centres of mass in link-aligned axes, (…, n, 3) [m].
    :param inertia: about the centres of mass, in the order of :data:`INERTIA_NAMES`, (…, n, 6) [kg m²].
    :param motor: motor inertias (…, n) [kg m²].
    """

    mass: Any
    com: Any
    inertia: Any
    motor: Any

    @property
    def table(self) -> Any:
        """All parameters, in the order of :data:`LINK_NAMES`, (…, n, 11)."""
        return jnp.concatenate([self.mass[..., None], self.com, self.inertia, self.motor[..., None]], axis=-1)


def translations(arm: ArmModel) -> Array:
    """Translation from each joint to the next one, in joint axes (n, 3) [m]; zero for the last link."""
    vectors = np.zeros((len(arm), 3))
    ids = [arm.model.getJointId(joint) for joint in arm.joints]
    for child in ids:
        parent = int(arm.model.parents[child])
        if parent in ids:
            vectors[ids.index(parent)] = arm.model.jointPlacements[child].translation
    return vectors


def link_frames(arm: ArmModel) -> Array:
    """Rotations (n, 3, 3) from link-aligned to joint axes; links without translation are aligned with the joint axis."""
    frames, axes = np.empty((len(arm), 3, 3)), joint_axes(arm)
    for k, along in enumerate(translations(arm)):
        length = np.linalg.norm(along)
        frames[k] = _rotation_onto(along / length if length > 1e-6 else axes[k])
    return frames


def exchanged(moments: Any) -> Any:
    r"""Second moments of mass :math:`\Sigma = \frac12 tr(I)\,1 - I`, (…, 6) like I in the order of :data:`INERTIA_NAMES`."""
    half = 0.5 * jnp.sum(moments[..., :3], axis=-1, keepdims=True)
    return jnp.concatenate([half - moments[..., :3], -moments[..., 3:]], axis=-1)


def inertia_of(second: Any) -> Any:
    r"""Moments of inertia :math:`I = tr(\Sigma)\,1 - \Sigma` from second moments of mass, both (…, 6)."""
    trace = jnp.sum(second[..., :3], axis=-1, keepdims=True)
    return jnp.concatenate([trace - second[..., :3], -second[..., 3:]], axis=-1)


def square(six: Any) -> Any:
    """Symmetric matrices (…, 3, 3) from six components in the order of :data:`INERTIA_NAMES`."""
    xx, yy, zz, xy, xz, yz = (six[..., k] for k in range(6))
    rows = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def moments(links: Mechanical) -> Any:
    r"""Zeroth, first and second moments of mass about the joint in link-aligned axes, then J, (…, 11 n).

    Per link :math:`m, m c, \Sigma + m c c^T`, then the motor inertias of all links. The constant matrix :func:`to_standard`
    times these gives the standard parameters.
    """
    first = links.mass[..., None] * links.com
    about = jnp.stack(
        [first[..., i] * links.com[..., j] for i, j in zip(_ROWS, _COLUMNS, strict=True)], axis=-1
    )
    each = jnp.concatenate([links.mass[..., None], first, exchanged(links.inertia) + about], axis=-1)
    return jnp.concatenate([each.reshape(*each.shape[:-2], -1), links.motor], axis=-1)


def to_standard(frames: Array) -> Array:
    """Matrix (11 n, 11 n) from :func:`moments` to standard inertial parameters and motor inertias.

    :param frames: link-aligned axes in joint axes (n, 3, 3).
    """
    n = len(frames)
    matrix = np.eye((INERTIALS + 1) * n)
    for k, rotation in enumerate(frames):
        pseudo = np.zeros((INERTIALS, 4, 4))
        pseudo[0, 3, 3] = 1.0
        pseudo[1:4, :3, 3] = pseudo[1:4, 3, :3] = rotation.T
        pseudo[4:, :3, :3] = rotation @ square(np.eye(6)) @ rotation.T
        link = slice(INERTIALS * k, INERTIALS * (k + 1))
        matrix[link, link] = inertials_of(pseudo).T
    return matrix


def mechanical_of(arm: ArmModel, motor: Array, inertials: Array | None = None) -> Mechanical:
    """Mechanical parameters from the URDF, or from other standard inertial parameters (10 n,).

    :param motor: inertia that each motor adds (n,) [kg m²].
    """
    given = arm.inertials if inertials is None else inertials
    mass, com, inertia = about_com(np.reshape(given, (-1, INERTIALS)))
    frames = link_frames(arm)
    turned = np.einsum("nji,njk,nkl->nil", frames, inertia, frames)
    return Mechanical(
        mass, np.einsum("nji,nj->ni", frames, com), turned[:, _ROWS, _COLUMNS], np.asarray(motor, dtype=float)
    )


def inertia_regressor(arm: ArmModel, position: Array) -> Array:
    r"""Y (N, n, 11 n) with :math:`X_j = M_{jj}(q) + J_j = Y_j [\pi, J]` at poses (N, n) [rad].

    Row j is the torque of joint j when only it accelerates, with 1 rad/s², minus the torque at rest.
    """
    n, count = len(arm), len(position)
    still = np.zeros_like(position)
    gravity = arm.regressor(position, still, still)
    rows = np.zeros((count, n, (INERTIALS + 1) * n))
    for j in range(n):
        moved = arm.regressor(position, still, still + np.eye(n)[j])
        rows[:, j, : INERTIALS * n] = moved[:, j] - gravity[:, j]
        rows[:, j, INERTIALS * n + j] = 1.0
    return rows


def inertia_base(arm: ArmModel) -> BaseParameters:
    """Base parameters Λ of the axis inertias, from random poses."""
    poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (40 * len(arm), len(arm)))
    rows = inertia_regressor(arm, poses)
    names = (*arm.parameter_names, *(f"J_{joint}" for joint in arm.joints))
    return base_parameters(rows.reshape(-1, rows.shape[-1]), names)


def joint_axes(arm: ArmModel) -> Array:
    """Axis of each joint in its own frame (n, 3)."""
    chain = chain_of(arm)
    axes = np.empty((len(arm), 3))
    axes[list(chain.order)] = chain.angular + chain.linear
    return axes


def _rotation_onto(direction: Array) -> Array:
    """The smallest rotation that maps z to a direction."""
    cross, cosine = np.cross([0.0, 0.0, 1.0], direction), direction[2]
    if cosine < -1.0 + 1e-9:
        return np.diag([1.0, -1.0, -1.0])
    hat = np.cross(np.eye(3), cross)
    return np.asarray(np.eye(3) + hat + hat @ hat / (1.0 + cosine))
