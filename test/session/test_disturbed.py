"""A run whose timing was disturbed is repeated, three times at most; whatever is dangerous ends the session, as ever."""

import math

import numpy as np
import pytest

from sessions import DT, SHORT, TROUBLES, Follower, drive, session_of
from stribeck.model.trajectories import trajectory_named
from stribeck.session.directive import Aborted, Disturbed, Finished, RunEnded, RunStarted

TIMING = ("stale", "never")
"""Troubles that are only late."""

LATE = {"state_age": 0.3}


class Trouble:
    """Changes measurements in some cycles of each run.

    :param runs: how many runs are disturbed.
    :param lasts: for how many cycles.
    """

    def __init__(self, session, change, runs, lasts=60, after=50):
        self.session, self.change, self.runs, self.lasts, self.after = session, change, runs, lasts, after
        self.left = self.running = 0

    def __call__(self, _, arguments):
        if self.session.phase == "running":
            self.running += 1
            if self.running == self.after and self.runs:
                self.runs, self.left = self.runs - 1, self.lasts
        else:
            self.running = 0
        self.left -= 1
        return {**arguments, **self.change} if self.left >= 0 else arguments


def disturbed(names, change=LATE, runs=1, releases_torque=True, lasts=60, **options):
    """What a session sends whose first runs are disturbed."""
    session = session_of(names, releases_torque=releases_torque, **options)
    return drive(session, Follower([0.0]), measure=Trouble(session, change, runs, lasts))


@pytest.mark.parametrize("releases_torque", [True, False])
def test_a_disturbed_run_is_repeated_from_its_beginning(releases_torque):
    """The run ends with the reason and is marked; the next is the same play, complete, with the trajectory's goals."""
    trace = disturbed(["sin_sin", SHORT], releases_torque=releases_torque)
    assert trace.phases[-1] == "finished"
    assert [event.index for event in trace.of(RunStarted)] == [0, 0, 1]
    assert [event.disturbed for event in trace.of(RunEnded)] == [True, False, False]
    first, second, _ = trace.of(RunEnded)
    assert (
        first.reason == "all joint states are 0.3 s old, so they are late at their source; the limit is 0.2 s"
    )
    assert second.reason is None
    (said,) = trace.of(Disturbed)
    assert said.recording == "given up"
    assert said.text == (
        f"run 1 (sin_sin, gain 200): {first.reason}; its recording is given up and the run is repeated "
        "(disturbance 1 of this run, at most 3 are allowed)"
    )
    start, end = trace.cycle(RunStarted, 1), trace.cycle(RunEnded, 1)
    time = trace.time[start:end] - trace.time[start]
    np.testing.assert_allclose(
        trace.goals[start:end, 0], trajectory_named("sin_sin").goal(time), rtol=0.0, atol=1e-12
    )
    assert time[-1] > 6.0 - 2.0 * DT


def test_torque_is_off_from_the_disturbance_until_the_joint_hangs_at_rest():
    """With the very directive of the disturbance; it goes on where the joint then is."""
    trace = disturbed(["sin_sin"])
    off = trace.cycle(Disturbed)
    on = next(k for k in range(off, len(trace.phases)) if trace.phases[k] == "enabling")
    assert np.isnan(trace.goals[off:on]).all()
    assert set(trace.phases[off:on]) == {"recovering", "swinging"}
    in_time = off + 60
    assert trace.time[on] - trace.time[in_time] >= 0.5 + 0.3 - 2.0 * DT, "in time, and at rest"
    assert abs(trace.goals[on, 0]) < 1e-6


def test_joints_that_keep_their_torque_brake_hold_and_return():
    """Every goal is a number; speed and acceleration stay within the limits; it holds until states are in time."""
    trace = disturbed(["sin_sin"], releases_torque=False)
    cut, end = trace.cycle(Disturbed), trace.cycle(RunStarted, 1)
    goals = trace.goals[cut - 1 : end, 0]
    assert np.isfinite(trace.goals).all()
    assert np.abs(np.diff(goals)).max() <= 12.5 * DT
    held = [k for k in range(cut, end) if trace.phases[k] == "recovering"][20:]
    assert np.ptp(trace.goals[held, 0]) == 0.0
    assert trace.phases[held[-1] + 1] == "returning"


