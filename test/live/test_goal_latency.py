"""Delays from the goals of position servos to their positions, measured while they move."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cpp_compensator import CppCompensator
from plants.friction import FrictionValues, LuGre
from position_servos import path
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel
from stribeck.live.learning.latency import GoalLatency, ServoDelay
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap
from stribeck.model.law import law_named

INERTIA, COULOMB, VISCOUS, STIFFNESS = 0.004, 0.08, 0.02, 7.0
STEP = 5e-4
"""Inner step [s]."""


def compensators(kinds, delays, declared=0.0, viscous=VISCOUS):
    values = {"ratio": 1.0, "armature": INERTIA, "friction_base": COULOMB, "friction_viscous": viscous}
    servo = replace(load_actuator("torque_joint"), resolution=2.0 * np.pi / 4096)
    joints = [JointModel(f"j{k}", servo, law_named("m1"), values, 10.0 * COULOMB) for k in range(len(delays))]
    timing = Timing(loop_delay=declared, state_timeout=0.2, command_timeout=1.0)
    maps = [JointMap(sign=-1 if k % 2 else 1, ratio=1.0, offset=0.1 * k) for k in range(len(delays))]
    found = [kind(joints, maps, Settings("goal_offset", "none", timing=timing)) for kind in kinds]
    for one in found:
        for joint in joints:
            one.on_telemetry(joint.name, kp=STIFFNESS)
        one.enable()
    return found


def run(engines, delays, rate, drag, scale=1.0, seconds=16.0, watch=lambda time: None):
    """Joints J q'' = K (goal(t - T) - q) - D q' - F under the outputs of the first engine; the others see the same."""
    n, dt = len(delays), 1.0 / rate
    zero = np.zeros(n)
    friction = LuGre(
        FrictionValues(
            coulomb=zero + COULOMB * scale, stiction=zero + 1.25 * COULOMB * scale, viscous=zero, stribeck_velocity=zero + 0.1,
            presliding=zero + 2e-3, inertia=zero + INERTIA, asymmetry=zero, ripple=zero, ripple_wave=zero, load_share=zero,
        )
    )  # fmt: skip
    steps, resolution = round(seconds * rate), 2.0 * np.pi / 4096
    goals, _ = path(np.arange(steps) * dt)
    sent, q, v = np.zeros((steps, n)), np.zeros(n), np.zeros(n)
    for k in range(steps):
        time = k * dt
        seen = np.round(q / resolution) * resolution
        for engine in engines:
            engine.on_command(time, time, None, np.full(n, goals[k]), (), ())
            engine.on_state(time, time, engine.names, seen, (), ())
        sent[k] = engines[0].output(time).values
        watch(time)
        for part in range(round(dt / STEP)):
            at = ((time + part * STEP - np.array(delays)) / dt).astype(int)
            goal = np.where(at >= 0, sent[np.maximum(at, 0), np.arange(n)], 0.0)
            force = STIFFNESS * (goal - q) - drag * v - friction.torque(v, STEP)
            v = v + force / INERTIA * STEP
            q = q + v * STEP


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("rate", [50, 200])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_delays_are_measured_to_some_milliseconds(rate, scale):
    """30 to 250 ms, friction half to twice that of the file, unknown beforehand: within 4 ms."""
    delays = [0.03, 0.08, 0.14, 0.25]
    (found,) = compensators([Compensator], delays)
    run([found], delays, rate, VISCOUS, scale)
    measured = found.loads.latency
    assert np.abs(measured.delay - delays).max() <= 0.004
    assert measured.half_width.max() <= 0.006
    assert measured.largest == measured.delay.max()


@pytest.mark.ci
def test_a_lag_that_the_file_explains_is_no_delay():
    """D/K of 23 ms: with that viscous friction in the file 80 ms are measured; without it 80 + 20 ms, never less."""
    drag = 0.16
    for viscous, wanted in ((drag, 0.08), (VISCOUS, 0.08 + (drag - VISCOUS) / STIFFNESS)):
        (found,) = compensators([Compensator], [0.08], viscous=viscous)
        run([found], [0.08], 100, drag)
        assert found.loads.latency.delay[0] == pytest.approx(wanted, abs=0.004)


