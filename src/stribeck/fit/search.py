"""Searches for the minimum of a loss on the unit cube.

All of them ask for many points at a time and share an :class:`Incumbent`, which keeps the best point,
the budget and the history. The optima of friction laws lie among local minima and often at bounds;
no search here trusts a single start.

Sources: CMA-ES with two restart regimes, Hansen, "Benchmarking a BI-population CMA-ES on the
BBOB-2009 function testbed", GECCO 2009; Levenberg-Marquardt, Nocedal and Wright, "Numerical
Optimization", ch. 10, on a loss of least absolute values reweighted in every iteration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, cast

import cmaes
import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

FloatArray = npt.NDArray[np.float64]

SHORT_HORIZON = 0.5
"""Time over which the first phase of a search simulates at a stretch [s]."""

STARTS = 24
"""Starts of the search by derivatives."""

LARGE_BUDGET = 12000
"""Evaluations from which on the search by derivatives takes all its starts."""

TOURNAMENT = ((16, 4), (6, 8))
"""Levenberg-Marquardt over whole runs: so many starts follow so many steps, the best go on."""

POPULATION = 64
"""Population of CMA-ES from scratch."""

SHORT_GENERATIONS = 60
"""Generations that CMA-ES spends on the short horizon at most."""

WORTHWHILE = 1e-4
"""A CMA-ES that gains less than this share ..."""

PATIENCE = 20
"""... in so many generations is done."""

AGREEMENT = 2e-3
"""Two independent searches whose losses differ by less than this share found the same minimum."""


RUNNERS_UP = 8
"""Former best points that are kept, in case the last one does not stand up to a check."""


class Equations(Protocol):
    """Loss (S,), gradient (S, n) and Gauss-Newton matrix (S, n, n)."""

    @property
    def loss(self) -> FloatArray: ...  # noqa: D102
    @property
    def gradient(self) -> FloatArray: ...  # noqa: D102
    @property
    def hessian(self) -> FloatArray: ...  # noqa: D102


class Problem(Protocol):
    """What a search needs to know; :class:`stribeck.fit.rollout.Rollout` is one."""

    @property
    def dimension(self) -> int:
        """Number of free parameters n."""

    def with_reset_period(self, reset_period: float | None) -> Problem:
        """The problem with the state put back on the measurement every so often [s]."""

    def losses(self, unit: npt.ArrayLike) -> FloatArray:
        """Losses of points (C, n) -> (C,)."""

    def normal_equations(self, unit: npt.ArrayLike) -> Equations:
        """Local least squares around points (S, n)."""


class BudgetSpentError(Exception):
    """The search has used its evaluations."""


@dataclass
class Incumbent:
    """The best point so far, and what it cost.

    :param budget: evaluations allowed.
    :param evaluations: function that counts the evaluations done so far.
    :param on_progress: called after every batch.
    :param floor: a loss at which nothing is left to explain.
    :param history: evaluations and loss at every improvement.
    :param runners_up: the last few best points before this one, the latest last.
    :param minima: where independent searches ended over whole runs: losses and points (n,).
    """

    budget: int
    evaluations: Callable[[], int]
    on_progress: Callable[[Incumbent], None] = lambda incumbent: None
    floor: float = 0.0
    unit: FloatArray | None = None
    loss: float = np.inf
    converged: bool = False
    history: list[tuple[int, float]] = field(default_factory=list)
    runners_up: deque[FloatArray] = field(default_factory=lambda: deque(maxlen=RUNNERS_UP))
    minima: list[tuple[float, FloatArray]] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        """Evaluations left."""
        return self.budget - self.evaluations()

    @property
    def best_points(self) -> FloatArray:
        """The best point and those before it, the latest first (S, n)."""
        if self.unit is None:
            raise ValueError("nothing has been evaluated yet")
        return np.stack([self.unit, *reversed(self.runners_up)])

    def offer(self, points: FloatArray, losses: FloatArray) -> None:
        """Take notice of evaluated points (C, n)."""
        best = int(np.argmin(losses))
        if losses[best] < self.loss:
            if self.unit is not None:
                self.runners_up.append(self.unit)
            self.loss = float(losses[best])
            self.unit = np.array(points[best], dtype=np.float64)
            self.history.append((self.evaluations(), self.loss))
        self.on_progress(self)

    def settle(self, points: npt.ArrayLike, losses: npt.ArrayLike) -> None:
        """Note the points (S, n) at which independent searches ended, and their losses (S,)."""
        self.minima += zip(np.asarray(losses).tolist(), np.array(points, dtype=np.float64), strict=True)


class Minima(NamedTuple):
    """Points (S, n) and their losses (S,), the best first."""

    points: FloatArray
    losses: FloatArray


def evaluate(
    problem: Problem, incumbent: Incumbent, points: FloatArray, *, counts: bool = True
) -> FloatArray:
    """Losses of points (C, n), which the incumbent takes notice of.

    :param counts: whether the losses are those of the problem to solve, not of a shorter horizon.
    :raises BudgetSpentError: if the budget does not allow so many.
    """
    if incumbent.remaining < len(points):
        raise BudgetSpentError
    losses = problem.losses(points)
    if counts:
        incumbent.offer(points, losses)
    else:
        incumbent.on_progress(incumbent)
    return losses


def descend(problem: Problem, incumbent: Incumbent, rng: np.random.Generator) -> Minima:
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
    problem: Problem,
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
    :raises BudgetSpentError: if the budget does not allow another iteration over whole runs.
    """
    points, losses = start.points.copy(), start.losses.copy()
    dampings = 10.0 ** np.arange(-4, 4)
    scale = np.ones(len(points))
    rows = np.arange(len(points))
    for _ in range(iterations):
        cost = len(points) * (problem.dimension + 1 + len(dampings))
        if not counts and incumbent.remaining - cost < incumbent.budget // 2:
            break
        if incumbent.remaining < cost:
            raise BudgetSpentError
        steps = _damped_steps(problem.normal_equations(points), points, scale[:, None] * dampings)
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
            break
    order = np.argsort(losses)
    return Minima(points[order], losses[order])


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


