"""Random sessions with random trouble: everything sent stays within limits, and every session ends."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sessions import TROUBLES, Follower, drive
from stribeck.errors import ConfigError
from stribeck.model.trajectories import Trajectory
from stribeck.session.directive import Aborted, Finished, RunEnded, RunStarted, SessionOptions
from stribeck.session.limits import Limits, Play, SessionJoint, extent
from stribeck.session.session import Session


def wave(seed, duration, drops):
    """A smooth random trajectory that begins at 0 rad."""
    rng = np.random.default_rng(seed)
    amplitudes, rates = rng.uniform(-0.5, 0.5, 3), rng.uniform(0.5, 8.0, 3)
    until = 0.6 * duration if drops else math.inf
    return Trajectory(
        f"wave{seed}",
        "a random wave",
        duration,
        lambda t: np.sin(np.multiply.outer(t, rates)) @ amplitudes,
        torque_until=until,
    )


@st.composite
def worlds(draw):
    """A session that fits its limits, where its joints are, how the cycle jitters, and what goes wrong."""
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    releases = draw(st.booleans())
    waves = [
        wave(int(rng.integers(1000)), float(rng.uniform(0.3, 1.0)), releases and draw(st.booleans()))
        for _ in range(draw(st.integers(1, 3)))
    ]
    found = [extent(w) for w in waves]
    joints = []
    for j in range(draw(st.integers(1, 3))):
        scale = float(rng.uniform(0.3, 1.5)) * (1 if draw(st.booleans()) else -1)
        center = 0.0 if releases else float(rng.uniform(-1.0, 1.0))
        reach = 1.5 * abs(scale)
        tight = draw(st.sampled_from([1.001, 1.5, 10.0]))
        joints.append(
            SessionJoint(
                f"joint{j}",
                Limits(
                    center - tight * reach,
                    center + tight * reach,
                    tight * abs(scale) * max(f.velocity for f in found) + 1e-3,
                    tight * abs(scale) * max(f.acceleration for f in found) + 1e-3,
                ),
                center,
                scale,
            )
        )
    options = SessionOptions(
        soft_speed=float(rng.uniform(0.5, 3.0)), soft_acceleration=float(rng.uniform(2.0, 20.0))
    )
    plays = [Play(w, float(rng.integers(50, 900))) for w in waves]
    trouble = draw(st.sampled_from(["none", "abort", "stop", "stall", *TROUBLES]))
    return plays, joints, options, releases, seed, trouble, draw(st.integers(0, 900))


def troubled(trouble, when, joints):
    """How measurements change from a cycle on, and what is called then."""
    change = {
        key: (np.full(joints, value[0]) if isinstance(value, list) else value)
        for key, value in TROUBLES.get(trouble, ({}, ""))[0].items()
    }
    if trouble == "outside":
        change = {"positions": np.full(joints, 99.0)}

    def measure(k, arguments):
        return {**arguments, **change} if k >= when else arguments

    def at_cycle(k, session):
        if k == when and trouble == "abort":
            session.abort("asked to")
        if k == when and trouble == "stop":
            session.stop("told to")

    return measure, at_cycle


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(worlds())
def test_random_sessions_stay_within_their_limits(world):
    """Positions, velocities and accelerations of all goals sent are within limits, whatever happens.

    The only exceptions are the velocity that a run begins with, and that a joint that switched its
    torque off is held where it is. A session always ends, with torque off
    or holding; goals are numbers wherever torque may not go off.
    """
    plays, joints, options, releases, seed, trouble, when = world
    try:
        session = Session(plays, joints, releases_torque=releases, options=options)
    except ConfigError:
        assume(False)
    rng = np.random.default_rng(seed)
    cycles = rng.uniform(0.002, 0.02, 6000)
    if trouble == "stall":
        cycles[when] = 0.5
    start = [rng.uniform(joint.limits.position_lower, joint.limits.position_upper) for joint in joints]
    measure, at_cycle = troubled(trouble, when, len(joints))
    trace = drive(session, Follower(start), cycles=cycles, measure=measure, at_cycle=at_cycle, extra=300)
    assert trace.phases[-1] in ("finished", "aborted")
    assert_ends(trace, releases)
    for j, joint in enumerate(joints):
        assert_within(trace, j, joint.limits)


def assert_ends(trace, releases):
    """Events in pairs, one last event, and NaN only where torque may be off."""
    assert len(trace.of(RunStarted)) == len(trace.of(RunEnded))
    assert len(trace.of(Finished)) + len(trace.of(Aborted)) == 1
    assert isinstance(trace.events[-1][1], Finished | Aborted)
    off = np.isnan(trace.goals)
    assert np.all(off.all(axis=1) == off.any(axis=1))
    if releases:
        assert off[-1].all()
        for k in np.flatnonzero(off[:, 0]):
            assert trace.phases[k] in ("waiting", "running", "swinging", "recovering", "finished", "aborted")
    else:
        assert (
            not off[np.array([phase != "waiting" for phase in trace.phases])].any()
            or not np.isfinite(trace.goals).any()
        )
        assert np.ptp(trace.goals[-5:], axis=0).max() == 0.0 or off.all()


def assert_within(trace, j, limits):
    """Position, and differences of goals sent one after the other, of one joint."""
    goal, time = trace.goals[:, j], trace.time
    known = np.isfinite(goal)
    assert np.all(goal[known] >= limits.position_lower)
    assert np.all(goal[known] <= limits.position_upper)
    begun = {k for k, event in trace.events if isinstance(event, RunStarted)}
    held = {k for k, event in trace.events if isinstance(event, Aborted) and "torque" in event.reason}
    velocity = np.diff(goal) / np.diff(time)
    fast = [k for k in np.flatnonzero(np.abs(velocity) > limits.velocity * 1.001) if k + 1 not in held]
    assert not fast, f"{velocity[fast[0]]} rad/s in {trace.phases[fast[0]]}"
    acceleration = np.diff(velocity) / (0.5 * (time[2:] - time[:-2]))
    sharp = [
        k
        for k in np.flatnonzero(np.abs(acceleration) > limits.acceleration * 1.001 + 1e-6)
        if k + 1 not in begun and not {k + 1, k + 2} & held
    ]
    assert not sharp, (
        f"{acceleration[sharp[0]]} rad/s² in {trace.phases[sharp[0] + 1]}, allowed {limits.acceleration}"
    )
