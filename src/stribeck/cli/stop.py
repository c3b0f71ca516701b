"""Handles Ctrl-C between steps of a computation."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

EXIT_WITHIN = 1.5
"""Time from Ctrl-C to the end of a computation that does not end by itself, enough to save results [s]."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_to(call: Callable[[], object], signals: Iterable[int] = STOP_SIGNALS) -> Iterator[None]:
    """Call a function on each of these signals while the context lasts."""
    before = {number: signal.signal(number, lambda *_: call()) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class StopRequest:
    """Records Ctrl-C and other stop requests, so that a computation can stop between two steps.

    A Python exception during a compilation would crash the process. A second request ends the process at once.
    """

    def __init__(self) -> None:
        self._requested = False

    def __call__(self) -> bool:
        """Whether a stop was requested."""
        return self._requested

    @classmethod
    @contextmanager
    def on_signals(cls) -> Iterator[StopRequest]:
        """Create a request that SIGINT, SIGTERM and SIGHUP set while the context lasts."""
        stop = cls()
        if threading.current_thread() is not threading.main_thread():
            yield stop
            return
        with signals_to(stop._note):
            yield stop

    def _note(self) -> None:
        if self._requested:
            raise KeyboardInterrupt
        self._requested = True


@contextmanager
def exit_after_interrupt() -> Iterator[None]:
    """End the process :data:`EXIT_WITHIN` after Ctrl-C, with exit code 130, if the context has not been left by then.

    Python raises KeyboardInterrupt in the main thread only between two of its instructions. A call of compiled code may
    take much longer, so a second thread, which C's signal handler wakes, watches the time. Worker processes are killed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    left = threading.Event()

    def watch() -> None:
        with reader:
            while received := reader.recv(1):
                if received[0] == signal.SIGINT and not left.wait(EXIT_WITHIN):
                    for worker in multiprocessing.active_children():
                        worker.kill()
                    print("\nstribeck: interrupted", file=sys.stderr, flush=True)
                    os._exit(130)

    threading.Thread(target=watch, daemon=True).start()
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        left.set()
        signal.set_wakeup_fd(before)
        writer.close()
