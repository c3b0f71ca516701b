"""Waiting for conditions, for a limited time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from stribeck.errors import ServoError
from stribeck.session.timing import SteadyClock

POLL = 0.02
"""Time between two looks at a condition [s]."""


class Waiting:
    """Waits for conditions for a limited time, or until cancelled.

    :param clock: to wait on.
    :param patience: longest time to wait in all [s].
    :param cancelled: ends the wait.
    """

    def __init__(self, clock: SteadyClock, patience: float, cancelled: threading.Event) -> None:
        self._clock, self._cancelled = clock, cancelled
        self._deadline = clock.now() + patience

    def until(
        self, condition: Callable[[], Any], problem: Callable[[], str], failed: Callable[[], str] = str
    ) -> None:
        """Wait for a condition.

        :param failed: why waiting is of no use, empty while it may be.
        :raises ServoError: with the message returned by ``problem``, if the condition is not met in time, or at once
            with that of ``failed``.
        """
        while not condition():
            if reason := failed():
                raise ServoError(reason)
            self._clock.sleep(POLL)
            if self._cancelled.is_set():
                raise ServoError("cancelled before it began")
            if self._clock.now() > self._deadline:
                raise ServoError(problem())
