"""Goals that are one message old, and clocks that differ, throttled the torque of joints that follow their goals perfectly."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cpp_compensator import CppCompensator
from helpers import published
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel
from stribeck.live.settings import Settings
from stribeck.model.joint_map import JointMap
from stribeck.model.law import law_named

SETTINGS = Settings("friction_only", "none", gain=0.8, adapt=False)


def joint(resolution: float = 1e-6) -> JointModel:
    """An XL330 of a resolution [rad], 1e-6 as files of robots say."""
    actuator = replace(load_actuator("xl330"), resolution=resolution)
    return JointModel("j", actuator, law_named("m1"), published("xl330", "m1"), 0.5)


def followed(compensator, rate, speed, old, *, seconds=0.9, clock=0.0, velocities=True, lead=0.0):
    """Torque at the end of a motion at constant speed under goals that are ``old`` messages older than the states."""
    compensator.enable()
    for k in range(round(seconds * rate)):
        now = 10.0 + k / rate
        goal = [speed * (k - old) / rate + lead]
        given = [speed] if velocities else []
        compensator.on_goal(now, now - old / rate - 1e-6 - clock, ["j"], goal, given)
        compensator.on_state(now, now, ["j"], [speed * k / rate], [speed], [])
    return float(compensator.torque[0])


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("kind", [Compensator, CppCompensator])
@pytest.mark.parametrize(("rate", "speed"), [(500, 1.0), (500, 0.5), (100, 0.3), (50, 0.3)])
@pytest.mark.parametrize("velocities", [True, False])
def test_an_old_goal_is_compared_with_what_is_wanted_now(kind, rate, speed, velocities):
    """One and two messages old, with and without velocities of the goals: the torque of a goal of the same instant.

    What happened: a goal of 1 rad/s at 500 Hz is 2 mrad behind its joint when the next state comes; with the resolution of
    a robot's file that is ahead of the goal, and the share of the friction fell from 0.80 to 0.24.
    """
    fresh, *stale = (
        followed(kind([joint()], [JointMap()], SETTINGS), rate, speed, old, velocities=velocities)
        for old in (0, 1, 2)
    )
    assert fresh > 0.5 * published("xl330", "m1")["friction_base"]
    assert stale == pytest.approx([fresh, fresh], rel=1e-6)


@pytest.mark.parametrize("kind", [Compensator, CppCompensator])
@pytest.mark.parametrize("clock", [1.5, -1.5, 5.0, -5.0])
def test_clocks_that_are_seconds_apart_are_measured_and_made_up_for(kind, clock):
    """The torque of clocks that agree, and the difference.

    What happened: from 1 s on there was no friction torque, and no notice.
    """
    same, other = kind([joint()], [JointMap()], SETTINGS), kind([joint()], [JointMap()], SETTINGS)
    expected = followed(same, 200, 0.5, 1, lead=0.01)
    assert followed(other, 200, 0.5, 1, clock=clock, lead=0.01) == pytest.approx(expected, rel=1e-6)
    if kind is Compensator:
        assert other.notice is not None
        assert (
            f"{'behind' if clock > 0.0 else 'ahead of'} those of the states, which is corrected"
            in other.notice
        )
        assert other.wishes.goals.difference == pytest.approx(clock + 1 / 200, abs=1e-3)


def test_clocks_further_apart_are_said():
    """Ten seconds: no intention, and a notice that says why."""
    compensator = Compensator([joint()], [JointMap()], SETTINGS)
    followed(compensator, 200, 0.5, 1, clock=10.0)
    assert compensator.notice is not None
    assert "more than the 5 s that can be corrected" in compensator.notice


@pytest.mark.ci
def test_former_states_of_the_joint_itself_are_no_goals():
    """Positions and velocities of up to 40 ms ago, of a joint that slows down: they never refill its tank.

    Carried on at their velocity they are ahead of it.
    """
    for old in (1, 5, 20):
        compensator = Compensator([joint()], [JointMap()], SETTINGS)
        compensator.enable()
        rate, contents = 500, []
        path = [3.0 * math.exp(-0.7 * k / rate) for k in range(2000)]
        at = np.cumsum(path) / rate
        for k in range(len(path)):
            now = 10.0 + k / rate
            if k >= old:
                compensator.on_goal(now, now - old / rate - 1e-6, ["j"], [at[k - old]], [path[k - old]])
            compensator.on_state(now, now, ["j"], [at[k]], [path[k]], [])
            contents.append(float(compensator.account().energy[0]))
        assert contents[-1] < 0.2
        assert (np.diff(contents) <= 1e-12).all()
