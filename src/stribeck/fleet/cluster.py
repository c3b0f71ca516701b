"""Jobs on a Dask cluster, local or distributed, that tolerate the loss of workers."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import dask
from distributed import Client, Future, LocalCluster, get_worker, wait
from distributed.client import CancelledError
from distributed.scheduler import KilledWorker
from distributed.worker import thread_state

from stribeck.errors import StribeckError
from stribeck.identify.common.jobs import ABANDONED, POLL, Ended, Job, Running, guarded

CONNECT_TIMEOUT = 10.0
"""Timeout for the connection to a scheduler [s]."""

LOST = "lost the Dask scheduler; finished fits are kept"

PATIENCE = 120.0
"""Longest time without any worker [s]; lost workers are replaced within it."""

LOOK_EVERY = 2.0
"""Shortest interval at which the scheduler is polled for running tasks [s]."""


@contextmanager
def local_cluster(workers: int, retries: int, environment: Mapping[str, str]) -> Iterator[Client]:
    """Start a cluster of single-threaded processes on this machine; it ends with the context or this process.

    :param retries: number of lost workers after which a job fails.
    :param environment: environment variables of the workers.
    """
    settings = {
        "distributed.scheduler.allowed-failures": retries,
        "distributed.nanny.pre-spawn-environ": dict(environment),
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # None would open a fixed port
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def cluster_at(address: str) -> Iterator[Client]:
    """Connect to a running cluster.

    :raises StribeckError: if there is none at the address.
    """
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # the error below explains the cause
    try:
        # Dask would keep one that cannot connect as its default.
        client = Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise StribeckError(
            f"no Dask scheduler at {address}: {reason}; start one with `dask scheduler`, or set `scheduler` to local"
        ) from None
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise StribeckError(
                f"the Dask scheduler at {address} has no workers: start some with `dask worker {address}`"
            )
        yield client


def run_on_cluster(
    client: Client,
    jobs: Sequence[Job],
    retries: int,
    *,
    running: Running = lambda names: None,
    stop: Callable[[], bool] = lambda: False,
) -> Generator[Ended, None, None]:
    """Run jobs on a cluster and yield each outcome, as :func:`stribeck.identify.common.jobs.run_in_processes` does.

    A job whose worker dies goes to another worker, as often as ``distributed.scheduler.allowed-failures`` permits.

    :param retries: retries of a job that raises anything but a :class:`StribeckError`.
    :raises StribeckError: if the connection to the scheduler is lost.
    """
    blamed: list[Job] = []
    for job, future in _finished(client, _submitted(client, jobs, retries), running, stop):
        try:
            yield _ended(job, future)
        except KilledWorker:
            blamed.append(job)
    # Dask blames the death of a worker on all jobs queued there. Run alone, a job is blamed for its own failure only.
    failures: dict[Job, str] = {}
    for job in sorted(blamed, key=list(jobs).index):
        if job.after in failures:
            failures[job] = failures[job.after]
            yield Ended(job, None, failures[job])
            continue
        for _, future in _finished(client, _submitted(client, [job], retries), running, stop):
            try:
                yield _ended(job, future)
            except KilledWorker as error:
                lost = error.allowed_failures + 1
                failures[job] = (
                    f"its worker process died, {lost} times beside other fits and {lost} times alone"
                )
                yield Ended(job, None, failures[job], 2 * lost)


def _submitted(client: Client, jobs: Sequence[Job], retries: int) -> dict[Future, Job]:
    run = uuid.uuid4().hex[:8]
    futures: dict[Job, Future] = {}

    def submit(job: Job) -> Future:
        if job not in futures:
            before = () if job.after is None else (submit(job.after),)
            futures[job] = client.submit(
                _step, job.work, job.arguments, *before, key=f"{job.name} {run}", retries=retries, pure=False
            )
        return futures[job]

    return {submit(job): job for job in jobs}


def _finished(
    client: Client, pending: dict[Future, Job], running: Running, stop: Callable[[], bool]
) -> Generator[tuple[Job, Future], None, None]:
    """Yield ended jobs and drop their futures, so that the cluster frees the results."""
    looked, manned = -LOOK_EVERY, time.monotonic()
    try:
        while pending and not stop():
            if client.status != "running":
                raise StribeckError(LOST)
            if time.monotonic() - looked > LOOK_EVERY:
                looked = time.monotonic()
                workers, keys = _at_work(client)
                manned = looked if workers else manned
                if looked - manned > PATIENCE:
                    raise StribeckError(
                        f"the Dask cluster has had no workers for {PATIENCE:g} s: start a worker with `dask worker`"
                    )
                running([job.name for future, job in pending.items() if future.key in keys])
            for future in _done(client, pending):
                yield pending.pop(future), future
    except (CancelledError, OSError) as error:  # the connection to the scheduler was lost
        raise StribeckError(LOST) from error
    finally:
        with suppress(CancelledError, OSError, RuntimeError):  # the scheduler may be gone
            client.cancel(list(pending))


def _at_work(client: Client) -> tuple[int, Collection[str]]:
    """Number of workers, and keys of the tasks that they report as running."""

    def look(dask_scheduler: Any) -> tuple[int, list[str]]:  # sent by value: needs no stribeck there
        workers = dask_scheduler.workers.values()
        return len(workers), [task.key for worker in workers for task in worker.executing]

    answer: tuple[int, list[str]] = client.run_on_scheduler(look)
    return answer


def _done(client: Client, futures: Collection[Future]) -> Collection[Future]:
    """Futures that have ended, after a short wait for the first."""
    with client.as_current(), suppress(TimeoutError):
        done: Collection[Future] = wait(list(futures), timeout=POLL, return_when="FIRST_COMPLETED").done
        return done
    return ()


def _ended(job: Job, future: Future) -> Ended:
    try:
        kind, content, seconds = future.result()
    except KilledWorker:
        raise
    except CancelledError:
        raise StribeckError(LOST) from None
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        return Ended(job, None, f"{type(error).__name__}: {reason}", 1)
    if kind == "value":
        return Ended(job, content, attempts=1, seconds=seconds)
    return Ended(job, None, str(content), 1, seconds)


def _step(
    work: str, arguments: Sequence[Any], before: tuple[str, Any, float] | None = None
) -> tuple[str, Any, float]:
    """Run a job as a task: ``value`` with the result or ``refused`` with the reason, and its duration [s]."""
    ABANDONED.set(_cancelled)
    begin = time.monotonic()
    if before is not None:
        kind, content, _ = before
        if kind != "value":
            return before
        arguments = (content, *arguments)
    return (*guarded(work, arguments), time.monotonic() - begin)


def _cancelled() -> bool:
    """Whether the client cancelled this thread's task or has disconnected."""
    task = get_worker().state.tasks.get(thread_state.key)
    return task is None or task.state == "cancelled"
