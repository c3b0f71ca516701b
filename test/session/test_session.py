"""An excitation session, in virtual time: what it sends, what it says, and when it stops by itself."""

import math
from dataclasses import replace

import numpy as np
import pytest

from helpers import SETUP, published, refusal
from sessions import DROP, DT, SHORT, TROUBLES, WIDE, Follower, drive, session_of
from stribeck.files.actuators import load_actuator
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import Gains, ServoCommand
from stribeck.model.law import LAWS
from stribeck.model.step import Plant, PlantState, step
from stribeck.model.trajectories import trajectory_named
from stribeck.session.directive import Aborted, Finished, RunEnded, RunStarted, SessionOptions
from stribeck.session.limits import Limits, Play, SessionJoint
from stribeck.session.session import Session


def test_a_session_plays_everything_in_order_and_ends_hanging_without_torque():
    """Each run starts and ends once, in order; in the end the joint is at rest and torque is off."""
    session = session_of([SHORT, DROP, SHORT])
    trace = drive(session, Follower([0.3]))
    kinds = [type(event).__name__ for _, event in trace.events]
    assert kinds == ["RunStarted", "RunEnded"] * 3 + ["Finished"]
    assert [e.index for e in trace.of(RunStarted)] == [0, 1, 2] == [e.index for e in trace.of(RunEnded)]
    assert all(event.reason is None for event in trace.of(RunEnded))
    assert trace.phases[-1] == "finished"
    assert np.isnan(trace.goals[-40:]).all()
    last = np.flatnonzero(np.isfinite(trace.goals[:, 0]))[-1]
    assert trace.goals[last, 0] == pytest.approx(0.0, abs=1e-12)


def test_phases_come_in_the_order_that_the_documentation_draws():
    """Enable, gain, soft start, hold, run, brake, return, rest; after a drop swing out, then enable again."""
    trace = drive(session_of([SHORT, DROP, SHORT]), Follower([0.3]))
    seen = [phase for k, phase in enumerate(trace.phases) if k == 0 or phase != trace.phases[k - 1]]
    play, back = ["gain", "settling", "running"], ["braking", "returning", "resting"]
    expected = ["enabling", *play, *back, *play, "swinging", "enabling", *play, *back, "finished"]
    # On a joint that is at its goal already an approach takes no time.
    assert [phase for phase in seen if phase != "approaching"] == expected
    assert seen[:3] == ["enabling", "gain", "approaching"]


def test_torque_goes_on_at_the_measured_position():
    """The first goal is where the joint is, so nothing jumps; the same after a drop."""
    plant = Follower([0.7, -0.4])
    trace = drive(session_of([DROP, SHORT], joints=2), plant)
    np.testing.assert_array_equal(trace.goals[0], [0.7, -0.4])
    enabling = [
        k for k, p in enumerate(trace.phases) if p == "enabling" and trace.phases[k - 1] == "swinging"
    ]
    assert len(enabling) == 1
    assert np.all(np.abs(trace.goals[enabling[0]]) < 1e-3)


def test_goals_of_a_run_belong_to_the_moment_they_are_sent():
    """With cycles of 1 to 40 ms each goal is the trajectory's at its own time, about center and scale."""
    rng = np.random.default_rng(1)
    joints = [
        SessionJoint("a", WIDE),
        SessionJoint("b", Limits(-1.0, 2.0, 12.5, 150.0), center=0.5, scale=-0.8),
    ]
    session = Session([Play(trajectory_named("sin_sin"), 100.0)], joints, releases_torque=False)
    trace = drive(session, Follower([0.0, 0.5]), cycles=rng.uniform(0.001, 0.04, 3000))
    start, end = trace.cycle(RunStarted), trace.cycle(RunEnded)
    time = trace.time[start:end] - trace.time[start]
    goal = trajectory_named("sin_sin").goal(time)
    np.testing.assert_allclose(trace.goals[start:end], np.column_stack([goal, 0.5 - 0.8 * goal]), atol=1e-12)
    assert trace.time[end] - trace.time[start] >= 6.0 > time[-1]


