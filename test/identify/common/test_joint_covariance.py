"""Covariance of the residuals of several joints: shrunk where chance explains it, kept where it does not."""

import numpy as np
import pytest

from stribeck.identify.common.joint_covariance import joint_covariance, whitener

TRUE = np.array([[4.0, 1.2, 0.0], [1.2, 1.0, 0.0], [0.0, 0.0, 0.25]])
"""The first two of three joints have a correlation of 0.6."""


def drawn(count, seed=0, memory=0.0):
    """Residuals (N, 3) of the true covariance; with memory, first-order autoregressive ones."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((count, 3)) @ np.linalg.cholesky(TRUE).T
    found = np.empty_like(noise)
    found[0] = noise[0]
    for k in range(1, count):
        found[k] = memory * found[k - 1] + np.sqrt(1.0 - memory**2) * noise[k]
    return found


def test_many_samples_give_the_covariance():
    """Of 20 000 independent samples all entries are right, and little is shrunk."""
    residual = drawn(20_000)
    found, share = joint_covariance([residual], [np.ones_like(residual, dtype=bool)])
    np.testing.assert_allclose(found, TRUE, atol=0.06)
    assert share < 0.01


def test_chance_is_taken_for_chance():
    """Of independent joints and few correlated samples, less than half the squared correlations is left, over 200 draws; deviations stay."""
    raw, kept = [], []
    for seed in range(200):
        residual = drawn(60, seed, memory=0.9) @ np.linalg.inv(np.linalg.cholesky(TRUE)).T
        found, _ = joint_covariance([residual], [np.ones_like(residual, dtype=bool)])
        size = np.sqrt(np.mean(residual**2, axis=0))
        np.testing.assert_allclose(np.sqrt(np.diag(found)), size)
        assert np.linalg.eigvalsh(found)[0] > 0.0
        upper = np.triu_indices(3, 1)
        raw.append((residual.T @ residual / len(residual) / np.outer(size, size))[upper])
        kept.append((found / np.outer(size, size))[upper])
    assert np.mean(np.square(kept)) < 0.5 * np.mean(np.square(raw))


def test_memory_counts():
    """Samples that are like those before count less: more is shrunk."""
    shares = []
    for memory in (0.0, 0.95):
        residual = drawn(400, memory=memory)
        shares.append(joint_covariance([residual], [np.ones_like(residual, dtype=bool)])[1])
    assert shares[1] > 3.0 * shares[0]


def test_rows_that_are_not_fitted_do_not_count():
    """Values at rows that are masked change nothing."""
    residual = drawn(500)
    used = np.random.default_rng(1).random(residual.shape) < 0.7
    spoilt = np.where(used, residual, 1e6)
    for a, b in zip(joint_covariance([residual], [used]), joint_covariance([spoilt], [used]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_whitener_makes_independent_noise():
    """W Σ Wᵀ = 1; what is no covariance is refused."""
    white = whitener(TRUE)
    np.testing.assert_allclose(white @ TRUE @ white.T, np.eye(3), atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        whitener(np.array([[1.0, 2.0], [2.0, 1.0]]))
