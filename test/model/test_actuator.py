"""The firmware's control laws and the motor equations, evaluated by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from helpers import driven, setup_for
from stribeck.files.actuators import load_actuator
from stribeck.model.actuator import Actuator, Supply, motor_torque
from stribeck.model.control_laws import (
    ControlState,
    CurrentControl,
    Gains,
    ServoCommand,
    TorqueControl,
    VoltageControl,
)
from stribeck.model.electrics import motor_current
from stribeck.model.law import LAWS
from stribeck.model.step import plant_of, simulate

DT = 0.005
MOTOR = {"kt": 2.0, "R": 4.0, "armature": 0.01}
FRESH = ControlState(0.0, 0.0)
ON = ServoCommand(goal=0.0, torque_enable=1.0, supply_voltage=10.0)


def servo(control) -> Actuator:
    """A servo with a control law and nothing else of interest."""
    return Actuator("servo", "A servo", "rotary", control, Supply(10.0, 5.0, 12.0), 0.001, {})


def duty_cycle(control, gains, state, goal, position, velocity, dt):
    """Duty and next state of a voltage law."""
    state = servo(control).control.next_state(gains, state, goal, position, dt)
    return servo(control).control.output(MOTOR, gains, state, goal, position, velocity), state


def torque_of(control, goal, position, velocity, *, p=MOTOR, kp=10.0, enable=1.0, ki=0.0, kd=0.0):
    """Motor torque at 10 V for a fresh firmware."""
    command = ServoCommand(goal, enable, 10.0)
    actuator = servo(control)
    state = actuator.control.first_state(goal)
    return motor_torque(actuator, p, Gains(kp, ki, kd), state, command, position, velocity, DT)[0]


XL330 = load_actuator("xl330")
VOLTAGE = VoltageControl(gain=0.1, duty_max=0.9)


@pytest.mark.parametrize(
    ("goal", "position", "velocity", "torque"),
    [
        (0.5, 0.1, 0.0, 0.5 * 4.0),  # duty 0.1 * 10 * 0.4 = 0.4, 4 V, k_t / R = 0.5
        (0.5, 0.1, 1.0, 0.5 * (4.0 - 2.0)),  # less the back-EMF
        (0.1, 0.5, 1.0, 0.5 * (-4.0 - 2.0)),  # with its sign
        (3.0, 0.0, 0.0, 0.5 * 9.0),  # the duty stops at duty_max
        (-3.0, 0.0, 1.0, 0.5 * (-9.0 - 2.0)),
        (0.0, 0.0, -1.0, 0.5 * 2.0),  # no error: the bridge brakes
    ],
)
def test_the_voltage_law_is_what_the_equation_gives_by_hand(goal, position, velocity, torque):
    """tau_m = k_t / R (clip(gain K_p error, duty_max) V - k_t v)."""
    assert torque_of(VOLTAGE, goal, position, velocity) == pytest.approx(torque, rel=1e-14)


def test_torque_off_is_an_open_circuit_for_a_servo_driven_by_voltage():
    """No torque at all, so no braking by the back-EMF either."""
    assert torque_of(VOLTAGE, 1.0, 0.0, 5.0, enable=0.0) == 0.0


@pytest.mark.parametrize(
    ("duty", "velocity", "brake", "coast"),
    [
        (0.5, 1.0, 0.5 * (5.0 - 2.0), 0.5 * 0.5 * (10.0 - 2.0)),
        (-0.5, 1.0, 0.5 * (-5.0 - 2.0), 0.5 * 0.5 * (-10.0 - 2.0)),
        (0.0, 1.0, 0.5 * -2.0, 0.0),
        (1.0, 1.0, 0.5 * 8.0, 0.5 * 8.0),
    ],
)
def test_a_coasting_bridge_lets_the_back_emf_act_for_the_driven_share_only(duty, velocity, brake, coast):
    """k_t |d| (sign(d) V - k_t v) / R against k_t (d V - k_t v) / R; at full duty they are one."""
    for bridge, torque in (("brake", brake), ("coast", coast)):
        control = VoltageControl(gain=0.1, duty_max=1.0, bridge=bridge)
        assert control.torque(MOTOR, duty, ON, velocity) == pytest.approx(torque, rel=1e-14)


@pytest.mark.parametrize(
    ("duty", "velocity", "torque"),
    [
        (1.0, 1.0, 2.0),  # 10 V - 2 V would drive 2 A; 1 A times k_t = 2
        (-1.0, 1.0, -2.0),
        (0.4, 1.0, 1.0),  # 4 V - 2 V drives 0.5 A, below the limit
        (0.0, 3.0, -2.0),  # braking with 6 V would drive 1.5 A
        (1.0, -8.0, 0.5 * (-10.0 + 16.0)),  # the generated 16 V exceed what the supply can hold against
    ],
)
def test_a_current_limit_bounds_the_phase_current_as_far_as_the_supply_allows(duty, velocity, torque):
    """|U - k_t v| <= R I_max with I_max = 1 A, and |U| <= V whatever happens."""
    limited = {**MOTOR, "current_limit": 1.0}
    assert VOLTAGE.torque(limited, duty, ON, velocity) == pytest.approx(torque, rel=1e-14)


def test_a_saturated_torque_is_that_of_the_current_by_hand_and_gives_the_current_back():
    """k_t I/(1 + c |I|), with the back-EMF of the unsaturated constant; torque off and c = 0 as without."""
    saturated = {**MOTOR, "torque_saturation": 0.2}
    for duty, velocity in ((0.5, 0.0), (-0.7, 2.0), (1.0, -3.0)):
        plain = VOLTAGE.torque(MOTOR, duty, ON, velocity)
        current = plain / MOTOR["kt"]
        torque = VOLTAGE.torque(saturated, duty, ON, velocity)
        assert torque == pytest.approx(MOTOR["kt"] * current / (1.0 + 0.2 * abs(current)))
        assert motor_current(saturated, torque) == pytest.approx(current)
        assert VOLTAGE.torque({**MOTOR, "torque_saturation": 0.0}, duty, ON, velocity) == plain


def test_the_saturation_of_the_xl330_reproduces_its_stall_points():
    """Stall torques of the e-manual at 3.7, 5 and 6 V within their rounding, with the constant of its no-load speeds."""
    c = XL330.effects["saturation"][0]
    for current, torque in ((1.11, 0.42), (1.47, 0.52), (1.74, 0.60)):
        assert 0.455 * current / (1.0 + c * current) == pytest.approx(torque, abs=0.01)
    saturated = XL330.with_effects(["current-limit", "saturation"])
    assert saturated.rise_of_constant == pytest.approx(1.0 + c * 1.47)
    assert saturated.parameters(LAWS["m1"])["kt"].upper == pytest.approx(0.5 * (1.0 + c * 1.47))


def test_a_current_limit_out_of_reach_changes_nothing():
    """A limit above V / R = 2.5 A at rest is never felt."""
    for duty in (-0.9, -0.2, 0.0, 0.7):
        limited = VOLTAGE.torque({**MOTOR, "current_limit": 2.6}, duty, ON, 0.0)
        assert limited == VOLTAGE.torque(MOTOR, duty, ON, 0.0)


CURRENT = CurrentControl(gain=1.0, damping=0.5, current_max=3.0)


@pytest.mark.parametrize(
    ("goal", "velocity", "kt", "torque"),
    [
        (0.5, 0.0, 0.4, 0.4 * 0.5 * 4.0),  # I = K_p error = 2 A
        (0.5, 1.0, 0.4, 0.4 * (2.0 - 0.5 * 2.0 * 1.0)),  # less d sqrt(K_p) v
        (-0.5, 1.0, 0.4, 0.4 * -2.6),  # (-V - k_t v) / R
        (5.0, 0.0, 4.0, 4.0 * 2.5),  # V / R = 2.5 A
        (5.0, 1.0, 4.0, 4.0 * (10.0 - 4.0) / 4.0),  # (V - k_t v) / R
        (-5.0, 1.0, 4.0, 4.0 * -3.0),  # -(V + k_t v) / R = -3.5 A lies beyond I_max
        (5.0, 0.0, 0.4, 0.4 * 2.5),
    ],
)
def test_the_current_law_is_what_the_equation_gives_by_hand(goal, velocity, kt, torque):
    """I = clip(K_p e - d sqrt(K_p) v, the interval that voltage and heat allow), K_p = 4."""
    found = torque_of(CURRENT, goal, 0.0, velocity, p={"kt": kt, "R": 4.0}, kp=4.0)
    assert found == pytest.approx(torque, rel=1e-14)


@pytest.mark.parametrize(("velocity", "current"), [(8.0, -3.0), (-8.0, 3.0)])
def test_the_heat_limit_wins_where_the_current_interval_is_empty(velocity, current):
    """Back-EMF of 32 V against 10 V would drive 5.5 A at least; I_max = 3 A wins, whatever is wanted."""
    for wanted in (-10.0, 0.0, 10.0):
        torque = CURRENT.torque({"kt": 4.0, "R": 4.0}, wanted, ON, velocity)
        assert torque == pytest.approx(4.0 * current, rel=1e-14)


def test_torque_off_is_zero_current_and_no_open_circuit_for_a_servo_driven_by_current():
    """I* = 0, which a back-EMF above the supply still overcomes."""
    off = ServoCommand(0.0, 0.0, 10.0)
    assert CURRENT.torque({"kt": 4.0, "R": 4.0}, 2.0, off, 1.0) == 0.0
    assert CURRENT.torque({"kt": 4.0, "R": 4.0}, 2.0, off, 3.0) == pytest.approx(4.0 * -0.5, rel=1e-14)


def test_without_a_known_resistance_only_heat_bounds_the_current():
    """The eRob80 1:100 was published without R."""
    assert torque_of(CURRENT, 5.0, 0.0, 100.0, p={"kt": 4.0}, kp=4.0) == pytest.approx(-12.0, rel=1e-14)
    assert torque_of(CURRENT, 0.5, 0.0, 0.0, p={"kt": 4.0}, kp=4.0) == pytest.approx(8.0, rel=1e-14)


TORQUE = TorqueControl(gain=2.0, damping=0.3, torque_max=5.0)


@pytest.mark.parametrize(
    ("goal", "velocity", "enable", "torque"),
    [
        (0.1, 1.0, 1.0, 1.1 * 2.0 * 10.0 * 0.1 - 0.3),
        (-0.1, 1.0, 1.0, -2.2 - 0.3),
        (3.0, 0.0, 1.0, 5.0),
        (-3.0, 0.0, 1.0, -5.0),
        (3.0, 1.0, 0.0, 0.0),
    ],
)
def test_the_torque_law_is_what_the_equation_gives_by_hand(goal, velocity, enable, torque):
    """tau_m = clip(ratio gain K_p e - d v, torque_max); torque off is no torque."""
    found = torque_of(TORQUE, goal, 0.0, velocity, p={"ratio": 1.1, "armature": 0.01}, enable=enable)
    assert found == pytest.approx(torque, rel=1e-14)


@pytest.mark.parametrize("name", ["sts3215", "sts3215_12v"])
def test_feetech_servos_ramp_the_goal_at_3400_counts_per_second(name):
    """A far goal is approached by 3400 counts/s (4096 a turn) times dt per step, either way."""
    control = load_actuator(name).control
    reach = 3400.0 * 2.0 * math.pi / 4096.0 * DT
    state = load_actuator(name).control.first_state(1.0)
    assert state.goal == 1.0
    for goal, sign in ((2.0, 1.0), (-2.0, -1.0)):
        _, first = duty_cycle(control, Gains(0.0, 0.0, 0.0), state, goal, 0.0, 0.0, DT)
        _, second = duty_cycle(control, Gains(0.0, 0.0, 0.0), first, goal, 0.0, 0.0, DT)
        assert first.goal == pytest.approx(1.0 + sign * reach, rel=1e-12)
        assert second.goal == pytest.approx(1.0 + sign * 2 * reach, rel=1e-12)
    _, arrived = duty_cycle(control, Gains(0.0, 0.0, 0.0), state, 1.0 + 0.5 * reach, 0.0, 0.0, DT)
    assert arrived.goal == 1.0 + 0.5 * reach


def test_the_ramped_goal_is_what_the_duty_follows():
    """The error counts from the ramp, in the same step."""
    control = VoltageControl(gain=0.1, duty_max=1.0, goal_speed=2.0)
    duty, state = duty_cycle(control, Gains(10.0, 0.0, 0.0), FRESH, 5.0, 0.004, 0.0, DT)
    assert state.goal == pytest.approx(0.01, rel=1e-14)
    assert duty == pytest.approx(0.1 * 10.0 * (0.01 - 0.004), rel=1e-13)


PID = VoltageControl(gain=0.1, duty_max=0.9, integral_gain=0.2, derivative_gain=0.05)


def test_pid_terms_are_what_the_equation_gives_by_hand():
    """d = g K_p e + g_i K_i (integral + e dt) - g_d K_d v with e = 0.2, v = 0.3, integral 0.1."""
    duty, state = duty_cycle(PID, Gains(10.0, 5.0, 4.0), ControlState(0.0, 0.1), 0.5, 0.3, 0.3, DT)
    assert state.integral == pytest.approx(0.1 + 0.2 * DT, rel=1e-14)
    assert duty == pytest.approx(0.2 + 1.0 * 0.101 - 0.05 * 4.0 * 0.3, rel=1e-13)


def test_the_integral_never_asks_for_more_than_full_duty():
    """Anti-windup: after minutes of error the integral alone is full duty, and comes off at once."""
    gains, state = Gains(0.0, 5.0, 0.0), FRESH
    for _ in range(20000):
        duty, state = duty_cycle(PID, gains, state, 1.0, 0.0, 0.0, DT)
    assert duty == pytest.approx(0.9, rel=1e-12)
    assert state.integral == pytest.approx(0.9, rel=1e-12)  # duty_max / (0.2 * 5)
    duty, state = duty_cycle(PID, gains, state, -1.0, 0.0, 0.0, DT)
    assert duty == pytest.approx(0.9 - DT, rel=1e-12)
    for _ in range(20000):
        _, state = duty_cycle(PID, gains, state, -1.0, 0.0, 0.0, DT)
    assert state.integral == pytest.approx(-0.9, rel=1e-12)


def test_an_integral_without_gain_stays_harmless():
    """Runs without K_i beside runs with it: no division by zero, and no share of the duty."""
    gains = Gains(np.array([10.0, 10.0]), np.array([0.0, 5.0]), np.array([0.0, 0.0]))
    duty, _ = duty_cycle(PID, gains, ControlState(0.0, np.zeros(2)), 0.5, np.zeros(2), np.zeros(2), DT)
    np.testing.assert_allclose(duty, [0.5, 0.5 + 1.0 * 0.5 * DT], rtol=1e-13)


def test_firmware_terms_without_gain_are_left_out_of_the_plant():
    """A batch without K_i and K_d costs no integral, and moves as with a firmware that has none."""
    xl330 = load_actuator("xl330")
    batch = driven(xl330, ["steps"], duration=2.0)
    control = plant_of(batch, xl330, LAWS["m1"]).actuator.control
    assert (control.integral_gain, control.derivative_gain) == (None, None)
    assert xl330.control.integral_gain is not None


@pytest.mark.parametrize(("gain", "sign"), [("ki", 1.0), ("kd", -1.0)])
def test_integral_and_derivative_gains_act_in_a_whole_simulation(gain, sign):
    """K_i raises a static load further towards its goal; K_d slows the way to it down."""
    xl330 = load_actuator("xl330")
    setup = setup_for(xl330)
    plain = driven(xl330, ["half_sine"], setup, duration=3.0)
    more = driven(xl330, ["half_sine"], replace(setup, **{gain: 20000.0}), duration=3.0)
    values = xl330.published["m1"]
    reached = simulate(plain, xl330, LAWS["m1"], values).position[400, 0]
    changed = simulate(more, xl330, LAWS["m1"], values).position[400, 0]
    assert sign * (changed - reached) > 0.01


def test_a_firmware_without_ramp_and_integral_remembers_nothing():
    """Its state is plain zeros, which cost nothing."""
    assert servo(VOLTAGE).control.first_state(np.ones(3)) == ControlState(0.0, 0.0)
    remembered = servo(PID).control.first_state(np.ones(3))
    assert remembered.goal == 0.0
    assert np.array_equal(remembered.integral, np.zeros(3))
