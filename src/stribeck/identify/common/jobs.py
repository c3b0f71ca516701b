"""Jobs in child processes, with dependencies between jobs and retries after crashes.

Each job runs in a fresh process, forked from a server that has imported all modules but computed nothing. Starting one
takes hundredths of a second, and a crash affects that job only.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from multiprocessing import connection, forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pkgutil import resolve_name
from typing import Any

from stribeck.errors import StribeckError
from stribeck.processes import end_with_parent, exit_reason, interrupts_blocked

POLL = 0.2
"""Interval at which ``stop`` is polled [s]."""
GRACE = 10.0
"""Time for a process to exit after it has sent its result [s]."""

ABANDONED: ContextVar[Callable[[], bool]] = ContextVar("ABANDONED", default=lambda: False)
"""Function with which a job can check whether its result is still wanted, for backends that cannot kill it."""

REPORT: ContextVar[Callable[[Any], None]] = ContextVar("REPORT", default=lambda content: None)
"""Function with which a job in a process reports its progress; what it reports has to be picklable."""


@dataclass(frozen=True, eq=False)
class Job:
    """One function call.

    :param work: ``module:function``; only the process that runs it imports the module.
    :param arguments: its arguments; they and its result have to be picklable.
    :param after: predecessor, whose result becomes the first argument.
    """

    name: str
    work: str
    arguments: tuple[Any, ...] = ()
    after: Job | None = None


@dataclass(frozen=True, eq=False)
class Ended:
    """Outcome of a job.

    :param value: its result.
    :param failure: one-line reason why there is no result; empty if there is one.
    :param seconds: duration of the last attempt.
    """

    job: Job
    value: Any = None
    failure: str = ""
    attempts: int = 0
    seconds: float = 0.0


Running = Callable[[Collection[str]], None]
"""Callback called repeatedly with the names of the running jobs."""

OnMessage = Callable[[Job, Any], None]
"""Callback that receives what a job reports."""


def run_in_processes(
    jobs: Sequence[Job],
    workers: int,
    retries: int,
    *,
    running: Running = lambda names: None,
    on_message: OnMessage = lambda job, content: None,
    stop: Callable[[], bool] = lambda: False,
    preload: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Generator[Ended, None, None]:
    """Run jobs in ``workers`` processes and yield the outcome of each as it ends.

    A job that crashes or raises anything but a :class:`StribeckError` is tried again after the others; a
    :class:`StribeckError` is final. Jobs that depend on a failed job fail with it. All processes end with the iterator
    and with this process.

    :param retries: maximum number of retries of a job.
    :param stop: polled between jobs and while waiting; if it returns true, all jobs are abandoned.
    :param preload: modules that the server imports.
    :param environment: environment variables of the processes, unless the server is already running.
    """
    mp.get_context("forkserver").set_forkserver_preload(list(preload))
    with _variables(environment or {}), interrupts_blocked():
        forkserver.ensure_running()
    board = _Board(list(jobs), retries)
    active: dict[Connection, _Attempt] = {}
    try:
        while (board.waiting or active) and not stop():
            yield from board.hopeless()
            for job in board.startable(workers - len(active)):
                attempt = _Attempt(job, board.arguments(job))
                active[attempt.reader] = attempt
            running([attempt.job.name for attempt in active.values()])
            for reader in connection.wait(list(active), POLL):
                attempt = active[reader]  # type: ignore[index]  # we gave it connections alone
                kind, content = attempt.receive()
                if kind == "progress":
                    on_message(attempt.job, content)
                    continue
                del active[attempt.reader]
                if (ended := board.judge(attempt, *attempt.outcome(kind, content))) is not None:
                    yield ended
            board.forget(active.values())
    finally:
        for attempt in active.values():
            attempt.kill()


@dataclass
class _Board:
    """Waiting jobs, and the results of finished ones."""

    waiting: list[Job]
    retries: int
    failures: dict[Job, str] = field(default_factory=dict)
    values: dict[Job, Any] = field(default_factory=dict)
    attempts: dict[Job, int] = field(default_factory=dict)

    def hopeless(self) -> Iterator[Ended]:
        """Outcomes of jobs whose predecessor failed."""
        for job in list(self.waiting):
            if job.after in self.failures:
                self.waiting.remove(job)
                self.failures[job] = self.failures[job.after]
                yield Ended(job, failure=self.failures[job])

    def startable(self, count: int) -> list[Job]:
        """Remove and return at most ``count`` waiting jobs whose predecessors have finished."""
        free = [job for job in self.waiting if job.after is None or job.after in self.values][: max(count, 0)]
        for job in free:
            self.waiting.remove(job)
        return free

    def arguments(self, job: Job) -> tuple[Any, ...]:
        return job.arguments if job.after is None else (self.values[job.after], *job.arguments)

    def forget(self, active: Collection[_Attempt]) -> None:
        """Drop results that no job needs any more."""
        needed = {job.after for job in (*self.waiting, *(attempt.job for attempt in active))}
        self.values = {job: value for job, value in self.values.items() if job in needed}

    def judge(self, attempt: _Attempt, kind: str, content: Any) -> Ended | None:
        """Outcome of an attempt's job; ``None`` if it will be tried again."""
        job = attempt.job
        self.attempts[job] = self.attempts.get(job, 0) + 1
        tried = self.attempts[job]
        if kind == "crash" and tried <= self.retries:
            self.waiting.append(job)
            return None
        if kind == "crash" and tried > 1:
            content = f"{content}, tried {tried} times"
        seconds = time.monotonic() - attempt.started
        if kind == "value":
            self.values[job] = content
            return Ended(job, content, attempts=tried, seconds=seconds)
        self.failures[job] = str(content)
        return Ended(job, None, str(content), tried, seconds)


