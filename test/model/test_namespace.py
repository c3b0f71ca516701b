"""Formulas run on the array library of their arguments, and on numpy when nothing else asks."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import published
from stribeck.files.actuators import load_actuator
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import ControlState, Gains, ServoCommand
from stribeck.model.law import LAWS, friction_budget
from stribeck.model.namespace import array_namespace, sine
from stribeck.model.step import Plant, PlantState, step

LIBRARY = SimpleNamespace(name="another array library")


class Foreign:
    """An array of another library."""

    def __array_namespace__(self):
        return LIBRARY


class OldArray(np.ndarray):
    """An array as numpy 1.26 has them: it knows no array namespace."""

    @property
    def __array_namespace__(self):
        raise AttributeError("numpy 1.26 has no __array_namespace__")


def old(values) -> OldArray:
    """An array of numpy 1.26."""
    return np.asarray(values, dtype=np.float64).view(OldArray)


@pytest.mark.parametrize(
    "arguments", [(), (np.ones(2),), (np.float64(1.0), 2.0), (1.0, np.float64(2.0)), (old([1.0]), 3)]
)
def test_numpy_is_the_array_library_of_numpy_arrays(arguments):
    """Numpy scalars and arrays, beside numbers, and the arrays of numpy 1.26."""
    assert array_namespace(*arguments) is np


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(a=NUMBERS, b=NUMBERS, c=NUMBERS)
def test_functions_of_single_numbers_equal_numpy(a, b, c):
    """``math`` on Python floats gives what numpy gives, overflow and the logarithm of zero included."""
    xp = array_namespace(a, b, c)
    assert xp is not np
    low, high = min(b, c), max(b, c)
    with np.errstate(all="ignore"):
        for found, wanted in (
            (xp.abs(a), np.abs(a)),
            (xp.sin(a), np.sin(a)),
            (xp.sqrt(abs(a)), np.sqrt(abs(a))),
            (xp.tanh(a), np.tanh(a)),
            (xp.exp(a), np.exp(a)),
            (xp.log(a), np.log(a)),
            (xp.maximum(a, b), np.maximum(a, b)),
            (xp.minimum(a, b), np.minimum(a, b)),
            (xp.clip(a, low, high), np.clip(a, low, high)),
            (xp.sign(a), np.sign(a)),
            (xp.where(a > b, a, b), np.where(a > b, a, b)),
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("law", LAWS)
def test_a_step_of_single_numbers_equals_a_step_of_arrays(law):
    """One servo in Python floats follows the same path as in numpy."""
    values = published("xl330", law)
    plant = Plant(load_actuator("xl330"), LAWS[law], Pendulum(0.5, 0.1, 0.0), Gains(200.0, 0.0, 0.0))
    rng = np.random.default_rng(0)
    for position, velocity, goal in rng.normal(size=(50, 3)):
        one = step(
            plant,
            values,
            PlantState(float(position), float(velocity), ControlState(0.0, 0.0)),
            ServoCommand(float(goal), 1.0, 5.0),
            0.001,
        )
        other = step(
            plant,
            values,
            PlantState(np.array(position), np.array(velocity), ControlState(0.0, 0.0)),
            ServoCommand(np.array(goal), 1.0, 5.0),
            0.001,
        )
        np.testing.assert_allclose(one[:2], other[:2], rtol=1e-13)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_the_first_foreign_array_decides_wherever_it_stands(position):
    """One array of another library among numbers is enough."""
    arguments = [1.0, np.ones(2), old([1.0])]
    arguments.insert(position, Foreign())
    assert array_namespace(*arguments) is LIBRARY


def test_the_stand_in_for_numpy_1_26_knows_no_namespace():
    """The stand-in does what it is here for."""
    assert getattr(old([1.0]), "__array_namespace__", None) is None


@pytest.mark.parametrize("law", LAWS)
def test_formulas_run_on_arrays_that_know_no_namespace(law):
    """Budgets and a step on the arrays of numpy 1.26 equal those on today's, to the last bit."""
    values = published("xl330", law)
    plant = Plant(load_actuator("xl330"), LAWS[law], Pendulum(0.5, 0.1, 0.0), Gains(200.0, 0.0, 0.0))
    rng = np.random.default_rng(0)
    position, velocity, goal = rng.normal(size=(3, 50))

    def results(array):
        budget, _ = friction_budget(LAWS[law], values, array(position), array(goal), array(velocity))
        state = PlantState(array(position), array(velocity), ControlState(0.0, 0.0))
        after = step(plant, values, state, ServoCommand(array(goal), 1.0, 5.0), 0.005)
        return [np.asarray(found) for found in (budget, after.position, after.velocity)]

    for one, other in zip(results(old), results(np.asarray), strict=True):
        assert np.array_equal(one, other)


def test_the_sine_of_fits_is_that_of_numpy_to_the_rounding_of_float32():
    """Over many turns; so is its derivative, by which searches descend. Numbers in float64 take the library's own sine."""
    angles = np.linspace(-20.0, 20.0, 20_001, dtype=np.float32)
    exact = angles.astype(np.float64)
    values = jax.jit(sine)(angles)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, np.sin(exact), atol=3e-7)
    np.testing.assert_allclose(jax.vmap(jax.grad(sine))(angles), np.cos(exact), atol=1e-6)
    assert np.array_equal(sine(exact), np.sin(exact))