@pytest.mark.parametrize("runs", [3, 4])
def test_a_run_is_repeated_three_times_at_most(runs):
    """Three disturbances of one run are got over; the fourth ends the session, which says so, with torque off."""
    trace = disturbed([SHORT, SHORT], runs=runs)
    assert len(trace.of(Disturbed)) == 3
    assert [event.repetition for event in trace.of(Disturbed)] == [1, 2, 3]
    if runs == 3:
        assert trace.phases[-1] == "finished"
        assert [event.disturbed for event in trace.of(RunEnded)] == [True] * 3 + [False] * 2
        return
    assert [event.disturbed for event in trace.of(RunEnded)] == [True] * 4
    (aborted,) = trace.of(Aborted)
    assert aborted.late
    assert aborted.reason.startswith("run 1 (")
    assert aborted.reason.endswith(
        "; its recording is given up; the session stops, because this run was disturbed 4 times and at most 3 are allowed"
    )
    assert np.isnan(trace.goals[trace.cycle(Aborted) :]).all()


def test_each_run_has_its_own_repetitions():
    """Three disturbances in each of two runs are got over, six in all."""
    session = session_of([SHORT, SHORT])
    runs = [0]

    class Both(Trouble):
        def __call__(self, k, arguments):
            if self.session.phase == "running" and not self.running:
                runs[0] += 1
                self.after = 10**6 if runs[0] in (4, 8) else 50
            return super().__call__(k, arguments)

    trace = drive(session, Follower([0.0]), measure=Both(session, LATE, 6))
    assert [event.index for event in trace.of(RunStarted)] == [0] * 4 + [1] * 4
    assert trace.phases[-1] == "finished"


@pytest.mark.parametrize("trouble", sorted(set(TROUBLES) - set(TIMING)))
@pytest.mark.parametrize("releases_torque", [True, False])
def test_what_is_not_timing_is_never_repeated(trouble, releases_torque):
    """Limits, temperature, corrupt values, lost torque: one run, and the end."""
    trace = disturbed(["sin_sin"], TROUBLES[trouble][0], runs=1, lasts=10**6, releases_torque=releases_torque)
    assert trace.of(Disturbed) == []
    assert len(trace.of(RunStarted)) == len(trace.of(Aborted)) == 1
    assert not trace.of(RunEnded)[0].disturbed


def test_a_joint_that_does_not_follow_is_not_tried_again():
    """A following error is not timing."""
    session = session_of(["up_and_down"])
    trace = drive(
        session, Follower([0.0]), measure=lambda k, a: {**a, "positions": np.minimum(a["positions"], 0.1)}
    )
    assert trace.of(Disturbed) == []
    assert len(trace.of(RunStarted)) == 1


def test_an_emergency_stop_while_the_session_recovers_ends_it_at_once():
    """A stop by the program always wins: the next directive is the last, with torque off."""
    session = session_of(["sin_sin"])
    stopped = []

    def at_cycle(k, running):
        if running.phase == "recovering" and not stopped:
            stopped.append(k)
            running.stop("emergency stop")

    trace = drive(session, Follower([0.0]), measure=Trouble(session, LATE, 1), at_cycle=at_cycle)
    assert [event.reason for event in trace.of(Aborted)] == ["emergency stop"]
    assert trace.cycle(Aborted) == stopped[0]
    assert len(trace.of(RunStarted)) == 1


@pytest.mark.parametrize("releases_torque", [True, False])
def test_an_abort_ends_a_session_that_recovers(releases_torque):
    """The user does not wait for states that may never come."""
    session = session_of(["sin_sin"], releases_torque=releases_torque)

    def at_cycle(_, running):
        if running.phase == "recovering":
            running.abort("by the user")

    trace = drive(session, Follower([0.0]), measure=Trouble(session, LATE, 1, lasts=10**6), at_cycle=at_cycle)
    assert [event.reason for event in trace.of(Aborted)] == ["by the user"]
    assert trace.cycle(Aborted) - trace.cycle(Disturbed) <= 1


@pytest.mark.parametrize("releases_torque", [True, False])
def test_a_session_that_the_user_ended_says_so_if_it_is_disturbed_then(releases_torque):
    """While the joint returns to rest: it is the user who ended the session."""
    session = session_of(["sin_sin"], releases_torque=releases_torque)
    asked = []

    def at_cycle(k, running):
        if running.phase == "running" and k > 200 and not asked:
            asked.append(k)
            running.abort("by the user")

    trace = drive(
        session,
        Follower([0.0]),
        measure=lambda k, arguments: {**arguments, **LATE} if asked else arguments,
        at_cycle=at_cycle,
    )
    (aborted,) = trace.of(Aborted)
    assert aborted.reason.startswith("by the user; all joint states are 0.3 s old")


def test_states_that_do_not_come_back_end_the_session():
    """Five seconds after the disturbance, with its reason."""
    trace = disturbed(["sin_sin"], lasts=10**6)
    (aborted,) = trace.of(Aborted)
    assert aborted.late
    assert aborted.reason.endswith("late at their source; the limit is 0.2 s; not recovered within 5 s")
    waited = trace.time[trace.cycle(Aborted)] - trace.time[trace.cycle(Disturbed)]
    assert waited == pytest.approx(5.0, abs=2.0 * DT)


