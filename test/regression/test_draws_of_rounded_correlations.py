"""Correlations that a file rounds to four digits had a negative eigenvalue, and draws were not numbers."""

import numpy as np

from stribeck.evaluate.draws import Uncertain, _within


def test_draws_of_rounded_correlations_are_numbers_within_bounds():
    """Three parameters that three runs leave with one correlation, where hardly any normal draw is within the bounds."""
    rounded = np.array([[1.0, 0.9999, 0.9999], [0.9999, 1.0, 0.9996], [0.9999, 0.9996, 1.0]])
    rounded[0, 1] = rounded[1, 0] = 1.0
    assert np.linalg.eigvalsh(rounded).min() < -1e-5
    uncertain = Uncertain(("a", "b", "c"), np.zeros(3), rounded, np.full(3, 4.5), np.full(3, 6.0))
    drawn = _within(uncertain, 200, np.random.default_rng(0))
    assert drawn.shape == (200, 3)
    assert np.all((drawn >= 4.5) & (drawn <= 6.0))
    assert np.ptp(drawn) > 0.1
