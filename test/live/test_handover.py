"""One compensator takes over from another: what is sent between them, what both are told, and what is refused."""

import numpy as np
import pytest

from compensating import model, settings_with
from stribeck.errors import ConfigError
from stribeck.live.compensator import Compensator
from stribeck.live.handover import Handover
from stribeck.model.joint_map import JointMap

RAMP, STEP = 0.4, 0.01


def compensator(factor=1.0):
    """One moving joint whose friction without goals counts wholly, at once."""
    joint = model(friction_base=0.05 * factor, friction_viscous=0.0, limit=0.5)
    settings = settings_with(
        mode="friction_only", effort_meaning="none", certain_fraction=1.0, ramp_time=RAMP
    )
    return Compensator([joint], [JointMap()], settings)


class Moving:
    """A joint at 1 rad/s and its torques."""

    def __init__(self, handover):
        self.handover, self.time = handover, 10.0

    def run(self, seconds):
        found = []
        for _ in range(round(seconds / STEP)):
            self.time += STEP
            state = (self.time, self.time, ["a"], [self.time], [1.0], ())
            found.append(float(self.handover.on_state(*state)[0]))
        return np.array(found)


def begun():
    """What compensates a joint, enabled, and the joint."""
    handover = Handover(compensator(), RAMP)
    handover.enable()
    return handover, Moving(handover)


def test_the_torque_goes_over_along_a_ramp_after_a_ramp():
    """0.8 of either friction before and after; one ramp time of the old one, then linearly to the new one within another."""
    handover, moving = begun()
    assert moving.run(1.0)[-1] == pytest.approx(0.04)
    handover.exchange(compensator(2.0))
    found = moving.run(1.0)
    passed = np.arange(len(found)) * STEP / RAMP - 1.0
    np.testing.assert_allclose(found, 0.04 + 0.04 * np.clip(passed, 0.0, 1.0), rtol=1e-9)
    handover.revert()
    back = moving.run(1.0)
    np.testing.assert_allclose(back, 0.08 - 0.04 * np.clip(passed, 0.0, 1.0), rtol=1e-9)


def test_both_know_what_was_sent():
    """Half-way both hold the mixed torque as that of the last state."""
    handover, moving = begun()
    moving.run(1.0)
    old, new = handover.present, compensator(2.0)
    handover.exchange(new)
    sent = moving.run(1.5 * RAMP)[-1]
    assert 0.05 < sent < 0.07
    assert old.torque[0] == new.torque[0] == sent


def test_a_second_one_waits_and_a_first_one_has_no_former():
    handover = Handover(compensator(), RAMP)
    handover.enable()
    with pytest.raises(ConfigError, match="no previous"):
        handover.revert()
    handover.exchange(compensator(2.0))
    with pytest.raises(ConfigError, match=r"takes 0\.8 s: try again"):
        handover.exchange(compensator(3.0))


def test_doubt_ends_the_torque_of_both_and_switching_off_ends_the_handover():
    """A velocity that is not a number: zero. After switching off and on the new one compensates alone, from zero."""
    handover, moving = begun()
    moving.run(1.0)
    handover.exchange(compensator(2.0))
    moving.run(1.5 * RAMP)
    t = moving.time + STEP
    assert handover.on_state(t, t, ["a"], [t], [np.nan], ())[0] == 0.0
    handover.disable()
    assert not handover.enabled
    handover.enable()
    moving.time = t
    found = moving.run(1.0)
    assert found[1] < 0.01
    assert found[-1] == pytest.approx(0.08)


def test_while_it_is_off_another_one_takes_over_at_once():
    handover = Handover(compensator(), RAMP)
    handover.exchange(compensator(2.0))
    handover.enable()
    assert Moving(handover).run(1.0)[-1] == pytest.approx(0.08)


def test_states_that_stop_right_after_an_exchange_leave_no_torque():
    """The new one has not seen a state, and has none to lose."""
    handover, moving = begun()
    assert moving.run(1.0)[-1] == pytest.approx(0.04)
    handover.exchange(compensator(2.0))
    assert handover.expire(moving.time + 5.0)
    assert handover.torque[0] == 0.0
    assert not handover.expire(moving.time + 5.1)


def test_time_that_jumps_back_begins_the_handover_anew():
    """As after a simulator's reset: it ends as late as any other, and the next one is not refused."""
    handover, moving = begun()
    moving.time = 1000.0
    moving.run(1.0)
    handover.exchange(compensator(2.0))
    moving.run(RAMP)
    moving.time = 1.0
    assert moving.run(4.0 * RAMP)[-1] == pytest.approx(0.08)
    handover.revert()