def test_a_drop_switches_torque_off_on_time_and_stays_off_until_the_pendulum_hangs():
    """Goals are numbers before 2 s and NaN from then on; torque returns only once the joint is at rest."""
    trace = drive(session_of(["lift_and_drop", SHORT]), Follower([0.0]))
    start, end = trace.cycle(RunStarted), trace.cycle(RunEnded)
    time = trace.time - trace.time[start]
    off = np.isnan(trace.goals[:, 0])
    np.testing.assert_array_equal(off[start:end], time[start:end] >= 2.0)
    swinging = [k for k, phase in enumerate(trace.phases) if phase == "swinging"]
    assert off[swinging].all()
    assert trace.time[swinging[-1]] - trace.time[swinging[0]] > 0.25


class Swinging(Follower):
    """A pendulum that swings for long when torque goes off, and says how fast."""

    def __init__(self, lasts):
        super().__init__([0.0])
        self.lasts, self.age = lasts, 0.0

    def advance(self, goals, dt):
        """A sine of 1.5 Hz that dies after ``lasts`` [s]."""
        if np.isfinite(goals).all():
            self.position, self.age = np.array(goals), 0.0
        else:
            self.age += dt
            amplitude = 0.5 if self.age < self.lasts else 0.0
            self.position = np.array([amplitude * math.cos(9.4 * self.age)])


@pytest.mark.parametrize(("lasts", "expected"), [(3.0, 3.0), (60.0, 8.0)])
def test_torque_stays_off_while_a_pendulum_swings_or_until_the_time_out(lasts, expected):
    """Position alone tells that it still swings, turning points included; after 8 s it goes on anyway."""
    trace = drive(session_of([DROP, SHORT], swing_timeout=8.0), Swinging(lasts))
    off = [k for k, phase in enumerate(trace.phases) if phase == "swinging"]
    duration = trace.time[off[-1]] - trace.time[off[0]]
    assert expected - 0.5 < duration < expected + 0.5


def test_a_run_begins_when_the_joint_is_at_rest_or_after_the_time_out():
    """A joint that reports 1 rad/s is waited for, for as long as the option says."""
    for speed, low, high in ((0.01, 0.2, 0.3), (1.0, 1.5, 1.6)):
        trace = drive(
            session_of([SHORT], settle_timeout=1.5),
            Follower([0.0]),
            measure=lambda k, a, v=speed: {**a, "velocities": [v]},
        )
        settling = [k for k, phase in enumerate(trace.phases) if phase == "settling"]
        assert low - 0.02 <= trace.time[settling[-1] + 1] - trace.time[settling[0]] <= high


def test_gains_change_at_rest_and_are_confirmed():
    """The gain of a directive changes in phase gain only; the run waits until every servo reports it."""
    plays = [Play(SHORT, 100.0), Play(SHORT, 400.0)]
    reported = np.array([100.0, math.nan])

    def measure(k, arguments):
        reported[1] = 100.0 if k > 120 else math.nan
        if k > 700:
            reported[:] = 400.0
        return {**arguments, "gains": reported}

    session = Session(plays, [SessionJoint("a", WIDE), SessionJoint("b", WIDE)], releases_torque=True)
    trace = drive(session, Follower([0.0, 0.0]), measure=measure)
    gains = [directive.kp for directive in trace.directives]
    changed = [k for k in range(1, len(gains)) if gains[k] != gains[k - 1]]
    assert [trace.phases[k] for k in changed] == ["gain"]
    assert 121 <= trace.cycle(RunStarted) < 121 + 100
    assert trace.cycle(RunStarted, 1) > 700
    assert trace.phases[-1] == "finished"


def test_a_gain_that_a_servo_does_not_take_ends_the_session():
    """After two seconds, naming joint, gain and what is reported; no run was made."""
    trace = drive(session_of([SHORT]), Follower([0.0]), measure=lambda k, a: {**a, "gains": [80.0]})
    reason = trace.of(Aborted)[0].reason
    assert "joint0" in reason
    assert "200" in reason
    assert "80" in reason
    assert not trace.of(RunStarted)
    assert np.isnan(trace.goals[-1]).all()


