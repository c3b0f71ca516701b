"""Both ends of the C++ controller: references, limits, faults of single joints, and what remains when it stops."""

import re
from dataclasses import replace

import numpy as np
import pytest

from cpp_compensator import library
from cpp_controller import (
    LIMITED,
    NO_REFERENCE,
    PERIOD,
    TORQUE_JOINT,
    ZERO_TORQUE_ENDED,
    Arm,
    CppController,
    TopicReferences,
    default_settings,
    joint,
    last_reads,
    output_problem,
    uncoupled,
)
from cpp_histories import reason
from helpers import REPOSITORY
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.settings import OUTPUT_MODES
from stribeck.model.control_laws import VoltageControl
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS

NAN = np.nan
NOTHING, WRITE, EXPIRE = range(3)
KP = 10.0


def controller(n=2, limit=(-np.inf, np.inf), **settings):
    """A running controller of n joints alike."""
    made = CppController([joint("abc"[k]) for k in range(n)], default_settings(**settings), limit)
    for name in made.names:
        made.on_telemetry(name, kp=KP)
    made.enable()
    return made


def moved(made, count, reference=(2.0, -1.0), velocity=(1.0, 0.5), faults=None):
    """Commands of so many updates of joints that move as their goals do; faults by the number of the update."""
    found = []
    for k in range(count):
        made.position = made.position + PERIOD * np.array(velocity)
        given = {"reference": np.array(reference), "position": made.position, "velocity": np.array(velocity)}
        changed = {**given, **(faults or {}).get(k, {})}
        found.append(made.update(goal_velocity=velocity, **changed))
    return found


# -- when the controller stops


@pytest.mark.ci
def test_no_effort_remains_when_the_controller_stops_in_motion():
    """It was the last reference, an effort of 2 N m for good."""
    made = controller()
    assert moved(made, 50)[-1].command[0] > 2.0
    assert [made.final_command(k, 0.25) for k in range(2)] == [0.0, 0.0]


def test_a_position_controlled_joint_stays_where_it_is():
    """Its measured position; the last reference where that is unknown; what is there before any reference."""
    made = controller(mode="goal_offset")
    assert np.isnan(made.final_command(0, NAN))
    moved(made, 50, reference=(0.3, 0.1))
    assert made.final_command(0, 0.25) == 0.25
    assert made.final_command(0, NAN) == 0.3


def test_positions_that_remain_are_within_the_limits():
    made = controller(limit=(-0.2, 0.2), mode="goal_offset")
    assert made.final_command(0, 0.25) == 0.2


# -- references


def test_references_of_a_topic_time_out_and_survive_no_change_of_state():
    """A message counts once, until the timeout; those of before an activation do not count."""
    topic = TopicReferences(timeout=0.1, count=3)
    assert topic.advance(3, 0.004) == NOTHING, "a message of before the activation was replayed"
    assert topic.advance(4, 0.004) == WRITE
    steps = [topic.advance(4, 2.0**-8) for _ in range(60)]
    assert steps.index(EXPIRE) == 25
    assert steps.count(EXPIRE) == 1
    assert steps.count(NOTHING) == 59
    assert topic.advance(5, 0.004) == WRITE
    topic.restart(0.1, 5)
    assert {topic.advance(5, 0.004) for _ in range(60)} == {NOTHING}


def test_a_restart_forgets_reference_and_friction():
    """Not the last effort until a controller writes another: zero."""
    made = controller()
    moved(made, 50)
    made.restart()
    (first,) = moved(made, 1, reference=(NAN, NAN))
    np.testing.assert_array_equal(first.command, [0.0, 0.0])
    np.testing.assert_array_equal(first.fault, [NO_REFERENCE, NO_REFERENCE])


def test_no_position_is_written_before_a_reference():
    made = controller(mode="goal_offset")
    assert np.isnan(moved(made, 3, reference=(NAN, NAN))[-1].command).all()


