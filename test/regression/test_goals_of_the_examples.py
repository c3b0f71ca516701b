"""Goals of the examples for position servos: no steps, and no faster than what was designed."""

import numpy as np
import pytest

from position_servo import PERIOD, PERIODS, SPEED, SWING, swing

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