@pytest.mark.ci
def test_python_and_cpp_measure_the_same():
    """Delays, half-widths and torques of every state to 1e-12, through a gap of the states."""
    delays = [0.08, 0.14]
    ours, theirs = compensators([Compensator, CppCompensator], delays)

    def watch(time):
        latency = ours.loads.latency
        delay, half_width = theirs.goal_delay
        np.testing.assert_allclose(delay, latency.delay, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(half_width, latency.half_width, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(theirs.torque, ours.torque, rtol=0.0, atol=1e-12)

    run([ours, theirs], delays, 100, VISCOUS, watch=watch)
    assert np.isfinite(ours.loads.latency.delay).all()


@pytest.mark.slow
def test_the_larger_of_declared_and_measured_counts():
    """Undeclared, 140 ms are taken once they are measured, for positions and stability; declared delays are never reduced."""
    fast = 0.3  # viscous bandwidth of 75 rad/s: by goal from 13 ms on
    (found,) = compensators([Compensator], [0.14], viscous=fast)
    assert found.feed_forward.delay.lag[0] == 0.0
    assert not found.feed_forward.delay.by_goal.any()
    before = []
    run([found], [0.14], 100, fast, watch=lambda time: before.append(found.feed_forward.delay.lag[0]))
    delay = found.feed_forward.delay
    assert before[300] == 0.0
    assert delay.lag[0] == found.loads.latency.delay[0] == pytest.approx(0.14, abs=0.006)
    assert delay.by_goal.all()
    width = found.feed_forward.tuning.error_width[0]
    loop = delay.lag[0] + 0.01
    friction = max(found.gain * found.feed_forward.tracking.scale[0], 1.0) * found.model.at_rest[0]
    assert width == pytest.approx(1.5 * friction * (loop / 0.3) ** 2 / INERTIA, rel=1e-3)
    (found,) = compensators([Compensator], [0.14], declared=0.2)
    run([found], [0.14], 100, VISCOUS)
    assert found.loads.latency.delay[0] == pytest.approx(0.14, abs=0.004)
    assert found.feed_forward.delay.lag[0] == 0.2


def wave(t):
    return 0.3 * math.sin(3.0 * t) + 0.1 * math.sin(7.3 * t)


def fed(measured, shown, goal, seconds, zero, start=0.0):
    for k in range(round(100 * seconds)):
        t = start + 0.01 * k
        measured.update(t, np.array([shown(t)]), np.array([goal(t)]), zero, zero)


def test_what_cannot_be_told_is_not_claimed():
    """At rest, at constant velocity, beyond 0.4 s, before 2 s of motion and without finite goals: no measurement, the declared delay."""
    zero = np.zeros(1)
    cases = [
        (lambda t: 0.2, lambda t: 0.2, 20.0),
        (lambda t: 0.2 * (t - 0.1), lambda t: 0.2 * t, 20.0),
        (lambda t: wave(t - 0.6), wave, 20.0),
        (lambda t: wave(t - 0.1), wave, 2.0),
        (lambda t: wave(t - 0.1), lambda t: math.nan, 20.0),
        (lambda t: wave(31.0 * t), wave, 20.0),
    ]
    for shown, goal, seconds in cases:
        measured = GoalLatency(1)
        fed(measured, shown, goal, seconds, zero)
        assert np.isnan(measured.delay[0]), seconds
        assert measured.largest == 0.0
        delay = ServoDelay(1, 0.05)
        delay.begin(zero + 25.0, measured)
        assert delay.lag[0] == 0.05
        assert delay.by_goal[0]


def test_a_gap_forgets_the_motion_only():
    """100 ms (half a period less, for goals that hold): kept over a pause of the states, during which positions jump."""
    zero, measured = np.zeros(1), GoalLatency(1)
    fed(measured, lambda t: wave(t - 0.1), wave, 20.0, zero)
    assert measured.delay[0] == pytest.approx(0.095, abs=1e-3)
    fed(measured, lambda t: wave(t - 0.1), wave, 20.0, zero, start=31.7)
    assert measured.delay[0] == pytest.approx(0.095, abs=1e-3)
