"""Local search by derivatives: Levenberg-Marquardt from many starts side by side, on the unit cube.

Source: Nocedal and Wright, "Numerical Optimization", 2nd ed., ch. 10, on a loss of least absolute values that is
reweighted in every iteration.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from stribeck.estimates.solver_status import SolverStatus
from stribeck.fit.incumbent import BudgetSpentError, Equations, Incumbent, Minima, SearchProblem, evaluate

FloatArray = npt.NDArray[np.float64]

SHORT_HORIZON = 0.5
"""Time over which the first phase of a search simulates at a stretch [s]."""

PROMISED = 1e-3
"""A point at which no step helps is at a kink if derivatives promise more than this share of the loss."""

STARTS = 24
"""Starts of the search by derivatives."""

LARGE_BUDGET = 12000
"""Evaluations from which on the search by derivatives takes all its starts."""

TOURNAMENT = ((16, 4), (6, 8))
"""Levenberg-Marquardt over whole runs: so many starts follow so many steps, the best go on."""


def descend(problem: SearchProblem, incumbent: Incumbent, rng: np.random.Generator) -> Minima:
    """Minima by derivatives: over a short horizon first, then whole runs, where the better starts go on.

    :returns: the minima, the best first.
    """
    short = problem.with_reset_period(SHORT_HORIZON)
    # A small budget gets fewer points and starts, and goes on to whole runs in any case.
    share = incumbent.remaining / LARGE_BUDGET
    points = qmc.Sobol(problem.dimension, rng=rng).random_base2(int(np.clip(np.log2(512 * share), 3, 9)))
    losses = evaluate(short, incumbent, points, counts=False)
    starts = _apart(points, losses, int(np.clip(STARTS * share, 2, STARTS)))
    minima = levenberg_marquardt(short, incumbent, starts, iterations=8, counts=False)
    minima = Minima(minima.points, evaluate(problem, incumbent, minima.points))
    for survivors, iterations in TOURNAMENT:
        order = np.argsort(minima.losses)[:survivors]
        chosen = Minima(minima.points[order], minima.losses[order])
        minima = levenberg_marquardt(problem, incumbent, chosen, iterations)
    incumbent.settle(minima.points, minima.losses)
    return minima


def _apart(points: FloatArray, losses: FloatArray, count: int) -> Minima:
    """The best ``count`` points of which no two are closer than a tenth of the cube along every
    axis, as long as there are enough.
    """
    order = [int(index) for index in np.argsort(losses)]
    chosen = order[:1]
    for index in order[1:]:
        if len(chosen) < count and np.min(np.max(np.abs(points[index] - points[chosen]), axis=1)) > 0.1:
            chosen.append(index)
    chosen += [index for index in order if index not in set(chosen)][: count - len(chosen)]
    return Minima(points[chosen], losses[chosen])


def levenberg_marquardt(
    problem: SearchProblem,
    incumbent: Incumbent,
    start: Minima,
    iterations: int,
    tolerance: float = 1e-4,
    *,
    counts: bool = True,
) -> Minima:
    """Follow starts downhill, all side by side, within the cube.

    Every iteration tries eight dampings per start and keeps the best; a parameter at a bound that
    the gradient pushes outwards stays there. Ends early when no start improves by ``tolerance``, or on
    a short horizon when half the budget is spent.

    :param counts: see :func:`evaluate`.
    :returns: the minima, the best first, with the status of the best.
    :raises BudgetSpentError: if the budget does not allow another iteration over whole runs.
    """
    points, losses = start.points.copy(), start.losses.copy()
    dampings = 10.0 ** np.arange(-4, 4)
    scale = np.ones(len(points))
    rows = np.arange(len(points))
    status = SolverStatus.LIMIT
    for _ in range(iterations):
        cost = len(points) * (problem.dimension + 1 + len(dampings))
        if not counts and incumbent.remaining - cost < incumbent.budget // 2:
            break
        if incumbent.remaining < cost:
            raise BudgetSpentError
        equations = problem.normal_equations(points)
        steps = _damped_steps(equations, points, scale[:, None] * dampings)
        candidates = np.clip(points[:, None, :] + steps, 0.0, 1.0)
        found = evaluate(problem, incumbent, candidates.reshape(-1, problem.dimension), counts=counts)
        found = found.reshape(len(points), len(dampings))
        best = np.argmin(found, axis=1)
        gain = 1.0 - found[rows, best] / losses
        better = gain > 0.0
        points[better] = candidates[rows, best][better]
        losses[better] = found[rows, best][better]
        # Centre the dampings on the one that worked; damp harder where none did.
        scale = np.clip(np.where(better, scale * dampings[best], scale * 1e3), 1e-6, 1e6)
        if np.max(gain) < tolerance:
            leader = int(np.argmin(losses))
            kink = not better[leader] and _promised(equations, points, steps[:, 0], losses, leader) > PROMISED
            status = SolverStatus.KINK if kink else SolverStatus.CONVERGED
            break
    order = np.argsort(losses)
    if not np.isfinite(losses[order[0]]):
        status = SolverStatus.DIVERGED
    return Minima(points[order], losses[order], status)


def _promised(
    equations: Equations, points: FloatArray, steps: FloatArray, losses: FloatArray, k: int
) -> float:
    """Share of the loss that a step (S, n) from point k promises to gain within the cube."""
    step = np.clip(points[k] + steps[k], 0.0, 1.0) - points[k]
    gradient, hessian = equations.gradient[k], equations.hessian[k]
    return float(np.nan_to_num(-(gradient @ step + 0.5 * step @ hessian @ step) / losses[k]))


def _damped_steps(equations: Equations, points: FloatArray, damping: FloatArray) -> FloatArray:
    """Steps (S, D, n) of the damped normal equations, parameters pushed against a bound held.

    They are solved in coordinates in which every curvature is 1, so that a direction that is a million
    times flatter than another is followed as well.
    """
    n = points.shape[1]
    gradient = np.where(np.isfinite(equations.gradient), equations.gradient, 0.0)
    hessian = np.where(np.isfinite(equations.hessian), equations.hessian, 0.0)
    held = ((points <= 0.0) & (gradient > 0.0)) | ((points >= 1.0) & (gradient < 0.0))
    diagonal = np.einsum("sii->si", hessian)
    scale = np.sqrt(np.maximum(diagonal, 1e-14 * np.max(diagonal, axis=1, keepdims=True) + 1e-30))
    free = ~held / scale
    gradient = gradient * free
    hessian = hessian * free[:, :, None] * free[:, None, :]
    matrices = hessian[:, None] + (damping[:, :, None, None] + held[:, None, :, None] + 1e-9) * np.eye(n)
    steps = np.linalg.solve(matrices, np.broadcast_to(gradient[:, None, :, None], (*damping.shape, n, 1)))
    return np.asarray(-steps[..., 0] * free[:, None, :])


def polish(problem: SearchProblem, incumbent: Incumbent, start: FloatArray, iterations: int = 30) -> None:
    """Levenberg-Marquardt from one point (n,) near the minimum; the incumbent keeps how it ended."""
    incumbent.status = SolverStatus.LIMIT  # also where the budget ends it
    losses = evaluate(problem, incumbent, start[None])
    start_minimum = Minima(start[None], losses)
    incumbent.status = levenberg_marquardt(
        problem, incumbent, start_minimum, iterations, tolerance=1e-7
    ).status
