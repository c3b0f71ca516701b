r"""Inverse dynamics and regressor of an arm in JAX, for automatic differentiation.

Newton-Euler equations in the base frame. Rotations are computed from joint to joint, everything else as sums over
the joints k that move a frame i: angular velocity :math:`\omega_i = \sum_k z_k \dot q_k`, angular acceleration
:math:`\alpha_i`, and the acceleration of its origin minus gravity, :math:`a_i`. Force and moment of a link are linear in
its ten inertial parameters, and the torque of joint j is that of all links that it moves,
:math:`\tau_j = \sum_{i \ge j} z_j \cdot (n_i + (p_i - p_j) \times f_i)`.
Parameters and their order are those of :mod:`stribeck.identify.arm.model`.

Arrays have their components first and the N times last, (3, n, N), so that loops run over contiguous times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin

from stribeck.identify.arm.model import INERTIALS, ArmModel
from stribeck.model.arrays import Array


@dataclass(frozen=True, eq=False)
class JaxChain:
    """The joints of an arm as arrays, in Pinocchio's order (parents first).

    :param order: index in the arm's joint order of each Pinocchio joint, (n,).
    :param parents: index of the parent joint, -1 for the base, (n,).
    :param rotations, translations: placement in the parent frame, (n, 3, 3) and (n, 3).
    :param angular, linear: axis of rotation or translation of each joint in its frame, (n, 3).
    :param behind: ``behind[j, i]`` is 1 if joint j moves link i, (n, n).
    :param gravity: (3,) [m/s^2].
    """

    order: tuple[int, ...]
    parents: tuple[int, ...]
    rotations: Array
    translations: Array
    angular: Array
    linear: Array
    behind: Array
    gravity: Array

    def __len__(self) -> int:
        return len(self.parents)


class FrameMotion(NamedTuple):
    """Joint frames and their motion, in base coordinates and Pinocchio's order.

    :param rotation: (3, 3, n, N).
    :param origin: (3, n, N) [m].
    :param axis: axis of a revolute joint, zero for prismatic ones, (3, n, N).
    :param slide: axis of a prismatic joint, zero for revolute ones, (3, n, N).
    :param omega, alpha: angular velocity and acceleration, (3, n, N).
    :param acceleration: of the origin, minus gravity, (3, n, N) [m/s^2].
    """

    rotation: jax.Array
    origin: jax.Array
    axis: jax.Array
    slide: jax.Array
    omega: jax.Array
    alpha: jax.Array
    acceleration: jax.Array

    def every(self, step: int) -> FrameMotion:
        """The motion at every ``step``-th time."""
        return FrameMotion(*(part[..., ::step] for part in self))


def chain_of(arm: ArmModel) -> JaxChain:
    """The arrays of an arm."""
    model, n = arm.model, len(arm)
    data = model.createData()
    neutral = pin.neutral(model)
    pin.computeJointJacobians(model, data, neutral)
    screws = np.array(
        [
            pin.getJointJacobian(model, data, j, pin.ReferenceFrame.LOCAL)[:, model.idx_vs[j]]
            for j in range(1, n + 1)
        ]
    )
    parents = tuple(int(model.parents[j]) - 1 for j in range(1, n + 1))
    names = list(model.names)[1:]
    return JaxChain(
        order=tuple(arm.joints.index(name) for name in names),
        parents=parents,
        rotations=np.array([model.jointPlacements[j].rotation for j in range(1, n + 1)]),
        translations=np.array([model.jointPlacements[j].translation for j in range(1, n + 1)]),
        angular=screws[:, 3:],
        linear=screws[:, :3],
        behind=_behind(parents),
        gravity=np.array(model.gravity.linear),
    )


def _behind(parents: tuple[int, ...]) -> Array:
    behind = np.eye(len(parents))
    for i, parent in enumerate(parents):
        if parent >= 0:
            behind[:, i] += behind[:, parent]
    return behind


def frames(chain: JaxChain, position: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rotations (3, 3, n, N) and origins (3, n, N) [m] of all joint frames.

    :param position: (n, N), in the arm's joint order.
    """
    position = position[np.array(chain.order)]
    rotation = _rotations(chain, position)
    return rotation, _along(chain, _segments(chain, rotation, position))


