"""Clocks, and a loop with a fixed rate.

Code that waits or measures time uses a :class:`SteadyClock`, so that tests can run it on virtual time.
"""

import time
from collections.abc import Callable
from typing import Protocol

SIMULATED_START = 1000.0
"""Time at which simulated time begins [s]; at zero a ROS clock counts as not set."""


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


class SimulatedClock:
    """A clock of simulated time, which stands still until it is moved; it is both the steady clock and the calendar.

    :param start: first time [s].
    :ivar watchers: called with the time [s] whenever it has moved.
    """

    def __init__(self, start: float = SIMULATED_START) -> None:
        self._now = start
        self.watchers: list[Callable[[float], object]] = []

    def now(self) -> float:
        """Time [s]."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Move the clock by ``seconds`` [s]."""
        self.move_to(self._now + seconds)

    def move_to(self, time: float) -> None:
        """Move the clock to a time [s]; a time in the past has no effect."""
        if time > self._now:
            self._now = time
            for watcher in self.watchers:
                watcher(time)


COMPARISONS = 10
"""Most attempts at comparing two clocks."""

CLOSE = 1e-5
"""Readings of a clock that are closer than this need no further attempt [s]."""


def calendar_offset(clock: SteadyClock) -> int:
    """Difference between the calendar and a steady clock [ns], 0 in simulated time; see :func:`clock_offset`."""
    return 0 if isinstance(clock, SimulatedClock) else clock_offset(time.time_ns, clock)


def clock_offset(other: Callable[[], int], clock: SteadyClock) -> int:
    """Difference between another clock, which gives nanoseconds, and a steady clock [ns].

    The other clock is read between two readings of the steady one, again while these are not :data:`CLOSE`: the program may be suspended
    in between. The attempt in which they were closest counts.
    """
    found = []
    for _ in range(COMPARISONS):
        before, there, after = clock.now(), other(), clock.now()
        found.append((after - before, there - round(0.5e9 * (before + after))))
        if after - before < CLOSE:
            break
    return min(found)[1]


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
