"""What happened: a motion that ended at rest but for rounding got two points at its end whose times, in whole
nanoseconds, were equal; controllers refuse such a trajectory. What must happen: times rise."""

import itertools

import numpy as np

from stribeck.session.directive import Plan
from stribeck.session.motion import with_rest


def test_times_rise_at_the_end_of_a_motion_that_ends_at_rest_but_for_rounding():
    """A last velocity of 1e-9 rad/s stops within less than a nanosecond."""
    velocity = np.array([[0.5], [1e-9]])
    found = with_rest(
        Plan(0.0, np.array([0.0, 1.0]), np.array([[0.0], [0.3]]), velocity), np.array([30.0]), 0.02, 0.1
    )
    times = [round(float(t) * 1e9) for t in found.time]
    assert all(later > earlier for earlier, later in itertools.pairwise(times))
    assert found.velocity[-1] == found.velocity[1] == 0.0