def motion(chain: JaxChain, position: jax.Array, velocity: jax.Array, acceleration: jax.Array) -> FrameMotion:
    """Motion of all frames.

    :param position, velocity, acceleration: (n, N) [rad, rad/s, rad/s^2], in the arm's joint order.
    """
    position, velocity, acceleration = (x[np.array(chain.order)] for x in (position, velocity, acceleration))
    rotation = _rotations(chain, position)
    segment = _segments(chain, rotation, position)
    axis, slide = _apply(rotation, chain.angular), _apply(rotation, chain.linear)
    turning = axis * velocity
    omega = _along(chain, turning)
    omega_before = omega - turning
    changing = axis * acceleration + velocity * _cross(omega_before, axis)
    alpha = _along(chain, changing)
    felt = (
        _cross(alpha - changing, segment)
        + _cross(omega_before, _cross(omega_before, segment) + 2.0 * velocity * slide)
        + acceleration * slide
    )
    return FrameMotion(
        rotation=rotation,
        origin=_along(chain, segment),
        axis=axis,
        slide=slide,
        omega=omega,
        alpha=alpha,
        acceleration=_along(chain, felt) - chain.gravity[:, None, None],
    )


def torques(chain: JaxChain, m: FrameMotion, inertials: Array) -> jax.Array:
    r"""Torques of the joints [N m], (n, N), in the arm's joint order.

    Forces :math:`f_i = m a + \alpha \times h + \omega \times (\omega \times h)` and moments
    :math:`n_i = h \times a + I \alpha + \omega \times I \omega` of the links, :math:`h = m c`, summed over the links
    that each joint moves.

    :param inertials: standard inertial parameters (10 n,), in the arm's joint order.
    """
    order = np.array(chain.order)
    values = inertials.reshape(-1, INERTIALS)[order]
    first = _apply(m.rotation, values[:, 1:4])
    force = values[:, 0, None] * m.acceleration + _cross(m.alpha, first)
    force = force + _cross(m.omega, _cross(m.omega, first))
    moment = _cross(first, m.acceleration) + _inertia(m.rotation, values, m.alpha)
    moment = moment + _cross(m.omega, _inertia(m.rotation, values, m.omega))
    total = jnp.einsum("cit,ji->cjt", force, chain.behind)
    about_base = jnp.einsum("cit,ji->cjt", moment + _cross(m.origin, force), chain.behind)
    torque = jnp.sum(m.axis * (about_base - _cross(m.origin, total)) + m.slide * total, axis=0)
    return torque[np.argsort(order)]


def _inertia(rotation: jax.Array, values: Array, vectors: jax.Array) -> jax.Array:
    """Moments of inertia times vectors, both in base coordinates, (3, n, N)."""
    xx, xy, yy, xz, yz, zz = values.T[4:, :, None]
    x, y, z = _back(rotation, vectors)
    local = jnp.stack([xx * x + xy * y + xz * z, xy * x + yy * y + yz * z, xz * x + yz * y + zz * z])
    return jnp.sum(rotation * local[None], axis=1)


