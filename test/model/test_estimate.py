"""One rule says what data determine, and one JSON form says it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from stribeck.errors import ParameterFileError
from stribeck.files.schema import convert
from stribeck.identify.common.quantiles import estimate_about, half_widths, normal_quantile, student_quantile
from stribeck.model import estimate
from stribeck.model.estimate import (
    DETERMINED,
    LOOSE,
    Estimate,
    at_bound,
    disagreements,
    estimate_of,
    estimates_to_json,
    fixed,
    scale_of,
    side_of,
)
from stribeck.model.parameters import Parameter, ParameterSet


def around(value, half, **given):
    return estimate_of(value, "N m", (value - half, value + half), **given)


@pytest.mark.parametrize(
    ("share", "status"),
    [
        (0.99 * DETERMINED, "determined"),
        (1.01 * DETERMINED, "loosely determined"),
        (0.99 * LOOSE, "loosely determined"),
        (1.01 * LOOSE, "not determined"),
    ],
)
@pytest.mark.parametrize("value", [2.0, -2.0])
def test_the_status_follows_from_the_half_width(value, share, status):
    """Up to 5 % of the value determined, up to 50 % loosely, beyond that not; only the first needs no reason."""
    found = around(value, abs(value) * share)
    assert found.status == status
    assert (found.reason == "") == (status == "determined")
    assert found.known == (status != "not determined")


def test_of_a_parameter_of_either_sign_the_search_range_gives_the_scale():
    """A twentieth of it; without a range a value of zero is never determined."""
    assert around(0.0, 0.01, bounds=(-5.0, 5.0)).status == "determined"
    assert around(0.0, 0.1, bounds=(-5.0, 5.0)).status == "loosely determined"
    assert around(0.0, 0.4, bounds=(-5.0, 5.0)).status == "not determined"
    assert around(0.0, 1e-9).status == "not determined"


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, 1e4), (1e-5, 100.0), (0.0, float("inf"))])
def test_a_magnitude_is_judged_by_its_own_relative_interval_alone(bounds):
    """However wide the search range is: a twentieth of it made friction_viscous 0.00104 ± 0.0013 and a stiffness of 5.24
    between 0.1 and 10.6 determined."""
    found = around(0.00104, 0.0013, bounds=bounds)
    assert found.status == "not determined"
    assert found.interval == (0.0, pytest.approx(0.00234))
    assert around(0.00104, 0.0005, bounds=bounds).status == "loosely determined"
    assert around(5.24, 5.25, bounds=(0.1, 1e4)).status == "not determined"
    assert around(5.24, 0.2, bounds=(0.1, 1e4)).status == "determined"


def test_one_rule_says_which_values_are_at_a_bound():
    """Up to rounding, whichever way the search came there; infinite ranges are met exactly."""
    assert side_of(0.0, (0.0, 10.0)) == side_of(9e-9, (0.0, 10.0)) == "lower"
    assert side_of(10.0, (0.0, 10.0)) == side_of(10.0 - 9e-9, (0.0, 10.0)) == "upper"
    assert side_of(2e-8, (0.0, 10.0)) is None
    assert side_of(0.0, (0.0, float("inf"))) == "lower"
    assert side_of(1e-12, (0.0, float("inf"))) is None
    found = around(1e-10, 0.5, bounds=(0.0, 1.0))
    assert (found.status, found.side, found.interval) == ("at bound", "lower", None)
    found = around(1.0, 0.01, bounds=(0.0, 1.0), held=False)
    assert (found.status, found.side, found.interval) == ("determined", None, (0.99, 1.01))
    free = ParameterSet([Parameter("a", "1", 0.0, 0.0, 1.0), Parameter("b", "1", 0.5, 0.0, 1.0)])
    assert free.sides([1.0, 0.5]) == {"a": "upper"}


def test_no_other_place_decides_what_is_at_a_bound():
    """Engines pass bounds to ``estimate_of``; only readers of earlier files state a side that they read."""
    sources = Path(estimate.__file__).parents[1]
    deciding = {
        path.relative_to(sources).as_posix()
        for path in sources.rglob("*.py")
        if re.search(
            r"\bat_bound\(|\bAT_BOUND\b|\bvalue in (ends|bounds)\b|value == (ends|bounds)\[", path.read_text()
        )
    }
    assert deciding == {"model/estimate.py", "files/earlier_drives.py"}


def test_what_is_as_wide_as_before_the_data_is_not_determined():
    """However narrow the search range or the prior is: 1 % of the value would be determined otherwise."""
    assert around(1.0, 0.01).status == "determined"
    by_range = around(1.0, 0.01, bounds=(0.99, 1.01))
    assert by_range.status == "not determined"
    assert "search bounds" in by_range.reason
    by_prior = around(1.0, 0.01, prior=(0.99, 1.01))
    assert by_prior.status == "not determined"
    assert "before the data" in by_prior.reason
    assert around(1.0, 0.005, prior=(0.99, 1.01)).status == "determined"


def test_the_rest_of_a_uniform_posterior_is_not_determined():
    """The 95 % interval of draws that fill the search range leaves 2.5 % out on either side."""
    assert estimate_of(0.5, "1", (0.025, 0.975), bounds=(0.0, 1.0)).status == "not determined"


def test_without_an_interval_nothing_is_determined():
    """The reason says why there is none; an interval of infinite ends counts as none."""
    assert estimate_of(1.0, "1", None, reason="no motion").reason == "no motion"
    assert around(1.0, float("inf")).status == "not determined"
    assert around(1.0, float("nan")).status == "not determined"


def test_the_reason_names_the_bound_not_the_value_beside_it():
    assert at_bound(1e-5, "N m", "lower", (0.0, 1.0)).reason == "at its lower search bound 0 N m"
    assert at_bound(0.9999, "1", "upper", (0.0, 1.0)).reason == "at its upper search bound 1"


def test_a_doubted_estimate_keeps_its_interval():
    found = around(1.0, 0.01).undetermined("another minimum is as good")
    assert (found.status, found.interval) == ("not determined", (0.99, 1.01))


def test_json_and_back():
    """All kinds of estimates through JSON text, as written and as a reader of files checks them."""
    estimates = {
        "a": around(1.0, 0.01),
        "b": fixed(2.0, "1"),
        "c": at_bound(0.0, "N m", "lower"),
        "d": estimate_of(1.0, "1", None),
    }
    text = json.dumps(estimates_to_json(estimates), allow_nan=False)
    assert convert(json.loads(text), dict[str, Estimate], "file", ParameterFileError) == estimates
    with pytest.raises(ParameterFileError, match=r"file: a: status: expected .*, found 'sure'"):
        convert(
            {"a": {"value": 1, "unit": "", "status": "sure"}}, dict[str, Estimate], "file", ParameterFileError
        )


def test_quantiles_of_intervals():
    """1.96 for 95 %; Student's t grows as the degrees of freedom fall."""
    assert normal_quantile() == pytest.approx(1.959964, abs=1e-6)
    assert student_quantile([1.0, 10.0, 1e9]) == pytest.approx([12.7062, 2.22814, 1.95996], rel=1e-4)