def test_nothing_is_sent_before_the_first_states_come():
    """NaN until all joints are known; if they never come the session ends and says so."""
    late = drive(
        session_of([SHORT]),
        Follower([0.2]),
        measure=lambda k, a: {**a, "state_age": 0.0 if k > 50 else math.inf},
    )
    assert np.isnan(late.goals[:51]).all()
    assert np.isfinite(late.goals[51])
    assert late.phases[-1] == "finished"
    never = drive(session_of([SHORT]), Follower([0.2]), measure=lambda k, a: {**a, "positions": [math.nan]})
    assert "no joint states" in never.of(Aborted)[0].reason
    assert np.isnan(never.goals).all()


@pytest.mark.parametrize("trouble", sorted(TROUBLES))
@pytest.mark.parametrize("releases_torque", [True, False])
def test_trouble_in_a_run_ends_the_session(trouble, releases_torque):
    """Without repetitions of disturbed runs, the run ends with the reason, the session too; torque goes off where it
    may, else the joint is held."""
    change, said = TROUBLES[trouble]
    session = session_of(["sin_sin"], releases_torque=releases_torque, repetitions=0)
    trace = drive(session, Follower([0.0]), measure=lambda k, a: {**a, **change} if k > 400 else a)
    ended = trace.cycle(RunEnded)
    assert 400 < ended <= 400 + {"limp": 110, "stale": 1, "never": 1}.get(trouble, 8)
    assert said in trace.of(RunEnded)[0].reason
    assert [event.reason for event in trace.of(Aborted)] == [trace.of(RunEnded)[0].reason]
    assert trace.phases[ended:] == ["aborted"] * len(trace.phases[ended:])
    if releases_torque:
        assert np.isnan(trace.goals[ended:]).all()
    else:
        assert np.all(np.abs(np.diff(trace.goals[ended - 1 :, 0])) <= 3.7 * DT)
        assert np.ptp(trace.goals[-10:]) == 0.0


def test_short_gaps_and_unknown_temperatures_stop_nothing():
    """States 0.19 s old, cycles 0.19 s apart and temperatures of NaN are part of life."""
    cycles = np.where(np.arange(2000) % 50 == 7, 0.19, DT)
    trace = drive(
        session_of(["sin_sin"]),
        Follower([0.0]),
        cycles=cycles,
        measure=lambda k, a: {**a, "temperatures": [math.nan], "state_age": 0.19 if k % 60 == 5 else 0.0},
    )
    assert trace.phases[-1] == "finished"


@pytest.mark.parametrize("trouble", ["nan", "infinite", "hot", "outside"])
def test_one_corrupt_sample_stops_nothing(trouble):
    """A sample that cannot be, now and then, is left out: protocol 1 lets one corrupt packet in 256 pass."""
    session = session_of(["sin_sin"])
    trace = drive(
        session, Follower([0.0]), measure=lambda k, a: {**a, **TROUBLES[trouble][0]} if k % 7 == 0 else a
    )
    assert trace.phases[-1] == "finished"
    assert trace.goals[1, 0] == 0.0


@pytest.mark.parametrize(
    ("cycle", "said"), [(0.5, "was interrupted for 0.5 s"), (-0.1, "clock went back by 0.1 s")]
)
@pytest.mark.parametrize("releases_torque", [True, False])
def test_a_loop_that_stood_still_does_not_jump_on(cycle, said, releases_torque):
    """A goal half a second further would be a jump: the session ends from where the goal was."""
    cycles = np.full(2000, DT)
    cycles[400] = cycle
    session = session_of(["sin_sin"], releases_torque=releases_torque, repetitions=0)
    trace = drive(session, Follower([0.0]), cycles=cycles)
    assert said in trace.of(Aborted)[0].reason
    if not releases_torque:
        k = trace.cycle(Aborted)
        assert abs(trace.goals[k, 0] - trace.goals[k - 1, 0]) < 3.7 * DT + 0.05
        assert np.ptp(trace.goals[-10:]) == 0.0


