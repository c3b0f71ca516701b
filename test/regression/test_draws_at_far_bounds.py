"""Draws of strongly correlated parameters, some of them near a bound, came to lie at the bound that is far away."""

import numpy as np
import pytest

from stribeck.evaluate.draws import Uncertain, _cut_off_normal, _within


def test_draws_near_one_bound_do_not_lie_at_the_other():
    """Two parameters near zero, one between 0 and 1 and with a spread of 0.01, correlated by 0.999: none is above 0.1."""
    covariance = 1e-4 * np.array([[1.0, -0.999], [-0.999, 1.0]])
    known = Uncertain(("a", "b"), np.array([0.001, 0.001]), covariance, np.zeros(2), np.ones(2))
    drawn = _within(known, 4000, np.random.default_rng(0))
    assert np.all(drawn >= 0.0)
    assert np.all(drawn < 0.1)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_far_from_its_mean_a_normal_distribution_lies_at_the_near_end(sign):
    """Between 10 and 100 standard deviations, and between 50 and 100, where the distribution function has no digits left."""
    for near, within in ((10.0, 0.7), (50.0, 1e-9)):
        low, high = sorted((sign * near, sign * 100.0))
        found = _cut_off_normal(np.full(5, low), np.full(5, high), np.linspace(0.001, 0.999, 5))
        assert np.all(np.abs(found) >= near)
        assert np.all(np.abs(found) <= near + within)
