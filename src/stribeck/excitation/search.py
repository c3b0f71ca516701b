"""Search for the most informative trajectory by minimising a barrier function from the best random trajectories.

The descents run in threads, within a time limit.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import optimize

from stribeck.excitation.baseline import Baseline, random_baseline, shrunk
from stribeck.excitation.criterion import Criterion
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.arrays import Array
from stribeck.processes import cores, interrupts_to

WEIGHTS = (0.2, 0.04, 0.008, 0.0015)
"""Weights of the barrier; one descent per weight."""

ITERATIONS = 150
"""Maximum number of steps of a descent."""

TOLERANCE = 0.5
"""A descent ends when :data:`WINDOW` steps gain less than this share of the weight."""

WINDOW = 5

INSIDE = 1e-3
"""Distance of a start point from the limits, as a share of its amplitude."""

BASELINE_SHARE = 0.3
"""Share of the time available for random trajectories, of what is left once all is compiled."""

RESERVED = 0.7
"""Share of the time limit that is available after compilation, however long that took."""

QUICK = 40.0
"""With less time than this [s] the barrier is compiled without optimisation."""


class Clock:
    """Time limit with cancellation.

    :param seconds: time until the deadline.
    :param started: start time by :func:`time.perf_counter`; default: now.
    """

    def __init__(self, seconds: float, started: float | None = None) -> None:
        self.started = time.perf_counter() if started is None else started
        self.seconds = self.deadline = seconds
        self.ready = 0.0
        self.called_off = False

    @property
    def elapsed(self) -> float:
        """Time since the start [s]."""
        return time.perf_counter() - self.started

    def compiled(self) -> None:
        """Note that the work can begin; on a busy machine the deadline moves, so that :data:`RESERVED` of the time is left."""
        self.ready = self.elapsed
        self.deadline = max(self.seconds, self.ready + RESERVED * self.seconds)

    def call_off(self) -> None:
        """End the work at its next step."""
        self.called_off = True

    def runs(self, share: float = 1.0) -> bool:
        """Whether a share of the time between the end of compilation and the deadline has not yet elapsed."""
        end = self.ready + share * (self.deadline - self.ready)
        return not self.called_off and self.elapsed < end


@dataclass(frozen=True, eq=False)
class Climb:
    """The descents from one start.

    :param start: rank of the random trajectory from which they started.
    :param start_log_det: its log determinant.
    :param log_det: log determinant of the result.
    :param z: the resulting trajectory.
    :param finished: whether all weights were completed before the time ran out.
    :param status: solver status for the last weight.
    """

    start: int
    start_log_det: float
    log_det: float
    z: Array
    iterations: int
    finished: bool
    status: SolverStatus


@dataclass(frozen=True, eq=False)
class Search:
    """The result of a search.

    :param climbs: one per start, the best first; at least one.
    """

    baseline: Baseline
    climbs: tuple[Climb, ...]
    interrupted: bool


def search(
    criterion: Criterion,
    clock: Clock,
    *,
    starts: int,
    random: int,
    seed: int,
    tell: Callable[[str, float | None], None] = lambda phase, best: None,
) -> Search:
    """Find the most informative trajectory.

    Ctrl-C ends the search with the best trajectory so far. If the time suffices for all starts, the result depends only
    on the seed.

    :param starts: number of the best random trajectories from which to start.
    :param random: number of random trajectories.
    :param tell: progress callback with the current phase and the best log determinant so far.
    :raises ConfigError: if no random trajectory respects the limits.
    """

    def drawn(done: int) -> bool:
        tell(f"random trajectories {done}/{random}", None)
        return clock.runs(BASELINE_SHARE)

    def whole() -> tuple[Baseline, list[Climb]]:
        with ThreadPoolExecutor(cores()) as pool:
            tell("compiling", None)
            criterion.prepare()
            clock.compiled()
            baseline = random_baseline(criterion, random, seed, pool, drawn)
            best = [float(baseline.log_det[0])]
            futures = [
                pool.submit(_climb, criterion, clock, baseline, rank, best, tell)
                for rank in range(min(starts, len(baseline.z)))
            ]
            climbs = [climb for climb in (future.result() for future in futures) if climb is not None]
            return baseline, sorted(climbs, key=lambda climb: climb.log_det, reverse=True)

    # Ctrl-C reaches the main thread alone, which is free for it while the work is done in another one.
    with warnings.catch_warnings(), ThreadPoolExecutor(1) as worker, interrupts_to(clock.call_off):
        warnings.simplefilter("ignore", RuntimeWarning)  # SciPy's line search warns about infinite values
        baseline, climbs = worker.submit(whole).result()
    return Search(baseline, tuple(climbs), clock.called_off)


def _climb(
    criterion: Criterion,
    clock: Clock,
    baseline: Baseline,
    rank: int,
    best: list[float],
    tell: Callable[[str, float | None], None],
) -> Climb | None:
    """The descents from one random trajectory; ``None`` if no time is left to begin."""
    if rank and not clock.runs():
        return None
    steps, status = 0, SolverStatus.LIMIT

    def go_on() -> bool:
        nonlocal steps
        steps += 1
        tell(f"start {rank + 1}", best[0])
        return clock.runs()

    start = baseline.z[rank]
    reached = (float(baseline.log_det[rank]), start)
    z = _inside(criterion, start)
    for weight in WEIGHTS:
        if not clock.runs():
            break
        curvature = criterion.curvature(z, weight) + np.eye(criterion.dimension)
        barrier = partial(criterion.barrier, weight=weight)
        z, status = descend(barrier, z, curvature, tolerance=TOLERANCE * weight, go_on=go_on)
        reached = max(reached, (criterion.score(z).log_det, z), key=lambda item: item[0])
        best[0] = max(best[0], reached[0])
    return Climb(rank, float(baseline.log_det[rank]), *reached, steps, clock.runs(), status)


def descend(
    value: Callable[[Array], tuple[float, Array]],
    start: Array,
    curvature: Array,
    *,
    tolerance: float,
    go_on: Callable[[], bool] = lambda: True,
) -> tuple[Array, SolverStatus]:
    """Minimise a barrier function by SciPy's BFGS; every accepted point is feasible.

    :param value: the function and its gradient; infinite outside the feasible set.
    :param start: (d,), feasible.
    :param curvature: positive definite estimate of the Hessian (d, d).
    :param tolerance: the descent ends when :data:`WINDOW` steps gain less than this.
    :param go_on: called after each step; the descent ends if it returns ``False``.
    """
    costs: list[float] = []
    status = SolverStatus.LIMIT

    def finite_gradient(x: Array) -> tuple[float, Array]:
        cost, gradient = value(x)
        return (cost, gradient) if np.isfinite(cost) else (np.inf, np.zeros_like(x))

    def after_step(intermediate_result: optimize.OptimizeResult) -> None:
        nonlocal status
        costs.append(float(intermediate_result.fun))
        if len(costs) > WINDOW and costs[-WINDOW - 1] - costs[-1] < tolerance:
            status = SolverStatus.CONVERGED
        if not go_on() or status is SolverStatus.CONVERGED:
            raise StopIteration

    inverse = np.linalg.inv(curvature)
    options = {"hess_inv0": 0.5 * (inverse + inverse.T), "maxiter": ITERATIONS, "gtol": 1e-9}
    with np.errstate(all="ignore"):
        end = optimize.minimize(
            finite_gradient, start, jac=True, method="BFGS", callback=after_step, options=options
        )
    if end.success:
        status = SolverStatus.CONVERGED
    elif end.status == 2 and status is not SolverStatus.CONVERGED:
        status = SolverStatus.KINK  # the line search found no better point
    return np.asarray(end.x), status


def _inside(criterion: Criterion, z: Array) -> Array:
    """The trajectory, scaled down until one that is larger by :data:`INSIDE` is within all limits."""
    share = 0.98
    while share > 0.01:
        if np.isfinite(criterion.barrier(shrunk(criterion.task, z, share), 0.0)[0]):
            break
        share *= 0.95
    return shrunk(criterion.task, z, share / (1.0 + INSIDE))
