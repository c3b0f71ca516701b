"""Coordinates of physically consistent inertias."""

import numpy as np
import pytest

from moving_arms import arm
from stribeck.identify.arm.inertia import (
    LogCholesky,
    about_com,
    cholesky_root,
    consistency,
    entropic_slope,
    inertials_of,
    log_cholesky,
    nearest_consistent,
    pseudo_inertia,
)


@pytest.fixture
def bodies(tmp_path):
    return arm(tmp_path).inertials.reshape(-1, 10)


def test_pseudo_inertia_and_back(bodies):
    assert np.allclose(inertials_of(pseudo_inertia(bodies)), bodies)


def test_coordinates_of_zero_are_the_start(bodies):
    assert np.allclose(log_cholesky(np.zeros_like(bodies), cholesky_root(bodies)), bodies)


def test_any_coordinates_are_consistent(bodies):
    """However far one goes, masses, moments and triangle inequality hold."""
    points = np.random.default_rng(0).normal(0.0, 1.0, (200, *bodies.shape))
    found = log_cholesky(points, cholesky_root(bodies))
    assert (consistency(found) > 0.0).all()


def test_derivatives_against_differences(bodies):
    """First derivatives, and second ones of a weighted sum."""
    chart, rng = LogCholesky(bodies), np.random.default_rng(1)
    point, weights = rng.normal(0.0, 0.3, bodies.size), rng.normal(size=bodies.size)
    step = 1e-6
    values = lambda x: chart.at(x)[0].ravel()  # noqa: E731
    numeric = np.stack(
        [(values(point + step * e) - values(point - step * e)) / (2 * step) for e in np.eye(bodies.size)], 1
    )
    assert np.allclose(chart.at(point)[1], numeric, atol=1e-7)
    slopes = lambda x: chart.at(x)[1].T @ weights  # noqa: E731
    bends = np.stack(
        [(slopes(point + step * e) - slopes(point - step * e)) / (2 * step) for e in np.eye(bodies.size)], 1
    )
    assert np.allclose(chart.bends(point, weights), bends, atol=1e-6)


def test_a_point_mass_by_hand():
    """2 kg at (0, 0, 0.5) with a ball's inertia about it."""
    values = np.array([2.0, 0.0, 0.0, 1.0, 0.51, 0.0, 0.51, 0.0, 0.0, 0.01])
    mass, com, inertia = about_com(values)
    assert mass == 2.0
    assert com.tolist() == [0.0, 0.0, 0.5]
    assert np.allclose(inertia, 0.01 * np.eye(3))
    assert consistency(values) == pytest.approx([2.0, 0.01, 0.01])


@pytest.mark.parametrize(
    "moments", [(0.0, 0.0, 0.0), (0.1, 0.1, 0.3), (-0.1, 0.2, 0.2)], ids=["none", "triangle", "negative"]
)
def test_what_is_inconsistent_is_mended_near_by(moments):
    """A body of a URDF that cannot be becomes one that can; its mass and centre stay."""
    values = np.zeros(10)
    values[0], values[[4, 6, 9]] = 0.5, moments
    found = nearest_consistent(values)[0]
    assert (consistency(found) > 0.0).all()
    assert found[:4].tolist() == values[:4].tolist()


def test_what_is_consistent_stays(bodies):
    assert np.array_equal(nearest_consistent(bodies), bodies)


def test_the_divergence_is_least_at_the_urdf(bodies):
    """tr(J J0^-1) - log|J| has no slope there."""
    chart = LogCholesky(bodies)
    slope = chart.at(np.zeros(bodies.size))[1].T @ entropic_slope(bodies).ravel()
    slope[chart.logarithms] -= 2.0
    assert np.abs(slope).max() < 1e-9
