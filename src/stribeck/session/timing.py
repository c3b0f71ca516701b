"""Clocks, and a loop with a fixed rate.

Code that waits or measures time uses a :class:`SteadyClock`, so that tests can run it on virtual time.
"""

from __future__ import annotations

import time
from typing import Protocol


class SteadyClock(Protocol):
    """A steady clock."""

    def now(self) -> float:
        """Monotonic time since an arbitrary origin [s]."""

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds`` [s]; return at once if that is not positive."""


class SystemClock:
    """The system's monotonic clock, :func:`time.monotonic`."""

    def now(self) -> float:
        """Time [s]."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait [s]."""
        if seconds > 0.0:
            time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()


class PeriodicLoop:
    """Paces a loop: :meth:`wait` at the end of each cycle returns when the next one is due.

    Cycles are due at multiples of the period since the start of the loop. A late loop runs its next cycle at once; it
    makes up for at most ``catch_up`` missed cycles and skips the others.

    :param period: time between cycles [s].
    :param clock: the clock to wait on.
    :param catch_up: maximum number of missed cycles to make up for.
    """

    def __init__(self, period: float, clock: SteadyClock = SYSTEM_CLOCK, catch_up: float = 0.0) -> None:
        self._period, self._clock, self._catch_up = period, clock, catch_up
        self._due = clock.now()

    def wait(self) -> None:
        """Sleep until the next cycle is due."""
        self._due += self._period
        now = self._clock.now()
        late = now - self._due
        if late > self._catch_up * self._period:
            self._due = now - late % self._period
        self._clock.sleep(self._due - now)
