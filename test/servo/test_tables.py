"""Control tables: consistent, and right at hand-computed points of the e-manual."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import refusal
from stribeck.servo.registers import UNDOCUMENTED, Register
from stribeck.servo.tables import MODELS, model_named

EVERYWHERE = (
    "model_number",
    "firmware_version",
    "id",
    "baud_rate",
    "return_delay_time",
    "status_return_level",
    "shutdown",
    "min_position_limit",
    "max_position_limit",
    "min_voltage_limit",
    "max_voltage_limit",
    "temperature_limit",
    "torque_enable",
    "position_p_gain",
    "position_i_gain",
    "position_d_gain",
    "goal_position",
    "profile_velocity",
    "moving",
    "present_velocity",
    "present_position",
    "present_input_voltage",
    "present_temperature",
)
REGISTERS = [(name, register) for name, model in MODELS.items() for register in model.registers.values()]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_registers_lie_apart_and_begin_within_their_range(model):
    """No two registers share a byte, and every factory value is one that the servo takes."""
    rows = list(model.registers.values())
    for row, following in pairwise(rows):
        assert row.address + row.size <= following.address, f"{row.name} reaches into {following.name}"
    for row in rows:
        assert row.accepts(row.initial), row.name
        assert row.number(row.raw(row.initial)) == row.initial, row.name


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_servo_has_the_common_registers_and_modes_that_it_can_hold(model):
    """Names are the same for all servos, and every mode is a value of the mode's register."""
    assert not set(EVERYWHERE) - set(model.registers)
    if model.mode_register:
        mode = model.register(model.mode_register)
        assert all(mode.accepts(value) for value in model.modes.values())
    else:
        assert model.modes == {"position": 0}
    assert model.registers["model_number"].initial == model.model_number
    assert all(model.register("baud_rate").accepts(value) for value in model.baud_rates)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_center_is_zero_and_a_quarter_turn_is_a_quarter_of_the_counts(model):
    """Positions are 0 rad at the center and grow with the counts."""
    register = model.register("present_position")
    assert register.quantity(register.zero) == 0.0
    quarter = model.register("goal_position").counts(math.pi / 4, 0, 4095)
    assert quarter - register.zero == round(model.resolution / 8)
    assert register.quantity(quarter) == pytest.approx(math.pi / 4, abs=math.pi / model.resolution)


@pytest.mark.parametrize(
    ("model", "register", "raw", "quantity"),
    [
        ("xl330", "present_current", 0xFFFF, -0.001),
        ("xl330", "present_current", 1750, 1.75),
        ("xl330", "goal_pwm", 885, 1.0),
        ("xl330", "present_velocity", 2**32 - 100, -100 * 0.229 * 2 * math.pi / 60),
        ("xl330", "present_input_voltage", 50, 5.0),
        ("xl330", "bus_watchdog", 5, 0.1),
        ("xl330", "bus_watchdog", 0xFF, -0.02),
        ("xl330", "present_position", 2**32 - 2048, -2 * math.pi),
        ("xl330", "return_delay_time", 250, 500e-6),
        ("mx106", "present_current", 2148, 0.45),
        ("mx106", "goal_current", 1024 + 100, -0.45),
        ("mx106", "present_load", 1024 + 1023, -1.0),
        ("mx106", "present_velocity", 300, 34.2 * 2 * math.pi / 60),
        ("xl320", "present_position", 0, -math.radians(150)),
        ("xl320", "present_velocity", 1024 + 300, -33.3 * 2 * math.pi / 60),
        ("xm430", "present_current", 100, 0.269),
        ("mx64_2", "present_current", 100, 0.336),
        ("xm540", "present_current", 2047, 5.50643),
        ("xc330", "current_limit", 2352, 2.352),
        ("sts3215", "present_position", 3072, math.pi / 2),
        ("sts3215", "present_position", 0x8000 + 2048, -2 * math.pi),
        ("sts3215", "present_velocity", 0x8000 + 4096, -2 * math.pi),
        ("sts3215", "present_pwm", 1024 + 250, -0.25),
        ("sts3215", "present_current", 0x8000 + 100, -0.65),
        ("sts3215", "present_input_voltage", 74, 7.4),
        ("sts3215", "homing_offset", 2048 + 2047, -2047),
        ("scs0009", "present_position", 0, -math.radians(150)),
    ],
)
def test_values_of_the_manual(model, register, raw, quantity):
    """Integers on the wire mean what the e-manual says, computed by hand."""
    assert MODELS[model].register(register).decode(raw) == pytest.approx(quantity, rel=1e-9, abs=1e-12)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(("name", "register"), REGISTERS, ids=[f"{n}-{r.name}" for n, r in REGISTERS])
def test_quantities_survive_the_wire(name, register: Register):
    """Encoding what was decoded gives the same integer, at both ends of the range and in the middle."""
    lower, upper = register.limits
    for number in {lower, upper, (lower + upper) // 2}:
        raw = register.raw(number)
        assert 0 <= raw < 1 << 8 * register.size
        assert register.raw(register.counts(register.decode(raw), lower, upper)) == raw


@given(st.sampled_from(list(MODELS)), st.floats(-3.0, 3.0))
def test_a_position_is_rounded_to_the_nearest_count(name, position):
    """A goal is at most half a count away from what was asked; beyond the range it is the end of the range."""
    model = MODELS[name]
    register = model.register("goal_position")
    number = register.counts(position, *register.limits)
    assert register.accepts(number)
    lower, upper = (register.quantity(limit) for limit in register.limits)
    wanted = min(max(position, lower), upper)
    assert abs(register.quantity(number) - wanted) <= math.pi / model.resolution * (1 + 1e-9)


def test_what_no_servo_can_take_is_refused_with_what_it_takes():
    """Numbers out of range, or names that do not exist are refused in one line."""
    xl330 = model_named("xl330")
    refusal(lambda: xl330.register("goal_current").raw(1 << 15), "goal_current", 32768, "-32768 to 32767")
    refusal(lambda: xl330.register("present_load"), "present_load", "present_current")
    refusal(lambda: xl330.baud_value(12345), 12345, 57600, 4000000)
    refusal(lambda: model_named("xl999"), "xl999", "xl330", "mx106")


def test_servos_have_the_numbers_of_the_manual():
    """What a ping answers."""
    assert {name: model.model_number for name, model in MODELS.items()} == {
        "xl330": 1200,
        "xl330_m077": 1190,
        "xl320": 350,
        "mx64": 310,
        "mx106": 320,
        "mx64_2": 311,
        "mx106_2": 321,
        "mx28_2": 30,
        "xm430": 1020,
        "xm430_w210": 1030,
        "xm540": 1120,
        "xc330": 1240,
        "sts3215": 777,
        "sts3215_12v": 777,
        "sts3250": 2825,
        "sts3032": UNDOCUMENTED,
        "scs0009": 1284,
    }


def test_only_protocol_2_servos_with_the_register_have_a_watchdog():
    """Protocol-1 servos, the XL320 and those of Feetech do not stop by themselves."""
    without = {name for name, model in MODELS.items() if not model.has_watchdog}
    assert without == {"mx64", "mx106", "xl320", "sts3215", "sts3215_12v", "sts3250", "sts3032", "scs0009"}
