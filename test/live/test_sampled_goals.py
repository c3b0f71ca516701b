"""Trajectories as goals: points by hand, what comes before the first and behind the last, and replacement."""

import math

import pytest

from stribeck.live.direction.sampled_goals import GoalPoint, SampledGoals

LINE = [GoalPoint(0.0, [0.0]), GoalPoint(2.0, [4.0])]
CUBIC = [GoalPoint(0.0, [0.0], [0.0]), GoalPoint(2.0, [4.0], [0.0])]


def goals(points, stamp=10.0, names=("a",), joints=("a",)):
    found = SampledGoals(joints)
    assert found.take(stamp, names, points) is None
    return found


def at(found, stamp, **measured):
    position, velocity = found.at(stamp, measured)
    return position.tolist(), velocity.tolist()


@pytest.mark.parametrize(
    ("points", "time", "position", "velocity"),
    [
        (LINE, 0.5, 1.0, 2.0),
        (CUBIC, 1.0, 2.0, 3.0),  # 4 (3 s^2 - 2 s^3) at s = 1/2, its slope 4 * 6 s (1 - s) / 2
        (CUBIC, 0.5, 0.625, 2.25),
        ([GoalPoint(0.0, [0.0], [2.0]), GoalPoint(2.0, [4.0], [2.0])], 1.5, 3.0, 2.0),
        ([GoalPoint(0.0, [0.0], [1.0]), GoalPoint(1.0, [0.0], [-1.0])], 0.5, 0.25, 0.0),  # s (1 - s)
        ([GoalPoint(0.0, [0.0], [1.0]), GoalPoint(2.0, [4.0])], 0.5, 1.0, 2.0),  # one velocity alone: a line
        (LINE, 2.0, 4.0, 0.0),
        (LINE, 50.0, 4.0, 0.0),
    ],
)
def test_points_by_hand(points, time, position, velocity):
    """Cubics between points with velocities, lines without, at rest behind the last one."""
    assert at(goals(points), 10.0 + time) == (pytest.approx([position]), pytest.approx([velocity]))


def test_without_a_stamp_time_counts_from_the_next_state():
    """And goes on from there."""
    found = goals(LINE, stamp=None)
    assert at(found, 33.0)[0] == [0.0]
    assert at(found, 33.5)[0] == pytest.approx([1.0])


def test_before_the_first_point_a_joint_comes_from_where_it_is():
    """A single point, as tools send it: from the measured position, from then on from that of the start."""
    found = goals([GoalPoint(2.0, [1.0])])
    assert at(found, 10.0, a=0.5)[0] == [0.5]
    assert at(found, 11.0, a=9.0)[0] == [0.75]


def test_a_new_trajectory_takes_over_at_its_start():
    """Until then the old one goes on; it sets out from the old one's goal, with its velocity."""
    found = goals(LINE)
    at(found, 10.0)
    assert found.take(11.0, ["a"], [GoalPoint(1.0, [5.0], [0.0])]) is None
    assert at(found, 10.5)[0] == pytest.approx([1.0])
    assert at(found, 11.0, a=-7.0) == (pytest.approx([2.0]), pytest.approx([2.0]))
    assert at(found, 12.0)[0] == pytest.approx([5.0])
    assert at(found, 10.5)[0] == pytest.approx([1.0]), "time that jumps back"


def test_joints_that_are_not_named_keep_their_goals():
    """None before any, then where the trajectory before left them."""
    found = goals(LINE, joints=("b", "a"))
    position, velocity = at(found, 11.0)
    assert math.isnan(position[0])
    assert position[1] == pytest.approx(2.0)
    assert found.take(12.0, ["b"], [GoalPoint(0.0, [1.0]), GoalPoint(1.0, [2.0])]) is None
    position, velocity = at(found, 12.5)
    assert position == pytest.approx([1.5, 4.0])
    assert velocity == pytest.approx([1.0, 0.0])


def test_an_empty_trajectory_ends_the_goals():
    """As a controller that is told to stop."""
    found = goals(LINE)
    at(found, 10.5)
    assert found.take(None, ["a"], []) is None
    assert not found
    assert math.isnan(at(found, 11.0)[0][0])


@pytest.mark.parametrize(
    ("names", "points", "part"),
    [
        (["z"], LINE, "no joint of the trajectory is compensated; it has: z"),
        (["a", "a"], [GoalPoint(0.0, [0.0, 0.0])], "twice"),
        (["a"], [GoalPoint(0.0, [])], "0 positions for 1 joints"),
        (["a"], [GoalPoint(0.0, [0.0], [1.0, 2.0])], "2 velocities for 1 joints"),
        (["a"], [GoalPoint(0.0, [math.nan])], "number that is not finite"),
        (["a"], [GoalPoint(1.0, [0.0]), GoalPoint(1.0, [1.0])], "point 2 of a trajectory is not later"),
    ],
)
def test_what_cannot_be_followed_changes_nothing(names, points, part):
    """It is said, and the last trajectory goes on."""
    found = goals(LINE)
    assert part in found.take(11.0, names, points)
    assert at(found, 11.5)[0] == pytest.approx([3.0])
