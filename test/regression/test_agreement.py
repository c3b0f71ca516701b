"""When a search may call itself done.

What happened: two restarts that ended in one wrong minimum ended the search, though a better point had
been seen on the way.
What must happen: only agreement with the best point there is ends a search.
"""

import numpy as np

from stribeck.identify.servo.incumbent import Incumbent
from stribeck.identify.servo.search import done


def test_agreement_in_a_worse_minimum_does_not_end_a_search():
    incumbent = Incumbent(1000, lambda: 0)
    incumbent.offer(np.zeros((1, 2)), np.array([1.0]))
    assert not done(incumbent, [1.3, 1.3])
    assert not done(incumbent, [1.3, 1.3, 1.0])
    assert done(incumbent, [1.3, 1.0, 1.0005])


def test_a_loss_within_the_noise_ends_a_search_after_one_round():
    incumbent = Incumbent(1000, lambda: 0, floor=0.5)
    incumbent.offer(np.zeros((1, 2)), np.array([0.4]))
    assert not done(incumbent, [])
    assert done(incumbent, [0.4])
