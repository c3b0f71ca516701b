"""From a law to feed-forward: direction, offsets of goals, what feeds on itself, the fixed point."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from helpers import PUBLISHED, published, refusal
from stribeck.files.actuators import load_actuator
from stribeck.live.direction.motion import Tuning, intended_direction, smooth_step
from stribeck.live.friction import (
    PROBE,
    FrictionModel,
    JointModel,
    goal_offset,
    stall_torque,
)
from stribeck.live.stability import check_gain, load_feedback
from stribeck.model.actuator import motor_torque
from stribeck.model.control_laws import ControlState, Gains, ServoCommand, VoltageControl
from stribeck.model.law import LAWS, FrictionLaw, friction_budget
from stribeck.model.terms import FRICTION_PARAMETERS

TUNING = Tuning()
XL330 = load_actuator("xl330")


def direction(velocity: float, error: float, commanded: float, tuning: Tuning = TUNING) -> float:
    """The direction of one joint."""
    return float(intended_direction(*(np.array([x]) for x in (velocity, error, commanded)), tuning)[0])


def joint(law: FrictionLaw, values: dict[str, float], limit: float = 0.3, name: str = "joint") -> JointModel:
    return JointModel(name, XL330, law, {"kt": 0.366, "R": 2.81, "armature": 0.002, **values}, limit)


numbers = st.floats(-10.0, 10.0)


# -- direction


def test_the_step_by_hand() -> None:
    """(3x - x³)/2: 0 at 0, 11/16 at a half, 1 from 1 on."""
    assert [float(smooth_step(x)) for x in (0.0, 0.5, 1.0, 7.0, -0.5)] == [0.0, 0.6875, 1.0, 1.0, -0.6875]


@given(numbers, st.floats(-0.1, 0.1), numbers)
def test_direction_is_bounded_and_odd(velocity: float, error: float, commanded: float) -> None:
    """Never more than 1, and turned with the motion, the error and the command."""
    found = direction(velocity, error, commanded)
    assert abs(found) <= 1.0
    assert found == -direction(-velocity, -error, -commanded)


@given(st.floats(-1.0, 1.0), st.floats(-0.03, 0.03), st.floats(-0.3, 0.3))
def test_direction_is_smooth(velocity: float, error: float, commanded: float) -> None:
    """A step of 1e-6 in anything changes it by no more than the steepest slopes of the rule allow."""
    here = direction(velocity, error, commanded)
    h = 1e-6
    # 1.5 per error_width, plus 0.7 per dead-band for moving away; 1.5 per command_velocity, plus 0.7 on the
    # way from a resting goal to a commanded one; 1.5 * 2 per moving_velocity, plus 1.5 * 0.7.
    steepest = (4.05 / 0.3, 1.5 / 0.012 + 0.7 / 0.0046, 2.2 / 0.1)
    steps = ((h, 0.0, 0.0), (0.0, h, 0.0), (0.0, 0.0, h))
    for slope, (dv, de, dc) in zip(steepest, steps, strict=True):
        assert abs(direction(velocity + dv, error + de, commanded + dc) - here) <= 1.01 * slope * h + 1e-15


def test_motion_decides_where_there_is_motion() -> None:
    """From the moving velocity on the direction is that of the motion, whatever is intended."""
    assert direction(0.3, 0.1, 0.0) == direction(2.0, 0.0, -1.0) == 1.0
    assert direction(-0.3, 1.0, 1.0) == -1.0


def test_intention_decides_at_rest() -> None:
    """Nothing within the dead-band; full with an error beyond it, or with a commanded velocity."""
    assert direction(0.0, 0.0046, 0.0) == direction(0.0, -0.0046, 0.0) == 0.0
    assert direction(0.0, 0.0046 + 0.006, 0.0) == pytest.approx(0.6875)
    assert direction(0.0, 0.02, 0.0) == direction(0.0, 0.0, 0.1) == direction(0.0, -0.003, 0.2) == 1.0
    assert direction(0.0, -0.1, 0.0) == -1.0


def test_away_from_a_resting_goal_there_is_less_of_it() -> None:
    """Three tenths in full motion away, all of it towards the goal or where motion is commanded."""
    assert direction(0.5, -0.01, 0.0) == pytest.approx(0.3)
    assert direction(0.5, 0.01, 0.0) == direction(0.5, -0.01, 0.1) == direction(0.5, 0.0, 0.0) == 1.0
    assert direction(0.5, -0.0023, 0.0) == pytest.approx(0.65)
    assert direction(0.5, -0.01, 0.0, replace(TUNING, overshoot_fraction=1.0)) == 1.0


def test_a_dead_band_of_zero_is_possible() -> None:
    """The rule stays finite and bounded."""
    assert direction(0.1, 0.0, 0.0, replace(TUNING, deadband=0.0)) > 0.0
    assert direction(0.0, 0.006, 0.0, replace(TUNING, deadband=0.0)) == pytest.approx(0.6875)


# -- from torque to goals and currents


@pytest.mark.parametrize("name", ["xl330", "xl320", "mx106", "sts3215", "erob80_50", "unitree_go1"])
@pytest.mark.parametrize("torque", [0.03, -0.05])
def test_a_goal_offset_makes_the_firmware_add_its_torque(name: str, torque: float) -> None:
    """Voltage, current and torque control: motor torque changes by exactly the torque, nothing saturated."""
    servo = load_actuator(name)
    values = {"kt": 0.5, "R": 2.5, "ratio": 0.9, "armature": 0.01}
    gains, supply = Gains(40.0, 0.0, 0.0), servo.supply.nominal

    def motor(goal: float) -> float:
        command = ServoCommand(goal, 1.0, supply)
        return float(motor_torque(servo, values, gains, ControlState(goal, 0.0), command, 0.21, 0.3, 0.0)[0])

    offset = goal_offset(servo, values, gains.kp, supply, torque)
    assert motor(0.2 + offset) - motor(0.2) == pytest.approx(torque, rel=1e-9)


def test_offset_and_current_by_hand() -> None:
    """τR/(k_t V g K_p) and τ/k_t, for one point, saturated R(I(τ_0 + τ) - I(τ_0))/(V g K_p) and τ/(k_t - cτ)."""
    gain = XL330.control.gain
    values = {"kt": 0.5, "R": 2.0}
    assert goal_offset(XL330, values, 200.0, 5.0, 0.1) == pytest.approx(0.1 * 2 / (0.5 * 5 * gain * 200))
    saturated = {**values, "torque_saturation": 1.0}
    expected = (0.3 / 0.2 - 0.2 / 0.3) * 2.0 / (5.0 * gain * 200.0)
    assert goal_offset(XL330, saturated, 200.0, 5.0, 0.1, 0.2) == pytest.approx(expected)


@pytest.mark.parametrize("torque", [0.05, -0.12])
def test_a_saturated_motor_gets_the_offset_and_current_of_the_torque_at_its_load(torque: float) -> None:
    """The motor's torque at the shifted goal is its torque at the goal plus the one asked for."""
    values = {"kt": 0.45, "R": 3.0, "armature": 0.01, "torque_saturation": 0.3}
    model = FrictionModel([joint(LAWS["m1"], {**published("xl330", "m1"), **values})])
    kp, supply, rest = np.array([300.0]), np.array([5.0]), np.zeros(1)
    goal, position = np.array([0.9]), np.array([0.5])
    before = model.firmware_torque(goal, position, rest, kp, supply)
    assert before[0] > 0.1
    offset = model.offsets(np.array([torque]), kp, supply, before)
    after = model.firmware_torque(goal + offset, position, rest, kp, supply)
    assert after - before == pytest.approx(torque, rel=1e-9)
    current = model.currents(np.array([torque]))[0]
    assert 0.45 * current / (1.0 + 0.3 * abs(current)) == pytest.approx(torque)
    stalled = 6.0 / 3.0
    for most in (1e9, -np.inf):  # the saturated torque of an infinite current is 1.5 N m
        assert model.currents(np.array([most]))[0] == pytest.approx(np.sign(most) * stalled)
        assert np.isfinite(model.offsets(np.array([most]), kp, supply, before)[0])


