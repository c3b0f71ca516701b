"""Parameters without bounds on either side: their draws began with a warning of numpy, infinity less infinity."""

import numpy as np
import pytest

from stribeck.evaluate.draws import _cut_off_normal


def test_without_ends_it_is_the_normal_distribution():
    """Quantiles by hand; a warning is an error in tests."""
    ends = np.full(3, np.inf)
    found = _cut_off_normal(-ends, ends, np.array([0.5, 0.975, 0.025]))
    assert found == pytest.approx([0.0, 1.959964, -1.959964], abs=1e-6)
