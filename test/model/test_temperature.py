"""Friction and resistance by temperature: the formula, and motions."""

import numpy as np
import pytest

from helpers import published
from stribeck.files.actuators import load_actuator
from stribeck.live.states.servo_state import warmth
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import ControlState, Gains, ServoCommand
from stribeck.model.law import LAWS, friction_budget
from stribeck.model.step import Plant, PlantState, step
from stribeck.model.temperature import at_temperature

XL330 = load_actuator("xl330").with_effects(["temperature"])
COEFFICIENTS = {"friction_per_kelvin": 0.01, "resistance_per_kelvin": 0.004, "reference_temperature": 30.0}


@pytest.mark.parametrize("law", list(LAWS))
def test_twenty_kelvin_scale_the_whole_friction_budget_and_the_resistance(law):
    """exp(-0.01 * 20) of the friction in both directions, 1 + 0.004 * 20 of R; kt, armature and offsets stay."""
    values = {**published("xl330", law), **COEFFICIENTS}
    warm = at_temperature(values, 50.0)
    cold, warmer = (friction_budget(LAWS[law], p, 0.2, -0.1, 0.7) for p in (values, warm))
    assert np.array(warmer) == pytest.approx(np.exp(-0.2) * np.array(cold), rel=1e-12)
    assert warm["R"] == pytest.approx(1.08 * values["R"], rel=1e-12)
    assert {n: warm[n] for n in ("kt", "armature", "q_offset")} == {
        n: values[n] for n in ("kt", "armature", "q_offset")
    }


def test_an_unknown_temperature_leaves_everything_as_at_the_reference():
    """None, NaN, the reference itself, and files without the effect."""
    values = {**published("xl330", "m1"), **COEFFICIENTS}
    plant = Plant(XL330, LAWS["m1"], Pendulum(0.5, 0.1, 0.0), Gains(200.0, 0.0, 0.0))
    state = PlantState(0.1, 0.5, ControlState(0.0, 0.0))

    def after(values, temperature):
        return step(plant, values, state, ServoCommand(1.0, 1.0, 5.0, temperature), 0.005)

    plain = after(published("xl330", "m1"), 80.0)
    assert plain == after(values, None) == after(values, 30.0) == after(values, np.float64("nan"))
    assert after(values, 80.0).velocity != plain.velocity


def test_the_node_lowers_friction_by_the_identified_coefficient():
    """e^(-a dT) between a half and one; without a coefficient 1 % per kelvin."""
    assert warmth(10.0, 0.02) == pytest.approx(np.exp(-0.2))
    assert warmth(100.0, 0.02) == 0.5
    assert warmth(-10.0, 0.02) == warmth(10.0, -0.02) == 1.0
    assert warmth(10.0) == pytest.approx(0.9)