def regressor(chain: JaxChain, m: FrameMotion) -> jax.Array:
    r"""Regressor of the standard inertial parameters, (n, 10 n, N), rows and columns in the arm's joint order.

    With :math:`x = R_i^T z_j`, :math:`y = R_i^T (z_j \times \omega_i)`, :math:`u = R_i^T \alpha_i`,
    :math:`w = R_i^T \omega_i` and :math:`s_{ji} = z_j \times (p_i - p_j)`, the entries for joint j and link i are
    :math:`s \cdot a` for the mass, :math:`R_i^T(s \times \alpha + (s \times \omega) \times \omega - z_j \times a)`
    for its first moments, and :math:`x_a u_b + y_a w_b`, symmetrised, for the moments of inertia.
    """
    j, i = np.nonzero(chain.behind)
    axis, slide, start = m.axis[:, j], m.slide[:, j], m.origin[:, j]
    rotation, origin, omega = m.rotation[:, :, i], m.origin[:, i], m.omega[:, i]
    alpha, felt = m.alpha[:, i], m.acceleration[:, i]
    push = _cross(axis, origin - start) + slide
    mass = jnp.sum(push * felt, axis=0)[None]
    bend = _cross(push, alpha) + _cross(_cross(push, omega), omega) - _cross(axis, felt)
    x, y = _back(rotation, axis), _back(rotation, _cross(axis, omega))
    u, w = _back(m.rotation, m.alpha)[:, i], _back(m.rotation, m.omega)[:, i]
    straight = x * u + y * w
    mixed = {
        (a, b): x[a] * u[b] + x[b] * u[a] + y[a] * w[b] + y[b] * w[a] for a, b in ((0, 1), (0, 2), (1, 2))
    }
    inertia = jnp.stack([straight[0], mixed[0, 1], straight[1], mixed[0, 2], mixed[1, 2], straight[2]])
    blocks = jnp.moveaxis(jnp.concatenate([mass, _back(rotation, bend), inertia]), 0, 1)
    order, n = np.array(chain.order), len(chain)
    whole = jnp.zeros((n, n, *blocks.shape[1:])).at[order[j], order[i]].set(blocks, unique_indices=True)
    return whole.reshape(n, INERTIALS * n, -1)


def _rotations(chain: JaxChain, position: jax.Array) -> jax.Array:
    r"""Rotations of all frames, (3, 3, n, N): :math:`R_i = R_p P_i (1 + \sin q K + (1 - \cos q) K^2)`."""
    hat = np.cross(np.eye(3), chain.angular[:, None, :])
    placed, turn = chain.rotations, chain.rotations @ hat
    parts = [np.moveaxis(part, 0, -1)[..., None] for part in (placed, turn, turn @ hat)]
    turned = parts[0] + parts[1] * jnp.sin(position) + parts[2] * (1.0 - jnp.cos(position))
    rotations: list[jax.Array] = []
    for i, parent in enumerate(chain.parents):
        local = jnp.asarray(turned[:, :, i])
        if parent >= 0:
            local = jnp.sum(rotations[parent][:, :, None] * local[None], axis=1)
        rotations.append(local)
    return jnp.stack(rotations, axis=2)


def _segments(chain: JaxChain, rotation: jax.Array, position: jax.Array) -> jax.Array:
    """Vectors from the origin of the parent frame to that of each frame, (3, n, N) [m]."""
    parents = np.array(chain.parents)
    eye = jnp.broadcast_to(jnp.eye(3)[:, :, None, None], (3, 3, 1, position.shape[-1]))
    before = jnp.concatenate([rotation, eye], axis=2)[:, :, parents]
    return _apply(before, chain.translations) + _apply(rotation, chain.linear) * position


def _apply(rotation: jax.Array, vectors: Array) -> jax.Array:
    """Vectors (n, 3), each fixed in its frame, in base coordinates (3, n, N)."""
    return jnp.sum(rotation * vectors.T[None, :, :, None], axis=1)


def _back(rotation: jax.Array, vectors: jax.Array) -> jax.Array:
    """Transform vectors (3, …) from base coordinates to the frames (3, 3, …)."""
    return jnp.sum(rotation * vectors[:, None], axis=0)


def _along(chain: JaxChain, terms: jax.Array) -> jax.Array:
    """Sum of terms (3, n, N) over the joints that move each frame."""
    return jnp.einsum("ckt,ki->cit", terms, chain.behind)


def _cross(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