@pytest.mark.parametrize("releases_torque", [True, False])
def test_a_joint_that_does_not_follow_ends_the_session(releases_torque):
    """Held by an obstacle at 0.2 rad: torque off, or the measured position is held so that nothing pushes."""
    session = session_of(
        ["up_and_down"],
        replace(WIDE, following_error=0.3),
        releases_torque=releases_torque,
        following_time=0.5,
    )
    plant = Follower([0.0])
    trace = drive(session, plant, measure=lambda k, a: {**a, "positions": np.minimum(a["positions"], 0.2)})
    stopped, started = trace.cycle(Aborted), trace.cycle(RunStarted)
    first = next(k for k in range(started, stopped) if trace.goals[k, 0] > 0.5)
    assert trace.time[stopped] - trace.time[first] == pytest.approx(0.5, abs=3 * DT)
    assert "joint0" in trace.of(Aborted)[0].reason
    assert "0.3 rad" in trace.of(Aborted)[0].reason
    if releases_torque:
        assert np.isnan(trace.goals[-1]).all()
    else:
        assert trace.goals[-1, 0] == 0.2


def test_a_following_error_that_passes_stops_nothing():
    """0.4 s out of every 0.5 s is not for longer than 0.5 s."""
    trace = drive(
        session_of(["sin_sin"], replace(WIDE, following_error=0.3)),
        Follower([0.0]),
        measure=lambda k, a: {**a, "positions": a["positions"] + (0.4 if k % 100 < 80 else 0.0)},
        at_cycle=None,
    )
    assert not any("from its goal" in event.reason for event in trace.of(Aborted))


@pytest.mark.parametrize(
    "phase", ["waiting", "enabling", "gain", "settling", "running", "returning", "resting", "swinging"]
)
@pytest.mark.parametrize("releases_torque", [True, False])
def test_an_abort_by_the_user_is_soft_in_every_phase(phase, releases_torque):
    """The run ends with the reason, the joint returns to rest without a jump, then torque goes off or it holds."""
    plays = [DROP, SHORT] if phase == "swinging" else ["sin_sin", SHORT]
    if phase == "swinging" and not releases_torque:
        return  # such a session drops nothing
    session = session_of(plays, releases_torque=releases_torque)
    asked = []

    def at_cycle(k, session):
        wanted = session.phase == phase and (phase != "running" or k > 300)
        if wanted and not asked:
            asked.append(k)
            session.abort("the user said so")

    trace = drive(session, Follower([0.3 if phase != "swinging" else 0.0]), at_cycle=at_cycle)
    assert asked
    assert [event.reason for event in trace.of(Aborted)] == ["the user said so"]
    assert not trace.of(Finished)
    assert len(trace.of(RunStarted)) == len(trace.of(RunEnded)) <= 1
    if phase == "running":
        assert trace.of(RunEnded)[0].reason == "the user said so"
    sent = trace.goals[np.isfinite(trace.goals[:, 0]), 0]
    if phase != "swinging":
        jump = 1.5708 * DT  # with which sin_sin begins
        assert np.all(np.abs(np.diff(sent)) <= max(3.7 * DT, jump))
    if phase not in ("waiting", "swinging"):
        assert sent[-1] == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(trace.goals[-1, 0]) == (releases_torque or phase == "waiting")


def test_a_stop_by_the_caller_is_at_once_with_torque_off():
    """What a driver finds out for itself ends the session with the next directive."""
    session = session_of(["sin_sin"])
    trace = drive(
        session,
        Follower([0.0]),
        at_cycle=lambda k, s: s.stop("the servo reports overload") if k == 400 else None,
    )
    assert trace.cycle(Aborted) == 400
    assert trace.of(RunEnded)[0].reason == "the servo reports overload"
    assert np.isnan(trace.goals[400:]).all()


