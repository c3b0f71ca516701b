"""The friction budgets, evaluated by hand where the documentation states an equation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import refusal
from stribeck.model.law import (
    LAWS,
    FrictionLaw,
    friction_budget,
    friction_torque,
    law_named,
    stopping_torque,
)
from stribeck.model.terms import FRICTION_PARAMETERS
from stribeck.model.terms.quadratic_load import QUADRATIC_LOAD
from stribeck.model.terms.stribeck import stribeck_weight
from stribeck.model.terms.term import Conditions

VALUES = {
    "friction_base": 0.1,
    "friction_viscous": 0.2,
    "friction_stribeck": 0.3,
    "load_friction_base": 0.4,
    "load_friction_stribeck": 0.5,
    "load_friction_motor": 0.6,
    "load_friction_external": 0.7,
    "load_friction_motor_stribeck": 0.8,
    "load_friction_external_stribeck": 0.9,
    "load_friction_motor_quad": 1.1,
    "load_friction_external_quad": 1.3,
    "dtheta_stribeck": 0.5,
    "alpha": 2.0,
    "friction_base_negative": 0.15,
    "friction_viscous_negative": 0.25,
    "torque_offset": 0.05,
}

FADED = math.exp(-4.0)
"""The Stribeck weight at 1 rad/s: twice v_s, squared."""

# Motor torque 2, external torque -1, velocity 1: |tau_m - tau_e| = 3.
BY_HAND = {
    "m1": 0.2 + 0.1,
    "m2": 0.3 + FADED * 0.3,
    "m3": 0.3 + 0.4 * 3,
    "m4": 1.5 + FADED * (0.3 + 0.5 * 3),
    "m5": 0.3 + abs(0.6 * 2 + 0.7) + FADED * (0.3 + abs(0.8 * 2 + 0.9)),
    "m6": 2.2 + FADED * (2.8 + 1.3 * 1.0),
}

# The same torques at rest, where the Stribeck weight is 1 and viscous friction 0.
AT_REST = {"m1": 0.1, "m2": 0.4, "m3": 1.3, "m4": 3.1, "m5": 2.0 + 2.8, "m6": 2.0 + 4.1}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_the_budget_is_what_the_equation_gives_by_hand(law, direction):
    """One point per law, for both directions of motion: the budget depends on speed only.

    Tolerances of this file are some roundings of float64.
    """
    found = friction_budget(LAWS[law], VALUES, 2.0, -1.0, direction)
    assert found == pytest.approx((BY_HAND[law], BY_HAND[law]), rel=1e-14)


@pytest.mark.parametrize("law", LAWS)
def test_the_budget_at_rest_is_what_the_equation_gives_by_hand(law):
    """At rest the Stribeck terms count in full and viscous friction not at all."""
    found = friction_budget(LAWS[law], VALUES, 2.0, -1.0, 0.0)
    assert found == pytest.approx((AT_REST[law], AT_REST[law]), rel=1e-14)


def test_a_directional_load_weighs_motor_and_external_torque_before_it_subtracts_them():
    """|K_m tau_m - K_e tau_e| with torques in one direction, where the difference changes its sign."""
    found, _ = friction_budget(LAWS["m5"], VALUES, 1.0, 2.0, 1.0)
    assert found == pytest.approx(0.3 + abs(0.6 - 1.4) + FADED * (0.3 + abs(0.8 - 1.8)), rel=1e-14)


def test_an_asymmetric_law_has_a_budget_for_each_direction():
    """The second budget has Coulomb and viscous friction of its own and shares what grows with load."""
    law = LAWS["m4"].with_terms(asymmetric=True)
    positive, negative = friction_budget(law, VALUES, 2.0, -1.0, -1.0)
    assert positive == pytest.approx(BY_HAND["m4"], rel=1e-14)
    assert negative == pytest.approx(BY_HAND["m4"] - 0.3 + 0.25 + 0.15, rel=1e-14)


@pytest.mark.parametrize(
    ("motor", "external", "expected"),
    [
        (2.0, -1.0, 1.3 * 1.0),  # the motor drives: K_e^q tau_e^2
        (-2.0, 1.0, 1.3 * 1.0),
        (1.0, -2.0, 1.1 * 1.0),  # the load drives: K_m^q tau_m^2
        (-0.5, 2.0, 1.1 * 0.25),
        (2.0, 1.0, 0.0),  # the same direction
        (-1.0, -2.0, 0.0),
        (1.0, -1.0, 0.0),  # equal
        (1.0, 1.0, 0.0),
        (0.0, -1.0, 0.0),  # nothing opposes nothing
        (1.0, 0.0, 0.0),
    ],
)
def test_the_quadratic_term_counts_the_smaller_torque_and_only_when_they_oppose(motor, external, expected):
    """Each case of Q, at hand-computed points."""
    x = Conditions(0.0, 0.0, motor, external)
    assert QUADRATIC_LOAD.budget(VALUES, x, np) == pytest.approx(expected, rel=1e-14, abs=0.0)


@pytest.mark.parametrize(
    ("speed", "weight"), [(0.0, 1.0), (0.5, math.exp(-1.0)), (1.0, FADED), (0.25, math.exp(-0.25))]
)
def test_the_stribeck_weight_is_what_the_equation_gives_by_hand(speed, weight):
    """s = exp(-|v / v_s|^alpha) for v_s = 0.5 and alpha = 2, in both directions; exactly 1 at rest."""
    for velocity in (speed, -speed):
        assert stribeck_weight(velocity, 0.5, 2.0) == pytest.approx(weight, rel=1e-14)
    assert stribeck_weight(0.0, 0.5, 2.0) == 1.0


@settings(deadline=None, derandomize=True, max_examples=300)
@given(
    velocity=st.floats(-50.0, 50.0),
    dtheta_stribeck=st.floats(0.01, 10.0),
    alpha=st.floats(0.5, 20.0),
)
def test_the_stribeck_weight_lies_between_0_and_1_and_is_even(velocity, dtheta_stribeck, alpha):
    """The weight is a share, whatever the motion; nothing overflows into a warning."""
    weight = stribeck_weight(velocity, dtheta_stribeck, alpha)
    assert 0.0 <= weight <= 1.0
    assert weight == stribeck_weight(-velocity, dtheta_stribeck, alpha)


@pytest.mark.parametrize("law", LAWS)
def test_budgets_of_arrays_are_those_of_their_elements(law):
    """Runs and candidates broadcast: (R, 1) states with (C,) parameters give (R, C) budgets."""
    rng = np.random.default_rng(0)
    motor, external, velocity = rng.normal(size=(3, 4, 1))
    values = {name: value * rng.uniform(0.5, 1.5, 3) for name, value in VALUES.items()}
    found, _ = friction_budget(LAWS[law], values, motor, external, velocity)
    assert found.shape == (4, 3)
    for r in range(4):
        for c in range(3):
            one = {name: value[c] for name, value in values.items()}
            alone, _ = friction_budget(LAWS[law], one, motor[r, 0], external[r, 0], velocity[r, 0])
            # Vector and scalar code of exp and log may differ in the last place.
            assert found[r, c] == pytest.approx(alone, rel=1e-13)


@pytest.mark.parametrize("law", LAWS)
def test_only_the_parameters_of_the_law_are_read(law):
    """A law works with exactly the values that it names, so none of them is an option nobody reads."""
    names = LAWS[law].parameter_names
    exact = {name: VALUES[name] for name in names}
    full = friction_budget(LAWS[law], exact, 2.0, -1.0, 0.3)[0]
    for name in names:
        changed = friction_budget(LAWS[law], {**exact, name: 1.5 * exact[name]}, 2.0, -1.0, 0.3)[0]
        reads = changed != full
        # With the motor driving, the quadratic term does not look at the motor's coefficient.
        assert reads or name == "load_friction_motor_quad"


@pytest.mark.parametrize(
    ("law", "count"), [("m1", 2), ("m2", 5), ("m3", 3), ("m4", 7), ("m5", 9), ("m6", 11)]
)
def test_each_law_has_as_many_parameters_as_in_the_paper(law, count):
    """The number of parameters per law, all of them known by unit and bounds, none twice."""
    names = LAWS[law].parameter_names
    assert len(names) == len(set(names)) == count
    assert set(names) <= set(FRICTION_PARAMETERS)


def test_the_terms_of_robot_joints_add_their_parameters():
    """Asymmetry adds two parameters and an offset one, and both can be taken off again."""
    law = LAWS["m4"].with_terms(asymmetric=True, offset=True)
    added = set(law.parameter_names) - set(LAWS["m4"].parameter_names)
    assert added == {"friction_base_negative", "friction_viscous_negative", "torque_offset"}
    assert law.with_terms() == LAWS["m4"]


@pytest.mark.parametrize("name", ["m6", "M6"])
def test_laws_are_found_by_name_in_capitals_or_not(name):
    """Both spellings are in use."""
    found: FrictionLaw = law_named(name)
    assert found is LAWS["m6"]


def test_an_unknown_law_is_refused_with_the_valid_names():
    """The message lists what would have been right."""
    refusal(lambda: law_named("m7"), "'m7'", *LAWS)


def test_the_stopping_torque_is_what_the_equation_gives_by_hand():
    """tau_stop = -(J / dt v + tau) with J 0.02, dt 5 ms, v 0.3, tau 0.4: -(1.2 + 0.4)."""
    assert stopping_torque(0.3, 0.4, 0.02, 0.005) == pytest.approx(-1.6, rel=1e-14)


@pytest.mark.parametrize(
    ("stop", "friction"), [(-5.0, -1.0), (-0.5, -0.5), (0.0, 0.0), (1.5, 1.5), (5.0, 2.0)]
)
def test_friction_stops_the_joint_as_far_as_the_budget_of_the_coming_motion_reaches(stop, friction):
    """clip(tau_stop, [-budget+, budget-]) with budgets 1 against positive and 2 against negative motion."""
    assert friction_torque(stop, (1.0, 2.0)) == friction


def test_a_law_says_what_its_budget_depends_on():
    """The offset torque is none of it: a ripple makes the torque depend on the position, not the friction."""
    both = {"motor", "external"}
    assert {name: law.load_inputs for name, law in LAWS.items()} == {
        "m1": set(), "m2": set(), "m3": both, "m4": both, "m5": both, "m6": both
    }  # fmt: skip
    rippled = law_named("m1").with_terms(ripple=True)
    assert rippled.inputs == {"speed", "position"}
    assert rippled.budget_inputs == {"speed"}
    assert "position" in law_named("m1").with_terms(position=True).budget_inputs


def test_friction_over_the_position_is_not_extrapolated_beyond_the_recordings():
    """K_c + s d + c d^2 with d = q - q_c within the reach r, that at q_c + r or q_c - r beyond it, by hand."""
    law = law_named("m1").with_terms(position=True)
    p = {"friction_base": 1.0, "friction_viscous": 0.0, "friction_slope": 0.2, "friction_curve": 0.5}
    p |= {"friction_centre": 0.3, "friction_reach": 0.4}
    at = np.array([-5.0, -0.1, 0.3, 0.5, 0.7, 9.0])
    found = friction_budget(law, p, 0.0, 0.0, 1.0, at)[0]
    assert found == pytest.approx([1.0, 1.0, 1.0, 1.06, 1.16, 1.16], abs=1e-12)
