"""Stamps of a whole run were late by the time for which the program was suspended while it compared its clocks.

What must happen: the comparison that took the shortest time counts.
"""

import time
from itertools import chain, repeat

import pytest

from stribeck.session.timing import calendar_offset

APART = 5000.0


def test_the_shortest_comparison_counts(monkeypatch):
    """Suspended for half a second between the readings of clock and calendar, in all attempts but one."""
    pauses = chain([0.5] * 12, repeat(0.0, 4), repeat(0.5))
    now = 1000.0

    def passed():
        nonlocal now
        now += next(pauses)
        return now

    class Clock:
        def now(self):
            return passed()

    monkeypatch.setattr(time, "time_ns", lambda: round(1e9 * (passed() + APART)))
    assert 1e-9 * calendar_offset(Clock()) == pytest.approx(APART, abs=1e-6)