def test_an_effort_without_reference_is_zero_within_two_cycles():
    """One joint's reference is NaN from the 51st update on: the other goes on as if nothing had happened."""
    faults = {k: {"reference": np.array([NAN, -1.0])} for k in range(50, 80)}
    sound, found = moved(controller(), 100), moved(controller(), 100, faults=faults)
    assert found[50].command[0] == sound[49].command[0]
    assert {commands.command[0] for commands in found[51:80]} == {0.0}
    assert {commands.fault[0] for commands in found[51:80]} == {NO_REFERENCE}
    np.testing.assert_array_equal([c.command[1] for c in found], [c.command[1] for c in sound])
    assert found[-1].command[0] == pytest.approx(sound[-1].command[0], abs=1e-12)


def test_a_goal_without_reference_freezes_no_other_joint():
    """A ramp of 1 rad/s: others froze for 100 ms and then jumped by 91 mrad. The joint itself stays, friction fades."""
    sound, faulty = controller(mode="goal_offset"), controller(mode="goal_offset")
    found, expected = [], []
    for k in range(300):
        goal = np.array([0.2 + PERIOD * k, 0.1 + PERIOD * k])
        state = {"position": goal - 1e-3, "velocity": 1.0, "goal_velocity": 1.0}
        expected.append(sound.update(goal, **state))
        lost = 100 <= k < 250
        found.append(faulty.update(np.where([lost, False], NAN, goal), **state))
    np.testing.assert_array_equal([c.command[1] for c in found], [c.command[1] for c in expected])
    assert expected[99].command[0] > 0.2 + 0.099 + 0.02, "no friction was compensated"
    held = 0.2 + PERIOD * 99
    np.testing.assert_allclose([c.command[0] for c in found[130:250]], held, atol=1e-12)
    fading = np.abs(np.diff([c.friction[0] for c in found]))
    assert np.max(fading[90:]) <= 50.0 * 3.0 * PERIOD + 1e-12


def test_a_reference_that_is_locked_once_costs_no_friction():
    """The last one counts for that cycle, friction included; for longer there is no reference."""
    faults = {60: {"locked": [1.0, 0.0]}, **{k: {"locked": [1.0, 0.0]} for k in range(70, 75)}}
    sound, found = moved(controller(), 80), moved(controller(), 80, faults=faults)
    np.testing.assert_array_equal(found[60].command, sound[60].command)
    assert [c.command[0] for c in found[71:75]] == [0.0] * 4
    np.testing.assert_array_equal(
        last_reads([1.0, 2.0, 9.0, 9.0, 5.0, NAN], [0, 0, 1, 1, 0, 0], 0.5), [1.0, 2.0, 2.5, NAN, 5.0, NAN]
    )


# -- faults of single joints

BAD_POSITIONS = {
    "position or velocity is not a number": lambda q: NAN,
    "a position is constant": lambda q: 0.6,
    "a position jumps": lambda q: q + 1.0,
}


@pytest.mark.ci
@pytest.mark.parametrize("mode", ["sum", "goal_offset"])
@pytest.mark.parametrize("reason", BAD_POSITIONS)
def test_a_bad_state_concerns_its_own_joint(mode, reason):
    """Of the other joint not a bit changes; that of the bad joint fades to zero, and returns with its ramp."""
    bad, settings = BAD_POSITIONS[reason], {"mode": mode, "ramp_time": 0.2}
    sound, faulty = controller(**settings), controller(**settings)
    found, expected, q = [], [], 0.2
    for k in range(1000):
        q += PERIOD
        reference = np.array([2.0, -1.0]) if mode == "sum" else np.array([q, q]) + 1e-3
        given = {"goal_velocity": 1.0}
        position = bad(q) if 400 <= k < 600 else q
        expected.append(sound.update(reference, np.array([q, q]), 1.0, **given))
        found.append(faulty.update(reference, np.array([position, q]), 1.0, **given))
    np.testing.assert_array_equal([c.command[1] for c in found], [c.command[1] for c in expected])
    friction = np.array([c.friction[0] for c in found])
    full = expected[-1].friction[0]
    assert full == pytest.approx(0.8 * (0.4 + 0.1), rel=1e-6)
    first = next(k for k in range(400, 600) if found[k].fault[0] != 0)
    assert first <= 400 + 75, "the fault was not found"  # a filtered velocity takes 70 ms to decay
    assert library().code_text(int(found[first].fault[0])).decode().startswith(reason)
    fast = 50.0 * 3.0 * PERIOD
    assert np.max(-np.diff(friction)) <= fast + 1e-12
    if reason == "a position jumps":  # to another place, where it is trusted again
        assert friction[first + 2] <= 0.01
    else:
        np.testing.assert_array_equal(friction[first + 2 : 600], 0.0)
    returned = next(k for k in range(600, 1000) if found[k].fault[0] == 0)
    assert returned <= 600 + 45
    assert friction[returned + 50] < 0.5 * full, "it returned at once"
    assert friction[-1] == pytest.approx(full, rel=1e-6)


