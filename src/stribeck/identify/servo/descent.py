"""Local search by derivatives: Levenberg-Marquardt from many starts in parallel, on the unit cube.

The loss of least absolute values is reweighted in every iteration. Source: Nocedal and Wright, "Numerical
Optimization", 2nd ed., ch. 10.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from stribeck.identify.common.minimise import NormalEquations, minimise_batch
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.servo.incumbent import BudgetSpentError, Incumbent, Minima, SearchProblem, evaluate
from stribeck.model.arrays import Array

SHORT_HORIZON = 0.5
"""Simulation horizon of the first phase of a search [s]."""

PROMISED = 1e-3
"""A point that no step improves is at a kink if the derivatives predict a gain above this share of the loss."""

DAMPINGS: Array = 10.0 ** np.arange(-4.0, 4.0)
"""Dampings tried in every iteration, relative to the last successful one."""

STARTS = 24
"""Number of starting points."""

LARGE_BUDGET = 12000
"""Number of evaluations from which all starting points are used."""

TOURNAMENT = ((16, 4), (6, 8))
"""Rounds of Levenberg-Marquardt over whole runs: (starts, steps); the best points enter the next round."""


def descend(problem: SearchProblem, incumbent: Incumbent, rng: np.random.Generator) -> Minima:
    """Find minima by derivatives, over a short horizon first, then over whole runs from the better points.

    :returns: the minima, the best first.
    """
    short, reserve = problem.with_reset_period(SHORT_HORIZON), incumbent.remaining // 2
    # A small budget gets fewer points and starts, so that the search always reaches whole runs.
    share = incumbent.remaining / LARGE_BUDGET
    points = qmc.Sobol(problem.dimension, rng=rng).random_base2(int(np.clip(np.log2(512 * share), 3, 9)))
    losses = evaluate(short, incumbent, points, counts=False)
    starts = _apart(points, losses, int(np.clip(STARTS * share, 2, STARTS)))
    minima = levenberg_marquardt(short, incumbent, starts, iterations=8, counts=False, reserve=reserve)
    minima = Minima(minima.points, evaluate(problem, incumbent, minima.points))
    for survivors, iterations in TOURNAMENT:
        order = np.argsort(minima.losses)[:survivors]
        chosen = Minima(minima.points[order], minima.losses[order])
        minima = levenberg_marquardt(problem, incumbent, chosen, iterations)
    incumbent.settle(minima.points, minima.losses)
    return minima


def _apart(points: Array, losses: Array, count: int) -> Minima:
    """The best ``count`` points, if possible no two closer than a tenth of the cube along every axis."""
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
    reserve: int = 0,
) -> Minima:
    """Run Levenberg-Marquardt from all starts in parallel, within the cube.

    The search (:func:`~stribeck.identify.common.minimise.minimise_batch`) ends early when no start improves by ``tolerance``, or when only ``reserve`` evaluations
    are left.

    :param counts: see :func:`evaluate`.
    :returns: the minima, the best first, with the status of the best.
    :raises BudgetSpentError: if the budget does not allow another iteration over whole runs.
    """
    cost = len(start.points) * (problem.dimension + 1 + len(DAMPINGS))

    def may_go_on() -> bool:
        if reserve and incumbent.remaining - cost < reserve:
            return False
        if incumbent.remaining < cost:
            raise BudgetSpentError
        return True

    found = minimise_batch(
        lambda points, _: problem.normal_equations(points),
        lambda points, _: evaluate(problem, incumbent, points, counts=counts),
        start.points,
        start.losses,
        iterations=iterations,
        dampings=DAMPINGS,
        tolerance=tolerance,
        together=True,
        may_go_on=may_go_on,
    )
    order = np.argsort(found.losses)
    status = SolverStatus.LIMIT
    if found.ended:
        status = SolverStatus.KINK if found.promised[order[0]] > PROMISED else SolverStatus.CONVERGED
    if not np.isfinite(found.losses[order[0]]):
        status = SolverStatus.DIVERGED
    return Minima(found.points[order], found.losses[order], status)


def random_steps(equations: NormalEquations, count: int, rise: float, rng: np.random.Generator) -> Array:
    r"""Random steps (S, count, n) by which the quadratic model of a loss rises by a share ``rise`` of it on average.

    They are normal with covariance :math:`2 \rho L / n \, H^{-1}`, with the loss L, its curvature H, and the share ρ.
    Curvatures below 1/1000 of the largest count as that.
    """
    n = equations.gradient.shape[1]
    values, axes = np.linalg.eigh(np.where(np.isfinite(equations.hessian), equations.hessian, 0.0))
    values = np.maximum(values, 1e-3 * values[:, -1:] + 1e-30)
    loss = np.where(np.isfinite(equations.loss), np.abs(equations.loss), 0.0)  # exact fits: of either sign
    lengths = np.sqrt(2.0 * rise * loss[:, None] / n / values)
    normal = rng.standard_normal((len(values), count, n))
    return np.asarray(np.einsum("sij,skj->ski", axes, normal * lengths[:, None]))


def polish(problem: SearchProblem, incumbent: Incumbent, start: Array, iterations: int = 30) -> None:
    """Run Levenberg-Marquardt from one point (n,) near the minimum; the incumbent records the status."""
    incumbent.status = SolverStatus.LIMIT  # remains if the budget runs out
    losses = evaluate(problem, incumbent, start[None])
    start_minimum = Minima(start[None], losses)
    incumbent.status = levenberg_marquardt(
        problem, incumbent, start_minimum, iterations, tolerance=1e-7
    ).status