def test_progress_never_falls_and_ends_at_one():
    """Also with plays that take longer than estimated; what remains falls to zero."""
    session = session_of([SHORT, DROP, "sin_sin"], swing_timeout=8.0)
    trace = drive(session, Swinging(6.0))
    progress = np.array([directive.progress for directive in trace.directives])
    assert progress[0] == 0.0
    assert np.all(np.diff(progress) >= 0.0)
    assert progress[-1] == 1.0
    assert trace.directives[-1].remaining == 0.0
    assert trace.directives[0].remaining == pytest.approx(session.duration)


def test_pieces_of_motion_can_be_sent_whole():
    """The points of a plan are the goals that would be sent one by one; its segment changes with it."""
    session = session_of(["up_and_down"], releases_torque=False)
    plant, plans, directives, now = Follower([0.4]), {}, [], 0.0
    while not session.over:
        directives.append((now, session.update(now, plant.position)))
        plant.advance(directives[-1][1].goals, DT)
        if directives[-1][1].segment not in plans:
            plans[directives[-1][1].segment] = session.plan(0.01)
        now += DT
    assert sum(plan is not None for plan in plans.values()) >= 3  # soft start, run, return
    for sent, directive in directives:
        plan = plans[directive.segment]
        if plan is not None:
            expected = np.interp(sent - plan.start, plan.time, plan.position[:, 0])
            assert directive.goals[0] == pytest.approx(expected, abs=1e-4)  # a² dt²/8 between points
    run = plans[next(d.segment for _, d in directives if d.phase == "running")]
    assert run.time[-1] == 6.0
    np.testing.assert_allclose(np.gradient(run.position[:, 0], run.time), run.velocity[:, 0], atol=0.01)


def test_wrong_options_are_refused():
    """Times and speeds are positive and finite."""
    refusal(lambda: SessionOptions(soft_speed=0.0), "soft_speed", "positive")
    refusal(lambda: SessionOptions(swing_timeout=math.inf), "swing_timeout")


def test_a_session_checks_its_plays():
    """What does not fit is refused when the session is made, before anything is sent."""
    refusal(lambda: session_of(["steps"]), "steps", ".inf")
    refusal(lambda: session_of(["lift_and_drop"], releases_torque=False), "torque off")


class SimulatedServo:
    """The XL330 of the published parameters on a pendulum at 5 V, by the same step as everything else."""

    def __init__(self, kp):
        self.actuator = load_actuator("xl330")
        pendulum = Pendulum(SETUP.mass * 0.3, SETUP.length, SETUP.arm_mass * 0.4)
        self.plant = Plant(self.actuator, LAWS["m6"], pendulum, Gains(kp, 0.0, 0.0))
        self.values = published("xl330", "m6")
        self.state = PlantState(np.float64(0.1), np.float64(0.0), self.actuator.control.first_state(0.0))
        self.position = np.array([0.1])
        self.trace = []

    def advance(self, goals, dt):
        """One cycle, in steps of 4 ms at most."""
        on = bool(np.isfinite(goals[0]))
        command = ServoCommand(float(goals[0]) if on else 0.0, float(on), 5.0)
        count = max(1, math.ceil(dt / 0.004))
        for _ in range(count):
            self.state = step(self.plant, self.values, self.state, command, dt / count)
        self.position = np.array([float(self.state.position)])
        self.trace.append(float(self.state.velocity))


@pytest.mark.slow
def test_a_pendulum_goes_through_a_session():
    """Simulated XL330, lift and drop among the plays: all runs are made, each from rest; it ends hanging."""
    plant = SimulatedServo(200.0)
    session = session_of(["sin_sin", "lift_and_drop", "up_and_down"])
    trace = drive(session, plant, measure=lambda k, a: {**a, "velocities": [plant.state.velocity]})
    assert len(trace.of(RunStarted)) == 3
    assert trace.phases[-1] == "finished"
    for which in range(3):
        before = trace.cycle(RunStarted, which) - 1
        assert abs(plant.trace[before]) < 0.05
    assert abs(plant.position[0]) < 0.1
