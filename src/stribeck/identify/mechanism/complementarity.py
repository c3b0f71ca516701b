r"""Box-constrained linear complementarity problems, solved exactly by pivoting, with derivatives.

Find :math:`\mu` with :math:`w = W\mu + c` and, for each i,

.. math:: \mu_i = l_i,\; w_i \ge 0 \quad\text{or}\quad l_i < \mu_i < u_i,\; w_i = 0
          \quad\text{or}\quad \mu_i = u_i,\; w_i \le 0.

With :math:`l = 0, u = \infty` this is the problem of Marklund et al. 2025, eq. 2.27, with bilateral multipliers eliminated.
W is a P-matrix (positive definite up to positive scales of its columns), so the solution is unique.

**Pivoting** (Júdice and Pires 1994). Each index is at its lower bound, free, or at its upper bound. Each iteration solves for
the free ones; an index whose :math:`\mu_i` or :math:`w_i` has the wrong sign changes its set. All such indices change at once
while their number decreases, otherwise only the last one (Murty's rule, which cannot cycle).

**Derivative.** Where no index changes its set, :math:`d\mu_b` is that of the bound, and
:math:`W_{ff}\,d\mu_f = -(dW\,\mu + dc)_f - W_{fb}\,d\mu_b`. At a kink, where an index is at its bound and w is zero,
only one-sided derivatives exist; the one of the free set is used, where friction depends on motion.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.identify.mechanism.vectors import where
from stribeck.model.arrays import Array

LOWER, FREE, UPPER = -1, 0, 1

MOST_PIVOTS = 200
"""Maximum number of pivots; Murty's rule typically needs a few per index, and at most 3^n."""

PATIENCE = 5
"""Block pivots without progress before Murty's rule takes over."""


def _given_sides(W: Any, c: Any, lower: Any, upper: Any, side: Any) -> tuple[Any, Any]:
    """Multipliers and slacks (n,) for fixed sets."""
    free = side == FREE
    held = jnp.where(side == LOWER, lower, jnp.where(side == UPPER, upper, 0.0))
    matrix = jnp.where(free[:, None], jnp.where(free[None, :], W, 0.0), jnp.eye(len(c)))
    right = jnp.where(free, -(c + W @ held), held)
    multiplier = jnp.linalg.solve(matrix, right)
    return multiplier, jnp.where(free, 0.0, W @ multiplier + c)


def _wanted(multiplier: Any, slack: Any, lower: Any, upper: Any, side: Any, tolerance: Any) -> Any:
    """The set to which each index should change."""
    leaves_free = jnp.where(multiplier < lower, LOWER, jnp.where(multiplier > upper, UPPER, FREE))
    leaves_lower = jnp.where(slack < -tolerance, FREE, LOWER)
    leaves_upper = jnp.where(slack > tolerance, FREE, UPPER)
    return jnp.where(side == FREE, leaves_free, jnp.where(side == LOWER, leaves_lower, leaves_upper))