def test_intervals_follow_from_a_covariance():
    """Student's t times the standard deviation; parameters about which nothing is known have none."""
    covariance = np.diag([0.01, 0.04, 0.0])
    half = half_widths(covariance, [1e9, 10.0, 1.0], np.array([False, False, True]))
    assert half.tolist() == pytest.approx([0.195996, 0.445628, float("inf")], rel=1e-4)
    assert half_widths(covariance, 10.0, confidence=0.9)[1] == pytest.approx(0.2 * 1.812461, rel=1e-5)
    found = [estimate_about(1.0, "N m", width, reason="nothing") for width in half]
    assert found[1].interval == pytest.approx((1.0 - half[1], 1.0 + half[1]))
    assert (found[2].interval, found[2].reason) == (None, "nothing")


def test_parameters_disagree_when_half_their_spread_is_wider_than_what_counts_as_determined():
    """5 % of the value, or of a twentieth of a search range of either sign where that is more."""
    assert DETERMINED * scale_of(2.0, (0.0, 1000.0)) == pytest.approx(DETERMINED * 2.0)
    assert DETERMINED * scale_of(0.0, (-5.0, 5.0)) == pytest.approx(DETERMINED * 0.5)
    values = [{"a": 1.0, "b": 1.0}, {"a": 1.09, "b": 1.12}]
    assert disagreements({"a": None, "b": None}, values) == {"b": (1.0, 1.12)}
