"""Child processes, which are started in their own process groups, read line by line, and stopped within a deadline.

:class:`ChildProcess` runs a command. The functions below it are for workers of :mod:`multiprocessing`.
"""

import contextlib
import ctypes
import multiprocessing as mp
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from pathlib import Path

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

INTERRUPT_DEADLINE = 1.7
"""Time from Ctrl-C until a supervised process is killed [s]."""

PR_SET_PDEATHSIG = 1


def cores() -> int:
    """Number of processors to compute on: ``NPROC``, which XLA reads too and a parent sets, else those this process may run on."""
    share = os.environ.get("NPROC", "")
    if share.isdecimal() and int(share):
        return int(share)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ChildProcess:
    """A command that runs in its own process group and does not outlive this process.

    Where ``setpriv`` (util-linux) is installed, the kernel sends SIGTERM to the child when this process dies, even by
    SIGKILL. The signals of :meth:`terminate` reach the whole group.

    :param command: program and arguments.
    :param environment: environment variables; default: those of this process.
    :param log: file that receives its output; without one, :meth:`read_lines` returns its standard error.
    :param niceness: increase of its niceness, 0 to 19.
    :param inherited: open descriptors that it inherits.
    :raises OSError: if the program cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
        niceness: int = 0,
        inherited: Sequence[int] = (),
    ) -> None:
        self._kill_at: float | None = None
        self._partial_line = b""
        with log.open("wb") if log is not None else contextlib.nullcontext() as file:
            self._process = subprocess.Popen(  # noqa: S603 - the caller builds the command
                [*_wrapper(niceness), *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if file is None else file,
                stderr=subprocess.PIPE if file is None else file,
                start_new_session=True,
                pass_fds=inherited,
            )
        if self._process.stderr is not None:
            os.set_blocking(self._process.stderr.fileno(), False)

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self._process.pid

    def read_lines(self) -> list[str]:
        """Complete lines that the child wrote to standard error since the last call, also those that a carriage return ends;
        does not block.
        """
        lines: list[bytes] = []
        if self._process.stderr is not None:
            with contextlib.suppress(BlockingIOError):
                while data := os.read(self._process.stderr.fileno(), 1 << 16):
                    written = (self._partial_line + data).replace(b"\r", b"\n")
                    *complete, self._partial_line = written.split(b"\n")
                    lines += complete
        return [line.decode(errors="replace").strip() for line in lines]

    def poll(self) -> int | None:
        """Its exit code, ``None`` while it runs; kills it once the deadline of :meth:`terminate` has passed."""
        code = self._process.poll()
        if code is None and self._kill_at is not None and time.monotonic() > self._kill_at:
            self._signal(signal.SIGKILL)
        return code

    @property
    def stopping(self) -> bool:
        """Whether :meth:`terminate` was called."""
        return self._kill_at is not None

    def terminate(self, grace: float, number: signal.Signals = signal.SIGTERM) -> None:
        """Ask the group to exit, once; :meth:`poll` and :meth:`close` kill it after ``grace`` [s]."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + grace
            self._signal(number)

    def close(self, grace: float = 0.0) -> None:
        """Stop the group, wait until it has exited, and release its pipe."""
        self.terminate(grace)
        assert self._kill_at is not None  # noqa: S101 - terminate() sets it
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, self._kill_at - time.monotonic()))
        self._signal(signal.SIGKILL)  # descendants may have ignored the first signal
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _wrapper(niceness: int) -> list[str]:
    """Command prefix that makes a command end with this process and lowers its priority."""
    wanted = {"setpriv": ["--pdeathsig", "TERM"], **({"nice": ["-n", str(niceness)]} if niceness else {})}
    # This process may die before setpriv has run: then the child has another parent, and does not start.
    wanted["sh"] = ["-c", 'test "$PPID" = "$0" && exec "$@"', str(os.getpid())]
    paths = {name: shutil.which(name) for name in wanted}
    return [word for name, path in paths.items() if path is not None for word in (path, *wanted[name])]