@pytest.mark.slow
def test_isolated_joints_are_trusted_as_the_python_compensator_trusts_each():
    """Random NaN, jumps and positions that stand still on two of three joints, each against a Python compensator of that
    joint alone: its reasons are among ours, the same torque where there was no fault, and 0.5 s after one, in motion, within 1 %."""
    random, settings = np.random.default_rng(5), default_settings(ramp_time=0.05)
    joints = [joint(name) for name in "abc"]
    ours = CppController(joints, settings)
    ours.enable()
    python = [Compensator([model], [JointMap()], settings) for model in joints]
    for compensator in python:
        compensator.enable()
    q, phase, last = np.zeros(3), np.array([1.0, 1.7, 2.3]), np.zeros(3)
    faults, until, sound, reasons = np.zeros(3, dtype=int), np.zeros(3), np.zeros(3), [set(), set()]
    for k in range(3000):
        t = PERIOD * (k + 1)
        v = 1.5 * np.cos(phase * t)
        q = q + PERIOD * v
        starts = (until <= t) & (random.random(3) < 0.002) & (np.arange(3) < 2)
        faults = np.where(starts, random.integers(1, 4, 3), np.where(until <= t, 0, faults))
        until = np.where(starts, t + random.choice([0.001, 0.02, 0.3], 3), until)
        sound = np.where(faults == 0, sound + PERIOD, 0.0)
        position = np.select([faults == 1, faults == 2, faults == 3], [NAN * q, q + 0.8, last], q)
        last = np.where(np.isfinite(position), position, q)
        found = ours.update(0.0, position, v, goal_velocity=v)
        for n, compensator in enumerate(python):
            compensator.on_command(t, t - 0.5 * PERIOD, None, [NAN], v[n : n + 1], [0.0])
            given = position[n : n + 1], v[n : n + 1]
            torque = float(compensator.on_state(t, t, joints[n].name, *given, ())[0])
            text = library().code_text(int(found.fault[n])).decode()
            if n == 2:
                assert found.friction[n] == pytest.approx(torque, abs=1e-12)
                assert not text
            elif sound[n] > 0.5 and abs(v[n]) > 0.5:
                assert found.friction[n] == pytest.approx(torque, rel=0.01)
                assert not text
            reasons[0] |= {reason(compensator.doubt)}
            reasons[1] |= {reason(text or None)}
            if compensator.doubt is not None and "not a number" in compensator.doubt:
                assert "not a number" in text
    assert reasons[0] == reasons[1]
    assert len(reasons[0] - {None}) >= 3


def test_disabling_fades_and_enabling_in_between_does_not_step():
    """Neither changes the friction torque faster than in the default 20 ms from zero to the limit."""
    made = controller(slew=0.0, ramp_time=0.1)
    moved(made, 200)
    made.disable()
    found = moved(made, 1)
    made.enable()
    found += moved(made, 50)
    made.disable()
    found += moved(made, 50)
    friction = np.array([c.friction[0] for c in found])
    assert np.max(np.abs(np.diff(friction, prepend=0.4))) <= 50.0 * 3.0 * PERIOD + 1e-12
    assert friction[0] > 0.0
    assert friction[-1] == 0.0
    assert found[-1].command[0] == 2.0


# -- limits


