"""Compiled loops and functions compute what their formulas say, to the last bit."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stribeck.model.namespace import array_namespace
from stribeck.model.trace.expressions import Tracer
from stribeck.model.trace.straight_line import compiled_function, compiled_loop

NUMBER = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-300, 1e100, 800.0, math.inf, -math.inf]), st.floats(-3.0, 3.0)
)


def functions(constants, state):
    """Every operation that formulas use."""
    a, b = state
    c = constants["c"]
    xp = array_namespace(a, b, c)
    one = xp.where((a < b) & (a != c), xp.maximum(a, c), xp.minimum(b, c)) + xp.sign(a)
    two = xp.clip(a, b, c) - xp.abs(b) + xp.where(xp.isfinite(a) | (b >= 1.0), 1.0, c)
    three = xp.exp(a) - xp.log(xp.abs(b)) + xp.tanh(c) + xp.sqrt(xp.abs(c)) * (2.0 * c)
    finite = xp.isfinite(a) & xp.isfinite(b)
    angle = xp.where(finite, a, 0.0)
    four = xp.sin(angle) + xp.cos(angle) + xp.where(finite, xp.where(finite, -a, b) ** 2, 1.0 / 3.0)
    return [one + two, three * four], (one < two) | (one > two)


LOOP = compiled_loop(functions, ["c"], ["a", "b"])


@given(NUMBER, NUMBER, NUMBER)
def test_operations_are_those_on_floats(a, b, c):
    """Also for infinities, overflow, and the logarithm of zero; NaN where NaN."""
    wanted, ends = functions({"c": c}, [a, b])
    made, *found = LOOP.prepare(c)(1, lambda _: None, a, b)
    assert made == 1
    np.testing.assert_array_equal(found, wanted)
    again = LOOP.prepare(c)(2, lambda _: None, a, b)
    assert again[0] == (1 if ends else 2)


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=4), NUMBER, NUMBER)
def test_operations_are_those_of_numpy(rows, c, factor):
    """On arrays, with a constant that is a number and one that is an array."""
    a, b = np.array(rows).T.copy()
    given = {"c": np.float64(c), "factor": np.full(len(rows), factor)}

    def formula(constants, variables):
        (first, second), ends = functions(constants, variables)
        xp = array_namespace(first)
        turned = xp.where(~(variables[0] > constants["factor"]), constants["factor"], -second)
        return [first, second, ends, turned * (constants["c"] * constants["factor"])]

    with np.errstate(all="ignore"):
        found = compiled_function(formula, given, ["a", "b"])(a, b)
        wanted = formula(given, [a, b])
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_negated_condition():
    """True where it is false, NaN included."""

    def negated(constants, state):
        return [array_namespace(state[0]).where(~(state[0] > 0.0), 1.0, 2.0)], ~(state[0] > 0.0)

    steps = compiled_loop(negated, [], ["x"]).prepare()
    assert [steps(1, lambda _: None, x)[1] for x in (1.0, -1.0, math.nan)] == [2.0, 1.0, 1.0]


def test_the_loop_ends_as_told_and_observes_every_step():
    """Three steps of five, because the condition is met."""

    def count(constants, state):
        following = state[0] + constants["by"]
        return [following], following >= 6.0

    seen = []
    assert compiled_loop(count, ["by"], ["x"]).prepare(2.0)(5, seen.append, 0.0) == (3, 6.0)
    assert seen == [2.0, 4.0, 6.0]


def test_what_is_not_chosen_is_not_computed():
    """The operand of a where that nothing else uses, also inside another one."""

    def guarded(constants, state):
        (x,) = state
        xp = array_namespace(x)
        inverse = xp.where(x > 0.0, xp.where(x > 1.0, 1.0 / (x - 1.0), 1.0 / x), 0.0)
        return [inverse], x < 0.0

    loop = compiled_loop(guarded, [], ["x"])
    steps = loop.prepare()
    assert [steps(1, lambda _: None, x)[1] for x in (3.0, 1.0, 0.0)] == [0.5, 1.0, 0.0]


def test_constants_are_computed_once():
    """Before the loop, not in it."""

    def scaled(constants, state):
        return [state[0] * (constants["a"] / constants["b"])], state[0] < 0.0

    lines = compiled_loop(scaled, ["a", "b"], ["x"]).source.splitlines()
    (place,) = (k for k, line in enumerate(lines) if "(a / b)" in line)
    assert place < next(k for k, line in enumerate(lines) if "for made" in line)


def test_equal_operations_are_one_node_and_numbers_are_computed_at_once():
    """0.0 and -0.0 are different numbers; factors of one disappear."""
    trace = Tracer()
    x = trace.symbol("x")
    xp = array_namespace(x)
    assert x * 2.0 is x * 2.0
    assert x * 0.0 is not x * -0.0
    assert 1.0 * x is x
    assert xp.maximum(1.0, 2.0) == 2.0
    assert xp.where(x > 0.0, x, x) is x
    indices = [node.index for node in trace.nodes]
    assert all(b == a + 1 for a, b in pairwise(indices))
    with pytest.raises(TypeError, match="where"):
        bool(x > 0.0)
