"""Effects that a joint's errors in two runs left out seem to show."""

import numpy as np

from stribeck.identify.robot.choice import _effect_counts


def test_a_gain_below_one_per_cent_is_no_effect():
    """What happened: 0.4 % less error in both runs gave a joint friction over position in one unit of its recordings and not in another."""
    before = np.array([[1.0, 1.0, 1.0], [1.2, 1.2, 1.2]])
    after = before * [0.996, 0.97, 1.01]
    assert _effect_counts(before, after).tolist() == [False, True, False]
