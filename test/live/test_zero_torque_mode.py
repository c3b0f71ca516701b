"""Zero-torque mode on virtual time: how it begins, is left with damping, and ends with lost states and hot motors."""

import math

import numpy as np
import pytest

from compensating import model, settings_with
from stribeck.errors import ConfigError
from stribeck.live.compensator import Compensator
from stribeck.live.guiding import HOLD_BANDWIDTH
from stribeck.live.samples import State
from stribeck.live.zero_torque import GuidingSettings, ZeroTorque
from stribeck.model.joint_map import JointMap

RAMP, TIMEOUT, STEP = 0.5, 0.04, 0.002
INERTIA, WEIGHT = 0.01, 0.1
NONE = np.zeros(1)
COLD = np.array([30.0])


class Lever:
    """Horizontal: the weight is the same at every position."""

    def mass_matrix_and_bias(self, q, v):
        return np.full(1, INERTIA), np.full(1, WEIGHT)


def zero_torque(**chosen):
    settings = settings_with(
        mode="friction_only", effort_meaning="none", ramp_time=RAMP, state_timeout=TIMEOUT
    )
    made = ZeroTorque(Compensator([model()], [JointMap()], settings), Lever(), GuidingSettings(**chosen))
    made.begin(0.0)
    return made


def state(time, q=0.3, v=0.0):
    at, speed = np.array([q]), np.array([v])
    return State(time, at, speed, at, speed)


def at_rest(made, begin, seconds, friction=NONE, temperature=COLD):
    """Torques of a joint that stands still."""
    times = begin + STEP * np.arange(round(seconds / STEP))
    return np.array([float(made.torque(t, state(t), friction, temperature)[0]) for t in times])


def test_the_weight_is_borne_from_the_first_state_on():
    made = zero_torque()
    assert float(made.torque(0.0, state(0.0), NONE, COLD)[0]) == WEIGHT
    np.testing.assert_allclose(at_rest(made, STEP, 2.0, np.array([0.01])), WEIGHT + 0.01)


def test_left_at_rest_the_torque_falls_within_the_ramp_time():
    """Linearly, beside the torque against friction; then the mode is off."""
    made = zero_torque()
    at_rest(made, 0.0, 1.0)
    made.release("left")
    friction = np.array([0.02])
    found = at_rest(made, 1.0, 1.0, friction)
    share = np.clip(1.0 - STEP * (np.arange(len(found)) + 1) / RAMP, 0.0, 1.0)
    bears = np.count_nonzero(share)
    np.testing.assert_allclose(found[:bears], share[:bears] * WEIGHT + 0.02, atol=1e-12)
    assert found[-1] == 0.0
    assert not made.on
    assert made.reason == "left"


def test_the_last_torque_is_zero_also_where_velocities_are_noisy():
    """The receiver may keep it: no damping of a velocity that is noise."""
    made = zero_torque()
    at_rest(made, 0.0, 1.0)
    made.release("left")
    time, found = 1.0, math.nan
    while made.on:
        time += STEP
        found = float(made.torque(time, state(time, v=0.01), NONE, COLD)[0])
        assert time < 10.0
    assert found == 0.0


def test_a_joint_that_sinks_is_damped():
    """Its speed stays below the weight by the damping, and the mode stays on until it rests."""
    made, q, v, time = zero_torque(), 0.3, 0.0, 0.0
    at_rest(made, 0.0, 1.0)
    made.release("left")
    damping, speeds = 2.0 * INERTIA * HOLD_BANDWIDTH, []
    for k in range(2000):
        time = 1.0 + STEP * k
        torque = float(made.torque(time, state(time, q, v), NONE, COLD)[0])
        v += (torque - WEIGHT) / INERTIA * STEP
        q += v * STEP
        speeds.append(abs(v))
    assert 0.9 * WEIGHT / damping < max(speeds) < 1.01 * WEIGHT / damping
    assert made.on
    at_rest(made, time, 2.0)
    assert not made.on


def test_lost_states_leave_the_weight_for_the_timeout_and_then_less():
    """The whole weight until the time-out, half of it half a ramp later, nothing after a whole one, also with new states."""
    made = zero_torque()
    at_rest(made, 0.0, 1.0)
    last = 1.0 - STEP
    later = {0.03: 1.0, TIMEOUT + 0.25: 0.5, TIMEOUT + 0.4: 0.2, TIMEOUT + 0.5: 0.0}
    for passed, share in later.items():
        found = float(made.torque(last + passed, None, NONE, COLD)[0])
        assert found == pytest.approx(share * WEIGHT, abs=1e-12)
    assert not made.on
    assert made.reason == "no valid states for 540 ms"
    np.testing.assert_array_equal(at_rest(made, 2.0, 0.1), 0.0)


def test_states_that_return_in_time_are_held_where_they_are():
    made = zero_torque()
    at_rest(made, 0.0, 1.0)
    assert float(made.torque(1.2, None, NONE, COLD)[0]) < WEIGHT
    held = made.torque(1.21, state(1.21, 0.5), NONE, COLD)
    assert float(held[0]) == WEIGHT
    pushed = made.torque(1.212, state(1.212, 0.501), NONE, COLD)
    assert float(pushed[0]) < WEIGHT


def test_a_hot_motor_ends_the_mode_with_damping():
    """At the bound: the torque begins to fall, and the reason names the joint; a temperature that is not known is none."""
    made = zero_torque(hottest=70.0)
    assert at_rest(made, 0.0, 1.0, temperature=np.array([math.nan]))[-1] == pytest.approx(WEIGHT)
    at_rest(made, 1.0, 0.1, temperature=np.array([69.9]))
    assert not made.reason
    found = at_rest(made, 1.1, 0.25, temperature=np.array([70.0]))
    assert found[-1] == pytest.approx(0.5 * WEIGHT)
    assert made.reason == "a is at 70 °C, and the limit is 70 °C"


def test_a_fast_joint_is_braked():
    """Against the motion, in proportion to what is beyond the bound."""
    made = zero_torque(fastest=0.5)
    at_rest(made, 0.0, 1.0)
    found = [float(made.torque(t, state(t, 0.3, v), NONE, COLD)[0]) for t, v in ((1.0, 0.5), (1.5, 0.9))]
    assert found[1] < found[0] - 15.0 * INERTIA * 0.4


def test_without_a_weight_there_is_no_mode():
    with pytest.raises(ConfigError, match="needs the gravity torque"):
        ZeroTorque(zero_torque_compensator(), None)


def zero_torque_compensator():
    settings = settings_with(mode="friction_only", effort_meaning="none")
    return Compensator([model()], [JointMap()], settings)
