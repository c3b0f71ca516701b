"""Joints without goals kept vibrating at 0.03 to 0.2 rad/s after they had come to rest, with fine encoders.

The torque followed the sign of the velocity at once. Before a joint slides its friction is a spring and takes next to
nothing, so a quarter of it put in more than it took. The torque turns round as friction does, within the presliding
length.
"""

import numpy as np
import pytest

from plants.joints import Condition
from plants.release import Push, Pushed, Robot, judged, ours, simulated
from stribeck.live.direction.travel import Turning


@pytest.mark.ci
def test_a_joint_comes_to_rest_on_the_spring_of_its_presliding():
    """A shoulder with 0.4 of its friction, 17 bits, pushed to 1 rad/s and let go: it vibrated until the end."""
    condition = Condition(
        "shoulder", coulomb_scale=0.4, viscous_scale=0.4, control="zero", measured_velocity=True
    )
    groups = [(Robot(500, 1, mode="friction_only"), [Pushed(condition, (Push(0.2, 0.8, 1.0),))])]
    broken, timed = judged(groups, simulated(groups, ours, 6.0))
    assert timed == 1
    assert not broken


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("size", [0.1, 0.5, 1.0, 5.0])
def test_work_of_a_cycle_is_that_of_friction(size):
    r"""Work of what turns round over a closed cycle of ±X presliding lengths is 4(X - tanh X), as Dahl's friction takes."""
    turning = Turning(1)
    path = 1e-3 * size * np.sin(np.linspace(0.0, 10.0 * np.pi, 100001))
    work = 0.0
    turning.update(path[:1], np.zeros(1), 1e-3)
    for k in range(1, len(path)):
        turning.update(path[k : k + 1], np.zeros(1), 1e-3)
        if k > 80000:
            work += turning.share[0] * (path[k] - path[k - 1]) / 1e-3
    assert work == pytest.approx(4.0 * (size - np.tanh(size)), rel=0.01, abs=1e-4)