class _Attempt:
    """A process that runs one job."""

    def __init__(self, job: Job, arguments: tuple[Any, ...]) -> None:
        self.job = job
        self.started = time.monotonic()
        context = mp.get_context("forkserver")
        self.reader, writer = context.Pipe(duplex=False)
        self._process: ForkServerProcess = context.Process(target=_work, args=(job.work, arguments, writer))
        self._failed = False
        try:
            self._process.start()
        except (OSError, EOFError):  # the process died while it received its job
            self._failed = True
        finally:
            writer.close()  # so that the pipe closes when the process ends

    def receive(self) -> tuple[str, Any]:
        """``progress`` with what the job reports, ``value`` with its result, or ``refused`` or ``crash`` with the reason."""
        try:
            message: tuple[str, Any] = self.reader.recv()
        except Exception:  # a killed process sends nothing, a partial message or garbage
            message = ("crash", "")
        return message

    def outcome(self, kind: str, content: Any) -> tuple[str, Any]:
        """The last message of the process when it has ended, with the reason of a crash."""
        self.reader.close()
        if self._failed:
            return "crash", "its process could not be started"
        self._process.join(GRACE)
        if self._process.is_alive():  # the process has sent its result and hangs at exit
            self._process.kill()
            self._process.join()
        if (kind, content) == ("crash", ""):
            content = f"its process {exit_reason(self._process.exitcode)}"
        return kind, content

    def kill(self) -> None:
        if not self._failed:
            self._process.kill()
            self._process.join()
        self.reader.close()


def guarded(work: str, arguments: Sequence[Any]) -> tuple[str, Any]:
    """Call a function; return ``value`` with its result, or ``refused`` with the message of a :class:`StribeckError`."""
    try:
        return "value", resolve_name(work)(*arguments)
    except StribeckError as error:
        return "refused", str(error)


def _work(work: str, arguments: Sequence[Any], writer: Connection) -> None:
    end_with_parent()
    REPORT.set(lambda content: writer.send(("progress", content)))
    try:
        result = guarded(work, arguments)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        result = ("crash", f"{type(error).__name__}: {reason}" if reason else type(error).__name__)
    writer.send(result)


@contextmanager
def _variables(environment: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
