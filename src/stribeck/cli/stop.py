"""Handles Ctrl-C between steps of a computation."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