def exit_reason(code: int | None) -> str:
    """Describe how a process ended, as the end of a sentence about it.

    :param code: exit code, or the negative number of the signal that killed it.
    """
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        hint = " (out of memory?)" if -code == signal.SIGKILL else ""
        return f"was killed by {signal.Signals(-code).name}{hint}"
    return f"was killed by signal {-code}"


def end_with_parent() -> None:
    """Make this worker process exit as soon as its parent has ended for any reason."""

    def wait_for_parent() -> None:
        parent = mp.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait_for_parent, daemon=True).start()


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Make workers started in this context ignore Ctrl-C from the beginning, as their parent handles it.

    They inherit the blocked SIGINT. The resource tracker unblocks SIGINT when it starts, so it is started before.
    """
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextlib.contextmanager
def interrupts_to(call: Callable[[], object]) -> Iterator[None]:
    """Call a function on Ctrl-C in place of the exception, which could come between any two instructions.

    Ctrl-C that the process ignores stays ignored. It arrives in the main thread alone: in another one this does nothing.
    """
    in_charge = threading.current_thread() is threading.main_thread()
    if not in_charge or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: call())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[Callable[[], bool]]:
    """Deliver Ctrl-C when this context ends; for libraries that call back to Python and lose its exceptions.

    :returns: function that says whether Ctrl-C is pending, so that the computation can stop.
    """
    pending = False

    def note() -> None:
        nonlocal pending
        pending = True

    try:
        with interrupts_to(note):
            yield lambda: pending
    finally:
        if pending:
            signal.raise_signal(signal.SIGINT)


def supervised(work: Callable[[], int], deadline: float = INTERRUPT_DEADLINE) -> int:
    """Do work in a child process, which is killed if it has not ended soon after Ctrl-C.

    Compiled code may keep a process from handling Ctrl-C for many seconds, or crash when Python exits meanwhile; this
    process always can. Signals reach the whole process group of the child, which ends with this process. To be called
    before any thread is started; without ``sigtimedwait`` (macOS) the work is done in this process.

    :param work: returns an exit code; in the child process this function returns it.
    :param deadline: from Ctrl-C until the child is killed [s].
    :returns: exit code of the child, 130 if it was killed or crashed after Ctrl-C.
    """
    if not hasattr(signal, "sigtimedwait"):
        return work()
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCHLD}
    signals = {
        number for number in signals if signal.getsignal(number) is not signal.SIG_IGN
    }  # as nohup does
    sys.stdout.flush()
    sys.stderr.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    parent, child = os.getpid(), os.fork()
    if child == 0:
        os.setpgid(0, 0)
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if (code := work()) == INTERRUPTED:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # libraries whose threads still compute may crash or hang when Python ends
        return code
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    code = _awaited(child, signals, deadline)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if code < 0:  # end like the child
        signal.signal(-code, signal.SIG_DFL)
        os.kill(parent, -code)
    return code


def _awaited(child: int, signals: set[signal.Signals], deadline: float) -> int:
    """Pass signals on to a child until it ends; returns its exit code, or the negative number of the signal that ended it."""
    kill_at: float | None = None
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return INTERRUPTED if code < 0 and kill_at is not None else code
        left = 60.0 if kill_at is None else kill_at - time.monotonic()
        received = signal.sigtimedwait(signals, left) if left > 0.0 else None
        with contextlib.suppress(ProcessLookupError):
            if kill_at is not None and time.monotonic() >= kill_at:
                sys.stderr.write("\nstribeck: interrupted\n")
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return INTERRUPTED
            if received is None or received.si_signo == signal.SIGCHLD:
                continue
            if received.si_signo == signal.SIGINT and kill_at is None:
                kill_at = time.monotonic() + deadline
            if received.si_signo == signal.SIGTSTP:
                os.killpg(child, signal.SIGSTOP)
                os.kill(os.getpid(), signal.SIGSTOP)
                os.killpg(child, signal.SIGCONT)
            else:
                os.killpg(child, received.si_signo)
