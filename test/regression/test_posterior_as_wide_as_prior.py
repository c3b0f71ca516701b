"""Posteriors that the data did not narrow.

What happened: a posterior got an interval and was called determined, even if it was as wide as its search range or its prior.
What must happen: such a parameter is not determined, and the reason says so, in the parameter file and in JSON.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from stribeck.files.actuators import load_actuator
from stribeck.identify.posterior.diagnostics import summarise
from stribeck.identify.posterior.servo import ServoDraws, ServoPosterior
from stribeck.identify.posterior.servo_priors import servo_prior
from stribeck.identify.posterior.servo_result import estimates_of
from stribeck.model.law import law_named


@pytest.fixture(scope="module")
def posterior():
    servo, law = load_actuator("xl330"), law_named("m1")
    parameters = servo.parameters(law)
    rollout = SimpleNamespace(parameters=parameters, actuator=servo, law=law)
    return ServoPosterior(rollout, servo_prior(servo, law, parameters), np.array([2.5]))


def drawn(posterior, narrowed):
    """Draws of the prior, as if no data had been seen; those of ``narrowed`` within 1 % of their mean."""
    values = np.array(posterior.natural(posterior.draw(np.random.default_rng(1), 2000)))
    for k, name in enumerate(posterior.names):
        if name in narrowed:
            values[:, k] = values[:, k].mean() * (
                1.0 + 0.005 * np.random.default_rng(2).standard_normal(2000)
            )
    return ServoDraws(posterior, values.reshape(4, 500, -1), None)


@pytest.mark.ci
def test_a_posterior_as_wide_as_its_prior_is_not_determined(posterior):
    """Without information every parameter is as uncertain as before; one that the data determine is not affected."""
    estimates = estimates_of(drawn(posterior, {"kt"}))
    assert estimates["kt"].status == "determined"
    for name in set(posterior.names) - {"kt"}:
        assert estimates[name].status == "not determined", name
        assert "before the data" in estimates[name].reason or "search bounds" in estimates[name].reason


def test_a_posterior_as_wide_as_its_search_range_is_not_determined():
    """However narrow the range is, and although the interval is narrow compared with the value."""
    draws = np.random.default_rng(0).uniform(0.99, 1.01, (4, 500, 1))
    wide_prior = np.random.default_rng(1).uniform(0.0, 10.0, (2000, 1))
    summary = summarise(("a",), draws)
    assert summary.estimates(("N m",), wide_prior)["a"].status == "determined"
    found = summary.estimates(("N m",), wide_prior, {"a": (0.99, 1.01)})["a"]
    assert found.status == "not determined"
    assert "search bounds" in found.reason
