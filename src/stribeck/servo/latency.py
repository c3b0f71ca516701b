"""Estimate of the delay of answers, from which the timeout follows."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

from stribeck.servo.port import SLOW_PATIENCE

SHORTEST_PATIENCE, LONGEST_PATIENCE = 8e-4, 4e-2
"""Bounds of :attr:`Latency.patience` while the servos move [s]."""

GROWN_PATIENCE = 8e-3
"""Upper bound of :attr:`Latency.patience` while no servo answers [s]; must not extend a stall by much."""

PATIENCE_MARGIN = 5e-4
"""Addition to 1.5 times the median delay [s]."""

MEMORY = 64
"""Number of answers from which the delay is estimated."""


class Latency:
    """Estimate, from answers to first attempts, of the delay of answers beyond their wire time.

    The timeout :attr:`patience` is 1.5 times the median delay plus 0.5 ms: a lost packet costs little time, a
    slow adapter is not mistaken for packet loss, and single outliers have no effect. The next attempt still
    accepts a late answer. After many unanswered attempts the timeout grows, in case the adapter has become
    slower.

    :ivar failures: consecutive unanswered attempts.
    """

    def __init__(self) -> None:
        self._delays: deque[float] = deque()
        self._ordered: list[float] = []
        self._usual = SLOW_PATIENCE
        self.failures = 0

    def learn(self, delay: float) -> None:
        """Add the delay of an answer to a first attempt [s]."""
        self._delays.append(delay)
        insort(self._ordered, delay)
        if len(self._delays) > MEMORY:
            del self._ordered[bisect_left(self._ordered, self._delays.popleft())]
        usual = 1.5 * self._ordered[len(self._ordered) // 2] + PATIENCE_MARGIN
        self._usual = min(max(usual, SHORTEST_PATIENCE), LONGEST_PATIENCE)

    def tell(self, answered: bool) -> None:
        """Record whether any servo answered an attempt."""
        self.failures = 0 if answered else self.failures + 1

    @property
    def patience(self) -> float:
        """Longest accepted delay of an answer [s]."""
        grown = PATIENCE_MARGIN * 2.0 ** min(self.failures - 10, 10)
        return max(self._usual, min(grown, GROWN_PATIENCE))
