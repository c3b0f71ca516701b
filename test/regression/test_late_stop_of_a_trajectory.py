"""A busy machine delayed a session by 0.2 s, and its stop was a trajectory that was over already: controllers reject it.

The robot then went on with the run. A controller that has a motion whole goes on with it while the session stands still, so the stop
begins where the motion is by then.
"""

import numpy as np
import pytest

from sessions import DT, WIDE
from stribeck.model.trajectories import Trajectory, trajectory_named
from stribeck.session.directive import SessionOptions
from stribeck.session.limits import Play, SessionJoint
from stribeck.session.motion import Brake, hold, sampled, with_rest
from stribeck.session.session import Session

DECELERATION = np.array([WIDE.acceleration])
SIN_SIN = trajectory_named("sin_sin")


def running(trajectory=SIN_SIN, until=1.0, **options):
    """A session of a robot that has motions whole, ``until`` after its run began, the time then, and the run."""
    joints, plays = [SessionJoint("joint", WIDE)], [Play(trajectory, 100.0)]
    settings = SessionOptions(**options)
    session = Session(plays, joints, releases_torque=False, whole_segments=True, options=settings)
    now, began = 100.0, np.inf
    directive = session.update(now, 0.0)
    while now < began + until:
        now += DT
        directive = session.update(now, directive.goals)
        began = min(began, now) if directive.phase == "running" else began
    return session, now, session.plan(DT)


@pytest.mark.parametrize("pause", [DT, 0.05, 0.3])
@pytest.mark.parametrize("how", ["stop", "disturb", "late states"])
def test_a_stop_begins_where_the_motion_is(how, pause):
    """However long the session stood still: at the time of the directive, with the position and speed of the run then."""
    session, before, run = running()
    now = before + pause
    if how != "late states":
        getattr(session, how)("a reason")
    directive = session.update(now, run.position[-1], state_age=1.0 if how == "late states" else 0.0)
    assert directive.phase == ("aborted" if how == "stop" else "recovering")
    plan = session.plan(DT)
    assert plan.start == now
    expected = [np.interp(now - run.start, run.time, column[:, 0]) for column in (run.position, run.velocity)]
    np.testing.assert_allclose([plan.position[0, 0], plan.velocity[0, 0]], expected, atol=2e-3)
    np.testing.assert_array_equal(directive.goals, plan.position[0])
    np.testing.assert_allclose(np.abs(plan.velocity[0] / plan.time[-1]), DECELERATION)


def test_a_loop_that_stood_still_stops_where_the_robot_is():
    """The loop itself is what was late, by more than is allowed."""
    session, before, run = running(repetitions=0)
    now = before + 0.5
    assert session.update(now, run.position[-1]).phase == "aborted"
    plan = session.plan(DT)
    assert plan.start == now
    at = np.interp(now - run.start, run.time, run.position[:, 0])
    np.testing.assert_allclose(plan.position[0, 0], at, atol=2e-3)


def test_a_stop_after_the_end_of_a_run_goes_on_with_its_deceleration():
    """The deceleration was sent with the run; the stop is what is left of it."""
    wave = Trajectory("wave", "ends at full speed", 1.3, lambda t: 0.5 * np.sin(4.0 * t))
    session, _, run = running(wave)
    end = Brake(run.position[-1], run.velocity[-1], DECELERATION)
    assert end.duration > 0.0
    session.stop("a reason")
    now = run.start + run.time[-1] + 0.5 * end.duration
    session.update(now, run.position[-1])
    plan = session.plan(DT)
    assert plan.start == now
    np.testing.assert_allclose(plan.position[0], end.position(0.5 * end.duration))
    np.testing.assert_allclose(plan.position[-1], end.position(end.duration))
    assert plan.time[-1] == pytest.approx(0.5 * end.duration)


def test_trajectories_rest_at_their_end():
    """A motion and a position to hold are not over when they arrive late, by less than the rest."""
    session, now, run = running()
    rested = with_rest(run, DECELERATION, DT, 2.0)
    braked = Brake(run.position[-1], run.velocity[-1], DECELERATION).duration
    assert rested.time[-1] == pytest.approx(run.time[-1] + braked + 2.0)
    held = hold(np.array([0.3, -0.2]), now, 0.1, 2.0)
    np.testing.assert_allclose(held.time, [0.1, 2.1])
    np.testing.assert_array_equal(held.position, [[0.3, -0.2]] * 2)
    np.testing.assert_array_equal(held.velocity, np.zeros((2, 2)))
    assert sampled(session._held(), now, DT, (held.position[0], held.position[0])) is None


def test_a_motion_begins_when_it_is_ready_to_be_sent():
    """From rest it is the same motion, later; a stop is not put off."""
    session, now, run = running(until=0.0)
    assert session.begin(now + 0.1) == now + 0.1
    later = session.plan(DT)
    assert later.start == now + 0.1
    np.testing.assert_array_equal(later.position, run.position)
    next_goals = session.update(now + 0.1 + DT, run.position[0]).goals
    np.testing.assert_allclose(next_goals, run.position[1], atol=1e-9)
    session.stop("a reason")
    session.update(now + 0.25, run.position[0])
    assert session.begin(now + 0.35) == now + 0.25