class PopulationCMA(cmaes.CMA):  # type: ignore[misc]  # cmaes has no types
    """CMA-ES that samples a whole population in one call; the update is the library's.

    Bounds are met by folding: a point outside the cube stands for its mirror image within.

    :param mean: starting point (n,).
    :param sigma: starting standard deviation along the widest axis.
    :param population: points per generation.
    :param cov: starting covariance up to ``sigma``² (n, n).
    """

    def __init__(
        self, mean: FloatArray, sigma: float, population: int, seed: int, cov: FloatArray | None = None
    ) -> None:
        super().__init__(mean=mean, sigma=sigma, population_size=population, seed=seed, cov=cov)
        self.best_loss = np.inf
        self.best_point = fold(mean)
        self._last_gain = 0

    def ask_population(self, count: int | None = None, rng: np.random.Generator | None = None) -> FloatArray:
        """A population (population, n), not yet folded; or so many points, drawn with ``rng``."""
        basis, scale = self._eigen_decomposition()
        normal = (rng or self._rng).standard_normal((count or self.population_size, self.dim))
        return cast(FloatArray, self.mean + self._sigma * (normal * scale) @ basis.T)

    def tell_population(self, points: FloatArray, losses: FloatArray) -> None:
        """Update the distribution with the losses of an asked population."""
        worst = np.max(losses[np.isfinite(losses)], initial=0.0)
        self.tell(list(zip(points, np.where(np.isfinite(losses), losses, 10.0 * worst + 1.0), strict=True)))
        best = int(np.argmin(losses))
        if losses[best] < self.best_loss:
            if losses[best] < self.best_loss * (1.0 - WORTHWHILE):
                self._last_gain = self.generation
            self.best_loss, self.best_point = float(losses[best]), fold(points[best])

    @property
    def covariance(self) -> FloatArray:
        """Shape of the distribution, its covariance up to sigma² (n, n)."""
        basis, scale = self._eigen_decomposition()
        return cast(FloatArray, (basis * scale**2) @ basis.T)

    @property
    def stopped(self) -> bool:
        """Whether it has converged, or has gained nothing worthwhile for :data:`PATIENCE` generations."""
        if self.generation - self._last_gain > PATIENCE:
            return True
        return self.generation % PATIENCE == 0 and bool(self.should_stop())


