"""Jobs in processes of their own, which may crash: what failed is tried again, what needs it waits.

Every job has a fresh process, forked from a server that has imported everything and computed nothing:
starting one takes hundredths of a second, and no crash takes more with it than its own job.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import threading
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

POLL = 0.2
"""How long to wait for news before looking whether to stop [s]."""
GRACE = 10.0
"""A process that has returned its result has so long to end [s]."""

ABANDONED: ContextVar[Callable[[], bool]] = ContextVar("ABANDONED", default=lambda: False)
"""Says to a job whether anybody waits for it still, where nothing else ends it."""


@dataclass(frozen=True, eq=False)
class Job:
    """One call.

    :param name: what people call it.
    :param work: ``module:function``. Only who runs it imports the module.
    :param arguments: its arguments; they and what it returns have to be picklable.
    :param after: a job that has to be done before; what it returned comes before the arguments.
    """

    name: str
    work: str
    arguments: tuple[Any, ...] = ()
    after: Job | None = None


@dataclass(frozen=True, eq=False)
class Ended:
    """How a job ended.

    :param value: what it returned.
    :param failure: why there is no value, in one line; empty if there is one.
    :param attempts: how often it was tried.
    :param seconds: that its last attempt took.
    """

    job: Job
    value: Any = None
    failure: str = ""
    attempts: int = 0
    seconds: float = 0.0


Running = Callable[[Collection[str]], None]
"""Is told the names of the jobs that are running, again and again."""


def run_in_processes(
    jobs: Sequence[Job],
    workers: int,
    retries: int,
    *,
    running: Running = lambda names: None,
    stop: Callable[[], bool] = lambda: False,
    preload: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Generator[Ended, None, None]:
    """Run jobs, so many at a time, and tell how each ended as soon as it has.

    A job that crashes, or raises what is not an error of ours, is tried again after the others; an error
    of ours will not go away and ends it. What comes after a job that failed fails with it. No process
    outlives this one, however that ends, nor the iterator.

    :param workers: processes at a time.
    :param retries: how often a job is tried again.
    :param stop: says whether to give up what is not done; asked between jobs and while waiting.
    :param preload: modules that every process has imported before it starts.
    :param environment: variables of the processes, where the server has not been started before.
    """
    _start_server(preload, environment or {})
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
                attempt = active.pop(reader)  # type: ignore[call-overload]  # we gave it connections alone
                if (ended := board.judge(attempt)) is not None:
                    yield ended
            board.forget(active.values())
    finally:
        for attempt in active.values():
            attempt.kill()


@dataclass
class _Board:
    """Which jobs wait, and what those that are done returned."""

    waiting: list[Job]
    retries: int
    failures: dict[Job, str] = field(default_factory=dict)
    values: dict[Job, Any] = field(default_factory=dict)
    attempts: dict[Job, int] = field(default_factory=dict)

    def hopeless(self) -> Iterator[Ended]:
        """The jobs whose predecessor failed."""
        for job in list(self.waiting):
            if job.after in self.failures:
                self.waiting.remove(job)
                self.failures[job] = self.failures[job.after]
                yield Ended(job, failure=self.failures[job])

    def startable(self, count: int) -> list[Job]:
        """At most so many jobs that wait for nothing, taken off the list."""
        free = [job for job in self.waiting if job.after is None or job.after in self.values][: max(count, 0)]
        for job in free:
            self.waiting.remove(job)
        return free

    def arguments(self, job: Job) -> tuple[Any, ...]:
        """What a job is called with."""
        return job.arguments if job.after is None else (self.values[job.after], *job.arguments)

    def forget(self, active: Collection[_Attempt]) -> None:
        """Drop what was returned and nothing needs any more."""
        needed = {job.after for job in (*self.waiting, *(attempt.job for attempt in active))}
        self.values = {job: value for job, value in self.values.items() if job in needed}

    def judge(self, attempt: _Attempt) -> Ended | None:
        """How an attempt ended; nothing, if the job is going to be tried again."""
        job = attempt.job
        self.attempts[job] = self.attempts.get(job, 0) + 1
        kind, content = attempt.result()
        tried = self.attempts[job]
        if kind == "crash" and tried <= self.retries:
            self.waiting.append(job)
            return None
        if kind == "crash":
            content = f"{content}, tried {tried} times"
        seconds = time.monotonic() - attempt.started
        if kind == "value":
            self.values[job] = content
            return Ended(job, content, attempts=tried, seconds=seconds)
        self.failures[job] = str(content)
        return Ended(job, None, str(content), tried, seconds)


class _Attempt:
    """One process that works on one job."""

    def __init__(self, job: Job, arguments: tuple[Any, ...]) -> None:
        self.job = job
        self.started = time.monotonic()
        context = mp.get_context("forkserver")
        self.reader, writer = context.Pipe(duplex=False)
        self._process: ForkServerProcess = context.Process(target=_work, args=(job.work, arguments, writer))
        try:
            self._process.start()
        except (OSError, EOFError):  # it died while it was being told what to do
            self._failed = True
        else:
            self._failed = False
        finally:
            writer.close()  # so that the end of the process is the end of the pipe

    def result(self) -> tuple[str, Any]:
        """``value``, ``refused`` or ``crash``, and what goes with it."""
        try:
            found: tuple[str, Any] = self.reader.recv()
        except Exception:  # nothing, a half or nonsense: what a process leaves that was killed
            found = ("crash", "")
        self.reader.close()
        if self._failed:
            return "crash", "its process could not be started"
        self._process.join(GRACE)
        if self._process.is_alive():  # it has said what it had to say and hangs on its way out
            self._process.kill()
            self._process.join()
        return found if found != ("crash", "") else ("crash", _death(self._process.exitcode))

    def kill(self) -> None:
        """End the process at once."""
        if not self._failed:
            self._process.kill()
            self._process.join()
        self.reader.close()


def guarded(work: str, arguments: Sequence[Any]) -> tuple[str, Any]:
    """Call, and give ``value`` with what it returned, or ``refused`` with the message of an error of ours."""
    try:
        return "value", resolve_name(work)(*arguments)
    except StribeckError as error:
        return "refused", str(error)


def end_with_parent() -> None:
    """Let this process end as soon as the one that asked for it has, however that ended."""
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = mp.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(work: str, arguments: Sequence[Any], writer: Connection) -> None:
    end_with_parent()
    try:
        result = guarded(work, arguments)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        result = ("crash", f"{type(error).__name__}: {reason}" if reason else type(error).__name__)
    writer.send(result)


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"killed by {name}" + (" (out of memory?)" if -code == signal.SIGKILL else "")
    return f"its process ended with exit code {code}"


def _start_server(preload: Sequence[str], environment: Mapping[str, str]) -> None:
    """Start what processes are forked from. They inherit that Ctrl-C is the parent's business."""
    mp.get_context("forkserver").set_forkserver_preload(list(preload))
    with _variables(environment):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


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
