"""Ctrl-C, heard at moments at which nothing breaks."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Ctrl-C, or a request to end, noted until a moment at which nothing breaks.

    In the middle of a compilation an exception of Python's would take the process down with it. The
    second request ends at once.
    """

    def __init__(self) -> None:
        self._requested = False

    def __call__(self) -> bool:
        """Whether to stop."""
        return self._requested

    @classmethod
    @contextmanager
    def on_signals(cls) -> Iterator[StopRequest]:
        """A request that the usual signals make, for as long as the context lasts."""
        stop = cls()
        if threading.current_thread() is not threading.main_thread():
            yield stop
            return
        before = {name: signal.signal(name, stop._note) for name in STOP_SIGNALS}
        try:
            yield stop
        finally:
            for name, handler in before.items():
                signal.signal(name, handler)

    def _note(self, number: int, frame: object) -> None:
        if self._requested:
            raise KeyboardInterrupt
        self._requested = True
