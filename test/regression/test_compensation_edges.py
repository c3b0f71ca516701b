"""What happened to live compensation at the edges of what it is told; the first line of each test says what must happen."""

import math
from dataclasses import replace

import numpy as np
import pytest

from compensating import model
from stribeck.live.compensator import Compensator
from stribeck.live.settings import OUTPUT_MODES, Settings, Timing
from stribeck.model.joint_map import JointMap
from stribeck.rigid.dynamics import IndependentJoints

WHEEL = IndependentJoints(np.array([0.002]))


def compensator(mode: str = "friction_only", **changes: float) -> Compensator:
    settings = Settings(mode, "motor", timing=Timing(ramp_time=0.0))  # type: ignore[arg-type]
    found = Compensator([model("a", **changes)], [JointMap()], settings, dynamics=WHEEL)
    found.on_telemetry("a", kp=400.0, supply_voltage=5.0)
    found.enable()
    return found


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("mode", OUTPUT_MODES)
@pytest.mark.parametrize("enabled", [True, False])
def test_a_joint_at_rest_for_long_needs_no_more_memory(mode: str, enabled: bool) -> None:
    """Torques and commands that nobody asks for any more are forgotten, in every mode."""
    found = compensator(mode)
    if not enabled:
        found.disable()
    for k in range(1000):
        time = 10.0 + 0.005 * k
        found.on_command(time, time, ["a"], [0.3], [0.0], [0.01])
        found.on_state(time, time + 0.001, ["a"], [0.3], [0.0], [0.01])
    assert max(len(sent._sent) for sent in (found.loads._own, found.loads._controller)) <= 300


def test_after_time_jumped_back_the_controllers_torque_is_the_present_one() -> None:
    found = compensator("sum")
    for start, effort in ((100.0, 0.05), (10.0, 0.01)):
        for k in range(100):
            time = start + 0.005 * k
            found.on_command(1000.0 - start + 0.005 * k, time, ["a"], (), (), [effort])
            found.on_state(1000.0 - start + 0.005 * k, time + 0.001, ["a"], [0.0], [0.0], [0.0])
    acts = found.loads._controller.at(10.4)
    assert acts is not None
    assert acts[0] == 0.01


@pytest.mark.parametrize("mode", ["friction_only", "sum"])
def test_the_residual_is_as_slow_as_the_loop_in_every_mode(mode: str) -> None:
    """At 100 Hz four loop times, also where the motors' torque is known from the first state on."""
    found = compensator(mode)
    for k in range(20):
        time = 10.0 + 0.01 * k
        found.on_command(time, time, ["a"], [0.01 * k], [1.0], [0.01])
        found.on_state(time, time + 0.001, ["a"], [0.01 * k], [1.0], [0.01])
    assert found.feed_forward.observer is not None
    np.testing.assert_allclose(found.feed_forward.observer.residual.time_constant, 0.12, rtol=1e-6)


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("position", [(), [math.nan]], ids=["empty", "NaN"])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_velocity_goal_of_zero_leads_nobody(position: list[float], share: float) -> None:
    """A joint that is pushed comes to rest although it has less friction than was identified."""
    base, viscous, inertia, dt, fine = 0.02, 0.004, 0.002, 0.002, 10
    found = compensator(friction_base=base, friction_viscous=viscous)
    at = speed = torque = fastest = 0.0
    for k in range(3000):
        acting = torque
        hand = 0.03 if k < 250 else 0.0
        for _ in range(fine):
            friction = share * (base * math.tanh(speed / 0.002) + viscous * speed)
            speed += dt / fine * (torque + hand - friction) / inertia
            at += dt / fine * speed
        time = 10.0 + dt * k
        found.on_goal(time - 0.001, time - 0.001, ["a"], position, [0.0])
        torque = float(found.on_state(time, time, ["a"], [at], [speed], [acting])[0])
        fastest = max(fastest, abs(speed)) if k <= 250 else fastest
        assert abs(speed) <= fastest + 1e-9
    assert abs(speed) < 0.4 * fastest


@pytest.mark.ci
def test_a_gain_of_zero_is_no_torque_whatever_was_learnt() -> None:
    found = compensator()
    largest = 0.0
    for k in range(1500):
        time = 10.0 + 0.004 * k
        at, speed = math.sin(2.0 * time), 2.0 * math.cos(2.0 * time)
        friction = 0.03 * math.copysign(1.0, speed) + 0.01 * math.sin(5.0 * at)
        found.on_goal(time - 0.001, time - 0.001, ["a"], [at], [speed])
        if k == 1000:
            found.set_gain(0.0)
        if k > 1020:
            largest = max(largest, abs(found.torque[0]))
        effort = -0.008 * math.sin(2.0 * time) + friction
        found.on_state(time, time, ["a"], [at], [speed], [effort])
    assert found.doubt is None
    assert largest == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 1.8])
def test_what_is_learnt_of_friction_leaves_the_laws_offset_alone(share: float) -> None:
    """The scales are of friction: a constant torque beside it stays what it was identified to be."""
    base, viscous, offset, inertia = 0.02, 0.004, 0.01, 0.002
    plain = model("a", friction_base=base, friction_viscous=viscous, torque_offset=offset)
    found = Compensator(
        [replace(plain, law=plain.law.with_terms(offset=True))],
        [JointMap()],
        Settings("friction_only", "motor", timing=Timing(ramp_time=0.0)),
        dynamics=IndependentJoints(np.array([inertia])),
    )
    found.enable()
    errors = []
    for k in range(6000):
        time = 10.0 + 0.004 * k
        at, speed = math.sin(2.0 * time), 2.0 * math.cos(2.0 * time)
        wanted = share * (base * math.tanh(speed / 0.01) + viscous * speed) - offset
        ahead = math.sin(2.0 * (time + 0.01))  # a goal that is never ahead of its joint is none
        found.on_goal(time - 0.001, time - 0.001, ["a"], [ahead], [speed])
        found.on_state(time, time, ["a"], [at], [speed], [-4.0 * inertia * at + wanted])
        if k > 4500 and abs(speed) > 0.8:
            errors.append(found.torque[0] - wanted)
    assert abs(np.mean(errors)) < 0.15 * offset
