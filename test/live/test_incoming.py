"""Joints in any order, clocks of streams, and commands that count from their stamps on."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stribeck.live.states.incoming import (
    AGREEING_TIME,
    CLOCK_DRIFT,
    LARGEST_CLOCK_DIFFERENCE,
    Command,
    Commands,
    JointOrder,
    StreamClock,
    picked,
)

NOTHING = np.full(1, math.nan)
DT = 0.01
TIMEOUT = 0.1


def goal(at: float) -> Command:
    return Command(np.array([at]), NOTHING, NOTHING)


# -- clocks


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.lists(st.floats(0.0, 0.5), min_size=1, max_size=50))
def test_a_clock_that_differs_is_no_lateness(offset: float, delays: list[float]) -> None:
    """Lateness is what exceeds the least that was seen, whatever the clocks say."""
    clock = StreamClock()
    least = math.inf
    for k, delay in enumerate(delays):
        least = min(least, delay)
        lag = clock.lag(DT * k + delay, DT * k + offset)
        assert lag == pytest.approx(delay - least, abs=0.5 * CLOCK_DRIFT * len(delays) + 1e-8)


def test_clocks_may_drift() -> None:
    """Stamps that fall behind by 0.1 ms/s for an hour are never late; those that fall behind by half are."""
    slow, stalled = StreamClock(), StreamClock()
    for k in range(3600):
        assert slow.lag(float(k), k * (1.0 - 1e-4)) < 1e-3
    assert stalled.lag(0.0, 0.0) == 0.0
    assert stalled.lag(1.0, 0.5) == pytest.approx(0.5, abs=1e-3)
    stalled.restart()
    assert stalled.lag(2.0, 0.5) == 0.0


# -- commands of clocks that differ


def told(commands: Commands, k: int, behind: float, timeout: float = TIMEOUT) -> bool:
    """Command k, which arrives at its time, stamped so far behind the clock of the states."""
    return commands.add(DT * k, DT * k - behind, goal(float(k)), 0.0, timeout)


def test_fresh_commands_are_taken() -> None:
    """Up to the timeout; a little late or early is nothing to say."""
    commands = Commands(1)
    for k, behind in enumerate([0.0, 0.04, -0.04, 0.1, 0.02]):
        assert told(commands, k, behind)
    assert commands.difference == 0.0


def test_a_command_of_long_ago_is_not_taken() -> None:
    """Nor do others that are as old, where no clock can be so wrong."""
    commands = Commands(1)
    assert told(commands, 0, 0.0)
    for k in range(1, 20):
        assert not told(commands, k, 6.0)
    assert commands.difference == 0.0
    latest = commands.latest(0.05, TIMEOUT)
    assert latest is not None
    assert latest.position[0] == 0.0  # the old ones have not displaced the good one
    assert commands.latest(0.2, TIMEOUT) is None


@pytest.mark.parametrize("behind", [0.3, -0.3, 1.5, -1.5, 5.0, -5.0])
def test_a_clock_that_differs_steadily_is_recognised(behind: float) -> None:
    """After AGREEING_TIME for which they agree; then their stamps are corrected by the difference."""
    commands = Commands(1)
    for k in range(round(AGREEING_TIME / DT) + 2):
        told(commands, k, behind)
    assert commands.difference == pytest.approx(behind)
    assert told(commands, 20, behind)
    found, _, age = commands.before(0.205, 0.205, TIMEOUT)
    assert found is not None
    assert found.position[0] == 20.0
    assert age == pytest.approx(0.005)
    assert commands.before(0.305, 0.305, TIMEOUT)[0] is None
    assert told(commands, 21, 0.0)  # whose clock was set right
    assert commands.difference == 0.0


@settings(deadline=None)
@given(st.floats(LARGEST_CLOCK_DIFFERENCE + 0.1, 1e6) | st.floats(-1e6, -LARGEST_CLOCK_DIFFERENCE - 0.1))
def test_no_clock_is_off_by_more_than_five_seconds(behind: float) -> None:
    """Commands from there are old, or of the future, and count for no state of now."""
    commands = Commands(1)
    for k in range(20):
        assert told(commands, k, behind) == (behind < 0.0)
        assert commands.difference == 0.0
        assert commands.before(DT * k + 0.001, DT * k + 0.001, TIMEOUT)[0] is None
    assert commands.beyond == pytest.approx(behind, rel=1e-9, abs=1e-6)


def test_the_difference_of_clocks_is_the_shortest_delay() -> None:
    """Delays of up to 10 ms beside it do not count; a clock that is set anew is recognised anew."""
    commands = Commands(1)
    for k in range(30):
        told(commands, k, 1.5 + 0.001 * (7 * k % 11))
    assert commands.difference == pytest.approx(1.5, abs=1e-3)
    for k in range(30, 60):
        told(commands, k, -3.0 + 0.001 * (7 * k % 11))
    assert commands.difference == pytest.approx(-3.0, abs=1e-3)


def test_a_late_state_counts_with_the_goal_of_its_time() -> None:
    """Commands without stamps: those that had arrived when the state was due; before all of them, the first."""
    commands = Commands(1)
    for k in range(10):
        commands.add(DT * k, None, goal(float(k)))
    found = [commands.before(0.0, 0.095, TIMEOUT, late) for late in (0.0, 0.03, 0.2)]
    assert [one.command.position[0] for one in found if one.command is not None] == [9.0, 6.0, 0.0]
    assert [one.age for one in found] == pytest.approx([0.005, 0.005, 0.0])


def test_lateness_that_varies_is_no_clock() -> None:
    """A queue that is worked off: commands ever less late are not taken for those of a clock."""
    commands = Commands(1)
    taken = [told(commands, k, 0.95 - 0.06 * k) for k in range(16)]
    assert commands.difference == 0.0
    assert taken == [0.95 - 0.06 * k <= TIMEOUT for k in range(16)]


def test_a_burst_of_commands_that_waited_is_no_clock() -> None:
    """Two seconds of commands that come within 20 ms, each 10 ms less late than the one before."""
    commands = Commands(1)
    for k in range(200):
        arrival = 2.0 + 1e-4 * k
        taken = commands.add(arrival, DT * k, goal(float(k)), 0.0, TIMEOUT)
        assert taken == (arrival - DT * k <= TIMEOUT)
    assert commands.difference == 0.0


def test_after_time_jumped_back_commands_count_for_the_states_that_follow() -> None:
    """A loop begins with a command: it is not passed on, but counts for the states of its time."""
    commands = Commands(1)
    for k in range(10):
        assert told(commands, k, 0.0)
    assert not commands.add(0.1, -5.0, goal(77.0), 0.0, TIMEOUT)
    latest = commands.latest(0.1, TIMEOUT)
    assert latest is not None
    assert latest.position[0] == 9.0
    now, _, _ = commands.before(0.095, 0.1, TIMEOUT)
    assert now is not None
    assert now.position[0] == 9.0
    then, _, _ = commands.before(-4.99, 0.11, TIMEOUT)
    assert then is not None
    assert then.position[0] == 77.0


# -- commands by their stamps


def test_a_command_counts_for_later_stamps() -> None:
    """Not for its own, nor after the timeout."""
    commands = Commands(1)
    commands.add(0.0, 10.0, goal(1.0))
    found = [
        commands.before(stamp, 0.0, TIMEOUT)[0] is not None for stamp in (9.99, 10.0, 10.001, 10.1, 10.11)
    ]
    assert found == [False, False, True, True, False]


def test_the_rate_of_goals_is_their_filtered_slope_or_what_is_said() -> None:
    """Steady goals: their slope; a said velocity at once; none over long gaps."""
    commands = Commands(1)
    for k in range(30):
        commands.add(DT * k, DT * k, goal(0.02 * k))
    assert commands.before(0.301, 0.301, TIMEOUT)[1][0] == pytest.approx(2.0, rel=1e-6)
    commands.add(0.3, 0.3, Command(np.array([0.6]), np.array([-3.0]), NOTHING))
    assert commands.before(0.301, 0.301, TIMEOUT)[1][0] == -3.0
    commands.add(0.9, 0.9, goal(5.0))
    assert commands.before(0.901, 0.901, TIMEOUT)[1][0] == 0.0


def test_stamps_that_are_no_numbers_are_not_taken() -> None:
    """Nor arrivals, where there is no stamp."""
    commands = Commands(1)
    for arrival, stamp in ((0.0, math.nan), (0.0, math.inf), (math.nan, None)):
        assert not commands.add(arrival, stamp, goal(1.0))
    assert not commands


# -- orders


def test_joints_are_found_in_any_order() -> None:
    """Missing, doubled and unknown ones are said."""
    order = JointOrder(("a", "b"))
    found, _ = order.of(("b", "x", "a"), strict=False)
    assert found is not None
    np.testing.assert_array_equal(picked([1.0, 2.0, 3.0], found), [3.0, 1.0])
    np.testing.assert_array_equal(picked([1.0], found), [math.nan, 1.0])
    assert order.of(("a",), strict=False) == (None, "joint b missing")
    assert order.of(("a", "b", "a"), strict=False) == (None, "a message contains joint a twice")
    assert "unknown joint x" in order.of(("b", "x", "a"), strict=True)[1]