def test_commands_stay_within_limits_and_friction_never_turns_a_reference():
    """Efforts beyond the limit are clamped, with the fault that says so; the friction in them is what was left."""
    made = controller(limit=(-2.2, 2.2))
    found = moved(made, 50)[-1]
    assert found.command[0] == 2.2
    assert found.friction[0] == pytest.approx(0.2)
    assert found.fault[0] == LIMITED
    assert found.fault[1] == 0
    found = moved(made, 5, reference=(3.0, -1.0))[-1]
    assert found.command[0] == 2.2
    assert found.friction[0] == 0.0
    assert moved(made, 50)[-1].command[0] == 2.2


def test_positions_stay_within_limits():
    made = controller(limit=(-0.25, 0.25), mode="goal_offset")
    found = moved(made, 100, reference=(0.249, 0.1))[-1]
    assert found.command[0] == 0.25
    assert found.fault[0] == LIMITED


def test_limits_that_exclude_each_other_are_refused():
    made = controller(limit=(0.3, -0.3))
    assert re.fullmatch(r"joint a: its limits contradict each other.*\n?", made.limits_problem(0))
    assert controller().limits_problem(0) == ""


def learned_scale(knows):
    """Dry scale after 8 s of a joint with the identified friction, whose effort is limited to 0.7 N m."""
    limit, arm = 0.7, Arm(inertia=0.05)
    made = CppController(
        [joint()],
        default_settings(slew=1e6),
        (-limit, limit) if knows else (-np.inf, np.inf),
        uncoupled(0.05),
    )
    made.enable()
    for k in range(8_000):
        t = PERIOD * k
        goal, rate = 0.5 * np.sin(3.0 * t), 1.5 * np.cos(3.0 * t)
        wanted = 20.0 * (goal - arm.position) + 1.0 * (rate - arm.velocity) - 0.225 * np.sin(3.0 * t)
        found = made.update(wanted, arm.position, arm.velocity, goal=goal, goal_velocity=rate)
        arm.move(np.clip(found.command, -limit, limit))
    return made.dry_scales[0]


@pytest.mark.ci
def test_what_was_clamped_is_not_learnt_as_friction():
    """The observer knows of the limits; with one that does not, clamped torque counts as friction."""
    assert learned_scale(knows=True) == pytest.approx(1.0, abs=0.1)
    assert abs(learned_scale(knows=False) - 1.0) > 0.2


# -- gain


def motion_at_goal(gain, stiffness, damping, armature, adapt=True):
    """Largest speed in the third second of a joint that was displaced by 20 mrad from a goal at rest [rad/s]."""
    arm = Arm(inertia=0.05)
    made = CppController([joint(armature=armature)], default_settings(gain=gain, adapt=adapt))
    made.enable()
    arm.position = arm.position + 0.02
    speeds = []
    for _ in range(3000):
        reference = -stiffness * arm.position - damping * arm.velocity
        found = made.update(reference, arm.position, arm.velocity, goal=0.0, goal_velocity=0.0)
        arm.move(found.command)
        speeds.append(abs(float(arm.velocity[0])))
    return max(speeds[2000:])


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(
    ("stiffness", "damping", "moves"), [(4.0, 0.1, True), (0.0, 0.0, True), (40.0, 1.0, False)]
)
def test_the_largest_gain_lets_joints_come_to_rest(stiffness, damping, moves):
    """At 2.0, which the topic took, a joint at a goal at rest still moves after seconds, unless a stiff controller shows that it
    passes its goal, from which the scale of its friction falls.
    """
    most = controller().largest_gain
    assert most == pytest.approx(0.85 * 2.0 / 1.3)
    for armature in (0.0, 0.05):
        for adapt in (True, False):
            assert motion_at_goal(most, stiffness, damping, armature, adapt) == 0.0
    assert (motion_at_goal(2.0, stiffness, damping, 0.05, adapt=False) > 0.1) == moves


def test_the_largest_gain_does_not_feed_on_itself():
    """Friction that grows with the motor torque by 0.9 times bounds the gain further."""
    model = replace(joint(load_friction_base=0.7), law=LAWS["m3"])
    made = CppController([model], default_settings(effort_meaning="motor"))
    assert made.largest_gain < 0.9 / 0.7
    assert made.set_gain(made.largest_gain)


