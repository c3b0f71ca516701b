"""Fourier series as trajectories: derivatives, rest at the ends, bounds between samples."""

import math

import numpy as np
import pytest

from stribeck.errors import ConfigError
from stribeck.session.fourier import FourierTrajectory, basis, grid_factor, rest_basis


def random_trajectory(joints: int = 3, harmonics: int = 4, duration: float = 7.0) -> FourierTrajectory:
    z = np.random.default_rng(1).normal(size=(joints, 2 * harmonics - 1))
    names = tuple(f"j{k}" for k in range(joints))
    return FourierTrajectory.from_coefficients(names, duration, z @ rest_basis(harmonics).T)


def test_velocity_and_acceleration_are_the_derivatives_of_the_position() -> None:
    """Central differences agree with the series' own derivatives."""
    trajectory, h = random_trajectory(), 1e-5
    time = np.linspace(0.1, 6.9, 50)
    _, velocity, acceleration = trajectory.states(time)
    before, after = (trajectory.states(time + step) for step in (-h, h))
    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), velocity, atol=1e-8)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), acceleration, atol=1e-7)


def test_series_is_the_formula_of_its_source() -> None:
    """One point by hand: q = a/(w l) sin(w l t) - b/(w l) cos(w l t) + q0."""
    trajectory = random_trajectory(joints=1, harmonics=2)
    t, w = 1.3, 2 * math.pi / 7.0
    a, b = trajectory.sine[0], trajectory.cosine[0]
    expected = trajectory.offset[0] + sum(
        a[k] / (w * (k + 1)) * math.sin(w * (k + 1) * t) - b[k] / (w * (k + 1)) * math.cos(w * (k + 1) * t)
        for k in range(2)
    )
    assert trajectory.states([t])[0][0, 0] == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("harmonics", [2, 3, 5, 12])
def test_any_combination_of_the_rest_basis_starts_and_ends_at_rest(harmonics: int) -> None:
    """Velocity and acceleration vanish at both ends, and the basis is orthonormal."""
    directions = rest_basis(harmonics)
    ends = basis([0.0, 7.0], 2 * math.pi / 7.0, harmonics)
    assert np.abs(ends.velocity @ directions).max() < 1e-13
    assert np.abs(ends.acceleration @ directions).max() < 1e-12
    np.testing.assert_allclose(directions.T @ directions, np.eye(2 * harmonics - 1), atol=1e-14)


def test_the_end_is_the_start() -> None:
    """One period: positions at both ends are the same."""
    position = random_trajectory().states([0.0, 7.0])[0]
    np.testing.assert_allclose(position[0], position[1], atol=1e-13)


def test_nothing_between_samples_exceeds_the_grid_factor() -> None:
    """The bound of Ehlich and Zeller holds for random series."""
    rng, harmonics, samples = np.random.default_rng(0), 5, 40
    coarse = basis(np.arange(samples) / samples, 2 * math.pi, harmonics).velocity
    fine = basis(np.linspace(0, 1, 4001), 2 * math.pi, harmonics).velocity
    for _ in range(50):
        c = rng.normal(size=2 * harmonics + 1)
        assert np.abs(fine @ c).max() * grid_factor(harmonics, samples) <= np.abs(coarse @ c).max() + 1e-12


def test_one_harmonic_is_too_few() -> None:
    """Rest at both ends leaves nothing of a single harmonic."""
    with pytest.raises(ConfigError, match="at least 2 harmonics"):
        rest_basis(1)


def test_motion_that_does_not_start_at_rest_is_refused() -> None:
    """The joint and what is not zero are named."""
    with pytest.raises(ConfigError, match="'elbow' does not start at rest, as its velocity"):
        FourierTrajectory(("elbow",), 1.0, np.ones((1, 2)), np.zeros((1, 2)), np.zeros(1))


def test_wrong_shapes_are_refused() -> None:
    """As many rows as joints, as many cosines as sines."""
    with pytest.raises(ConfigError, match="2 joints"):
        FourierTrajectory(("a", "b"), 1.0, np.zeros((1, 2)), np.zeros((1, 2)), np.zeros(2))


def test_numbers_that_are_none_are_refused() -> None:
    """NaN is no coefficient."""
    with pytest.raises(ConfigError, match="finite"):
        FourierTrajectory(("a",), 1.0, np.full((1, 2), np.nan), np.zeros((1, 2)), np.zeros(1))
