"""`expression: position(hinge) / (a - b)` ended in a ZeroDivisionError: all parameters were tried with the same number."""

from pathlib import Path

import pytest

from mechanisms import BLOCK, changed
from stribeck.errors import ConfigError
from stribeck.identify.mechanism.model_file import model_of
from stribeck.identify.mechanism.problem import EstimationProblem


def block(text, **values):
    """A block with a sensor by an expression, and parameters that are not estimated."""
    known = {name: {"value": value, "unit": "1", "free": False} for name, value in values.items()}
    return changed(
        BLOCK,
        parameters=BLOCK["parameters"] | known,
        sensors={"place": {"expression": text, "unit": "m", "deviation": 1e-3}},
    )


@pytest.mark.parametrize(
    "text",
    [
        "position(slide) / (a - b)",
        "position(slide) / (point(block, 1, 0, 0).x - point(block, 0, 0, 0).x)",
        "1 / (position(slide) - rate(slide))",
    ],
)
def test_quotients_that_are_one_are_taken(text):
    """Divisors that are zero for some parameters or motions alone."""
    model = model_of(block(text, a=3.0, b=1.0), Path("test.yaml")).mechanism
    assert model.sensors[0].formula.text == text


def test_known_parameters_that_are_equal_are_named():
    """In one line, where the equations are made."""
    model = model_of(block("position(slide) / (a - b)", a=1.0, b=1.0), Path("test.yaml")).mechanism
    with pytest.raises(ConfigError, match=r"^expression: 'position\(slide\) / \(a - b\)' divides by zero"):
        EstimationProblem(model, 0.01)
