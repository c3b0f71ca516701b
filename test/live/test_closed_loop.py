"""Compensation in the loop: closer to the frictionless motion, still at rest, stable with old efforts."""

import math

import numpy as np
import pytest

from helpers import published
from simulated_loop import (
    COUNT,
    CYCLE,
    DT,
    Joint,
    Push,
    chirp,
    compensated,
    cut,
    hold,
    naive,
    rest_counts,
    slow_sine,
    steps,
    torque_controlled,
)
from stribeck.live.compensator import Compensator
from stribeck.live.settings import Settings
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS

ANGLES = (0.0, 0.5, 1.2)
LARGEST = 2.0
"""A joint at rest may stray this many counts."""


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("kp", [pytest.param(100.0, marks=pytest.mark.slow), 200.0])
@pytest.mark.parametrize("trajectory", [slow_sine, chirp, steps])
def test_friction_is_cut_on_the_way_to_frictionless_motion(kp, trajectory) -> None:
    """Gain 0.8: the distance to the frictionless motion shrinks by 65 % at least, against gravity compensation alone."""
    joint = Joint(kp)
    assert cut(joint, trajectory, compensated(joint, 0.8)) >= 0.65


@pytest.mark.ci
@pytest.mark.parametrize("gain", [0.8, 1.2])
@pytest.mark.parametrize("kp", [pytest.param(100.0, marks=pytest.mark.slow), 200.0, 400.0])
def test_a_joint_at_rest_stays_at_rest(kp, gain) -> None:
    """After a push, with encoder noise, under- and overcompensated: within 2 counts for 5 s, at every angle."""
    joint = Joint(kp)
    for angle in ANGLES:
        assert rest_counts(joint, angle, compensated(joint, gain)) <= LARGEST, angle


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("kp", [100.0, 200.0, 400.0])
def test_the_test_of_rest_fails_a_naive_compensator(kp) -> None:
    """The law times the sign of the velocity swings without end at gain 1.2: the test above would catch it."""
    joint = Joint(kp)
    assert any(rest_counts(joint, angle, naive(joint, 1.2)) > 2.0 * LARGEST for angle in ANGLES)


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("commands", [True, False])
@pytest.mark.parametrize("gain", [0.8, 1.0, 1.2])
def test_efforts_20_ms_late_make_nothing_grow(gain, commands) -> None:
    """The whole motor torque, our own share in it, is told 20 ms late, at the largest load feedback admitted.

    After a push every swing is smaller than the one before and the joint comes to rest; on a sine the error
    does not grow; the torque stays within its limit, and the delay changes the error by a tenth at most.
    """
    values = {**published("xl330", "m3"), "q_offset": 0.0, "load_friction_base": 0.899 / gain}
    joint = Joint(200.0, LAWS["m3"], values)

    def driven(goal_at, delay):
        settings = Settings("friction_only", "motor", gain=gain)
        compensator = Compensator([joint.model()], [JointMap()], settings)
        compensator.enable()
        push = Push(start=2.5, torque=0.15)
        run = torque_controlled(joint, goal_at, compensator, delay=delay, push=push, commands=commands)
        assert compensator.doubt is None
        assert np.abs(run.torque).max() <= 0.3
        return run

    pushed = driven(hold(0.5), 0.02)
    swings = [
        np.ptp(pushed.position[round(t / DT) : round((t + 1.0) / DT)]) for t in (2.5, 3.5, 4.5, 5.5, 6.5)
    ]
    assert swings == sorted(swings, reverse=True)
    assert swings[-1] < COUNT
    error = {}
    for delay in (0.0, 0.02):
        run = driven(slow_sine, delay)
        distance = run.measured - [slow_sine(k * CYCLE * DT) for k in range(len(run.measured))]
        error[delay] = math.sqrt(np.mean(distance**2))
        # Five seconds are a period: one without and one with the push in it.
        assert np.sqrt(np.mean(distance[600:] ** 2)) < 1.1 * np.sqrt(np.mean(distance[:1000] ** 2))
    assert error[0.02] < 1.1 * error[0.0]


@pytest.mark.ci
def test_compensation_helps_also_with_late_efforts() -> None:
    """Law M6 as identified, gain 0.8: the error of a sine is halved, with efforts 20 ms late as without delay."""
    values = {**published("xl330", "m6"), "q_offset": 0.0}
    joint = Joint(200.0, LAWS["m6"], values)
    for delay in (0.0, 0.02):
        compensator = Compensator([joint.model()], [JointMap()], Settings("friction_only", "motor"))
        compensator.enable()
        runs = [torque_controlled(joint, slow_sine, c, delay=delay) for c in (None, compensator)]
        goal = np.array([slow_sine(k * DT) for k in range(len(runs[0].position))])
        without, added = (np.sqrt(np.mean((run.position - goal) ** 2)) for run in runs)
        assert added < 0.5 * without
