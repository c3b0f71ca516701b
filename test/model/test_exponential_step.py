"""The default step: exact for linear torques, of second order otherwise, with stops and reversals inside a step."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import FRICTIONLESS, published
from stribeck.files.actuators import load_actuator
from stribeck.model.bench import Pendulum, gravity_amplitude, inertia
from stribeck.model.control_laws import ControlState, Gains, ServoCommand
from stribeck.model.law import LAWS
from stribeck.model.log import Log, Series, Setup
from stribeck.model.step import Plant, PlantState, batch_for, plant_of, simulate, step, velocity_step
from stribeck.model.terms.stribeck import stribeck_slope, stribeck_weight
from stribeck.model.trajectories import trajectory_named

NO_MEMORY = ControlState(0.0, 0.0)
OFF = ServoCommand(goal=0.0, torque_enable=0.0, supply_voltage=5.0)
XL330 = load_actuator("xl330")
LOAD = Pendulum(0.5, 0.1, 0.0)
INERTIA = 0.005
DT = 0.005


def plant(law="m1", **terms):
    """An XL330 on a bench of 0.5 kg at 0.1 m, J = 0.005 without rotor."""
    return Plant(XL330, LAWS[law].with_terms(**terms), LOAD, Gains(200.0, 0.0, 0.0))


def moved(values, velocity, motor, external, dt=DT, law="m1", **terms):
    """One velocity step under a motor torque given as a function of velocity."""
    bench = plant(law, **terms)
    mobility = 1.0 / inertia(bench.pendulum, values["armature"])
    return velocity_step(bench.law, mobility, values, velocity, motor, external, dt)


@pytest.mark.parametrize("rate", [2.0, 60.0, 200.0])
def test_a_torque_that_falls_with_velocity_is_integrated_exactly(rate):
    """Back-EMF alone: v decays towards its no-load speed as exp(-rate t), to the step's 4th order in rate dt."""
    damping, push = rate * INERTIA, 0.3
    velocity, _ = moved(FRICTIONLESS, 4.0, lambda v: push - damping * v, 0.0)
    final = push / damping
    exact = final + (4.0 - final) * math.exp(-rate * DT)
    assert velocity == pytest.approx(exact, abs=(rate * DT) ** 5 / 500.0 * abs(4.0 - final) + 1e-12)


def test_the_slope_of_the_stribeck_weight_is_its_derivative():
    """Central difference at one point of the formula, by speed, both directions alike."""
    at, v_s, alpha, h = 0.3, 0.4, 1.7, 1e-6
    difference = (stribeck_weight(at + h, v_s, alpha) - stribeck_weight(at - h, v_s, alpha)) / (2.0 * h)
    weight = stribeck_weight(at, v_s, alpha)
    assert stribeck_slope(at, v_s, alpha, weight) == pytest.approx(difference, rel=1e-8)
    assert stribeck_slope(-at, v_s, alpha, weight) == stribeck_slope(at, v_s, alpha, weight)


def test_a_stop_inside_a_step_covers_the_distance_until_then():
    """0.2 rad/s against 0.5 N m over J = 0.005 stops after 2 ms and 0.2 mrad, and then rests."""
    values = {**FRICTIONLESS, "friction_base": 0.5}
    for direction in (1.0, -1.0):
        velocity, distance = moved(values, direction * 0.2, lambda v: 0.0 * v, 0.0)
        assert velocity == 0.0
        assert distance == pytest.approx(direction * 0.5 * 0.2 * 0.002, rel=1e-12)


def test_a_reversal_inside_a_step_meets_the_friction_of_each_direction():
    """A push of 0.8 N m against 0.3 N m of friction: 220 rad/s² until the stop, 100 rad/s² afterwards."""
    values = {**FRICTIONLESS, "friction_base": 0.3}
    velocity, distance = moved(values, 0.22, lambda v: 0.0 * v, -0.8)
    assert velocity == pytest.approx(-100.0 * 0.004, rel=1e-12)
    assert distance == pytest.approx(0.5 * 0.22 * 0.001 - 0.5 * 0.4 * 0.004, rel=1e-12)