def test_the_stall_torque_is_what_the_motor_can_at_most() -> None:
    """k_t V/R at the highest rated supply; the current's and the torque's limit where those are controlled."""
    assert stall_torque(XL330, {"kt": 0.5, "R": 2.0}) == pytest.approx(0.5 * 6.0 / 2.0)
    assert stall_torque(load_actuator("unitree_go1"), {"ratio": 1.0}) == pytest.approx(23.7)
    erob = load_actuator("erob80_50")
    values = {"kt": 2.0, "R": 0.5}
    assert stall_torque(erob, values) == pytest.approx(2.0 * erob.control.current_max)


def test_offsets_are_those_of_torques_that_a_motor_can() -> None:
    """A controller that asks for 1e9 N m gets the offset of the stall torque; without a gain there is none."""
    values = published("xl330", "m6")
    model = FrictionModel([joint(LAWS["m6"], values)])
    supply = np.array([5.0])
    most = goal_offset(XL330, values, 200.0, 5.0, stall_torque(XL330, values))
    for kp, torque, offset in (
        (200.0, 1e9, most),
        (200.0, -np.inf, -most),
        (0.0, 0.1, 0.0),
        (np.nan, 1.0, 0),
    ):
        found = model.offsets(np.array([torque]), np.array([kp]), supply)
        assert found[0] == pytest.approx(offset)


