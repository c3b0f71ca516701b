"""Scales of friction that were learnt from recorded motion, which does not answer to the torque: they rose to their bound."""

import numpy as np
import pytest

from compensating import model
from cpp_compensator import CppCompensator
from stribeck.live.compensator import Compensator
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap

PERIOD = 0.005


def driven(compensator, start=10.0, closed_loop=True):
    """Motion that lags behind its goals whatever the torque; the scale at its end."""
    compensator.enable(*() if closed_loop else (False,))
    for k in range(1200):
        now = start + PERIOD * k
        goal, rate = np.sin(2.0 * PERIOD * k), 2.0 * np.cos(2.0 * PERIOD * k)
        position, velocity = np.sin(2.0 * PERIOD * k - 0.2), 2.0 * np.cos(2.0 * PERIOD * k - 0.2)
        compensator.on_command(now, now, ["a"], [goal], [rate], [])
        compensator.on_state(now, now, ["a"], [position], [velocity], [])
    return compensator.account().dry[0]


def made(kind=Compensator):
    return kind([model("a")], [JointMap()], Settings("friction_only", "none", timing=Timing(ramp_time=0.02)))


@pytest.mark.parametrize("kind", [Compensator, CppCompensator])
def test_in_a_closed_loop_a_lag_raises_the_scale_and_a_jump_of_time_forgets_it(kind):
    """A simulator that starts anew, or a bag in a loop, starts with the identified friction, in both languages."""
    compensator = made(kind)
    assert driven(compensator) > 1.2
    now = 5.0
    compensator.on_command(now, now, ["a"], [0.0], [0.0], [])
    compensator.on_state(now, now, ["a"], [0.0], [0.0], [])
    assert compensator.account().dry[0] == 1.0


def test_recorded_motion_teaches_nothing():
    """Replay keeps the identified friction."""
    assert driven(made(), closed_loop=False) == 1.0
