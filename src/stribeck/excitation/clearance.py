r"""Distances and heights of capsules, in JAX.

The distance between two segments is that of their closest points :math:`p_1 + s d_1`, :math:`p_2 + t d_2`. It is
stationary in s and t, so its derivative does not involve theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.excitation.contacts import neighbours
from stribeck.excitation.shapes import Capsule
from stribeck.identify.arm.jax_chain import JaxChain
from stribeck.model.arrays import Array, Indices

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Bodies:
    """Capsules of an arm as arrays.

    :param joints: index of the joint that moves each capsule, in Pinocchio's order, -1 for the base, (C,).
    :param ends: both ends in the joint frame, (C, 2, 3) [m].
    :param radii: (C,) [m].
    :param pairs: capsules that must not touch, (P, 2).
    :param links: name of the link of each capsule, (C,).
    """

    joints: Indices
    ends: Array
    radii: Array
    pairs: Indices
    links: tuple[str, ...]

    @property
    def moving(self) -> Indices:
        """Indices of moving capsules."""
        return np.flatnonzero(self.joints >= 0)


def bodies_of(
    chain: JaxChain, capsules: Sequence[Capsule], ignored: Collection[frozenset[str]] = ()
) -> Bodies:
    """Capsules as arrays, with all pairs but ignored ones and those on the same link or on neighbouring links."""
    joints = np.array([capsule.joint - 1 for capsule in capsules], dtype=np.int64)
    parents = (0, *(parent + 1 for parent in chain.parents))
    pairs = [
        (i, k)
        for i, one in enumerate(capsules)
        for k, other in enumerate(capsules[:i])
        if not neighbours(parents, one.joint, other.joint)
        and frozenset((one.link, other.link)) not in ignored
    ]
    return Bodies(
        joints,
        np.array([[capsule.start, capsule.end] for capsule in capsules]).reshape(-1, 2, 3),
        np.array([capsule.radius for capsule in capsules]),
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        tuple(capsule.link for capsule in capsules),
    )


def clearances(bodies: Bodies, rotation: jax.Array, origin: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Distances of all pairs (P, N) and heights of the lowest points of moving capsules (M, N) [m].

    :param rotation, origin: rotations and origins of the joint frames, (3, 3, n, N) and (3, n, N).
    """
    steps = origin.shape[-1]
    eye = jnp.broadcast_to(jnp.eye(3)[:, :, None, None], (3, 3, 1, steps))
    rotation = jnp.concatenate([rotation, eye], axis=2)[:, :, bodies.joints]
    origin = jnp.concatenate([origin, jnp.zeros((3, 1, steps))], axis=1)[:, bodies.joints]
    start, end = (jnp.sum(rotation * bodies.ends[:, k].T[None, :, :, None], axis=1) + origin for k in (0, 1))
    radii = bodies.radii[:, None]
    first, second = bodies.pairs[:, 0], bodies.pairs[:, 1]
    apart = segment_distance(start[:, first], end[:, first], start[:, second], end[:, second])
    moving = bodies.moving
    height = jnp.minimum(start[2], end[2])[moving] - radii[moving]
    return apart - radii[first] - radii[second], height


def segment_distance(p1: jax.Array, q1: jax.Array, p2: jax.Array, q2: jax.Array) -> jax.Array:
    """Distances between segments p1 q1 and p2 q2, (3, …) each, which may be points (Ericson 2005, section 5.1.9)."""
    d1, d2, r = q1 - p1, q2 - p2, p1 - p2
    s, t = (jax.lax.stop_gradient(x) for x in _closest(d1, d2, r))
    return jnp.sqrt(jnp.sum((r + s * d1 - t * d2) ** 2, axis=0) + TINY)


def _closest(d1: jax.Array, d2: jax.Array, r: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Parameters s and t of the closest points."""
    a, e = (jnp.maximum(jnp.sum(d * d, axis=0), TINY) for d in (d1, d2))
    b, c, f = jnp.sum(d1 * d2, axis=0), jnp.sum(d1 * r, axis=0), jnp.sum(d2 * r, axis=0)
    area = a * e - b * b
    s = jnp.where(
        area > TINY * a * e, jnp.clip((b * f - c * e) / jnp.where(area > 0, area, 1.0), 0.0, 1.0), 0.0
    )
    t = jnp.clip((b * s + f) / e, 0.0, 1.0)
    return jnp.clip((b * t - c) / a, 0.0, 1.0), t