# -- what cannot work does not configure


def test_goal_offset_needs_what_makes_the_servo_add_a_torque():
    """R, supply_voltage, kt and p_gain of a voltage-controlled servo; each missing one is named in one line."""
    servo = load_actuator("xl330")
    assert isinstance(servo.control, VoltageControl)
    offset, values = OUTPUT_MODES.index("goal_offset"), dict(servo.published["m1"])
    complete = replace(joint(), actuator=servo, values=values)
    assert output_problem(complete, offset, KP) == ""
    assert output_problem(complete, OUTPUT_MODES.index("sum"), NAN) == ""
    for missing in ("R", "kt"):
        lacking = replace(complete, values={key: v for key, v in values.items() if key != missing})
        problem = output_problem(lacking, offset, KP)
        assert f"friction.a.{missing} above 0" in problem
        assert "\n" not in problem
    assert "friction.a.supply_voltage above 0" in output_problem(complete, offset, KP, supply=0.0)
    assert "friction.a.p_gain above 0" in output_problem(complete, offset, NAN)
    assert output_problem(replace(complete, actuator=TORQUE_JOINT), offset, KP) == ""


@pytest.mark.parametrize("name", ["friction_base", "friction_viscous", "load_friction_motor"])
def test_negative_friction_is_refused(name):
    with pytest.raises(AssertionError, match=f"joint 1: {name} must be zero or positive, found -0.1"):
        CppController([joint(**{name: -0.1})], default_settings())


# -- documentation


def test_codes_of_faults_are_those_of_the_documentation():
    """The table in docs/controllers.md has every code with its text."""
    page = (REPOSITORY / "docs" / "controllers.md").read_text()
    table = {int(code): text for code, text in re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)}
    codes = {code: library().code_text(code).decode() for code in range(64)}
    expected = {code: text for code, text in codes.items() if text}
    assert expected.items() <= table.items()
    assert set(table) - set(expected) == {0, NO_REFERENCE, LIMITED, ZERO_TORQUE_ENDED}


# -- another set of parameters


@pytest.mark.parametrize("mode", ["sum", "goal_offset"])
def test_other_parameters_take_over_without_a_step_and_are_given_back(mode):
    """Three times the friction: a ramp time of the old torque, then linearly to the new one; the way back alike."""
    ramp, references = 0.1, (2.0, -1.0) if mode == "sum" else (0.3, 0.1)
    made = controller(mode=mode, ramp_time=ramp)
    heavy = CppController(
        [joint(name, friction_base=1.2, friction_viscous=0.3) for name in "ab"],
        default_settings(mode=mode, ramp_time=ramp),
    )
    for name in heavy.names:
        heavy.on_telemetry(name, kp=KP)
    friction = lambda count: np.array([found.friction for found in moved(made, count, references)])  # noqa: E731
    before = friction(300)[-1]
    assert made.exchange(heavy, ramp)
    assert not made.exchange(None, ramp), "one at a time"
    found = friction(250)
    shares = np.clip(np.arange(250)[:, None] * PERIOD / ramp - 1.0, 0.0, 1.0)
    np.testing.assert_allclose(found, before * (1.0 + 2.0 * shares), rtol=1e-6)
    assert made.exchange(None, ramp)
    np.testing.assert_allclose(friction(250), before * (3.0 - 2.0 * shares), rtol=1e-6)


def test_a_handover_ends_with_the_doubt_that_ends_both():
    """A state that is not a number in the midst of it: the reference alone, at once; the new parameters return from zero."""
    made, heavy = controller(ramp_time=0.1), controller(ramp_time=0.1)
    moved(made, 300)
    assert made.exchange(heavy, 0.1)
    found = moved(made, 400, faults={150: {"position": np.array([NAN, NAN])}})
    assert np.abs(found[152].friction).max() < 0.05
    assert found[-1].friction[0] == pytest.approx(found[140].friction[0], rel=1e-6)