def pivot(W: Any, c: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Multipliers (n,) and the set of each index (n,): -1 lower bound, 0 free, 1 upper bound.

    :param W: P-matrix (n, n).
    :param c: (n,).
    :param lower: lower bounds (n,), may be infinite.
    :param upper: upper bounds (n,), may be infinite.
    """
    n = len(c)
    order = jnp.arange(n)
    tolerance = 1e-13 * (jnp.abs(c) + jnp.sum(jnp.abs(W), axis=1))

    def step(carry: Any) -> Any:
        side, fewest, patience, count, _ = carry
        multiplier, slack = _given_sides(W, c, lower, upper, side)
        wanted = _wanted(multiplier, slack, lower, upper, side, tolerance)
        wrong = wanted != side
        number = jnp.sum(wrong)
        patience = jnp.where(number < fewest, PATIENCE, patience - 1)
        last = jnp.max(jnp.where(wrong, order, -1))
        change = jnp.where(patience > 0, wrong, wrong & (order == last))
        return jnp.where(change, wanted, side), jnp.minimum(fewest, number), patience, count + 1, number

    def unsettled(carry: Any) -> Any:
        return (carry[4] > 0) & (carry[3] < MOST_PIVOTS)

    start = (jnp.zeros(n, jnp.int32), jnp.int32(n + 1), jnp.int32(PATIENCE), jnp.int32(0), jnp.int32(1))
    start = jax.tree.map(jnp.asarray, start)
    side = jax.lax.while_loop(unsettled, lambda carry: _same_types(step(carry), carry), start)[0]
    multiplier, _ = _given_sides(W, c, lower, upper, side)
    return multiplier, side


def _same_types(new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.asarray(a, b.dtype), new, old)


@jax.custom_jvp
def solve(W: Any, c: Any, lower: Any, upper: Any) -> Any:
    """Multipliers (n,), with the derivative above."""
    return pivot(W, c, lower, upper)[0]


@solve.defjvp
def _solve_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    W, c, lower, upper = primals
    dW, dc, dlower, dupper = tangents
    multiplier, side = pivot(W, c, lower, upper)
    slack = W @ multiplier + c
    scale = 1e-12 * (jnp.abs(c) + jnp.sum(jnp.abs(W), axis=1))
    side = jnp.where(jnp.abs(slack) <= scale, FREE, side)  # at a kink use the free set
    free = side == FREE
    bound = jnp.where(side == LOWER, dlower, jnp.where(side == UPPER, dupper, 0.0))
    matrix = jnp.where(free[:, None], jnp.where(free[None, :], W, 0.0), jnp.eye(len(c)))
    right = jnp.where(free, -(dW @ multiplier + dc + W @ bound), bound)
    return multiplier, jnp.linalg.solve(matrix, right)


def dry_friction(velocity: Any, slip: Any) -> Any:
    r"""Dry friction relative to its bound, :math:`\mu = clip(-v / v_s, \pm 1)`, the inverse problem of (2.31).

    At :math:`|v| = v_s` the derivative is that for sticking, as in :func:`solve`.

    :param velocity: :math:`v` along the joint [rad/s or m/s].
    :param slip: :math:`v_s`, the velocity at which friction reaches its bound.
    """
    share = -velocity / slip
    return where(share > 1.0, 1.0, where(share < -1.0, -1.0, share))


def bounded_minimum(matrix: Array, right: Array, lower: Array, upper: Array) -> Array:
    r"""Minimise :math:`\frac12 x^TSx - b^Tx` within bounds (p,), by the same pivoting.

    :param matrix: S (p, p), positive semidefinite.
    :param right: b (p,).
    """
    size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    S = matrix / np.outer(size, size) + 1e-13 * np.eye(len(size))
    c, low, high = -right / size, lower * size, upper * size
    side = np.zeros(len(size), int)
    fewest, patience = len(size) + 1, PATIENCE
    for _ in range(MOST_PIVOTS):
        free = side == FREE
        x = np.where(side == LOWER, low, np.where(side == UPPER, high, 0.0))
        x[free] = np.linalg.solve(S[np.ix_(free, free)], -(c + S @ x)[free])
        slack = S @ x + c
        wanted = np.where(free, np.where(x < low, LOWER, np.where(x > high, UPPER, FREE)), side)
        tolerance = 1e-12 * (np.abs(c) + np.abs(S) @ np.abs(x))
        wanted[(side == LOWER) & (slack < -tolerance)] = FREE
        wanted[(side == UPPER) & (slack > tolerance)] = FREE
        wrong = np.flatnonzero(wanted != side)
        if not len(wrong):
            break
        patience = PATIENCE if len(wrong) < fewest else patience - 1
        fewest = min(fewest, len(wrong))
        change = wrong if patience > 0 else wrong[-1:]
        side[change] = wanted[change]
    return np.asarray(np.clip(x, low, high) / size)
