"""Compiled formulas are those of numpy."""

import itertools
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compensating import XL330
from helpers import published
from stribeck.live import compiled as module
from stribeck.live.compiled import compiled
from stribeck.live.direction.motion import Tuning, intended_direction, motion_direction
from stribeck.live.friction import FrictionModel, JointModel, fixed_point
from stribeck.live.outputs import slew_limited
from stribeck.model.law import LAWS
from stribeck.model.terms import FRICTION_PARAMETERS

numexpr = pytest.importorskip("numexpr", reason="numexpr is not installed: formulas stay with numpy")

ODD = (0.0, -0.0, 1e-300, 1e300, np.inf, -np.inf, np.nan, 0.0046, -1.0)
NUMBER = st.one_of(st.sampled_from(ODD), st.floats(-2.0, 2.0))


def same(found, expected):
    """Equal to the last bits, NaN where NaN."""
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300, equal_nan=True)


TUNING = Tuning()
NAMES = ("guess", "share", "probe", "wider", "here", "there", "limit")


@cache
def functions():
    """Each function of the core that is compiled, as it is and compiled."""

    def direction(velocity, error, rate):
        return intended_direction(velocity, error, rate, TUNING)

    def moving(velocity):
        return motion_direction(velocity, TUNING)

    return {
        function: compiled(function, names)
        for function, names in (
            (direction, ("velocity", "error", "rate")),
            (moving, ("velocity",)),
            (slew_limited, ("applied", "wanted", "slew", "dt")),
            (fixed_point, NAMES),
        )
    }


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBER, NUMBER, NUMBER, NUMBER), min_size=1, max_size=9))
@np.errstate(all="ignore")
def test_functions_of_the_direction_and_of_the_step(rows):
    """All that the law is made of, on any numbers that there are."""
    a, b, c, d = np.array(rows).T
    fixed = [np.broadcast_to(argument, a.shape) for argument in (a, b, 1e-8, 2e-8, c, d, 0.3)]
    for (one, other), arguments in zip(
        functions().items(), ((a, b, c), (a,), (a, b, c, d), fixed), strict=True
    ):
        same(other(*arguments), one(*arguments))


LAWS_WITH_TERMS = [
    law.with_terms(asymmetric=asymmetric, offset=offset)
    for law, asymmetric, offset in itertools.product(LAWS.values(), (False, True), (False, True))
]


@cache
def both(law):
    """Two joints of a law, with numpy and compiled."""
    joints = []
    for name, share in (("a", 0.2), ("b", 0.7)):
        known = {key: FRICTION_PARAMETERS[key] for key in law.parameter_names}
        values = {key: entry.lower + share * (entry.upper - entry.lower) for key, entry in known.items()}
        joints.append(JointModel(name, XL330, law, {**published("xl330", "m6"), **values}, 0.3))
    return FrictionModel(joints), FrictionModel(joints, compiled)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("law", LAWS_WITH_TERMS, ids=str)
@settings(deadline=None, max_examples=30)
@given(rows=st.lists(st.tuples(*[st.floats(-1.0, 1.0)] * 5), min_size=2, max_size=2))
def test_every_law(law, rows):
    """Feed-forward with and without the step to the fixed point, of each law with each further term."""
    one, other = both(law)
    direction, velocity, motor, external, guess = np.array(rows).T
    for start in (None, guess):
        expected = one.feed_forward(0.8, direction, velocity, motor, external, start)
        found = other.feed_forward(0.8, direction, velocity, motor, external, start)
        # Two points 3e-8 apart tell a slope to eight digits.
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-5 if start is not None else 1e-16)


def test_without_numexpr_formulas_stay_with_numpy(monkeypatch):
    """Nothing but speed is lost."""
    monkeypatch.setattr(module, "numexpr", None)
    assert compiled(fixed_point, ()) is fixed_point
    assert "numexpr" in sys.modules


def test_a_formula_is_translated_once_and_every_compilation_computes_for_itself():
    """A numexpr object holds the arrays of the call that runs it, so that two threads must not share one."""
    module._program.cache_clear()
    first, second = (compiled(slew_limited, ("applied", "wanted", "slew", "dt")) for _ in range(2))
    assert module._program.cache_info().misses == 1
    assert first is not second
    values = (np.zeros(2), np.array([1.0, -0.1]), np.array(2.0), np.array(0.1))
    same(first(*values), second(*values))
