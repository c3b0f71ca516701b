"""One search in several processes that keeps the best of their points."""

from __future__ import annotations

import multiprocessing as mp
import queue
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from stribeck.errors import StribeckError
from stribeck.fit.incumbent import Incumbent
from stribeck.processes import end_with_parent, exit_reason, interrupts_blocked, stop_workers

GRACE = 5.0
"""Time for workers to exit before they are killed [s]."""

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
    context = mp.get_context("spawn")
    reports = context.Queue()
    processes = [context.Process(target=_work, args=(job, k, reports), daemon=True) for k in range(count)]
    evaluations = [0] * count
    total: Callable[[list[int]], int] = max if together else sum
    incumbent = Incumbent(budget, lambda: total(evaluations), on_progress)
    with interrupts_blocked():
        for process in processes:
            process.start()
    waiting = set(range(count))
    finished: list[bool] = []
    compile_seconds, failure = 0.0, ""
    try:
        while waiting:
            try:
                kind, worker, content = reports.get(timeout=0.2)
            except queue.Empty:
                # All messages that a process sent before it ended have been read by now.
                dead = {k for k in waiting if processes[k].exitcode is not None}
                if dead and not failure:
                    failure = f"a worker process {exit_reason(processes[min(dead)].exitcode)}"
                waiting -= dead
                on_progress(incumbent)
                continue
            if kind == "error":
                waiting.discard(worker)
                failure = failure or content
                continue
            evaluations[worker], unit, loss = content[:3]
            if unit is not None:
                incumbent.offer(unit[None], loss)
            if kind == "done":
                waiting.discard(worker)
                incumbent.settle([] if unit is None else [unit], [] if unit is None else loss)
                finished.append(content[3])
                compile_seconds = max(compile_seconds, content[4])
    finally:
        stop_workers(processes, GRACE)
    if not finished and incumbent.unit is None:
        raise StribeckError(failure or "no worker finished")
    incumbent.converged = (together or len(finished) == count) and bool(finished) and all(finished)
    return incumbent, compile_seconds


def _work(job: WorkerSearch, worker: int, reports: Any) -> None:
    end_with_parent()
    last = 0.0

    def report(incumbent: Incumbent) -> None:
        nonlocal last
        if time.monotonic() - last > REPORT_EVERY:
            last = time.monotonic()
            reports.put(("progress", worker, _state(incumbent)))

    try:
        incumbent, compile_seconds = job(worker, report)
        reports.put(("done", worker, (*_state(incumbent), incumbent.converged, compile_seconds)))
    except StribeckError as error:
        reports.put(("error", worker, str(error)))


def _state(incumbent: Incumbent) -> tuple[int, Any, Any]:
    return incumbent.evaluations(), incumbent.unit, np.array([incumbent.loss])