def test_asymmetric_friction_with_an_offset_restarts_against_the_other_budget():
    """Positive motion meets 0.3 N m, negative motion 0.1 N m; the offset of -0.5 N m acts on both."""
    values = {
        **FRICTIONLESS,
        "friction_base": 0.3,
        "friction_base_negative": 0.1,
        "friction_viscous_negative": 0.0,
        "torque_offset": -0.5,
    }
    velocity, _ = moved(values, 0.16, lambda v: 0.0 * v, 0.0, asymmetric=True, offset=True)
    assert velocity == pytest.approx(-80.0 * 0.004, rel=1e-12)


@pytest.mark.parametrize("released", [0.1, 1.5])
def test_a_frictionless_pendulum_keeps_its_energy(released):
    """Within 0.1 % over 6 s at 5 ms, where the paper's step gains 107 % or more and its program's loses 70 %."""
    state, energies = PlantState(released, 0.0, NO_MEMORY), []
    for _ in range(1200):
        state = step(plant(), FRICTIONLESS, state, OFF, DT)
        lifted = gravity_amplitude(LOAD) * (1.0 - math.cos(state.position))
        energies.append(0.5 * INERTIA * state.velocity**2 + lifted)
    start = gravity_amplitude(LOAD) * (1.0 - math.cos(released))
    assert max(abs(energy / start - 1.0) for energy in energies) < 1e-3


@settings(deadline=None, derandomize=True, max_examples=400)
@given(data=st.data())
def test_friction_alone_never_reverses_or_speeds_up_a_motion(data):
    """Without other torques a joint slows down, or stops, and covers no more than v dt, for every law."""
    law = data.draw(st.sampled_from(list(LAWS)))
    values = {**published("xl330", law), "friction_base": data.draw(st.floats(0.0, 0.2))}
    velocity = data.draw(st.one_of(st.floats(-1e-3, 1e-3), st.floats(-20.0, 20.0)))
    after, distance = moved(values, velocity, lambda v: 0.0 * v, 0.0, law=law)
    assert after == 0.0 or np.sign(after) == np.sign(velocity)
    assert abs(after) <= abs(velocity)
    assert 0.0 <= distance * np.sign(velocity) <= abs(velocity) * DT * (1.0 + 1e-12)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(data=st.data())
def test_a_step_seen_in_a_mirror_is_the_mirrored_step(data):
    """Position, velocity, goal and offsets with the other sign give the other sign, to the last bit."""
    law = data.draw(st.sampled_from(list(LAWS)))
    values = {**published("xl330", law), "torque_offset": 0.01}
    position, velocity, goal = (data.draw(st.floats(-3.0, 3.0)) for _ in range(3))
    joint = plant(law, offset=True)
    after = step(joint, values, PlantState(position, velocity, NO_MEMORY), ServoCommand(goal, 1.0, 5.0), DT)
    mirrored = {**values, "q_offset": -values["q_offset"], "torque_offset": -0.01}
    other = step(
        joint, mirrored, PlantState(-position, -velocity, NO_MEMORY), ServoCommand(-goal, 1.0, 5.0), DT
    )
    assert (other.position, other.velocity) == (-after.position, -after.velocity)


