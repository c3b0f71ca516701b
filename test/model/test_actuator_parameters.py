"""Which parameters a servo has with a law, and what its effects add to them."""

from dataclasses import replace

import pytest

from helpers import refusal
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.model.actuator import EFFECTS
from stribeck.model.law import LAWS
from stribeck.model.terms import FRICTION_PARAMETERS

XL330 = load_actuator("xl330")


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("name", actuator_names())
@pytest.mark.parametrize("law", LAWS)
def test_every_servo_has_the_parameters_of_every_law(name, law):
    """Motor, bench and friction parameters, all free, started in the middle of their bounds."""
    servo = load_actuator(name)
    found = servo.parameters(LAWS[law])
    motor = [key for key in servo.control.motor_parameters if key in servo.bounds]
    assert found.names == (*motor, "q_offset", *LAWS[law].parameter_names)
    assert found.free_names == found.names
    for parameter in found:
        assert parameter.value == pytest.approx(0.5 * (parameter.lower + parameter.upper))


def test_bounds_of_the_servo_go_before_the_general_ones():
    """The eRob80's friction is tens of N m; what its file does not say stays general."""
    found = load_actuator("erob80_50").parameters(LAWS["m4"].with_terms(asymmetric=True))
    assert (found["friction_base"].lower, found["friction_base"].upper) == (0.0, 10.0)
    assert found["friction_base_negative"].upper == 10.0
    assert found["friction_viscous_negative"].upper == 30.0
    assert found["alpha"].upper == FRICTION_PARAMETERS["alpha"].upper == 10.0


def test_an_offset_torque_starts_at_zero_and_is_fixed_beside_asymmetric_friction():
    """Where Coulomb friction alone is asymmetric the two differ only by convention: one is fixed."""
    alone = XL330.parameters(LAWS["m1"].with_terms(offset=True))["torque_offset"]
    beside = XL330.parameters(LAWS["m1"].with_terms(offset=True, asymmetric=True))["torque_offset"]
    assert (alone.value, alone.free) == (0.0, True)
    assert (beside.value, beside.free) == (0.0, False)


def test_units_follow_the_kind_of_joint():
    """A linear axis counts in N and m."""
    linear = replace(XL330, units="linear").parameters(LAWS["m6"])
    rotary = XL330.parameters(LAWS["m6"])
    assert [linear[n].unit for n in ("kt", "armature", "q_offset", "friction_base")] == [
        "N/A",
        "kg",
        "m",
        "N",
    ]
    assert [rotary[n].unit for n in ("kt", "armature", "q_offset", "friction_base")] == [
        "N m/A",
        "kg m^2",
        "rad",
        "N m",
    ]
    assert linear["dtheta_stribeck"].unit == "m/s"


def test_effects_are_off_unless_asked_for():
    """A servo fresh from its file is that of the paper."""
    assert XL330.active_effects == frozenset()
    assert not XL330.uses_measured_supply
    assert not {"current_limit", "command_delay"} & set(XL330.parameters(LAWS["m6"]).names)


def test_a_current_limit_is_fixed_at_the_datasheet_value_and_narrows_the_motor_constants():
    """1.75 A, and k_t and R of the datasheet: without that box the limit is compensated by them."""
    found = XL330.with_effects(["current-limit"]).parameters(LAWS["m6"])
    limit = found["current_limit"]
    assert (limit.value, limit.lower, limit.upper, limit.unit, limit.free) == (1.75, 0.5, 3.0, "A", False)
    assert (found["kt"].lower, found["kt"].upper) == (0.3, 0.5)
    assert (found["R"].lower, found["R"].upper) == (2.8, 4.2)
    assert (XL330.bounds["kt"], XL330.bounds["R"]) == ((0.1, 3.0), (2.0, 5.0))
    assert "current_limit" not in found.free_names


def test_a_command_delay_is_fixed_and_narrows_nothing():
    """Only the current limit comes with a datasheet box."""
    found = XL330.with_effects(["delay"]).parameters(LAWS["m6"])
    assert (found["command_delay"].value, found["command_delay"].unit) == (0.0, "s")
    assert not found["command_delay"].free
    assert (found["kt"].lower, found["kt"].upper) == (0.1, 3.0)


def test_measured_supply_adds_no_parameter():
    """It is data, not a parameter."""
    on = XL330.with_effects(["supply"])
    assert on.uses_measured_supply
    assert on.parameters(LAWS["m6"]).names == XL330.parameters(LAWS["m6"]).names


def test_all_effects_can_be_on_together_and_off_again():
    """Effects replace each other, they do not pile up."""
    assert XL330.with_effects(EFFECTS).active_effects == set(EFFECTS)
    assert XL330.with_effects(EFFECTS).with_effects([]) == XL330


def test_effects_that_do_not_fit_are_refused():
    """Unknown names, effects without a datasheet value, and a supply where torque needs none."""
    refusal(lambda: XL330.with_effects(["backlash"]), "'backlash'", *EFFECTS)
    refusal(
        lambda: load_actuator("mx64").with_effects(["current-limit"]),
        "current-limit",
        "mx64",
        "supply, delay",
    )
    refusal(lambda: load_actuator("unitree_go1").with_effects(["supply"]), "supply", "unitree_go1")


@pytest.mark.parametrize(
    ("name", "effects"),
    [
        ("xl330", EFFECTS),
        ("mx64", ("supply", "delay", "temperature")),
        ("unitree_go1", ("delay", "temperature")),
    ],
)
def test_a_servo_knows_which_effects_it_can_have(name, effects):
    """Those with a datasheet value, and the supply where there is one."""
    assert load_actuator(name).known_effects == effects
