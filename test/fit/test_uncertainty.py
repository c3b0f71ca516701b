"""Covariances against closed forms and brute force on linear problems."""

import numpy as np
import pytest

from stribeck.fit.uncertainty import bias_reduced, correlation_time, leave_one_out


def regression(groups=30, size=3, seed=0):
    """Ordinary least squares with clusters: design, residuals, scores and curvatures."""
    rng = np.random.default_rng(seed)
    designs = [rng.standard_normal((int(rng.integers(3, 12)), size)) for _ in range(groups)]
    targets = [
        design @ np.ones(size) + rng.standard_normal(len(design)) + rng.standard_normal()
        for design in designs
    ]
    whole, wanted = np.vstack(designs), np.concatenate(targets)
    estimate = np.linalg.lstsq(whole, wanted, rcond=None)[0]
    residuals = [design @ estimate - target for design, target in zip(designs, targets, strict=True)]
    scores = np.array([design.T @ residual for design, residual in zip(designs, residuals, strict=True)])
    curvatures = np.array([design.T @ design for design in designs])
    return designs, targets, residuals, scores, curvatures


def test_leave_one_out_is_the_jackknife():
    """CR3 equals refitting without each cluster, which is exact for a linear model."""
    designs, targets, _, scores, curvatures = regression()
    groups = len(designs)
    refits = []
    for left_out in range(groups):
        kept = [k for k in range(groups) if k != left_out]
        whole, wanted = np.vstack([designs[k] for k in kept]), np.concatenate([targets[k] for k in kept])
        refits.append(np.linalg.lstsq(whole, wanted, rcond=None)[0])
    full = np.linalg.lstsq(np.vstack(designs), np.concatenate(targets), rcond=None)[0]
    moved = np.array(refits) - full
    expected = (groups - 1) / groups * moved.T @ moved
    np.testing.assert_allclose(leave_one_out(scores, curvatures).matrix, expected, rtol=1e-9)


def test_bias_reduced_is_the_textbook_form():
    """CR2 equals Bell and McCaffrey's (I - H_gg)^(-1/2) on the residuals of each cluster."""
    designs, _, residuals, scores, curvatures = regression(groups=12)
    inverse = np.linalg.inv(curvatures.sum(axis=0))
    middle = np.zeros_like(inverse)
    for design, residual in zip(designs, residuals, strict=True):
        values, vectors = np.linalg.eigh(np.eye(len(design)) - design @ inverse @ design.T)
        adjusted = design.T @ (vectors @ ((vectors.T @ residual) / np.sqrt(values)))
        middle += np.outer(adjusted, adjusted)
    np.testing.assert_allclose(bias_reduced(scores, curvatures).matrix, inverse @ middle @ inverse, rtol=1e-8)


def test_freedom_is_that_of_equal_clusters():
    """The mean of G equal clusters has G - 1 degrees of freedom."""
    groups = 9
    scores = np.random.default_rng(1).standard_normal((groups, 1))
    found = bias_reduced(scores - scores.mean(axis=0), np.ones((groups, 1, 1)))
    assert found.freedom[0] == pytest.approx(groups - 1)


@pytest.mark.parametrize("covariance", [bias_reduced, leave_one_out])
def test_a_direction_without_rank_is_never_narrow(covariance):
    """Two parameters of which only the sum matters have infinite intervals, the third does not."""
    _, _, _, scores, curvatures = regression(groups=20)
    mix = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    found = covariance(scores @ mix, mix.T @ curvatures @ mix)
    widths = found.half_widths(0.95)
    assert np.all(np.isinf(widths[:2]))
    assert np.isfinite(widths[2])


def test_fewer_blocks_than_parameters_determine_nothing():
    """Leave-one-out needs more clusters than parameters."""
    _, _, _, scores, curvatures = regression(groups=3)
    assert np.all(np.isinf(leave_one_out(scores, curvatures).half_widths(0.95)))


def test_correlation_time_of_an_autoregressive_residual():
    """A first-order process with time constant T has the correlation time 2 T."""
    rng = np.random.default_rng(2)
    dt, constant = 0.005, 0.2
    decay = np.exp(-dt / constant)
    residual = np.zeros((20_000, 4))
    for k in range(1, len(residual)):
        residual[k] = decay * residual[k - 1] + rng.standard_normal(4)
    assert correlation_time(residual, dt) == pytest.approx(2 * constant, rel=0.2)
    assert correlation_time(np.zeros((100, 2)), dt) == 0.0
