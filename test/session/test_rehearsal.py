"""A session on ideal joints: the goals are those of the session, the figures those of the trajectories."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers import refusal
from sessions import DROP, SHORT, WIDE
from stribeck.model.bench import Pendulum
from stribeck.model.trajectories import Trajectory, trajectory_named
from stribeck.session.bags import BenchJoint
from stribeck.session.config import SessionConfig
from stribeck.session.directive import SessionOptions
from stribeck.session.limits import Limits, Play, SessionJoint
from stribeck.session.rehearsal import check_rehearsal, demands, distinct_plays, motion_of, rehearse

LOAD = Pendulum(0.1, 0.1, 0.0)


JOINTS = (SessionJoint("a", WIDE),)


def config_of(trajectories, joints=JOINTS, gains=(100.0,)):
    """A session of trajectories at gains."""
    plays = tuple(Play(trajectory, gain) for gain in gains for trajectory in trajectories)
    benches = tuple(BenchJoint(joint.name, "xl330", LOAD) for joint in joints)
    return SessionConfig(plays, tuple(joints), benches, SessionOptions(), Path("bags"))


def test_each_trajectory_is_rehearsed_once():
    """Gains and repetitions do not change goals."""
    config = config_of([SHORT, DROP], gains=(100.0, 200.0, 400.0))
    assert [play.trajectory.name for play in distinct_plays(config.plays)] == ["short", "drop"]


@pytest.mark.parametrize("releases", [True, False])
def test_the_rehearsal_contains_the_trajectory_and_comes_back(releases):
    """Its extremes are the trajectory's about center and scale; it ends at rest, with torque off where it may."""
    joints = [SessionJoint("a", WIDE, center=0.0 if releases else 0.3, scale=-0.5)]
    found = rehearse(config_of([trajectory_named("sin_sin")], joints), releases_torque=releases)
    goals = joints[0].center - 0.5 * trajectory_named("sin_sin").goal(np.linspace(0.0, 6.0, 6001))
    assert np.nanmin(found.goal) == pytest.approx(goals.min(), abs=1e-3)
    assert np.nanmax(found.goal) == pytest.approx(goals.max(), abs=1e-3)
    last = found.goal[np.isfinite(found.goal)][-1]
    assert last == pytest.approx(0.0 if releases else 0.3, abs=1e-9)
    assert np.isnan(found.goal[-1]).all() == releases
    check_rehearsal(found, joints)


def test_demands_are_those_of_a_sine():
    """Amplitude A and rate w: speed A w, acceleration A w², torque (m g l - m l² w²) A for a small amplitude."""
    amplitude, rate = 0.01, 6.0
    wave = Trajectory("wave", "", 3.0, lambda t: amplitude * np.sin(rate * t))
    (one,) = demands(config_of([wave], [SessionJoint("a", WIDE, scale=2.0)]))
    assert (one.lower, one.upper) == pytest.approx((-0.02, 0.02), rel=1e-3)
    assert one.velocity == pytest.approx(2.0 * amplitude * rate, rel=1e-3)
    assert one.acceleration == pytest.approx(2.0 * amplitude * rate**2, rel=1e-2)
    stiffness = LOAD.mass * 9.80665 * LOAD.length - LOAD.mass * LOAD.length**2 * rate**2
    assert one.torque == pytest.approx(2.0 * amplitude * stiffness, rel=1e-3)
    assert one.stall_torque == pytest.approx(0.52)


def test_a_run_without_torque_demands_none():
    """Nor has it a motion to check."""
    off = replace(SHORT, torque_until=0.0)
    (one,) = demands(config_of([off]))
    assert math.isnan(one.torque)
    assert len(motion_of(Play(off, 1.0), [SessionJoint("a", WIDE)])[0]) == 0


def test_goals_beyond_the_limits_are_refused():
    """By the session before anything else; and by the check of what would be sent, wherever it comes from."""
    narrow = SessionJoint("a", Limits(-0.2, 0.2, 12.5, 150.0))
    refusal(
        lambda: rehearse(config_of([SHORT], [narrow]), releases_torque=True), "'short'", "-0.2 to 0.2 rad"
    )
    found = rehearse(config_of([SHORT]), releases_torque=True)
    refusal(lambda: check_rehearsal(found, [narrow]), "'a'", "its limits are -0.2 to 0.2 rad")
    slow = SessionJoint("a", Limits(-2.0, 2.0, 1.0, 150.0))
    refusal(lambda: check_rehearsal(found, [slow]), "'a'", "its limits are 1 rad/s")
