"""Searches for the minimum of a loss on the unit cube.

They all evaluate many points at a time and share an :class:`~stribeck.identify.servo.incumbent.Incumbent`, which keeps the best
point, the budget and the history. The losses of friction laws have many local minima, and optima often lie at bounds,
so every search uses several starts. Source of CMA-ES with restarts: Hansen, "Benchmarking a BI-population CMA-ES on the
BBOB-2009 function testbed", GECCO 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import cmaes
import numpy as np

from stribeck.identify.servo.descent import SHORT_HORIZON, descend, levenberg_marquardt
from stribeck.identify.servo.incumbent import BudgetSpentError, Incumbent, Minima, SearchProblem, evaluate
from stribeck.identify.servo.objective import EQUALLY_GOOD
from stribeck.model.arrays import Array

SHORT_GENERATIONS = 60
"""Maximum number of generations on the short horizon."""

WORTHWHILE = 1e-4
"""CMA-ES stops when it gains less than this share of its loss ..."""

PATIENCE = 20
"""... within this number of generations."""


class PopulationCMA(cmaes.CMA):  # type: ignore[misc]  # cmaes has no types
    """CMA-ES that samples a whole population in one call; the update is that of ``cmaes``.

    Bounds are handled by reflection: a point outside the cube stands for its mirror image inside.

    :param mean: starting point (n,).
    :param sigma: starting standard deviation along the widest axis.
    :param cov: starting covariance divided by the square of ``sigma`` (n, n).
    """

    def __init__(
        self, mean: Array, sigma: float, population: int, seed: int, cov: Array | None = None
    ) -> None:
        super().__init__(mean=mean, sigma=sigma, population_size=population, seed=seed, cov=cov)
        self.best_loss = np.inf
        self.best_point = fold(mean)
        self._last_gain = 0

    def ask_population(self, count: int | None = None, rng: np.random.Generator | None = None) -> Array:
        """A population (population, n) before reflection, or ``count`` points drawn with ``rng``."""
        basis, scale = self._eigen_decomposition()
        normal = (rng or self._rng).standard_normal((count or self.population_size, self.dim))
        return cast(Array, self.mean + self._sigma * (normal * scale) @ basis.T)

    def tell_population(self, points: Array, losses: Array) -> None:
        """Update the distribution with the losses of a sampled population."""
        worst = np.max(losses[np.isfinite(losses)], initial=0.0)
        self.tell(list(zip(points, np.where(np.isfinite(losses), losses, 10.0 * worst + 1.0), strict=True)))
        best = int(np.argmin(losses))
        if losses[best] < self.best_loss:
            if losses[best] < self.best_loss * (1.0 - WORTHWHILE):
                self._last_gain = self.generation
            self.best_loss, self.best_point = float(losses[best]), fold(points[best])

    @property
    def covariance(self) -> Array:
        """Covariance of the distribution divided by sigma², (n, n)."""
        basis, scale = self._eigen_decomposition()
        return cast(Array, (basis * scale**2) @ basis.T)

    @property
    def stopped(self) -> bool:
        """Whether the search has converged or gained too little for :data:`PATIENCE` generations."""
        if self.generation - self._last_gain > PATIENCE:
            return True
        return self.generation % PATIENCE == 0 and bool(self.should_stop())


def fold(points: Array) -> Array:
    """Reflect points into the unit cube: 1.2 becomes 0.8, -0.2 becomes 0.2."""
    wrapped = np.mod(points, 2.0)
    return np.where(wrapped > 1.0, 2.0 - wrapped, wrapped)


class Restart:
    """One independent CMA-ES search, over a short horizon first, then over whole runs.

    Within half a second a simulation stays close to the measurement, and its loss has far fewer local minima than that
    of a whole run. The second phase starts at the mean of the first one, with its covariance.

    :param sigma: starting standard deviation in the unit cube.
    :param budget: evaluations of the whole search; the short horizon takes at most a third of them.
    """

    def __init__(
        self, problem: SearchProblem, population: int, sigma: float, rng: np.random.Generator, budget: int
    ) -> None:
        self._rng = rng
        self._whole = problem
        self._short_generations = min(SHORT_GENERATIONS, budget // (3 * population))
        self.problem = problem.with_reset_period(SHORT_HORIZON) if self._short_generations else problem
        self.search = PopulationCMA(
            rng.random(problem.dimension), sigma, population, int(rng.integers(2**31))
        )

    @property
    def population(self) -> int:
        """Points per generation."""
        return int(self.search.population_size)

    @property
    def on_whole_runs(self) -> bool:
        """Whether the losses are those of whole runs."""
        return self.problem is self._whole

    @property
    def stopped(self) -> bool:
        """Whether the second phase has ended."""
        return self.on_whole_runs and self.search.stopped

    def settled(self, incumbent: Incumbent) -> float:
        """Record the end point of this search in an incumbent and return its loss."""
        incumbent.settle([self.search.best_point], [self.search.best_loss])
        return self.search.best_loss

    def tell(self, points: Array, losses: Array) -> None:
        """Update with the losses of a generation; switch to whole runs at the end of the first phase."""
        self.search.tell_population(points, losses)
        ready = self.search.stopped or self.search.generation >= self._short_generations
        if ready and not self.on_whole_runs:
            self.problem = self._whole
            self.search = PopulationCMA(
                fold(self.search.mean),
                0.1,
                self.population,
                int(self._rng.integers(2**31)),
                floored(self.search.covariance, 0.1),
            )


def advance(incumbent: Incumbent, restarts: list[Restart]) -> None:
    """Advance several restarts by one generation; restarts in the same phase are evaluated together."""
    for on_whole_runs in (False, True):
        group = [restart for restart in restarts if restart.on_whole_runs == on_whole_runs]
        if not group:
            continue
        asked = [restart.search.ask_population() for restart in group]
        points = fold(np.concatenate(asked))
        losses = evaluate(group[0].problem, incumbent, points, counts=on_whole_runs)
        for restart, population in zip(group, asked, strict=True):
            restart.tell(population, losses[: len(population)])
            losses = losses[len(population) :]


def floored(covariance: Array, floor: float) -> Array:
    """Scale a covariance so that its widest axis is 1 and no axis is narrower than ``floor``."""
    variance, axes = np.linalg.eigh(covariance)
    width = np.sqrt(np.maximum(variance, 0.0) / variance[-1])
    return cast(Array, (axes * np.maximum(width, floor) ** 2) @ axes.T)


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
