"""What a node in lock-step does at certain times: timers, and threads that run one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable


class TurnTimer:
    """A periodic timer in simulated time; the first call comes after a period."""

    def __init__(self, period: float, callback: Callable[[], None], due: float) -> None:
        self.period, self.callback, self.due = period, callback, due
        self.over = False

    def cancel(self) -> None:
        """Do not call again."""
        self.over = True

    def act(self, now: float) -> None:
        """Call, and plan the next call."""
        self.due = max(self.due + self.period, now)
        self.callback()


class TurnThread(threading.Thread):
    """A thread that runs only while the turn of its node waits for it, until it sleeps on the node's clock."""

    def __init__(self, target: Callable[[], None], name: str, due: float) -> None:
        super().__init__(name=name, daemon=True)
        self._work, self.due = target, due
        self.over = self.free = False
        self._resumed, self._paused = threading.Semaphore(0), threading.Semaphore(0)

    def run(self) -> None:
        """Work when it is resumed for the first time."""
        self._resumed.acquire()
        try:
            self._work()
        finally:
            self.over = True
            self._paused.release()

    def act(self, now: float) -> None:
        """Let it run until it sleeps or ends."""
        self._resumed.release()
        self._paused.acquire()

    def pause_until(self, due: float) -> None:
        """Called by the thread itself: sleep."""
        self.due = due
        self._paused.release()
        self._resumed.acquire()

    def join(self, timeout: float | None = None) -> None:
        """Let it run freely, without waiting for its clock, until it ends."""
        self.free = True
        self._resumed.release()
        super().join(timeout)