def fold(points: FloatArray) -> FloatArray:
    """Mirror points into the unit cube: 1.2 is 0.8, -0.2 is 0.2."""
    wrapped = np.mod(points, 2.0)
    return np.where(wrapped > 1.0, 2.0 - wrapped, wrapped)


class Restart:
    """One CMA-ES from scratch: over a short horizon first, then over whole runs.

    Over half a second a simulation cannot stray far from the measurement, and its loss has far fewer
    wrong minima than that of a whole run. The second phase begins where the first one ended, with its
    covariance.

    :param sigma: starting standard deviation in the unit cube.
    :param budget: evaluations of the whole search, of which the short horizon takes a third at most.
    """

    def __init__(
        self, problem: Problem, population: int, sigma: float, rng: np.random.Generator, budget: int
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
        """Whether the second phase is over."""
        return self.on_whole_runs and self.search.stopped

    def settled(self, incumbent: Incumbent) -> float:
        """Tell an incumbent where this search has ended, and give the loss there."""
        incumbent.settle([self.search.best_point], [self.search.best_loss])
        return self.search.best_loss

    def tell(self, points: FloatArray, losses: FloatArray) -> None:
        """Take the losses of a generation, and go over to whole runs when it is time."""
        self.search.tell_population(points, losses)
        ready = self.search.stopped or self.search.generation >= self._short_generations
        if ready and not self.on_whole_runs:
            self.problem = self._whole
            self.search = PopulationCMA(
                fold(self.search.mean),
                0.1,
                self.population,
                int(self._rng.integers(2**31)),
                _floored(self.search.covariance, 0.1),
            )


def advance(incumbent: Incumbent, restarts: list[Restart]) -> None:
    """One generation of several restarts; those of one phase are evaluated together."""
    for on_whole_runs in (False, True):
        group = [restart for restart in restarts if restart.on_whole_runs == on_whole_runs]
        if not group:
            continue
        asked = [restart.search.ask_population() for restart in group]
        points = fold(np.concatenate(asked))
        losses = evaluate(group[0].problem, incumbent, points, counts=on_whole_runs)
        for restart, own in zip(group, asked, strict=True):
            restart.tell(own, losses[: len(own)])
            losses = losses[len(own) :]


def hybrid(problem: Problem, incumbent: Incumbent, rng: np.random.Generator) -> None:
    """Derivatives from many starts, then CMA-ES from scratch, in turn, until two rounds agree or nothing
    is left to explain.

    Two searches of different kinds that end in one minimum are better evidence than two of the same.
    """
    found: list[float] = []
    while not done(incumbent, found):
        if len(found) % 2 == 0:
            found.append(_refined(problem, incumbent, descend(problem, incumbent, rng), rng))
        else:
            restart = Restart(problem, POPULATION, 0.3, rng, incumbent.budget)
            while not restart.stopped:
                advance(incumbent, [restart])
            found.append(restart.settled(incumbent))
    incumbent.converged = True


def _refined(problem: Problem, incumbent: Incumbent, minima: Minima, rng: np.random.Generator) -> float:
    """Three CMA-ES around the best minimum, until they have stopped or are clearly behind: a narrow one
    shaped by the curvature, and two wide round ones that leave a wrong minimum.

    Derivatives mislead at the kinks that sticking and slipping leave in the loss, and stop short of
    the minimum.
    """
    if incumbent.remaining < problem.dimension + 1:
        raise BudgetSpentError
    hessian = problem.normal_equations(minima.points[:1]).hessian[0]
    curvature, axes = np.linalg.eigh(np.where(np.isfinite(hessian), hessian, 0.0))
    covariance = (axes / np.maximum(curvature, 1e-12 + 1e-9 * curvature[-1])) @ axes.T
    narrow, *wide = (int(seed) for seed in rng.integers(2**31, size=3))
    searches = [
        PopulationCMA(minima.points[0], 0.05, 32, narrow, _floored(covariance, 0.03)),
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


def _floored(covariance: FloatArray, floor: float) -> FloatArray:
    """A covariance scaled so that its widest axis is 1 and none is narrower than ``floor``."""
    variance, axes = np.linalg.eigh(covariance)
    width = np.sqrt(np.maximum(variance, 0.0) / variance[-1])
    return cast(FloatArray, (axes * np.maximum(width, floor) ** 2) @ axes.T)


def done(incumbent: Incumbent, found: list[float]) -> bool:
    """Whether two independent searches ended at the best point there is, or one where nothing is left
    to explain.
    """
    best = sum(loss <= incumbent.loss * (1.0 + AGREEMENT) for loss in found)
    return best >= 2 or (bool(found) and incumbent.loss <= incumbent.floor)


def multi_start(problem: Problem, incumbent: Incumbent, rng: np.random.Generator) -> None:
    """Levenberg-Marquardt from many starts, again and again until two rounds agree."""
    found: list[float] = []
    while not done(incumbent, found):
        best = levenberg_marquardt(problem, incumbent, descend(problem, incumbent, rng), iterations=30)
        incumbent.settle(best.points, best.losses)
        found.append(float(best.losses[0]))
    incumbent.converged = True


def bipop_cmaes(problem: Problem, incumbent: Incumbent, rng: np.random.Generator) -> None:
    """CMA-ES restarted with growing populations, and many small ones beside it, until the best minimum
    was found twice or the budget is spent.

    Two restarts of the first population begin together. After them the regime that has used fewer
    evaluations goes on; small populations of different restarts advance together. So a batch fills
    the machine.
    """
    population = POPULATION
    large = [Restart(problem, population, 0.3, rng, incumbent.budget) for _ in range(2)]
    small: list[Restart] = []
    found: list[float] = []
    spent_large = spent_small = 0
    while not done(incumbent, found):
        # The first restarts go all the way before small ones begin.
        if len(found) < 2 or spent_large <= spent_small:
            advance(incumbent, large)
            spent_large += sum(restart.population for restart in large)
            found += [restart.settled(incumbent) for restart in large if restart.stopped]
            large = [restart for restart in large if not restart.stopped]
            if not large:
                population *= 2
                large = [Restart(problem, population, 0.3, rng, incumbent.budget)]
            continue
        while sum(restart.population for restart in small) < 2 * POPULATION:
            # Hansen 2009: a population between the smallest and half the large one, and a step
            # between 0.3 and 0.003.
            smallest = 4 + int(3 * np.log(problem.dimension))
            size = int(smallest * max(1.0, 0.5 * population / smallest) ** (rng.random() ** 2))
            small.append(Restart(problem, size, 0.3 * 10.0 ** (-2.0 * rng.random()), rng, incumbent.budget))
        advance(incumbent, small)
        spent_small += sum(restart.population for restart in small)
        found += [restart.settled(incumbent) for restart in small if restart.stopped]
        small = [restart for restart in small if not restart.stopped]
    incumbent.converged = True


def polish(problem: Problem, incumbent: Incumbent, start: FloatArray, iterations: int = 30) -> None:
    """Levenberg-Marquardt from one point (n,) that is known to be near the minimum."""
    losses = evaluate(problem, incumbent, start[None])
    levenberg_marquardt(problem, incumbent, Minima(start[None], losses), iterations, tolerance=1e-7)


SEARCHES: dict[str, Callable[[Problem, Incumbent, np.random.Generator], None]] = {
    "hybrid": hybrid,
    "cmaes": bipop_cmaes,
    "lm": multi_start,
}
"""The searches of our own, by method."""
