"""The most informative trajectory within limits: from the best random ones uphill, in threads, against the clock."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from stribeck.core.arrays import Array
from stribeck.excitation.barrier import descend
from stribeck.excitation.baseline import Baseline, random_baseline, shrunk
from stribeck.excitation.criterion import Criterion

T = TypeVar("T")

WEIGHTS = (0.2, 0.04, 0.008, 0.0015)
"""Weights of the barrier, one descent with each."""

ITERATIONS = 150
"""Of a descent, at most."""

TOLERANCE = 0.5
"""A descent ends when it can gain no more than this share of the weight."""

INSIDE = 1e-3
"""Smallest slack to start with."""

BASELINE_SHARE = 0.5
"""Share of the time that random trajectories may take."""


class Clock:
    """When to end: a deadline, or somebody's wish.

    :param seconds: until the deadline.
    :param started: by :func:`time.perf_counter`, where it began before now.
    """

    def __init__(self, seconds: float, started: float | None = None) -> None:
        self.started = time.perf_counter() if started is None else started
        self.seconds = seconds
        self.called_off = threading.Event()

    @property
    def elapsed(self) -> float:
        """Since it began [s]."""
        return time.perf_counter() - self.started

    def runs(self, share: float = 1.0) -> bool:
        """Whether there is time left, of a share of it."""
        return not self.called_off.is_set() and self.elapsed < share * self.seconds


@dataclass(frozen=True, eq=False)
class Climb:
    """One start and what became of it.

    :param start: rank of the random trajectory that it began with.
    :param start_log_det: its log determinant.
    :param log_det: the log determinant reached.
    :param z: where.
    :param iterations: steps taken.
    :param finished: whether it went to its end; else time ran out.
    """

    start: int
    start_log_det: float
    log_det: float
    z: Array
    iterations: int
    finished: bool


@dataclass(frozen=True, eq=False)
class Search:
    """What a search found.

    :param baseline: the random trajectories.
    :param climbs: one for each start, the best first; at least one.
    :param interrupted: whether it was called off.
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

    Ctrl-C calls it off; the best so far is the result then, unless there is none. All starts are finished if the
    time is long enough, and the result then depends on the seed alone.

    :param starts: how many of the best random trajectories to begin with.
    :param random: how many of these to draw.
    :param tell: takes what is going on and the best log determinant so far, now and then.
    :raises ConfigError: if no random trajectory keeps its limits.
    """
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool, ThreadPoolExecutor(1) as waiter:
        baseline = _patiently(waiter.submit(_baseline, criterion, clock, random, seed, pool, tell), clock)
        best = [float(baseline.log_det[0])]
        climbs = [
            pool.submit(_climb, criterion, clock, baseline, rank, best, tell)
            for rank in range(min(starts, len(baseline.z)))
        ]
        done = [climb for climb in (_patiently(future, clock) for future in climbs) if climb is not None]
    done.sort(key=lambda climb: climb.log_det, reverse=True)
    return Search(baseline, tuple(done), clock.called_off.is_set())


def _patiently(future: Future[T], clock: Clock) -> T:
    """The result of a task; Ctrl-C makes all tasks end soon."""
    while True:
        try:
            return future.result()
        except KeyboardInterrupt:
            clock.called_off.set()


def _baseline(
    criterion: Criterion,
    clock: Clock,
    count: int,
    seed: int,
    pool: ThreadPoolExecutor,
    tell: Callable[[str, float | None], None],
) -> Baseline:
    def go_on(done: int) -> bool:
        tell(f"random trajectories {done}/{count}", None)
        return clock.runs(BASELINE_SHARE)

    return random_baseline(criterion, count, seed, pool, go_on)


def _climb(
    criterion: Criterion,
    clock: Clock,
    baseline: Baseline,
    rank: int,
    best: list[float],
    tell: Callable[[str, float | None], None],
) -> Climb | None:
    """From one random trajectory uphill; ``None`` if there is no time to begin."""
    if rank and not clock.runs():
        return None
    steps = 0

    def go_on(z: Array) -> bool:
        nonlocal steps
        steps += 1
        tell(f"start {rank + 1}", best[0])
        return clock.runs()

    start = baseline.z[rank]
    found = (float(baseline.log_det[rank]), start)
    z = _inside(criterion, start)
    for weight in WEIGHTS:
        if not clock.runs():
            break
        z = _descend(criterion, z, weight, go_on)
        found = max(found, (criterion.score(z).log_det, z), key=lambda item: item[0])
        best[0] = max(best[0], found[0])
    return Climb(rank, float(baseline.log_det[rank]), *found, steps, finished=clock.runs())


def _descend(criterion: Criterion, z: Array, weight: float, go_on: Callable[[Array], bool]) -> Array:
    return descend(
        lambda z: criterion.barrier(z, weight),
        criterion.reach,
        z,
        criterion.curvature(z, weight) + np.eye(criterion.dimension),
        iterations=ITERATIONS,
        tolerance=TOLERANCE * weight,
        tell=go_on,
    )


def _inside(criterion: Criterion, z: Array) -> Array:
    """The trajectory scaled until no limit is quite reached."""
    share = 0.98
    while share > 0.01:
        candidate = shrunk(criterion.task, z, share)
        if criterion.score(candidate).slack > INSIDE:
            return candidate
        share *= 0.95
    return shrunk(criterion.task, z, share)
