r"""From mechanical parameters of the links to what is measured: the algebraic edges of the network.

Per link: mass m, centre of mass c and inertia I about it, both in axes whose z points along the link's translation to the
next joint, and the inertia J that the motor adds to its joint. Inertias of the axes, :math:`X = Y(q)\,\Lambda(\delta)`, and
joint torques are linear in the standard inertial parameters :math:`\pi(\delta)` of :mod:`stribeck.arm.model` and in J.

Source: Reiners, Trinh et al., "Zero-Shot Parameter Learning of Robot Dynamics" (seed 003), §II-A. There Λ of one robot is
typed in; here it follows from the URDF.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stribeck.arm.base_parameters import BaseParameters, base_parameters
from stribeck.arm.inertia import about_com, inertials_of
from stribeck.arm.model import INERTIALS, ArmModel
from stribeck.excitation.chain import chain_of

Array = npt.NDArray[np.float64]

INERTIA_NAMES = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
LINK_NAMES = ("m", "rx", "ry", "rz", *INERTIA_NAMES, "J")
"""Mechanical parameters of one link [kg, m, kg m^2], centre of mass and inertia in axes along the link."""

_ROWS, _COLUMNS = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)


class Mechanical(NamedTuple):
    """Mechanical parameters of n links.

    :param mass: (…, n) [kg].
    :param com: centres of mass in axes along the links, (…, n, 3) [m].
    :param inertia: about the centres, in the order of :data:`INERTIA_NAMES`, (…, n, 6) [kg m^2].
    :param motor: (…, n) [kg m^2].
    """

    mass: Any
    com: Any
    inertia: Any
    motor: Any

    @property
    def table(self) -> Any:
        """All, in the order of :data:`LINK_NAMES`, (…, n, 11)."""
        return jnp.concatenate(
            [self.mass[..., None], self.com, self.inertia, self.motor[..., None]], axis=-1
        )


def translations(arm: ArmModel) -> Array:
    """From each joint to the next one, in the joint's axes (n, 3) [m]; the last link's is unknown, zero."""
    found = np.zeros((len(arm), 3))
    ids = [arm.model.getJointId(joint) for joint in arm.joints]
    for child in ids:
        parent = int(arm.model.parents[child])
        if parent in ids:
            found[ids.index(parent)] = arm.model.jointPlacements[child].translation
    return found


def link_frames(arm: ArmModel) -> Array:
    """Rotations (n, 3, 3) from axes along each link to those of its joint; along the joint's own axis without translation."""
    found, axes = np.empty((len(arm), 3, 3)), joint_axes(arm)
    for k, along in enumerate(translations(arm)):
        length = np.linalg.norm(along)
        found[k] = _rotation_onto(along / length if length > 1e-6 else axes[k])
    return found


def second_moments(inertia: Any) -> Any:
    r""":math:`\Sigma = \frac12 tr(I)\,1 - I` (…, 3, 3) of moments of inertia (…, 6): positive definite for possible bodies."""
    xx, yy, zz, xy, xz, yz = (inertia[..., k] for k in range(6))
    half = 0.5 * (xx + yy + zz)
    rows = ((half - xx, -xy, -xz), (-xy, half - yy, -yz), (-xz, -yz, half - zz))
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def inertia_of(second: Any) -> Any:
    """Moments of inertia (…, 6) of second moments of mass (…, 3, 3)."""
    trace = second[..., 0, 0] + second[..., 1, 1] + second[..., 2, 2]
    diagonal = [trace - second[..., k, k] for k in range(3)]
    off = [-second[..., i, j] for i, j in ((0, 1), (0, 2), (1, 2))]
    return jnp.stack(diagonal + off, axis=-1)


def standard_inertials(frames: Array, links: Mechanical) -> Any:
    """Standard inertial parameters (…, 10 n) in the joints' axes."""
    com = jnp.einsum("nij,...nj->...ni", frames, links.com)
    second = jnp.einsum("nij,...njk,nlk->...nil", frames, second_moments(links.inertia), frames)
    first = links.mass[..., None] * com
    upper = second + first[..., :, None] * com[..., None, :]
    top = jnp.concatenate([upper, first[..., None]], axis=-1)
    bottom = jnp.concatenate([first, links.mass[..., None]], axis=-1)[..., None, :]
    found = inertials_of(jnp.concatenate([top, bottom], axis=-2))
    return found.reshape(*found.shape[:-2], -1)


def mechanical_of(arm: ArmModel, motor: Array, inertials: Array | None = None) -> Mechanical:
    """Mechanical parameters of the URDF, or of other standard inertial parameters (10 n,).

    :param motor: inertia that each motor adds (n,) [kg m^2].
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

    Row j is what the torque of joint j asks for when it alone accelerates with 1 rad/s^2, less that at rest.
    """
    n, count = len(arm), len(position)
    still = np.zeros_like(position)
    gravity = arm.regressor(position, still, still)
    found = np.zeros((count, n, (INERTIALS + 1) * n))
    for j in range(n):
        moved = arm.regressor(position, still, still + np.eye(n)[j])
        found[:, j, : INERTIALS * n] = moved[:, j] - gravity[:, j]
        found[:, j, INERTIALS * n + j] = 1.0
    return found


def inertia_base(arm: ArmModel, seed: int = 0) -> BaseParameters:
    """Base parameters Λ that the axes' inertias depend on, from random poses."""
    poses = np.random.default_rng(seed).uniform(-np.pi, np.pi, (40 * len(arm), len(arm)))
    rows = inertia_regressor(arm, poses)
    names = (*arm.parameter_names, *(f"J_{joint}" for joint in arm.joints))
    return base_parameters(rows.reshape(-1, rows.shape[-1]), names)


def stacked(frames: Array, links: Mechanical) -> jax.Array:
    """Standard inertial parameters and motor inertias, (…, 11 n): what :func:`inertia_regressor` multiplies."""
    return jnp.concatenate([standard_inertials(frames, links), links.motor], axis=-1)


def joint_axes(arm: ArmModel) -> Array:
    """What each joint turns about or slides along, in its own axes (n, 3)."""
    chain = chain_of(arm)
    found = np.empty((len(arm), 3))
    found[list(chain.order)] = chain.angular + chain.linear
    return found


def _rotation_onto(direction: Array) -> Array:
    """The shortest rotation that takes z to a direction."""
    cross, cosine = np.cross([0.0, 0.0, 1.0], direction), direction[2]
    if cosine < -1.0 + 1e-9:
        return np.diag([1.0, -1.0, -1.0])
    hat = np.cross(np.eye(3), cross)
    return np.asarray(np.eye(3) + hat + hat @ hat / (1.0 + cosine))
