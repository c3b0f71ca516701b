"""Parameters and their way to an optimiser's vector and back."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import refusal
from stribeck.model.parameters import Parameter, ParameterSet

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def three() -> ParameterSet:
    """Two free parameters with a fixed one between them."""
    return ParameterSet(
        [
            Parameter("kt", "N m/A", 0.4, 0.2, 1.2),
            Parameter("R", "ohm", 9.0, 1.0, 5.0, free=False),
            Parameter("q_offset", "rad", 0.0, -0.1, 0.1),
        ]
    )


@pytest.mark.parametrize("field", ["value", "lower", "upper"])
@pytest.mark.parametrize("number", [NAN, INF, -INF])
def test_a_parameter_refuses_numbers_that_are_none(field, number):
    """Value and bounds are finite."""
    numbers = {"value": 1.0, "lower": 0.0, "upper": 2.0, field: number}
    refusal(lambda: Parameter("kt", "N m/A", **numbers), "kt", "finite")


@pytest.mark.parametrize(("lower", "upper"), [(2.0, 1.0), (1.0, 1.0)])
def test_a_parameter_refuses_bounds_in_the_wrong_order(lower, upper):
    """The lower bound is below the upper one."""
    refusal(lambda: Parameter("kt", "N m/A", 1.0, lower, upper), "kt", f"{lower:g}", f"{upper:g}")


@pytest.mark.parametrize("value", [-0.001, 1.001])
def test_bounds_bind_a_free_parameter_and_not_a_fixed_one(value):
    """A search starts inside its bounds; a fixed value may be anything."""
    refusal(lambda: Parameter("kt", "N m/A", value, 0.0, 1.0), "kt", value, "[0, 1]")
    assert Parameter("kt", "N m/A", value, 0.0, 1.0, free=False).value == value


def test_the_optimiser_sees_the_free_parameters_in_order(three):
    """Names, values and bounds without the fixed one."""
    assert three.names == ("kt", "R", "q_offset")
    assert three.free_names == ("kt", "q_offset")
    assert three.vector().tolist() == [0.4, 0.0]
    assert three.lower.tolist() == [0.2, -0.1]
    assert three.upper.tolist() == [1.2, 0.1]
    assert three.values() == {"kt": 0.4, "R": 9.0, "q_offset": 0.0}
    assert (len(three), "R" in three, "alpha" in three) == (3, True, False)


def test_unit_cube_and_values_are_what_the_equation_gives_by_hand(three):
    """unit = (value - lower) / (upper - lower)."""
    np.testing.assert_allclose(three.to_unit([0.7, -0.1]), [0.5, 0.0], atol=1e-15)
    np.testing.assert_allclose(three.from_unit([0.25, 1.0]), [0.45, 0.1], atol=1e-15)
    assert three.from_unit([0.0, 0.0]).tolist() == three.lower.tolist()


@settings(deadline=None, derandomize=True, max_examples=200)
@given(points=st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=5))
def test_values_and_unit_cube_are_each_others_inverse(points):
    """For any number of points at once, to the rounding of a difference of bounds."""
    parameters = ParameterSet(
        [Parameter("kt", "N m/A", 0.4, 0.2, 1.2), Parameter("q", "rad", 0.0, -0.1, 0.1)]
    )
    unit = np.array(points)
    values = parameters.from_unit(unit)
    assert values.shape == unit.shape
    np.testing.assert_allclose(parameters.to_unit(values), unit, rtol=0.0, atol=1e-14)


def test_a_vector_goes_in_and_comes_out_and_leaves_the_rest(three):
    """The new set has the new free values; the old set and the fixed value stay."""
    changed = three.with_vector(np.array([1.0, 0.05]))
    assert changed.values() == {"kt": 1.0, "R": 9.0, "q_offset": 0.05}
    assert changed.free_names == three.free_names
    assert three.vector().tolist() == [0.4, 0.0]


@pytest.mark.parametrize("vector", [[1.0], [1.0, 0.0, 0.0], [[1.0, 0.0]]])
def test_a_vector_of_the_wrong_shape_is_refused(three, vector):
    """As many numbers as free parameters, in one row."""
    refusal(lambda: three.with_vector(vector), "2 free values", np.shape(vector))


def test_a_vector_outside_the_bounds_is_refused(three):
    """A free value lies in its bounds, wherever it comes from."""
    refusal(lambda: three.with_vector([5.0, 0.0]), "kt", "outside")


def test_values_are_replaced_by_name(three):
    """Bounds and freedom stay."""
    changed = three.with_values({"R": 2.0})
    assert changed["R"] == Parameter("R", "ohm", 2.0, 1.0, 5.0, free=False)
    assert changed["kt"] == three["kt"]


def test_fixing_takes_a_parameter_out_of_the_search_at_any_value(three):
    """Search bounds do not bind what is fixed."""
    fixed = three.fixed({"kt": 7.0})
    assert fixed.free_names == ("q_offset",)
    assert fixed["kt"].value == 7.0
    assert three.free_names == ("kt", "q_offset")


def test_freeing_puts_a_parameter_into_the_search_within_its_bounds(three):
    """A value outside the search bounds is clipped into them; the order stays that of the set."""
    freed = three.freed(["R"])
    assert freed.free_names == ("kt", "R", "q_offset")
    assert freed["R"].value == 5.0
    assert three.fixed({"kt": -1.0}).freed(["kt"])["kt"].value == 0.2


@pytest.mark.parametrize(
    "action",
    [
        lambda p: p["alpha"],
        lambda p: p.with_values({"alpha": 1.0}),
        lambda p: p.fixed({"alpha": 1.0}),
        lambda p: p.freed(["alpha"]),
    ],
)
def test_unknown_names_are_refused_with_the_valid_ones(three, action):
    """A typing error is not ignored."""
    refusal(lambda: action(three), "'alpha'", "kt, R, q_offset")


def test_a_parameter_is_frozen(three):
    """Changes make new objects."""
    with pytest.raises(FrozenInstanceError):
        three["kt"].value = 1.0
