"""The scale of the friction of joints without a model, from the errors with which they follow their goals."""

import numpy as np
import pytest

from stribeck.live.learning.tracking import (
    FALL_TIME,
    FOLLOW_TIME,
    LEAD,
    NATURAL,
    RETURN_TIME,
    TrackingScale,
)

DT = 0.002
WIDTH = 0.01
MOST = 2.75


def run(
    tracking: TrackingScale,
    seconds: float,
    behind: float,
    path: float = 1.0,
    moves: float = 0.0,
    slip: float = 0.0,
    going: float = 1.0,
) -> float:
    """The scale after some time."""
    values = (np.array([x]) for x in (behind, slip, path, moves, going))
    at = tuple(values)
    for _ in range(round(seconds / DT)):
        tracking.update(*at, WIDTH, MOST, DT)
    return float(tracking.scale[0])


def test_a_joint_beyond_its_goal_bears_less() -> None:
    """The scale decays with the fall time while the joint moves, slower for less than the error width, and stays within the dead-band."""
    tracking = TrackingScale(1)
    assert run(tracking, 0.1, 0.0) == 1.0
    assert run(tracking, FALL_TIME, -WIDTH) == pytest.approx(np.exp(-1.0))
    assert run(tracking, FALL_TIME, -0.5 * WIDTH) == pytest.approx(np.exp(-1.5))
    assert run(tracking, 10.0, 0.0) == pytest.approx(np.exp(-1.5))
    assert run(tracking, 10.0, -WIDTH, going=0.0) == pytest.approx(np.exp(-1.5))


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_joint_that_lags_behind_a_goal_that_moves_bears_more(way: float) -> None:
    """It rises by 1 in the follow time, up to the bound, half as fast at half the error width, and not while the goal rests."""
    tracking = TrackingScale(1)
    assert run(tracking, 5.0, way * WIDTH, way) == 1.0
    assert run(tracking, FOLLOW_TIME, way * WIDTH, way, 1.0) == pytest.approx(2.0)
    assert run(tracking, FOLLOW_TIME, 0.5 * way * WIDTH, way, 1.0) == pytest.approx(2.5)
    assert run(tracking, 50.0, way * WIDTH, way, 1.0) == MOST


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_joint_that_catches_up_bears_less_before_it_arrives(way: float) -> None:
    """What counts is where it will be after the lead time: a slow controller overshoots what has been wound up. What was identified it keeps."""
    tracking = TrackingScale(1)
    slip = -2.0 * way * WIDTH / LEAD
    assert run(tracking, FOLLOW_TIME, way * WIDTH, way, 1.0, slip) == 1.0
    run(tracking, FOLLOW_TIME, way * WIDTH, way, 1.0)
    assert run(tracking, FOLLOW_TIME, way * WIDTH, way, 1.0, slip) == pytest.approx(1.0 + np.exp(-1.0))


def test_a_joint_ahead_of_a_goal_that_moves_bears_less() -> None:
    """Also while the goal moves on."""
    tracking = TrackingScale(1)
    run(tracking, 0.01, 0.0, moves=1.0)
    assert run(tracking, FOLLOW_TIME, -WIDTH, moves=1.0) == pytest.approx(np.exp(-1.0))


def test_an_obstacle_is_not_pressed_with_more_than_the_identified_friction_for_long() -> None:
    """A joint that stands still before a goal at rest: a scale above 1 returns to 1, one below stays."""
    tracking = TrackingScale(1)
    run(tracking, FOLLOW_TIME, WIDTH, moves=1.0)
    assert run(tracking, RETURN_TIME, WIDTH, going=0.0) == pytest.approx(1.0 + np.exp(-1.0))
    assert run(tracking, 20.0, WIDTH, going=0.0) == pytest.approx(1.0)
    low = run(tracking, 0.1, -WIDTH)
    assert run(tracking, 5.0, WIDTH, going=0.0) == low


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_lag_that_a_reversal_makes_a_lead_is_no_overshoot(way: float) -> None:
    """After the path has turned a joint counts as beyond its goal only once it has been behind it, in both directions."""
    tracking = TrackingScale(1)
    assert run(tracking, 1.0, way * WIDTH, path=way) == 1.0
    assert run(tracking, 1.0, way * WIDTH, path=-way) == 1.0
    assert run(tracking, 0.01, -way * WIDTH, path=-way) == 1.0
    assert run(tracking, FALL_TIME, way * WIDTH, path=-way) == pytest.approx(np.exp(-1.0))


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_what_a_controller_overshoots_by_itself_takes_nothing(way: float) -> None:
    """A step of 50 widths: a joint that stops 5 widths beyond it keeps its scale, one at 11 does not, nor one that swings about it."""
    tracking = TrackingScale(1)
    run(tracking, 0.01, 50.0 * way * WIDTH, path=way)
    run(tracking, 0.01, 0.0, path=way)
    assert run(tracking, 1.0, -5.0 * way * WIDTH, path=way) == 1.0
    assert run(tracking, FALL_TIME, -1.1 * NATURAL * 50.0 * way * WIDTH, path=way) < 0.4
    low = float(tracking.scale[0])
    assert run(tracking, 0.1, 0.0, path=way) == low
    assert run(tracking, 0.1, WIDTH * way, path=way) == low
    assert run(tracking, FALL_TIME, -WIDTH * way, path=way) == pytest.approx(low * np.exp(-1.0))


def test_a_restart_keeps_the_scale_and_a_new_start_does_not() -> None:
    """What was seen of the friction outlives a gap of the states."""
    tracking = TrackingScale(1)
    scale = run(tracking, 0.2, -WIDTH)
    tracking.restart()
    assert float(tracking.scale[0]) == scale
    tracking.begin()
    assert float(tracking.scale[0]) == 1.0
