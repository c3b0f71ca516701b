r"""Levenberg-Marquardt within a box, on dense normal equations that the caller assembles.

Each step solves :math:`(H + \lambda\,\mathrm{diag}\,|H|)\,s = -g` for the coordinates not held at a bound. A step that
lowers the cost divides :math:`\lambda` by 5; any other step multiplies it by 5. Source: Nocedal and Wright, "Numerical
Optimization", 2nd ed., ch. 10.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg

from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.arrays import Array

ITERATIONS = 100
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-12, 1e12
FACTOR = 5.0
"""Factor between successive dampings."""

LEAST_GAIN = 1e-6
"""Two successive steps that gain less than this share of the cost end the search."""


class DenseEquations(NamedTuple):
    """Value and derivatives of a sum of squares at a point.

    :param cost: half the sum of squares.
    :param gradient: (p,).
    :param hessian: Gauss-Newton approximation, or the exact one (p, p).
    """

    cost: float
    gradient: Array
    hessian: Array


class BlockEquations(NamedTuple):
    """The same of B independent sums of squares, each with its own coordinates.

    :param costs: half the sums of squares (B,).
    :param gradient: (p,).
    :param hessian: only elements whose coordinates belong to the same sum are used (p, p).
    """

    costs: Array
    gradient: Array
    hessian: Array


class BoxMinimum(NamedTuple):
    """Result of a search.

    :param point: (p,).
    :param cost: half the sum of squares there.
    :param iterations: evaluated steps.
    """

    point: Array
    cost: float
    status: SolverStatus
    iterations: int


def minimise(
    equations: Callable[[Array], DenseEquations],
    start: Array,
    lower: Array,
    upper: Array,
    size: Array,
    iterations: int = ITERATIONS,
    damping: float = FIRST_DAMPING,
    least_gain: float = LEAST_GAIN,
) -> BoxMinimum:
    """Find a local minimum of a sum of squares within a box.

    :param equations: function that returns the normal equations at a point.
    :param start, lower, upper: (p,); the start is clipped into the box.
    :param size: largest change of each coordinate in one step (p,).
    :param damping: damping of the first step; small for nearly linear problems.
    :param least_gain: see :data:`LEAST_GAIN`.
    """
    point = np.clip(start, lower, upper)
    current, idle = equations(point), 0
    if not (np.isfinite(current.cost) and np.all(np.isfinite(current.gradient))):
        return BoxMinimum(point, current.cost, SolverStatus.DIVERGED, 0)
    for iteration in range(1, iterations + 1):
        trial = np.clip(point + _step(current, point, lower, upper, size, damping), lower, upper)
        trial_equations = equations(trial)
        if not trial_equations.cost < current.cost:
            damping *= FACTOR
            if damping > MOST_DAMPING:
                status = _at_standstill(current, point, lower, upper, size)
                return BoxMinimum(point, current.cost, status, iteration)
            continue
        gain = (current.cost - trial_equations.cost) / max(abs(current.cost), 1e-300)
        idle = idle + 1 if gain < least_gain else 0
        point, current = trial, trial_equations
        damping = max(damping / FACTOR, LEAST_DAMPING)
        if idle == 2:
            return BoxMinimum(point, current.cost, SolverStatus.CONVERGED, iteration)
    return BoxMinimum(point, current.cost, SolverStatus.LIMIT, iterations)


def minimise_blocks(
    equations: Callable[[Array], BlockEquations],
    start: Array,
    box: Array,
    block: npt.NDArray[np.int_],
    iterations: int = ITERATIONS,
    least_gain: float = LEAST_GAIN,
) -> Array:
    """Find a local minimum of each of several independent sums of squares, each with its own damping; return the point (p,).

    One evaluation serves all sums. None of them rises.

    :param box: lower and upper bound and largest change of each coordinate in one step (3, p).
    :param block: the sum that each coordinate belongs to (p,); coordinates of a negative one stay.
    """
    lower, upper, size = box
    point = np.clip(start, lower, upper)
    current = equations(point)
    costs, gradient, hessian = (np.array(part) for part in current)
    damping, idle = np.full(len(costs), FIRST_DAMPING), np.zeros(len(costs), dtype=int)
    members = [np.flatnonzero(block == index) for index in range(len(costs))]
    for _ in range(iterations):
        active = [
            b for b in range(len(costs)) if idle[b] < 2 and damping[b] < MOST_DAMPING and len(members[b])
        ]
        if not active:
            break
        trial = point.copy()
        for b in active:
            own = members[b]
            here = DenseEquations(costs[b], gradient[own], hessian[np.ix_(own, own)])
            bounds = lower[own], upper[own]
            trial[own] = np.clip(
                point[own] + _step(here, point[own], *bounds, size[own], damping[b]), *bounds
            )
        found = equations(trial)
        for b in active:
            own = members[b]
            if not found.costs[b] < costs[b]:
                damping[b] *= FACTOR
                continue
            gain = (costs[b] - found.costs[b]) / max(costs[b], 1e-300)
            idle[b] = idle[b] + 1 if gain < least_gain else 0
            damping[b] = max(damping[b] / FACTOR, LEAST_DAMPING)
            point[own], costs[b], gradient[own] = trial[own], found.costs[b], found.gradient[own]
            hessian[np.ix_(own, own)] = found.hessian[np.ix_(own, own)]
    return point


def _at_standstill(
    here: DenseEquations, point: Array, lower: Array, upper: Array, size: Array
) -> SolverStatus:
    """Solver status when no step lowers the cost: a kink if the derivatives still predict a gain."""
    step = np.clip(point + _step(here, point, lower, upper, size, 0.0), lower, upper) - point
    promised = -float(here.gradient @ step + 0.5 * step @ here.hessian @ step)
    return SolverStatus.CONVERGED if promised <= LEAST_GAIN * abs(here.cost) else SolverStatus.KINK


def _step(
    here: DenseEquations, point: Array, lower: Array, upper: Array, size: Array, damping: float
) -> Array:
    """Damped step of the coordinates not held at a bound, limited to ``size``."""
    held = ((point <= lower) & (here.gradient > 0.0)) | ((point >= upper) & (here.gradient < 0.0))
    free = np.flatnonzero(~held)
    step = np.zeros_like(point)
    if not len(free):
        return step
    unit = size[free]
    hessian = here.hessian[np.ix_(free, free)] * np.outer(unit, unit)
    diagonal = np.abs(np.diag(hessian))
    diagonal = diagonal + 1e-8 * diagonal.max(initial=1e-300)
    while True:
        try:
            factor = linalg.cho_factor(hessian + damping * np.diag(diagonal))
            break
        except linalg.LinAlgError:  # an exact Hessian need not be positive definite
            damping = max(3.0 * damping, 1e-6)
    scaled = -linalg.cho_solve(factor, here.gradient[free] * unit)
    step[free] = unit * scaled / max(1.0, np.abs(scaled).max())
    return step
