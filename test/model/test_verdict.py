"""Verdicts: the gravest reason counts."""

import math

import pytest

from stribeck.model.verdict import Reason, Verdict, error_reason, interval_reason


def test_the_gravest_reason_is_the_verdict():
    """Without any the result is usable."""
    doubt, ban = Reason("a", "doubtful", "first"), Reason("b", "unusable", "second")
    assert Verdict().use == "usable"
    assert Verdict((doubt,)).use == "doubtful"
    assert Verdict((ban, doubt)).use == "unusable"
    assert Verdict((doubt,)).to_json() == {
        "verdict": "doubtful",
        "reasons": [{"key": "a", "use": "doubtful", "text": "first"}],
    }
    assert Verdict((ban, doubt)).lines()[0] == "verdict: unusable"


@pytest.mark.parametrize(("error", "reasons"), [(0.0, 0), (0.5, 0), (0.51, 1), (28.37, 1), (math.nan, 1)])
def test_errors_above_a_half_are_reasons(error, reasons):
    """So is an error that is not a number."""
    assert len(error_reason(error, "torque")) == reasons


def test_intervals_of_width_zero_are_a_reason_unless_the_fit_is_exact():
    """One interval that is not zero is enough."""
    assert [reason.key for reason in interval_reason([1.0, 0.0], [0.0, 0.0], 0.1)] == ["zero_intervals"]
    assert not interval_reason([1.0, 0.0], [0.0, 0.1], 0.1)
    assert not interval_reason([1.0, 2.0], [0.0, 0.0], 1e-9)