# -- what feeds on itself


@pytest.mark.parametrize(
    ("law", "values", "expected"),
    [
        ("m1", {}, 0.0),
        ("m2", {}, 0.0),
        ("m3", {"load_friction_base": 0.3}, 0.3),
        ("m4", {"load_friction_base": 0.3, "load_friction_stribeck": 0.25}, 0.55),
        ("m5", {"load_friction_motor": 0.2, "load_friction_motor_stribeck": 0.5}, 0.7),
        (
            "m6",
            {
                "load_friction_motor": 0.2,
                "load_friction_motor_stribeck": 0.5,
                "load_friction_motor_quad": 0.01,
            },
            0.7 + 2 * 0.01 * 5.0,
        ),
    ],
)
def test_load_feedback_by_hand(law: str, values: dict[str, float], expected: float) -> None:
    """M3, M4: K_l + K_l^s; M5: K_m + K_m^s; M6: also 2 K_m^q τ_max. External terms do not count."""
    full = dict.fromkeys(LAWS[law].parameter_names, 0.9)
    full |= {name: 0.0 for name in full if name.startswith("load_") and "external" not in name} | values
    assert load_feedback(LAWS[law], full, 5.0) == pytest.approx(expected)


@pytest.mark.parametrize("law", ["m3", "m4", "m5", "m6"])
def test_load_feedback_bounds_the_slope_of_the_budget(law: str) -> None:
    """At rest, nowhere within the torque limit the budget grows faster with motor torque; somewhere as fast."""
    values = published("xl330", law)
    motor = np.linspace(-0.5, 0.5, 4001)
    # An external torque beyond the motor's: where the quadratic term of the motor acts.
    budget, _ = friction_budget(LAWS[law], values, motor, np.full_like(motor, 0.6), np.zeros_like(motor))
    steepest = float(np.max(np.abs(np.diff(budget) / np.diff(motor))))
    bound = load_feedback(LAWS[law], values, 0.5)
    assert 0.95 * bound < steepest <= bound + 1e-9


@pytest.mark.parametrize(
    ("gain", "stribeck", "refused"),
    [(0.8, 0.724, False), (0.8, 0.726, True), (1.0, 0.5, True), (0.0, 1.0, False), (2.0, 0.04, False)],
)
def test_a_gain_that_feeds_on_itself_is_refused(gain: float, stribeck: float, refused: bool) -> None:
    """From gain · slope = 0.9 on, with the joint, the figures, and what to do; unless load terms are off."""
    values = dict.fromkeys(LAWS["m4"].parameter_names, 0.4) | {"load_friction_stribeck": stribeck}
    joints = [joint(LAWS["m4"], values)]
    check_gain(joints, gain, "none")
    for meaning in ("motor", "link"):
        if not refused:
            check_gain(joints, gain, meaning)
            continue
        slope = 0.4 + stribeck
        parts = ("'joint'", f"{gain * slope:.2f}", f"a gain below {0.9 / slope:.2f}", "effort_meaning none")
        refusal(lambda meaning=meaning: check_gain(joints, gain, meaning), *parts)


@pytest.mark.parametrize("gain", [-0.1, 2.1, math.nan, math.inf])
def test_gains_that_are_none_are_refused(gain: float) -> None:
    """Only numbers from 0 to 2."""
    refusal(lambda: check_gain([joint(LAWS["m1"], {})], gain, "none"), "gain must be between 0 and 2")


@pytest.mark.parametrize(("name", "law"), PUBLISHED)
def test_every_published_file_can_be_compensated(name: str, law: str) -> None:
    """With the default gain, and half the stall torque as the limit."""
    servo = load_actuator(name)
    limit = 0.5 * servo.datasheet.figures.get("stall_torque", 20.0)
    check_gain([JointModel("joint", servo, LAWS[law], published(name, law), limit)], 0.8, "motor")


# -- the fixed point

LOAD_DEPENDENT = ("m3", "m4", "m5", "m6")