def commanded(setup, trajectory, samples=1201):
    """A run of which only the commands matter."""
    time = DT * np.arange(samples)
    motion = trajectory_named(trajectory)
    rest = Series(time, np.zeros_like(time), held=False)
    goal = Series(time, motion.goal(time), held=True)
    enable = Series(time, motion.torque_enable(time), held=True)
    return Log(trajectory, "any", trajectory, setup, rest, rest, goal, enable)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("name", "law", "setup"),
    [
        pytest.param("xl330", "m6", Setup(0.49, 0.1, 0.0, 7.4, 400.0), marks=pytest.mark.slow),
        pytest.param("mx106", "m6", Setup(1.0, 0.15, 0.05, 15.0, 32.0), marks=pytest.mark.slow),
        ("sts3215", "m1", Setup(0.5, 0.12, 0.05, 7.4, 32.0)),
        pytest.param("erob80_100", "m6", Setup(8.2, 0.5, 0.8, 48.0, 50.0), marks=pytest.mark.slow),
    ],
)
def test_the_error_falls_with_the_square_of_the_step(name, law, setup):
    """Half the step has at most 0.4 of the error (0.25 but for the instants of stops); 5 ms beats 1.25 ms of Euler."""
    servo = load_actuator(name)
    logs = [commanded(setup, t) for t in ("sin_time_square", "sin_sin", "lift_and_drop")]
    values = {"q_offset": 0.0, **servo.published[law]}

    def motion(dt, integrator="exponential"):
        batch = batch_for(logs, dt, integrator)
        found = simulate(batch, servo, LAWS[law], values, integrator=integrator)
        return found.position[:: round(DT / dt)][:1200]

    exact = motion(DT / 8)
    coarse, fine = (np.mean(np.abs(motion(dt) - exact)) for dt in (DT, DT / 2))
    assert fine < 0.4 * coarse
    assert coarse < np.mean(np.abs(motion(DT / 4, "semi-implicit") - exact))


@given(value=st.floats(-3.0, 3.0), spread=st.floats(1e-3, 5.0))
def test_the_limited_duty_is_its_mean_over_the_positions_of_a_step(value, spread):
    """Against 20 001 values of the clipped duty, for limits crossed on one side, on both, and not at all."""
    control, gains = XL330.control, Gains(1.0 / XL330.control.gain, 0.0, 0.0)
    found = control.output({}, gains, NO_MEMORY, value, 0.0, 0.0, spread)
    values = np.clip(value + spread * np.linspace(-1.0, 1.0, 20_001), -control.duty_max, control.duty_max)
    trapezoids = 0.5 * np.sum(values[1:] + values[:-1]) / 20_000  # numpy 1.26 has no trapezoid
    assert found == pytest.approx(trapezoids, abs=1e-6)
    assert control.output({}, gains, NO_MEMORY, value, 0.0, 0.0, 0.0) == np.clip(value, -1.0, 1.0)


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(
    ("name", "setup"),
    [
        ("xl330", Setup(0.2, 0.1, 0.02, 5.0, 16383.0)),
        ("sts3215", Setup(0.3, 0.12, 0.05, 7.4, 254.0)),
    ],
)
def test_stiff_control_that_crosses_its_limits_within_a_step_costs_little_accuracy(name, setup):
    """At 2 Hz the error at 2.5 ms, with the mean of the limited duty, is at most 0.6 of that with its value in the middle."""
    servo = load_actuator(name)
    log = commanded(setup, "sin_time_square", 301)
    log = replace(log, goal=replace(log.goal, value=np.sin(4.0 * np.pi * log.goal.time)))
    values = {"q_offset": 0.0, **servo.published["m1"]}

    def motion(dt, stiff=True):
        batch = batch_for([log], dt, "exponential")
        bench = replace(plant_of(batch, servo, LAWS["m1"]), stiff=stiff)
        rest, positions = np.zeros(1), []
        state = PlantState(rest, rest, servo.control.first_state(batch.goal[0]))
        for goal, enable, supply in zip(batch.goal, batch.torque_enable, batch.supply_voltage, strict=True):
            positions.append(state.position)
            state = step(bench, values, state, ServoCommand(goal, enable, supply), dt)
        return np.ravel(positions)[:: round(DT / dt)]

    exact = motion(DT / 16)
    middle, mean = (np.mean(np.abs(motion(DT / 2, stiff) - exact)) for stiff in (False, True))
    print(name, mean, middle)
    assert mean < 0.6 * middle


def test_a_command_between_two_samples_is_not_late():
    """The mean of a held command over a step: by hand for a change after 2 ms, exact where nothing changes."""
    goal = Series(np.array([0.0, 0.012, 0.5]), np.array([1.0, 3.0, 3.0]), held=True)
    found = goal.mean(np.array([-0.01, 0.0, 0.005, 0.01, 0.015]), 0.005)
    assert found.tolist() == [1.0, 1.0, 1.0, pytest.approx((0.002 * 1.0 + 0.003 * 3.0) / 0.005), 3.0]
