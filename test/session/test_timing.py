"""The periodic loop, on virtual time."""

import pytest

from stribeck.session.timing import SYSTEM_CLOCK, PeriodicLoop
from virtual_time import VirtualClock


def starts(period, works, catch_up=0.0):
    """When the cycles of a loop begin, each of which takes a while to work [s since the start]."""
    clock = VirtualClock(0.0)
    loop = PeriodicLoop(period, clock, catch_up)
    begun = []
    for work in works:
        begun.append(clock.now())
        clock.sleep(work)
        loop.wait()
    return begun


def test_cycles_are_due_at_multiples_of_the_period():
    """What a cycle takes does not add up, as long as it is less than a period."""
    assert starts(0.01, [0.001, 0.009, 0.0, 0.004, 0.0]) == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])


def test_missed_cycles_are_left_out_and_the_rhythm_stays():
    """A cycle of 35 ms in a loop of 10 ms: the next one begins at once, then again at multiples of the period."""
    assert starts(0.01, [0.035, 0.001, 0.001]) == pytest.approx([0.0, 0.035, 0.04])


def test_a_few_missed_cycles_are_made_up_for_if_wanted():
    """35 ms late with up to four cycles to make up for: three follow at once; 55 ms late: they are left out."""
    assert starts(0.01, [0.035, 0.0, 0.0, 0.0, 0.0], 4.0) == pytest.approx([0.0, 0.035, 0.035, 0.035, 0.04])
    assert starts(0.01, [0.065, 0.0, 0.0], 4.0) == pytest.approx([0.0, 0.065, 0.07])


def test_the_clock_of_the_system_is_steady():
    """It moves on while it sleeps, and does not for a time that is past."""
    before = SYSTEM_CLOCK.now()
    SYSTEM_CLOCK.sleep(-1.0)
    SYSTEM_CLOCK.sleep(0.002)
    assert SYSTEM_CLOCK.now() - before >= 0.002
