"""One search in several processes that keeps the best of their points."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from stribeck.errors import StribeckError
from stribeck.identify.common.jobs import REPORT, Job, run_in_processes
from stribeck.identify.servo.incumbent import Incumbent

REPORT_EVERY = 0.2
"""Shortest interval between reports of a worker's best point [s]."""

WorkerSearch = Callable[[int, Callable[[Incumbent], None]], tuple[Incumbent, float]]
"""Picklable search of a worker: maps its number and a progress callback to the incumbent and compile time [s]."""


def search_in_processes(
    job: WorkerSearch,
    count: int,
    budget: int,
    on_progress: Callable[[Incumbent], None],
    *,
    together: bool = False,
) -> tuple[Incumbent, float]:
    """Run ``job`` in ``count`` fresh processes and keep the best point.

    The death of a worker is not fatal as long as another one has found a point.

    :param together: the budget counts the evaluations of all workers.
    :returns: the common incumbent, and the longest compile time of a worker [s].
    :raises StribeckError: the first worker's error, if none finished.
    """
    evaluations = [0] * count
    total: Callable[[list[int]], int] = max if together else sum
    incumbent = Incumbent(budget, lambda: total(evaluations), on_progress)
    jobs = [Job(f"{k}", "stribeck.identify.servo.workers:_work", (job, k)) for k in range(count)]

    def receive(source: Job, content: tuple[int, Any, Any]) -> None:
        evaluations[int(source.name)], unit, loss = content
        if unit is not None:
            incumbent.offer(unit[None], loss)

    finished: list[bool] = []
    compile_seconds, failure = 0.0, ""
    for ended in run_in_processes(
        jobs, count, 0, running=lambda names: on_progress(incumbent), on_message=receive
    ):
        if ended.failure:
            failure = failure or ended.failure
            continue
        state, converged, seconds = ended.value
        receive(ended.job, state)
        incumbent.settle([] if state[1] is None else [state[1]], [] if state[1] is None else state[2])
        finished.append(converged)
        compile_seconds = max(compile_seconds, seconds)
    if not finished and incumbent.unit is None:
        raise StribeckError(failure or "no worker finished")
    incumbent.converged = (together or len(finished) == count) and bool(finished) and all(finished)
    return incumbent, compile_seconds


def _work(job: WorkerSearch, worker: int) -> tuple[tuple[int, Any, Any], bool, float]:
    """State of the worker's incumbent, whether it converged, and the compile time [s]."""
    last = 0.0

    def report(incumbent: Incumbent) -> None:
        nonlocal last
        if time.monotonic() - last > REPORT_EVERY:
            last = time.monotonic()
            REPORT.get()(_state(incumbent))

    incumbent, compile_seconds = job(worker, report)
    return _state(incumbent), incumbent.converged, compile_seconds


def _state(incumbent: Incumbent) -> tuple[int, Any, Any]:
    return incumbent.evaluations(), incumbent.unit, np.array([incumbent.loss])