@st.composite
def laws(draw: st.DrawFn) -> tuple[FrictionLaw, dict[str, float]]:
    """A law, with or without the terms of robot joints, and values within its bounds."""
    law = LAWS[draw(st.sampled_from(list(LAWS)))]
    law = law.with_terms(asymmetric=draw(st.booleans()), offset=draw(st.booleans()))
    known = {name: FRICTION_PARAMETERS[name] for name in law.parameter_names}
    return law, {name: draw(st.floats(found.lower, found.upper)) for name, found in known.items()}


torques = st.floats(-1.0, 1.0)


@given(laws(), st.floats(0.0, 1.5), st.floats(-1.0, 1.0), torques, torques, st.floats(-3.0, 3.0), torques)
def test_the_fixed_point_is_reached_over_cycles(
    found: tuple[FrictionLaw, dict[str, float]],
    gain: float,
    direction: float,
    motor: float,
    external: float,
    velocity: float,
    guess: float,
) -> None:
    """From any guess within the limit, 60 cycles end at a solution of the equation, to 1e-9.

    The quadratic term of M6 jumps where motor and external torque are equal and opposite; where the
    equation has no solution for that, the torque stays within that jump. Where a load term changes its slope
    between the two points that give the Newton step its slope, the torque stays within their distance.
    """
    law, values = found
    limit = 1.0
    assume(gain * load_feedback(law, values, 2.0 * limit + abs(motor)) < 0.9)
    model = FrictionModel([joint(law, values, limit)])
    state = [np.array([x]) for x in (direction, velocity, motor, external)]
    torque = np.array([guess])
    for _ in range(60):
        torque = model.feed_forward(gain, *state, guess=torque)
    plus, minus = friction_budget(law, values, motor + torque, np.array([external]), np.array([velocity]))
    against = plus if direction > 0.0 else minus
    offset = values.get("torque_offset", 0.0)
    wanted = gain * (direction * against - abs(direction) * offset)
    jump = 0.0
    if "load_friction_motor_quad" in law.parameter_names:
        quads = (values["load_friction_motor_quad"], values["load_friction_external_quad"])
        jump = 2.0 * gain * abs(quads[0] - quads[1]) * external**2 / (1.0 - 0.9)
    residual = abs(float(np.clip(wanted, -limit, limit)[0] - torque[0]))
    kink = abs(abs(motor + torque[0]) - abs(external)) <= 4.0 * PROBE
    allowed = max(1e-9, jump, 4.0 * PROBE / (1.0 - 0.9) if kink else 0.0)
    assert residual <= allowed


@pytest.mark.parametrize("law", LOAD_DEPENDENT)
def test_one_cycle_solves_what_is_linear(law: str) -> None:
    """In steady motion the next cycle changes the torque by no more than 1e-6 of itself (M6: by a thousandth)."""
    values = published("xl330", law)
    model = FrictionModel([joint(LAWS[law], values)])
    one = np.array([1.0])
    first = model.feed_forward(0.8, one, 0.5 * one, 0.05 * one, -0.05 * one, guess=0.0 * one)
    second = model.feed_forward(0.8, one, 0.5 * one, 0.05 * one, -0.05 * one, guess=first)
    assert first[0] > 0.0
    assert second[0] == pytest.approx(first[0], rel=1e-6 if law != "m6" else 1e-3)


def test_without_a_guess_the_torques_are_taken_as_they_are() -> None:
    """One evaluation of the budget, for one point by hand: M3 with K_l 0.1."""
    values = {"friction_base": 0.01, "friction_viscous": 0.02, "load_friction_base": 0.1}
    model = FrictionModel([joint(LAWS["m3"], values)])
    state = [np.array([x]) for x in (-1.0, -0.5, 0.2, -0.1)]
    assert model.feed_forward(0.8, *state)[0] == pytest.approx(-0.8 * (0.02 * 0.5 + 0.01 + 0.1 * 0.3))


@given(laws(), torques, torques, st.floats(-3.0, 3.0), st.floats(-1.0, 1.0), st.floats(0.0, 2.0))
def test_the_torque_stays_within_its_limit(
    found: tuple[FrictionLaw, dict[str, float]],
    motor: float,
    external: float,
    velocity: float,
    direction: float,
    gain: float,
) -> None:
    """Whatever the law, the load and the guess."""
    model = FrictionModel([joint(*found, limit=0.02)])
    state = [np.array([x]) for x in (direction, velocity, 1e3 * motor, 1e3 * external)]
    for guess in (None, np.array([0.02]), np.array([-0.02])):
        assert abs(model.feed_forward(gain, *state, guess=guess)[0]) <= 0.02


# -- laws of robot joints


