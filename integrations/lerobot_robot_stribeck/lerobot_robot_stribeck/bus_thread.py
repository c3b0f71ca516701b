"""The thread that owns a servo bus while a robot or teleoperator is connected."""

import threading
import time
from collections.abc import Callable

END_TIME = 2.0
"""Longest wait for the end of the thread [s]."""

LOST = 10
"""Consecutive cycles without an answer of the servos after which they are given up."""


class BusThread:
    """Calls a cycle at a rate until it is ended or fails.

    A cycle that raises :class:`ConnectionError` lost a packet, and is tried again; the servos hold their last goals meanwhile.

    :param cycle: reads the servos and writes goals.
    :param rate: cycles per second [Hz].
    :param gave_up: called in the thread after a failure.
    """

    def __init__(self, cycle: Callable[[], None], rate: float, gave_up: Callable[[], None] = lambda: None):
        self._cycle, self._period, self._gave_up = cycle, 1.0 / rate, gave_up
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._failure = None
        self._ended.clear()
        self._thread = threading.Thread(target=self._run, name="stribeck", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End after the present cycle."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(END_TIME)
        self._thread = None

    def check(self) -> None:
        """Raise :class:`ConnectionError` if it does not run."""
        if self._failure is not None:
            raise ConnectionError(f"the servos were lost: {self._failure}") from self._failure
        if self._thread is None:
            raise ConnectionError("not connected: call connect() first")

    def _run(self) -> None:
        due, lost = time.perf_counter(), 0
        while not self._ended.is_set():
            try:
                self._cycle()
                lost = 0
            except ConnectionError as error:
                lost += 1
                if lost >= LOST:
                    return self._fail(error)
            except Exception as error:  # the program learns of it with its next call
                return self._fail(error)
            due = max(due + self._period, time.perf_counter())
            self._ended.wait(due - time.perf_counter())
        return None

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._gave_up()
