"""Progress of computations that have stages in place of a known number of steps."""

from __future__ import annotations

import sys
import threading
import time
from typing import Self

LINE_PERIOD = 0.5
"""Time between two updates of a line [s]."""

NUMBER = "0123456789"
"""Stages that differ only in a number at their end, as that of an iteration, are one."""


class StageLine:
    """One line on stderr with the stage of a computation and the elapsed time, which a thread keeps up to date.

    Where stderr is not a terminal, a line for each new stage.

    :param quiet: show nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet, self._started = quiet, time.perf_counter()
        self._stage, self._width, self._due = "", 0, 0.0
        self._lock, self._over = threading.Lock(), threading.Event()
        self._renewed = sys.stderr.isatty()

    def __enter__(self) -> Self:
        if not self._quiet and self._renewed:
            threading.Thread(target=self._renew, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._over.set()
            if self._width and self._renewed:
                self._write(" " * self._width + "\r")

    def tell(self, stage: str) -> None:
        """Report the present stage, for example ``consistent: IPOPT iteration 12``."""
        is_new = stage.rstrip(NUMBER) != self._stage.rstrip(NUMBER)
        self._stage = stage
        if not self._quiet and (is_new or (self._renewed and time.perf_counter() >= self._due)):
            self._show()

    def _renew(self) -> None:
        while not self._over.wait(LINE_PERIOD):
            self._show()

    def _show(self) -> None:
        with self._lock:
            if self._stage and not self._over.is_set():
                now = time.perf_counter()
                text = f"{self._stage}, {now - self._started:.0f} s"
                self._due, self._width = now + LINE_PERIOD, max(self._width, len(text))
                self._write(text.ljust(self._width) if self._renewed else text)

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text if self._renewed else text + "\n")
        sys.stderr.flush()
