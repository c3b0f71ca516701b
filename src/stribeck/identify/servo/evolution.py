"""CMA-ES that samples, evaluates and updates whole populations in one call each.

Source: Hansen, "Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", GECCO 2009.
"""

from __future__ import annotations

from typing import cast

import cmaes
import numpy as np

from stribeck.identify.servo.descent import SHORT_HORIZON
from stribeck.identify.servo.incumbent import Incumbent, SearchProblem, evaluate
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
