"""The choice of poses against brute force, and against chance."""

from itertools import combinations

import numpy as np
import pytest

from simulated_arms import MARKERS, TOOL, irb120
from stribeck.errors import ConfigError
from stribeck.identify.geometry.model import GEOMETRY, KinematicModel, candidate_terms
from stribeck.identify.geometry.pose_selection import choose_poses, gains, information, information_rows


@pytest.fixture(scope="module")
def rows():
    chain = irb120()
    model = KinematicModel(chain, np.eye(4), candidate_terms(chain), MARKERS).keep(GEOMETRY)
    values = np.concatenate([np.zeros(len(model.terms)), TOOL.ravel()])
    positions = np.random.default_rng(0).uniform(-2, 2, (120, 6))
    return information_rows(model, values, positions)


def log_determinant(rows, chosen):
    return np.linalg.slogdet(np.eye(rows.shape[-1]) + information(rows, chosen))[1]


def test_small_choices_are_the_best_of_all():
    """Three of nine poses: exchange finds what trying all 84 finds."""
    rows = np.random.default_rng(1).normal(size=(9, 2, 4))
    best = max(log_determinant(rows, chosen) for chosen in combinations(range(9), 3))
    choice = choose_poses(rows, 3)
    assert choice.log_determinant == pytest.approx(best)
    assert choice.log_determinant == pytest.approx(log_determinant(rows, choice.chosen))


def test_gains_are_differences_of_log_determinants(rows):
    """The small determinant is that of the whole matrix."""
    current = np.eye(rows.shape[-1]) + information(rows, [0, 1, 2])
    expected = log_determinant(rows, [0, 1, 2, 9]) - log_determinant(rows, [0, 1, 2])
    assert gains(rows, current)[9] == pytest.approx(expected)


def test_chosen_poses_tell_more_than_random_ones(rows):
    """More information than any of 50 random choices."""
    choice = choose_poses(rows, 15)
    assert len(set(choice.chosen)) == 15
    rng = np.random.default_rng(2)
    assert choice.log_determinant > max(
        log_determinant(rows, rng.choice(len(rows), 15, replace=False)) for _ in range(50)
    )


def test_measured_poses_count_and_are_not_chosen_again(rows):
    """The next poses complete those that are there."""
    first = choose_poses(rows, 10).chosen
    after = choose_poses(rows, 5, measured=first)
    assert not set(first) & set(after.chosen)
    assert after.log_determinant == pytest.approx(log_determinant(rows, [*first, *after.chosen]))


def test_more_poses_than_candidates_are_refused(rows):
    """The message has both numbers."""
    with pytest.raises(ConfigError, match="cannot choose 5 poses out of 4"):
        choose_poses(rows[:4], 5)
