r"""Minimisation inside constraints: BFGS on a barrier function, from a point where all of them hold.

Every point that is looked at and kept is feasible, so the search may stop at any time. Source of the update:
Nocedal, Wright, "Numerical Optimization", 2006, (6.17).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stribeck.core.arrays import Array

ARMIJO = 1e-4
TO_BOUNDARY = 0.95
"""Share of the way to a linear limit that a step may go."""

SHORTEST = 1e-8


def descend(
    value: Callable[[Array], tuple[float, Array]],
    reach: Callable[[Array, Array], float],
    start: Array,
    curvature: Array,
    *,
    iterations: int,
    tolerance: float,
    tell: Callable[[Array], bool] = lambda x: True,
) -> Array:
    """Minimise a function that is infinite outside.

    :param value: the function and its gradient.
    :param reach: how many steps (second argument) lead from a point to the first linear limit.
    :param start: (d,), inside.
    :param curvature: estimate of the second derivative, positive definite (d, d).
    :param iterations: at most.
    :param tolerance: ends when half the squared Newton decrement falls below this.
    :param tell: takes each point that is kept; the search ends if it returns ``False``.
    """
    x, (f, g) = start, value(start)
    first: Array = np.asarray(np.linalg.inv(curvature), dtype=np.float64)
    inverse = first
    for _ in range(iterations):
        step = -inverse @ g
        if g @ step > -2.0 * tolerance:
            break
        share = min(1.0, TO_BOUNDARY * reach(x, step))
        new, (f_new, g_new) = _backtrack(value, x, f, g, step, share)
        if new is x:
            if inverse is first:
                break
            inverse = first
            continue
        inverse = _updated(inverse, new - x, g_new - g)
        x, f, g = new, f_new, g_new
        if not tell(x):
            break
    return x


def _backtrack(
    value: Callable[[Array], tuple[float, Array]], x: Array, f: float, g: Array, step: Array, share: float
) -> tuple[Array, tuple[float, Array]]:
    """A point along a step that is lower by enough; the same point if there is none."""
    slope = float(g @ step)
    while share > SHORTEST:
        new = x + share * step
        f_new, g_new = value(new)
        if f_new <= f + ARMIJO * share * slope and np.isfinite(g_new).all():
            return new, (f_new, g_new)
        share *= 0.5 if not np.isfinite(f_new) else _parabola(f, slope, f_new, share)
    return x, (f, g)


def _parabola(f: float, slope: float, f_new: float, share: float) -> float:
    """By what to shorten a step: the minimum of the parabola through its ends, within 0.1 to 0.5."""
    bend = f_new - f - share * slope
    return float(np.clip(-0.5 * share * slope / bend, 0.1, 0.5)) if bend > 0.0 else 0.5


def _updated(inverse: Array, moved: Array, changed: Array) -> Array:
    """BFGS update of the inverse second derivative; none where the function is not convex along the step."""
    along = float(moved @ changed)
    if along <= 1e-10 * float(np.linalg.norm(moved) * np.linalg.norm(changed)):
        return inverse
    left = inverse @ changed
    bend = (along + float(changed @ left)) / along**2
    mixed = np.outer(left, moved) / along
    return np.asarray(inverse + bend * np.outer(moved, moved) - mixed - mixed.T)
