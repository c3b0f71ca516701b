"""A session on emulated servos through the real driver into real bags."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest

from emulated_bus import EmulatedBus
from helpers import refusal
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.faults import parse_fault
from stribeck.identify.joint.identify import identify_joint
from stribeck.identify.joint.recording import Known, recording_of
from stribeck.model.bench import Pendulum
from stribeck.model.joint_map import JointMap
from stribeck.model.trajectories import Trajectory
from stribeck.recordings.bags.bag import read_bag
from stribeck.recordings.bags.messages import contract_types
from stribeck.recordings.bags.signals import read_bag_signals
from stribeck.recordings.bags.storage import read_messages
from stribeck.recordings.signals.sources import SignalSource
from stribeck.recordings.sources import read_recordings
from stribeck.recordings.tables.readers import read_joint_states
from stribeck.servo.config import DriverConfig, JointConfig
from stribeck.servo.driver import Driver
from stribeck.servo.record import SessionRecorder, hanging_warnings
from stribeck.servo.remote import ServoSpec
from stribeck.servo.tables import model_named
from stribeck.session.bags import BenchJoint
from stribeck.session.config import SessionConfig
from stribeck.session.directive import SessionOptions
from stribeck.session.limits import Limits, Play, SessionJoint
from stribeck.session.sweep import spaced_speeds, sweep_of
from stribeck.survey.joint_table import read_joint_table
from virtual_bus import VirtualBus

LOADS = (Pendulum(0.1, 0.1, 0.02), Pendulum(0.05, 0.12, 0.02))
WAVE = Trajectory("wave", "a short wave", 1.3, lambda t: 0.6 * np.sin(4.0 * t))
LONG = replace(WAVE, name="long", duration=3.0)
LIFT = Trajectory("lift", "lift and drop", 1.6, lambda t: -0.7 * np.minimum(t / 0.6, 1.0), torque_until=0.8)
LIMP = Trajectory("limp", "torque off throughout", 1.2, np.zeros_like, torque_until=0.0)
LIMITS = Limits(-1.5, 1.5, 20.0, math.inf)
MAPS = (JointMap(), JointMap(sign=-1.0, offset=0.1))
QUICK = SessionOptions(
    soft_speed=3.0, soft_acceleration=20.0, settle_timeout=2.0, swing_timeout=4.0, state_timeout=1.0
)
PATIENT = {"command_timeout": 1.0, "silence_timeout": 0.5, "watchdog": 1.0}
"""So that faults have consequences one after the other."""


def emulated(count=1, kind=VirtualBus, **options):
    """Servos on a bus, each on a bench."""
    return kind([EmulatedServo("xl330", pendulum=LOADS[j], servo_id=j + 1, **options) for j in range(count)])


def config_of(port, folder, plays, count=1, rate=100.0, **changes):
    """Driver and session for the servos of :func:`emulated`; the second hangs mirrored at 0.1 rad."""
    names = ["elbow", "wrist"][:count]
    model = model_named("xl330")
    joints = tuple(
        JointConfig(name, ServoSpec(j + 1, model), (-1.5, 1.5), MAPS[j], 400, actuator="xl330")
        for j, name in enumerate(names)
    )
    session = SessionConfig(
        tuple(plays),
        tuple(SessionJoint(name, LIMITS) for name in names),
        tuple(BenchJoint(name, "xl330", load) for name, load in zip(names, LOADS, strict=False)),
        replace(QUICK, **changes),
        folder,
    )
    return DriverConfig(port, 1_000_000, joints, rate=rate, **PATIENT), session


def recorded(bus, folder, plays, count=1, meanwhile=None, **changes):
    """The outcome of a recording, and what was said; ``meanwhile`` sees every directive."""
    driver_config, session = config_of(bus.path, folder, plays, count, **changes)
    driver = bus.driver(driver_config) if isinstance(bus, VirtualBus) else Driver(driver_config)
    said, energised = [], []
    driver.connect()
    try:

        def show(directive):
            energised.append(any(servo.torque_enabled for servo in bus.servos))
            if meanwhile:
                meanwhile(recording, directive)

        recording = SessionRecorder(session, driver, tell=said.append, show=show)
        recording.look()
        outcome = recording.run()
    finally:
        driver.close()
    return outcome, said


def test_each_run_makes_a_bag_that_says_what_it_is(tmp_path):
    """Two joints, a wave and a drop: two bags by trajectory and gain, a run of each joint in both."""
    with emulated(2) as bus:
        outcome, said = recorded(bus, tmp_path / "bags", [Play(WAVE, 400.0), Play(LIFT, 200.0)], count=2)
        assert not any(servo.torque_enabled for servo in bus.servos)
    assert (outcome.end, outcome.reason, outcome.cut, said) == ("finished", "", "", [])
    assert [bag.name.rpartition("_kp")[0] for bag in outcome.bags] == ["wave", "lift"]
    assert [bag.name.split("_")[1] for bag in outcome.bags] == ["kp400", "kp200"]
    for bag, play in zip(outcome.bags, [Play(WAVE, 400.0), Play(LIFT, 200.0)], strict=True):
        for j, joint in enumerate(["elbow", "wrist"]):
            (log,) = read_bag(bag, joint=joint)
            setup = log.setup
            assert (setup.mass, setup.length, setup.arm_mass) == tuple(LOADS[j])
            assert (setup.kp, log.trajectory, log.actuator) == (play.kp, play.trajectory.name, "xl330")
            assert setup.supply_voltage == pytest.approx(5.0, abs=0.15)
            assert log.position.time[-1] - log.position.time[0] == pytest.approx(
                play.trajectory.duration, abs=0.1
            )
            assert log.supply_voltage is not None
            assert log.pwm is not None


def test_a_bag_of_a_robot_has_no_loads(tmp_path):
    """Goals and positions of its joints are read; as a servo on a bench it is refused. It ends where it lay."""
    with emulated() as bus:
        driver_config, session = config_of(bus.path, tmp_path / "bags", [Play(WAVE, 400.0)])
        session = replace(
            session,
            joints=(SessionJoint("elbow", LIMITS, center=0.3, hangs=False),),
            bench_joints=(BenchJoint("elbow", "xl330", None),),
        )
        driver = bus.driver(driver_config)
        driver.connect()
        shown = []
        recording = SessionRecorder(session, driver, tell=lambda _: None, show=shown.append)
        recording.look()
        outcome = recording.run()
        driver.close()
    assert outcome.end == "finished"
    assert [d.goals[0] for d in shown if np.isfinite(d.goals[0])][-1] == pytest.approx(0.3, abs=1e-6)
    table = read_joint_states(outcome.bags[0])
    positions = table.arrays["elbow/position"]
    assert np.nanmax(positions) - np.nanmin(positions) > 0.5
    refusal(lambda: read_bag(outcome.bags[0]), "mass missing")


def test_goals_in_the_bag_are_those_of_the_trajectory_at_the_time_they_were_sent(tmp_path):
    """In whole counts, and by half of them less than half a cycle from the trajectory at their stamp: a goal
    of the cycle before would be 10 ms at up to 2.4 rad/s off."""
    with emulated() as bus:
        outcome, _ = recorded(bus, tmp_path, [Play(WAVE, 400.0)])
    (log,) = read_bag(outcome.bags[0])
    time_of_run = log.goal.time - log.goal.time[0]
    errors = np.abs(log.goal.value - WAVE.goal(time_of_run))
    count = 2.0 * math.pi / 4096.0
    assert np.median(errors) < 0.005 * 2.4
    assert np.ptp(log.goal.value) > 1.1
    steps = log.goal.value / count
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)


def test_a_drop_is_recorded_with_torque_off_and_the_swing(tmp_path):
    """Torque is 1 until 0.8 s and 0 afterwards; the pendulum falls from where it was lifted to."""
    with emulated() as bus:
        outcome, _ = recorded(bus, tmp_path, [Play(LIFT, 400.0)])
    (log,) = read_bag(outcome.bags[0])
    at = log.torque_enable.time - log.torque_enable.time[0]
    assert np.all(log.torque_enable.value[at < 0.75] == 1.0)
    assert np.all(log.torque_enable.value[at > 0.9] == 0.0)
    assert log.position.value.min() < -0.5
    assert abs(log.position.value[-1]) < 0.4


def test_a_run_without_torque_has_the_goal_that_was_sent_last(tmp_path):
    """Nothing is commanded in it, but a log needs to know what held before."""
    with emulated() as bus:
        outcome, _ = recorded(bus, tmp_path, [Play(LIMP, 400.0)])
    (log,) = read_bag(outcome.bags[0])
    assert log.goal.value.tolist() == [pytest.approx(0.0, abs=2e-3)]
    assert np.all(log.torque_enable.value[2:] == 0.0)


def test_lost_packets_and_stalls_end_nothing(tmp_path):
    """5 % of the packets lost and a stall of 50 ms: the run is recorded to its end,
    with a sample for four cycles of five at least."""
    phases = []
    with emulated() as bus:
        for fault in ("lost:p=0.05", "silence:after=2.5,for=0.05"):
            bus.add_fault(parse_fault(fault))
        outcome, _ = recorded(
            bus, tmp_path, [Play(WAVE, 400.0)], meanwhile=lambda _, d: phases.append(d.phase)
        )
    assert outcome.end == "finished"
    (log,) = read_bag(outcome.bags[0])
    assert len(log.position.time) > 0.8 * phases.count("running")


def in_run(action, after=1.2):
    """Call something once in the middle of a run, ``after`` seconds of it."""
    began = []

    def meanwhile(recording, directive):
        if directive.phase == "running":
            began.append(recording.driver.clock.now())
            if began[-1] - began[0] >= after:
                began[0] = math.inf
                action(recording)

    return meanwhile


def test_the_user_ends_a_recording_softly(tmp_path):
    """The run is cut short, the joint returns to rest, and the bag is finished and readable."""
    phases = []

    def meanwhile(recording, directive):
        phases.append(directive.phase)
        interrupt(recording, directive)

    interrupt = in_run(lambda recording: recording.interrupt())
    with emulated() as bus:
        outcome, _ = recorded(bus, tmp_path, [Play(LONG, 400.0), Play(WAVE, 200.0)], meanwhile=meanwhile)
        assert abs(bus.servos[0].state.position) < 0.2
        assert not bus.servos[0].torque_enabled
    assert outcome.end == "interrupted"
    assert "user" in outcome.reason
    assert len(outcome.bags) == 1
    assert outcome.cut == outcome.bags[0].name
    assert "returning" in phases
    (log,) = read_bag(outcome.bags[0])
    assert 1.0 <= log.position.time[-1] - log.position.time[0] < 2.9


def test_a_second_interrupt_switches_torque_off_at_once(tmp_path):
    """No return: the phase after the run is the end."""
    phases = []

    def twice(recording):
        recording.interrupt()
        recording.interrupt()

    interrupt = in_run(twice)

    def meanwhile(recording, directive):
        phases.append(directive.phase)
        interrupt(recording, directive)

    with emulated() as bus:
        outcome, _ = recorded(bus, tmp_path, [Play(LONG, 400.0)], meanwhile=meanwhile)
        assert not bus.servos[0].torque_enabled
    assert outcome.end == "interrupted"
    assert "returning" not in phases


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (lambda bus: bus.fail(1, "overload"), "overload"),
        (lambda bus: bus.unplug(), "lost"),
        (lambda bus: bus.set_voltage(3.2), "voltage"),
    ],
)
def test_trouble_on_the_bus_ends_a_recording_with_its_reason(tmp_path, action, said):
    """The run is cut short and its bag finished; what the driver found out is the reason, said once."""
    with emulated() as bus:
        outcome, lines = recorded(bus, tmp_path, [Play(LONG, 400.0)], meanwhile=in_run(lambda _: action(bus)))
    assert outcome.end == "failed"
    assert said in outcome.reason
    assert len(outcome.reason.splitlines()) == 1
    assert lines == []
    assert len(outcome.bags) == 1
    assert (outcome.bags[0] / "metadata.yaml").is_file()
    assert outcome.cut == outcome.bags[0].name
    messages = read_messages(outcome.bags[0]).messages
    assert sum(message.topic.name == "/joint_states" for message in messages) > 20


@pytest.mark.ci
def test_answers_lost_for_a_while_repeat_the_run(tmp_path):
    """A servo that is silent for longer than allowed: torque off, one line, the run again; the bag of the first is marked,
    and readers leave it out."""
    off = []
    with emulated() as bus:
        silence = in_run(lambda _: bus.silence(0.8))

        def meanwhile(recording, directive):
            silence(recording, directive)
            if directive.phase == "swinging":
                off.append(bus.servos[0].torque_enabled)

        outcome, lines = recorded(bus, tmp_path, [Play(LONG, 400.0), Play(WAVE, 200.0)], meanwhile=meanwhile)
        assert not bus.servos[0].torque_enabled
    assert (outcome.end, outcome.reason, outcome.cut) == ("finished", "", "")
    assert off
    assert not any(off)
    (line,) = lines
    assert line.startswith("run 1 (long, gain 400): joint 'elbow': its servo has not answered for 5")
    assert line.endswith(
        "; its recording is given up and the run is repeated (disturbance 1 of this run, at most 3 are allowed)"
    )
    assert [bag.name.split("_")[0] for bag in outcome.bags] == ["long", "wave"]
    (first,) = outcome.disturbed
    assert first.name.startswith("long_kp400_")
    refusal(lambda: read_bag(first), "its servo has not answered", "disturbed", "record it again")
    notes = []
    logs = read_recordings(tmp_path, note=notes.append)
    assert [log.trajectory for log in logs] == ["long", "wave"]
    assert logs[0].duration == pytest.approx(LONG.duration, abs=0.05)
    assert len(notes) == 1
    assert first.name in notes[0]
    table = {"position": (SignalSource(topic="/joint_states", names="name", values="position"),)}
    refusal(
        lambda: read_bag_signals(first, read_messages(first), table, ["elbow"]),
        "disturbed",
        "record it again",
    )
    again = outcome.bags[0]
    track = read_bag_signals(again, read_messages(again), table, ["elbow"])["position"]["elbow"]
    assert track.time[-1] - track.time[0] == pytest.approx(LONG.duration, abs=0.05)


def test_answers_that_stay_away_end_a_recording_with_what_is_there(tmp_path):
    """The servo never answers again: the runs before are there, the disturbed one is marked, the reason is said."""
    with emulated() as bus:

        def meanwhile(recording, directive):
            if directive.phase == "running" and directive.play == 1 and not bus.silenced:
                bus.silence(100.0)
                bus.silenced = True

        bus.silenced = False
        outcome, _ = recorded(bus, tmp_path, [Play(WAVE, 400.0), Play(LONG, 200.0)], meanwhile=meanwhile)
    assert outcome.end == "failed"
    assert "its servo has not answered" in outcome.reason
    assert "not recovered within 5 s" in outcome.reason
    assert outcome.late
    assert [bag.name.split("_")[0] for bag in outcome.bags] == ["wave"]
    assert [bag.name.split("_")[0] for bag in outcome.disturbed] == ["long"]


def test_an_overloaded_servo_is_not_rebooted_to_repeat_a_run(tmp_path):
    """Answers lost while it reports an overload: the error ends the recording, the servo keeps it and stays limp."""

    def both(bus):
        bus.fail(1, "overload")
        bus.silence(0.8)

    with emulated() as bus:
        outcome, _ = recorded(bus, tmp_path, [Play(LONG, 400.0)], meanwhile=in_run(lambda _: both(bus)))
        assert not bus.servos[0].torque_enabled
    assert outcome.end == "failed"
    assert "overload" in outcome.reason
    assert len({*outcome.bags, *outcome.disturbed}) == 1


def test_an_emergency_stop_switches_torque_off_before_anything_else_is_sent(tmp_path):
    """In mid-run: no further goal, the session is not repeated, what was recorded so far is there."""
    phases = []
    pressed = in_run(lambda recording: recording.emergency_stop("emergency stop by a key"))

    def meanwhile(recording, directive):
        phases.append(directive.phase)
        pressed(recording, directive)

    with emulated() as bus:
        outcome, lines = recorded(bus, tmp_path, [Play(LONG, 400.0), Play(WAVE, 200.0)], meanwhile=meanwhile)
        assert not bus.servos[0].torque_enabled
    assert (outcome.end, outcome.reason, lines) == ("interrupted", "emergency stop by a key", [])
    assert phases[phases.index("running") :] == ["running"] * phases.count("running") + ["aborted"]
    assert len(outcome.bags) == 1
    assert outcome.cut == outcome.bags[0].name
    (log,) = read_bag(outcome.bags[0])
    assert log.goal.time[-1] - log.goal.time[0] < 1.25


def test_a_joint_that_is_held_ends_a_recording(tmp_path):
    """Pushed away with more torque than it has: the following error lasts, torque goes off."""
    with emulated() as bus:
        held = in_run(lambda _: bus.push(1, 2.0, 20.0), after=0.2)
        outcome, _ = recorded(bus, tmp_path, [Play(LONG, 100.0)], meanwhile=held)
        assert not bus.servos[0].torque_enabled
    assert outcome.end == "failed"
    assert "elbow" in outcome.reason


def test_a_disk_that_takes_nothing_ends_a_recording_softly(tmp_path):
    """The folder becomes a file before the first run: the session returns to rest, and says why."""
    folder = tmp_path / "bags"
    phases = []

    def meanwhile(recording, directive):
        phases.append(directive.phase)
        if not folder.exists():
            folder.write_text("in the way")

    with emulated() as bus:
        outcome, _ = recorded(bus, folder, [Play(WAVE, 400.0)], meanwhile=meanwhile)
    assert outcome.end == "failed"
    assert "bags" in outcome.reason
    assert outcome.bags == ()
    assert "returning" in phases


def test_two_runs_in_one_second_have_two_names(tmp_path):
    """A bag that is there already is left alone."""
    plays = [Play(replace(WAVE, duration=0.2), 400.0)] * 3
    with emulated() as bus:
        outcome, _ = recorded(bus, tmp_path, plays, rest_time=0.02, enable_time=0.02)
    assert outcome.end == "finished"
    assert len({bag.name for bag in outcome.bags}) == 3


@pytest.mark.ci
@pytest.mark.real_time
def test_stamps_are_of_today_and_the_bag_says_when_the_run_ended(tmp_path):
    """Header stamps lie between the wall clock before and after; /bench is first, its end last."""
    before = time.time_ns()
    with emulated(kind=EmulatedBus) as bus:
        outcome, _ = recorded(bus, tmp_path, [Play(WAVE, 400.0)])
    messages = read_messages(outcome.bags[0]).messages
    assert before < messages[0].log_time <= messages[-1].log_time < time.time_ns()
    kinds = [message.topic.name for message in sorted(messages, key=lambda m: m.log_time)]
    assert kinds[0] == kinds[-1] == "/bench"
    assert kinds.count("/bench") == 2
    states = [m for m in messages if m.topic.name == "/joint_states"]
    stamp = contract_types().deserialize_cdr(states[0].data, "sensor_msgs/msg/JointState").header.stamp
    assert before < stamp.sec * 1_000_000_000 + stamp.nanosec < time.time_ns()


def test_an_old_error_keeps_torque_off(tmp_path):
    """A servo that reports an error when the recording begins is never energised."""
    with emulated() as bus:
        bus.fail(1, "overload")
        refusal(lambda: recorded(bus, tmp_path, [Play(WAVE, 400.0)]), "overload")
        assert bus.servos[0].first_torque is None
    assert not list(tmp_path.iterdir())


def test_a_zero_that_is_not_where_the_pendulum_hangs_is_said():
    """0.5 rad is not friction."""
    joints = [SessionJoint(name, Limits(-1.0, 1.0, 1.0, 1.0)) for name in ("elbow", "wrist")]
    (text,) = hanging_warnings(joints, np.array([0.05, -0.5]))
    assert "wrist" in text
    assert "-0.50" in text
    assert "offset" in text


@pytest.mark.slow
def test_a_sweep_is_recorded_and_tells_the_gravity_and_friction_of_the_joint(tmp_path):
    """From the programme over the protocol and the bag to the law: the current of the servo times its torque constant is the torque."""
    values = {"joint": "elbow", "range": (-1.0, 1.0), "speeds": spaced_speeds(3.0, 6), "acceleration": 10.0}
    play = sweep_of({**values, "places": 1, "others": {}}).to_play("sweep")
    with emulated(1) as bus:
        outcome, said = recorded(bus, tmp_path, [Play(play, 400.0)])
    assert (outcome.end, said) == ("finished", [])
    table = read_joint_table(outcome.bags[0])
    assert set(table.signals) == {"time", "position", "velocity", "current"}
    result = identify_joint([recording_of(table, Known(kt=0.35))])
    load = LOADS[0]
    gravity = (load.mass + 0.5 * load.arm_mass) * 9.80665 * load.length
    assert result.fit.values["gravity_sine"] == pytest.approx(gravity, rel=0.1)
    assert result.train[0].relative < 0.25
    assert result.fit.values["friction_base"] > 0.0
    assert "rigid_model" not in {reason.key for reason in result.verdict.reasons}