@given(st.floats(-0.009, 0.009), st.floats(-3.0, 3.0), st.floats(-1.0, 1.0), st.sampled_from(list(LAWS)))
def test_both_conventions_of_asymmetry_give_one_torque(
    offset: float, velocity: float, direction: float, name: str
) -> None:
    """Coulomb friction 0.01 ∓ τ_0 by direction, or 0.01 and the offset torque τ_0 beside it."""
    values = published("xl330", name) | {"friction_base": 0.01}
    viscous = values["friction_viscous"]
    asymmetric = values | {
        "friction_base": 0.01 - offset,
        "friction_base_negative": 0.01 + offset,
        "friction_viscous_negative": viscous,
    }
    first = FrictionModel([joint(LAWS[name].with_terms(asymmetric=True), asymmetric)])
    second = FrictionModel([joint(LAWS[name].with_terms(offset=True), values | {"torque_offset": offset})])
    state = [np.array([x]) for x in (direction, velocity, 0.05, -0.05)]
    one = other = None
    for _ in range(5):
        one, other = first.feed_forward(0.8, *state, guess=one), second.feed_forward(0.8, *state, guess=other)
    np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-14)


def test_asymmetric_friction_by_hand() -> None:
    """Positive motion meets K_c⁺, negative K_c⁻; the offset torque is taken away in both."""
    law = LAWS["m1"].with_terms(asymmetric=True, offset=True)
    values = {
        "friction_base": 0.03,
        "friction_viscous": 0.1,
        "friction_base_negative": 0.05,
        "friction_viscous_negative": 0.2,
        "torque_offset": 0.01,
    }
    model = FrictionModel([joint(law, values)])
    none = np.zeros(1)

    def found(sign: float) -> float:
        return float(model.feed_forward(1.0, np.array([sign]), np.array([0.5 * sign]), none, none)[0])

    assert found(1.0) == pytest.approx(0.03 + 0.1 * 0.5 - 0.01)
    assert found(-1.0) == pytest.approx(-(0.05 + 0.2 * 0.5) - 0.01)
    assert found(0.0) == 0.0


def test_joints_of_different_laws_are_as_one_by_one() -> None:
    """Grouping by law changes nothing, in any order, to the last bits."""
    names = ["m6", "m1", "m4", "m6", "m3", "m1"]
    joints = [
        joint(LAWS[law], {**published("xl330", law), "friction_base": 0.01 * k}, 0.1 + k, f"j{k}")
        for k, law in enumerate(names)
    ]
    rng = np.random.default_rng(5)
    state = [rng.uniform(-1.0, 1.0, len(names)) for _ in range(4)]
    guess = rng.uniform(-0.1, 0.1, len(names))
    together = FrictionModel(joints)
    for start in (None, guess):
        found = together.feed_forward(0.8, *state, guess=start)
        for k, single in enumerate(joints):
            own = [part[k : k + 1] for part in state]
            alone = FrictionModel([single]).feed_forward(
                0.8, *own, guess=None if start is None else start[k : k + 1]
            )
            np.testing.assert_allclose(found[k], alone[0], rtol=1e-14, atol=1e-18)
    np.testing.assert_array_equal(together.limit, 0.1 + np.arange(6))


def test_the_firmware_torque_is_that_of_the_simulation() -> None:
    """With a goal the servo's own law, NaN without a goal or a gain; a firmware's goal ramp is taken as done."""
    values = published("xl330", "m6")
    model = FrictionModel([joint(LAWS["m6"], values, name=name) for name in "abc"])
    goal, kp = np.array([0.3, np.nan, 0.3]), np.array([200.0, 200.0, np.nan])
    found = model.firmware_torque(goal, np.full(3, 0.2), np.full(3, 0.1), kp, np.full(3, 5.0))
    duty = XL330.control.gain * 200.0 * (0.3 - 0.2)
    assert found[0] == pytest.approx(0.366013 / 2.811392 * (5.0 * duty - 0.366013 * 0.1), rel=1e-5)
    assert np.isnan(found[1:]).all()
    sts = load_actuator("sts3215")
    assert isinstance(sts.control, VoltageControl)
    assert sts.control.goal_speed is not None
    ramping = FrictionModel([JointModel("a", sts, LAWS["m1"], {**values, "friction_base": 0.0}, 1.0)])
    one = np.ones(1)
    found = ramping.firmware_torque(0.1 * one, 0.0 * one, 0.0 * one, 8.0 * one, 7.4 * one)
    assert found[0] == pytest.approx(values["kt"] / values["R"] * 7.4 * sts.control.gain * 8.0 * 0.1)
