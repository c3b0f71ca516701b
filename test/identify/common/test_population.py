"""Mean and scatter of a population, each member estimated with an error of its own."""

import numpy as np
import pytest

from stribeck.identify.common.quantiles import population_of


def test_the_interval_of_the_mean_covers_and_the_scatter_is_found():
    """Six members, errors of different size, 2000 populations: 93 to 97 %, and the median scatter within 15 %."""
    generator = np.random.default_rng(0)
    hits, scatters = [], []
    for _ in range(2000):
        variances = generator.uniform(0.05, 0.6, 6) ** 2
        values = 3.0 + generator.normal(0.0, 0.8, 6) + generator.normal(0.0, np.sqrt(variances))
        found = population_of(values, variances)
        hits.append(abs(found.mean - 3.0) <= found.half_width)
        scatters.append(found.scatter)
    assert 0.93 <= np.mean(hits) <= 0.97
    assert np.median(scatters) == pytest.approx(0.8, rel=0.15)


def test_members_that_differ_no_more_than_their_errors_have_no_scatter():
    """By hand: equal variances, spread below them; the mean is the plain one."""
    found = population_of(np.array([1.0, 1.1, 0.9, np.nan]), np.array([1.0, 1.0, 1.0, np.inf]))
    assert found.scatter == 0.0
    assert found.mean == pytest.approx(1.0)
    assert found.deviation == pytest.approx(3.0**-0.5)


def test_one_member_is_no_population():
    """A mean needs two."""
    with pytest.raises(ValueError, match="at least two"):
        population_of(np.array([1.0, 2.0]), np.array([1.0, np.inf]))
