"""Searches for the minimum of a loss on the unit cube.

They all evaluate many points at a time and share an :class:`~stribeck.identify.servo.incumbent.Incumbent`, which keeps the best
point, the budget and the history. The losses of friction laws have many local minima, and optima often lie at bounds,
so every search uses several starts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stribeck.identify.servo.descent import descend, levenberg_marquardt
from stribeck.identify.servo.evolution import PopulationCMA, Restart, advance, floored, fold
from stribeck.identify.servo.incumbent import BudgetSpentError, Incumbent, Minima, SearchProblem, evaluate
from stribeck.identify.servo.objective import EQUALLY_GOOD

POPULATION = 64
"""Default population of CMA-ES."""

AGREEMENT = 0.5 * EQUALLY_GOOD
"""Independent searches whose losses differ by less than this share have found the same minimum."""


def hybrid(problem: SearchProblem, incumbent: Incumbent, rng: np.random.Generator) -> None:
    """Alternate descent from many starts and CMA-ES until two rounds agree or residuals are noise.

    Agreement of two different methods is better evidence of a minimum than agreement of two searches of the same kind.
    From a given start, which a search over the whole cube has found, rounds go on around the best point.
    """
    ends: list[float] = []
    if incumbent.start is not None:
        start = incumbent.start[None]
        minima = Minima(start, evaluate(problem, incumbent, start))
        minima = levenberg_marquardt(problem, incumbent, minima, iterations=30)
        ends.append(float(minima.losses[0]))
        while incumbent.unit is not None and not done(incumbent, ends):
            best = Minima(incumbent.unit[None], np.array([incumbent.loss]))
            ends.append(_refined(problem, incumbent, best, rng))
    while not done(incumbent, ends):
        if len(ends) % 2 == 0:
            ends.append(_refined(problem, incumbent, descend(problem, incumbent, rng), rng))
        else:
            restart = Restart(problem, POPULATION, 0.3, rng, incumbent.budget)
            while not restart.stopped:
                advance(incumbent, [restart])
            ends.append(restart.settled(incumbent))
    incumbent.converged = True


def _refined(problem: SearchProblem, incumbent: Incumbent, minima: Minima, rng: np.random.Generator) -> float:
    """Run three CMA-ES around the best minimum until they have stopped or are clearly worse.

    One is narrow, shaped by the curvature; two are wide and can leave a wrong minimum. Derivatives stop at kinks.
    """
    if incumbent.remaining < problem.dimension + 1:
        raise BudgetSpentError
    hessian = problem.normal_equations(minima.points[:1]).hessian[0]
    curvature, axes = np.linalg.eigh(np.where(np.isfinite(hessian), hessian, 0.0))
    covariance = (axes / np.maximum(curvature, 1e-12 + 1e-9 * curvature[-1])) @ axes.T
    narrow, *wide = (int(seed) for seed in rng.integers(2**31, size=3))
    searches = [
        PopulationCMA(minima.points[0], 0.05, 32, narrow, floored(covariance, 0.03)),
        *(PopulationCMA(minima.points[0], 0.2, 48, seed) for seed in wide),
    ]
    running = searches
    while running:
        asked = [search.ask_population() for search in running]
        losses = evaluate(problem, incumbent, fold(np.concatenate(asked)))
        for search, points in zip(running, asked, strict=True):
            search.tell_population(points, losses[: len(points)])
            losses = losses[len(points) :]
        leader = min(search.best_loss for search in searches)
        running = [
            search
            for search in running
            if not search.stopped and (search.generation <= 40 or search.best_loss <= 1.02 * leader)
        ]
    incumbent.settle([search.best_point for search in searches], [search.best_loss for search in searches])
    return min(search.best_loss for search in searches)


def done(incumbent: Incumbent, ends: list[float]) -> bool:
    """Whether two independent searches ended at the best point, or one if residuals are noise.

    :param ends: losses at the end points of independent searches.
    """
    best = sum(loss <= incumbent.loss * (1.0 + AGREEMENT) for loss in ends)
    return best >= 2 or (bool(ends) and incumbent.loss <= incumbent.floor)


def multi_start(problem: SearchProblem, incumbent: Incumbent, rng: np.random.Generator) -> None:
    """Levenberg-Marquardt from many starts, repeated until two rounds agree."""
    ends: list[float] = []
    while not done(incumbent, ends):
        best = levenberg_marquardt(problem, incumbent, descend(problem, incumbent, rng), iterations=30)
        incumbent.settle(best.points, best.losses)
        ends.append(float(best.losses[0]))
    incumbent.converged = True


def bipop_cmaes(problem: SearchProblem, incumbent: Incumbent, rng: np.random.Generator) -> None:
    """BIPOP-CMA-ES, restarted with growing and with small populations until the best minimum is found twice.

    Two restarts with the first population begin together. After them, the regime that has used fewer evaluations
    continues. Small populations of different restarts advance together, so that a batch uses all cores.
    """
    population = POPULATION
    large = [Restart(problem, population, 0.3, rng, incumbent.budget) for _ in range(2)]
    small: list[Restart] = []
    ends: list[float] = []
    spent_large = spent_small = 0
    while not done(incumbent, ends):
        # The first restarts finish before small ones begin.
        if len(ends) < 2 or spent_large <= spent_small:
            advance(incumbent, large)
            spent_large += sum(restart.population for restart in large)
            ends += [restart.settled(incumbent) for restart in large if restart.stopped]
            large = [restart for restart in large if not restart.stopped]
            if not large:
                population *= 2
                large = [Restart(problem, population, 0.3, rng, incumbent.budget)]
            continue
        while sum(restart.population for restart in small) < 2 * POPULATION:
            # Hansen 2009: a population between the smallest one and half the large one, and a step between 0.3 and
            # 0.003.
            smallest = 4 + int(3 * np.log(problem.dimension))
            size = int(smallest * max(1.0, 0.5 * population / smallest) ** (rng.random() ** 2))
            small.append(Restart(problem, size, 0.3 * 10.0 ** (-2.0 * rng.random()), rng, incumbent.budget))
        advance(incumbent, small)
        spent_small += sum(restart.population for restart in small)
        ends += [restart.settled(incumbent) for restart in small if restart.stopped]
        small = [restart for restart in small if not restart.stopped]
    incumbent.converged = True


SEARCHES: dict[str, Callable[[SearchProblem, Incumbent, np.random.Generator], None]] = {
    "hybrid": hybrid,
    "cmaes": bipop_cmaes,
    "lm": multi_start,
}
"""Search functions of this module, by method."""
