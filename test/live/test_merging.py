"""States of several publishers, merged by joint."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stribeck.live.states.merging import MergedState, StateMerger

TIMEOUT = 0.04


def merger(names: str = "abg", others: Any = "refuse") -> StateMerger:
    """Joints of one letter."""
    return StateMerger(tuple(names), TIMEOUT, others)


def tell(merger: StateMerger, stamp: float, names: str, value: float | None = None) -> Any:
    """A message of some joints, whose numbers are its stamp."""
    number = [stamp if value is None else value] * len(names)
    return merger.take(stamp, tuple(names), number, number, number)


def test_a_message_of_all_joints_is_passed_on_as_it_is() -> None:
    """The very objects, in whatever order, with others or doubled: what is wrong is said by who reads it."""
    found = merger()
    for names in ("abg", "gba", "xabgy", "abga"):
        numbers = ([1.0], [2.0], [3.0])
        state = found.take(7.0, tuple(names), *numbers)
        assert isinstance(state, MergedState)
        assert all(given is kept for given, kept in zip(numbers, state[2:5], strict=True))
        assert (state.stamp, state.names) == (7.0, tuple(names))
    assert (found.foreign, found.merged) == (0, 0)


def test_messages_of_others_are_skipped_and_counted() -> None:
    """Nobody's joints too."""
    found = merger()
    assert [tell(found, 1.0, names) for names in ("xy", "", "z")] == [None] * 3
    assert (found.foreign, found.merged) == (3, 0)


def test_a_fast_arm_and_a_slow_gripper() -> None:
    """From the first time that all were heard each newer stamp makes a state; the gripper keeps what it said last."""
    found = merger()
    assert tell(found, 1.000, "ab") == "joint g missing"
    state = tell(found, 1.001, "g")
    assert state.stamp == 1.001
    np.testing.assert_array_equal(state.position, [1.0, 1.0, 1.001])
    for k in range(1, 5):
        state = tell(found, 1.0 + 0.005 * k, "ba")
        np.testing.assert_allclose(state.position, [1.0 + 0.005 * k] * 2 + [1.001])
        np.testing.assert_array_equal(state.velocity, state.position)
        np.testing.assert_array_equal(state.effort, state.position)
    assert tell(found, 1.0195, "g") is None, "not newer than what was given"
    np.testing.assert_allclose(tell(found, 1.025, "ab").position, [1.025, 1.025, 1.0195])
    assert found.merged == 8


def test_publishers_that_stamp_alike_give_one_state_a_cycle() -> None:
    """As two broadcasters of one controller manager do: no time that stands still."""
    found = merger("ag")
    stamps = []
    for k in range(10):
        for name in "ag":
            state = tell(found, 1.0 + 0.005 * k, name)
            stamps += [state.stamp] if isinstance(state, MergedState) else []
    assert len(stamps) >= 9
    assert all(first < second for first, second in pairwise(stamps))


def test_a_joint_that_is_heard_no_more_is_a_doubt() -> None:
    """As soon as its last state is older than the time-out; it comes back when it speaks again."""
    found = merger("ag")
    tell(found, 1.0, "g")
    assert isinstance(tell(found, 1.039, "a"), MergedState)
    assert tell(found, 1.045, "a") == "joint g: no states for 45 ms"
    assert isinstance(tell(found, 1.046, "g"), MergedState)


@pytest.mark.parametrize(
    ("stamp", "names", "reason"),
    [
        (1.005, "a", "time does not advance: a state was received twice"),
        (0.5, "a", "time jumped back"),
        (math.nan, "a", "a time stamp is not a number"),
        (1.01, "aa", "a message contains joint a twice"),
        (1.01, "ax", "unknown joint x: add it to joints, or set other_joints to ignore"),
    ],
)
def test_what_cannot_be_trusted(stamp: float, names: str, reason: str) -> None:
    """Of a message that holds some of our joints."""
    found = merger("ag")
    tell(found, 1.0, "g")
    tell(found, 1.005, "a")
    assert tell(found, stamp, names) == reason


def test_unlisted_joints_beside_ours_may_be_ignored() -> None:
    """other_joints: ignore."""
    found = merger("ag", "ignore")
    tell(found, 1.0, "xg")
    assert isinstance(tell(found, 1.001, "ya"), MergedState)


def test_after_a_jump_back_every_joint_is_heard_anew() -> None:
    """A bag that is played in a loop: nothing of the last round is left."""
    found = merger("ag")
    for stamp, names in ((9.0, "g"), (9.001, "a")):
        tell(found, stamp, names)
    assert tell(found, 1.0, "a") == "time jumped back"
    assert tell(found, 1.005, "a") == "joint g missing"
    np.testing.assert_array_equal(tell(found, 1.006, "g").position, [1.005, 1.006])


def test_what_a_message_of_all_joints_said_counts_for_one_of_some() -> None:
    """The joints that it leaves out keep their values."""
    found = merger("ag")
    found.take(1.0, ("g", "a"), [0.2, 0.1], [2.0, 1.0], [])
    state = found.take(1.005, ("a",), [0.3], [3.0], [0.7])
    np.testing.assert_array_equal(state.position, [0.3, 0.2])
    np.testing.assert_array_equal(state.velocity, [3.0, 2.0])
    np.testing.assert_array_equal(state.effort, [0.7, math.nan])


def test_a_position_that_is_no_number_is_forgotten_with_the_next_ones() -> None:
    """Slopes of positions are finite again after one NaN."""
    merged = merger("ag")
    for k in range(6):
        value = math.nan if k == 2 else 0.1 * k
        for name in "ag":
            state = merged.take(1.0 + 0.01 * k + 0.001 * (name == "g"), (name,), [value], [], [])
    assert np.all(np.isfinite(state.position))
    assert np.all(np.isfinite(state.velocity))
    assert np.all(state.velocity > 0.0)


def test_velocities_that_nobody_says_are_slopes_of_the_joints_own_positions() -> None:
    """A gripper at 50 Hz between states of an arm at 200 Hz: its slope is that of its own time."""
    found = merger("ag")
    state = None
    for k in range(200):
        stamp = 1.0 + 0.005 * k
        if k % 4 == 0:
            found.take(stamp - 0.001, ("g",), [2.0 * stamp], [], [])
        state = found.take(stamp, ("a",), [stamp], [1.0], [])
    assert isinstance(state, MergedState)
    np.testing.assert_allclose(state.velocity, [1.0, 2.0], rtol=1e-6)


MESSAGES = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.sampled_from(["a", "b", "g", "ab", "bg", "x", "", "ax"])), max_size=60
)


@given(MESSAGES, st.floats(1.0, 1e6))
def test_any_messages_give_states_in_the_order_of_time(
    messages: list[tuple[float, str]], offset: float
) -> None:
    """Never one that holds what was not said; the same for the same messages, whenever they come."""
    first, second = merger(others="ignore"), merger(others="ignore")
    last = -math.inf
    for stamp, names in messages:
        state = tell(first, stamp, names, offset)
        other = tell(second, stamp, names, offset)
        assert type(state) is type(other)
        if state == "time jumped back":
            last = -math.inf
        if isinstance(state, MergedState):
            assert state.stamp > last
            np.testing.assert_array_equal(state.position, [offset] * 3)
            last = state.stamp
