"""Goals of the examples for position servos: no steps, and no faster than what was designed."""

import numpy as np
import pytest

from position_servo import PERIOD, PERIODS, SPEED, SWING, swing
from what_compensation_gains import Course

STEP = 0.01


def speeds(goals, seconds):
    """Speeds of goals [rad/s], one row per hundredth of a second."""
    times = np.arange(0.0, seconds + STEP, STEP)
    return np.diff([goals(t) for t in times], axis=0) / STEP


def test_swinging_begins_where_the_joints_lie_and_ends_on_a_whole_period():
    """What happened: 30 s of a period of 12.6 s, after which the second run began with a step to the middle.

    What must happen: from where the joints lie, also fallen by a radian, at no more than the stated speed, and back in the middle at the end.
    """
    lies, middle = np.array([-0.3, 0.5]), np.array([0.7, 0.5])
    goals, way, seconds = swing(lies, middle)
    assert goals(0.0) == pytest.approx(lies)
    assert goals(way) == pytest.approx(middle)
    assert goals(seconds) == pytest.approx(middle)
    assert seconds - way == pytest.approx(PERIODS * PERIOD)
    assert np.abs(speeds(goals, seconds)).max() < SPEED
    assert np.ptp([goals(t)[1] for t in np.arange(0.0, seconds, STEP)]) == pytest.approx(
        2.0 * SWING, rel=1e-3
    )


@pytest.mark.parametrize("duration", [5.0, 20.0, 60.0])
def test_goals_between_rests_are_no_faster_than_the_path(duration):
    """What happened: 2.5 s to the next of eight places whatever the duration, 4.5 times as fast as designed for 60 s.

    What must happen: nowhere faster than the path, nor than the speed of the way to it; from where the arm lies and back.
    """
    amplitude = np.array([0.8, 0.3])
    lies = np.array([-0.6, 0.0])

    def path(t):
        return amplitude * np.cos(8.0 * np.pi * t / duration)

    designed = amplitude * 8.0 * np.pi / duration
    course = Course(path, duration, lies)
    assert course(0.0) == pytest.approx(lies)
    assert course(course.seconds) == pytest.approx(lies)
    assert course(course.begin + 1e-9) == pytest.approx(path(0.0), abs=1e-6)
    assert (np.abs(speeds(course, course.seconds)) <= np.maximum(1.001 * designed, SPEED)).all()
    between = np.array([course(t) for t in np.arange(course.begin, course.rests, STEP)])
    assert (np.abs(np.diff(between, axis=0) / STEP) <= 1.001 * designed).all()
