"""Trajectories with goals of each joint: played together, in the joints' own coordinates, within their limits."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import refusal
from sessions import Follower, drive
from stribeck.session.directive import Finished
from stribeck.session.fourier import FourierTrajectory, rest_basis
from stribeck.session.limits import Limits, Play, SessionJoint, check_plays
from stribeck.session.session import Session

LIMITS = Limits(-2.0, 2.0, 12.5, 150.0)
JOINTS = (
    SessionJoint("elbow", LIMITS, center=0.4, scale=0.5),
    SessionJoint("wrist", LIMITS, center=-0.2, scale=-2.0),
)


def series(amplitude=0.5):
    """A motion of wrist and elbow, in another order than the session's joints."""
    z = amplitude * np.random.default_rng(0).normal(size=(2, 5))
    return FourierTrajectory.from_coefficients(("wrist", "elbow"), 3.0, z @ rest_basis(3).T)


def test_all_joints_follow_their_own_series_at_the_same_time():
    """Every goal of the run is the series at the time since its first goal; centers and scales do not count."""
    motion = series()
    session = Session([Play(motion.to_play("motion"), 100.0)], JOINTS, releases_torque=False)
    trace = drive(session, Follower([0.1, 0.3]))
    assert trace.of(Finished)
    running = [k for k, phase in enumerate(trace.phases) if phase == "running"]
    time = np.array(trace.time)[running] - trace.time[running[0]]
    expected = motion.states(time)[0][:, [1, 0]]
    np.testing.assert_allclose(np.array(trace.goals)[running], expected, atol=1e-12)
    assert time[-1] > 2.9


def test_goals_do_not_jump_and_end_at_the_centers():
    """The approach ends where the series begins, and the return where the joints rest."""
    session = Session([Play(series().to_play("motion"), 100.0)], JOINTS, releases_torque=False)
    trace = drive(session, Follower([0.1, 0.3]))
    goals = np.array(trace.goals)
    assert np.abs(np.diff(goals[np.isfinite(goals).all(axis=1)], axis=0)).max() < 0.05
    np.testing.assert_allclose(goals[-1], [0.4, -0.2], atol=1e-9)


def test_plan_of_the_run_is_the_series():
    """For commanders that send pieces whole: positions and velocities of all joints."""
    motion = series()
    session = Session([Play(motion.to_play("motion"), 100.0)], JOINTS, releases_torque=False)
    plans = []

    def look(_, session):
        if session.phase == "running" and not plans:
            plans.append(session.plan(0.02))

    drive(session, Follower([0.1, 0.3]), at_cycle=look)
    position, velocity, _ = motion.states(plans[0].time)
    np.testing.assert_allclose(plans[0].position, position[:, [1, 0]], atol=1e-12)
    np.testing.assert_allclose(plans[0].velocity, velocity[:, [1, 0]], atol=1e-5)


@pytest.mark.parametrize("name", ["position_upper", "velocity", "acceleration"])
def test_limits_of_each_joint_are_those_of_its_own_series(name):
    """The wrist's limit is moved into its motion; the message names joint and limit."""
    motion = series()
    states = dict(
        zip(
            ("position_upper", "velocity", "acceleration"),
            motion.states(np.linspace(0, 3, 3001)),
            strict=True,
        )
    )
    reached = float(np.max(states[name][:, 0] if name == "position_upper" else np.abs(states[name][:, 0])))
    play = Play(motion.to_play("motion"), 100.0)
    check_plays([play], JOINTS, releases_torque=False)
    tight = replace(JOINTS[1], limits=replace(LIMITS, **{name: reached - 0.01}))
    refusal(
        lambda: check_plays([play], (JOINTS[0], tight), releases_torque=False),
        "motion",
        "wrist",
        name.removesuffix("_upper"),
    )


def test_joints_that_are_missing_on_either_side_are_refused():
    """A joint without goals, and goals without a joint."""
    play = Play(series().to_play("motion"), 100.0)
    third = SessionJoint("hand", LIMITS)
    refusal(
        lambda: check_plays([play], (*JOINTS, third), releases_torque=False),
        "no goals for joint 'hand'",
        "wrist, elbow",
    )
    refusal(lambda: check_plays([play], JOINTS[:1], releases_torque=False), "also moves joint 'wrist'")
