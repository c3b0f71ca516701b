r"""Contacts of bodies with planes: unilateral, with Coulomb friction bounded by the normal force.

A contact with gap g, normal n and two tangents t has the impulses

.. math:: \lambda_n \ge 0 \perp n\cdot v^+ + \Sigma\lambda_n \ge -\tfrac{4}{h}\Upsilon\min(g, 0) - \tfrac1h\max(g, 0), \qquad
    |\lambda_t| \le \mu\lambda_n

for each tangent: a pyramid inside of which contacts stick. The first line lets a body come no closer than the plane within a step, and removes
overlap as joints remove their deviations; contacts do not bounce. Bounds of friction depend on the normal impulses, which
depend on friction: with bounds from the normal impulses before, the problem is that of dry friction with constant bounds
(:mod:`stribeck.identify.mechanism.complementarity`), and is solved :data:`ROUNDS` times. With friction that does not
wedge bodies the rounds contract.

Source: Marklund et al. 2025, §2.4 (E, U of 2.24); the solution by rounds follows Kaufman, Sueda, James, Pai 2008.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.identify.mechanism import complementarity, rotation
from stribeck.identify.mechanism.kinematics import frame_along
from stribeck.identify.mechanism.mechanism import Mechanism, Physical

ROUNDS = 20
"""Number of solutions of a step with contacts."""


class ContactRows(NamedTuple):
    """Contacts in one configuration.

    :param gap: distance from the planes, negative where they overlap (nc,) [m].
    :param normal: rows of the normal velocities (nc, 6 nb).
    :param tangent: rows of the tangential velocities (2 nc, 6 nb).
    """

    gap: Any
    normal: Any
    tangent: Any


class BoundedImpulses(NamedTuple):
    """The reduced problem of a step, without bilateral multipliers: w = W λ + c.

    :param response: W (n, n).
    :param constant: c (n,), free velocities.
    :param coulomb: bounds of the dry friction of the joints, which come first (nj,) [N m s, N s].
    :param slip: velocity at which dry friction reaches its bound.
    """

    response: Any
    constant: Any
    coulomb: Any
    slip: float


def contact_rows(mechanism: Mechanism, physical: Physical, q: Any) -> ContactRows:
    """Gaps and velocities of all contacts in a configuration (nb, 7)."""
    size = 6 * len(mechanism.bodies)
    gaps: list[Any] = []
    normals: list[Any] = []
    tangents: list[Any] = []
    for k, contact in enumerate(mechanism.contacts):
        b = contact.body - 1
        turn = jnp.array(rotation.matrix(rotation.quaternion(q[b, 3:])))
        frame = frame_along(np.array(contact.normal)).T
        normal = jnp.asarray(frame[2])
        arm = turn @ (physical.spot[k] - physical.com[b])
        gaps.append(normal @ (q[b, :3] + arm - jnp.array(contact.place)) - contact.radius)
        lever = arm - contact.radius * normal
        for direction, rows in zip(frame[[2, 0, 1]], (normals, tangents, tangents), strict=True):
            along = jnp.asarray(direction)
            row = jnp.concatenate([along, turn.T @ jnp.cross(lever, along)])
            rows.append(jnp.zeros(size).at[6 * b : 6 * b + 6].set(row))
    return ContactRows(jnp.stack(gaps), jnp.stack(normals), jnp.stack(tangents))


def solve(problem: BoundedImpulses, grip: Any, wanted: Any, sigma: Any) -> Any:
    r"""Impulses (n,): dry friction of the joints, normals, tangents.

    :param grip: coefficients of friction (nc,).
    :param wanted: least normal velocities (nc,) [m/s].
    :param sigma: :math:`\Sigma` of the normals [m/s per N s].
    """
    W, c, coulomb, slip = problem
    nj, nc = len(coulomb), len(grip)
    of_normals = slice(nj, nj + nc)
    softness = jnp.concatenate([jnp.full(nj, slip), jnp.full(nc, sigma), jnp.full(2 * nc, slip)])
    constant = c.at[of_normals].add(-wanted)
    lower = jnp.concatenate([-jnp.ones(nj), jnp.zeros(nc), -jnp.ones(2 * nc)])
    upper = jnp.concatenate([jnp.ones(nj), jnp.full(nc, jnp.inf), jnp.ones(2 * nc)])

    def scaled(normals: Any) -> Any:
        return jnp.concatenate([coulomb, jnp.ones(nc), jnp.repeat(grip * normals, 2)])

    def once(_: int, normals: Any) -> Any:
        scale = scaled(normals)
        return complementarity.solve(W * scale + jnp.diag(softness), constant, lower, upper)[of_normals]

    normals = jax.lax.fori_loop(0, ROUNDS, once, jnp.zeros(nc))
    scale = scaled(normals)
    return scale * complementarity.solve(W * scale + jnp.diag(softness), constant, lower, upper)