def test_a_disturbance_between_runs_repeats_nothing_that_is_complete():
    """While the joint returns from a complete run: the next play follows."""
    session = session_of([SHORT, SHORT])
    late = []

    def measure(k, arguments):
        if session.phase == "returning" and len(late) < 60:
            late.append(k)
        return {**arguments, **LATE} if late and k < late[0] + 60 else arguments

    trace = drive(session, Follower([0.0]), measure=measure)
    assert [event.index for event in trace.of(RunStarted)] == [0, 1]
    assert [event.reason for event in trace.of(RunEnded)] == [None, None]
    (said,) = trace.of(Disturbed)
    assert said.recording == "kept"
    assert said.text.startswith("run 1 (")
    assert said.text.endswith(
        "; its recording is complete and kept; the session continues (disturbance 1 of this run, at most 3 are allowed)"
    )


def test_a_run_says_how_often_it_was_disturbed_and_what_is_kept():
    """In the run, before its repetition, and after its end: each line names the run, its recording, and the number."""
    session = session_of([SHORT, SHORT])
    phases, late = ["running", "approaching", "returning"], []

    def measure(k, arguments):
        if phases and session.phase == phases[0] and k > (late[-1] + 200 if late else 100):
            phases.pop(0)
            late.append(k)
        return {**arguments, **LATE} if late and k < late[-1] + 60 else arguments

    trace = drive(session, Follower([0.0]), measure=measure)
    assert trace.phases[-1] == "finished"
    said = trace.of(Disturbed)
    assert [event.recording for event in said] == ["given up", "not begun", "kept"]
    assert [event.repetition for event in said] == [1, 2, 3]
    assert [event.index for event in said] == [0, 0, 0]
    assert [event.disturbed for event in trace.of(RunEnded)] == [True, False, False]
    assert (
        "its recording had not begun, so nothing is lost; the run begins again (disturbance 2" in said[1].text
    )
    assert [("repeated" in event.text) for event in said] == [True, False, False]


def test_a_disturbance_before_the_run_is_got_over():
    """In the approach: the play starts again, and has one run."""
    session = session_of([SHORT])
    trace = drive(session, Follower([0.9]), measure=lambda k, a: {**a, **LATE} if 60 <= k < 120 else a)
    assert len(trace.of(Disturbed)) == len(trace.of(RunStarted)) == 1
    assert trace.phases[-1] == "finished"


def test_the_program_tells_a_session_of_disturbances():
    """By :meth:`Session.disturb`, as of answers that the driver lost; once, while the session recovers from it."""
    session = session_of([SHORT])

    def at_cycle(_, running):
        if running.phase == "recovering" or (running.phase == "running" and not said):
            said.append(running.phase)
            running.disturb("no answer for 80 ms")

    said = []
    trace = drive(session, Follower([0.0]), at_cycle=at_cycle)
    assert len(said) > 50
    assert [event.reason for event in trace.of(Disturbed)] == ["no answer for 80 ms"]
    assert trace.phases[-1] == "finished"
    assert len(trace.of(Finished)) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"state_age": [0.3, 0.25]},
            "all joint states are 0.3 s old, so they are late at their source; the limit is 0.2 s",
        ),
        (
            {"state_age": [0.3, 0.25], "source_age": 0.24},
            "all joint states are 0.3 s old, so they are late at their source; the limit is 0.2 s",
        ),
        (
            {"state_age": [0.01, 0.25], "source_age": 0.01},
            "the states of joint 'joint1' were lost: none for 0.25 s, although their source is running; the limit is 0.2 s",
        ),
        (
            {"state_age": [0.3, 0.25], "source_age": 0.01},
            "the states of joint 'joint0', 'joint1' were lost: none for 0.3 s, although their source is running; the limit is 0.2 s",
        ),
    ],
)
def test_late_states_are_told_from_lost_ones(change, said):
    """All late and nothing from their source; or some lost, or all, while it sends."""
    session = session_of([SHORT], joints=2)
    trace = drive(session, Follower([0.0, 0.0]), measure=Trouble(session, change, 1))
    assert [event.reason for event in trace.of(Disturbed)] == [said]


def test_progress_never_falls_while_a_run_is_repeated():
    """Nor does the time left become negative."""
    trace = disturbed([SHORT, SHORT], runs=2)
    progress = [directive.progress for directive in trace.directives]
    assert np.all(np.diff(progress) >= 0.0)
    assert progress[-1] == 1.0
    assert min(directive.remaining for directive in trace.directives) >= 0.0
    assert math.isfinite(progress[0])
