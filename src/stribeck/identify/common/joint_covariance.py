r"""Covariance of the residuals of several joints at the same time, with correlations drawn towards zero.

The sample correlations :math:`r_{ij}` of few independent samples are large by chance. Shrunk ones are

.. math:: \hat r_{ij} = (1 - \lambda)\,r_{ij}, \qquad
    \lambda = \min\Big(1, \sum_{i \ne j} \widehat{\mathrm{Var}}(r_{ij}) \Big/ \sum_{i \ne j} r_{ij}^2\Big)

with :math:`\widehat{\mathrm{Var}}(r_{ij}) = (1 - r_{ij}^2)^2 / N_{ij}`; :math:`N_{ij} = N / \sum_k \rho_i(k)\rho_j(k)` is the number
of independent samples of two series with the autocorrelations :math:`\rho` (Bartlett 1935). A positive share of the identity keeps the matrix
positive definite.

Source: Schäfer and Strimmer 2005, "A shrinkage approach to large-scale covariance matrix estimation".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stribeck.model.arrays import Array, Mask

LEAST = 1e-3
"""Smallest share by which correlations are drawn towards zero."""


def joint_covariance(residuals: Sequence[Array], used: Sequence[Mask]) -> tuple[Array, float]:
    """Covariance of n joints, and the share λ by which their correlations were drawn towards zero.

    :param residuals: of each run (N, n).
    :param used: which of them were fitted (N, n); pairs of joints are compared where both were.
    :returns: covariance (n, n) [N² m² or N²], and λ.
    """
    shown = [np.where(mask, residual, 0.0) for residual, mask in zip(residuals, used, strict=True)]
    counts = np.maximum(sum(mask.astype(float).T @ mask for mask in used), 1.0)
    products = sum(one.T @ one for one in shown) / counts
    deviation = np.sqrt(np.maximum(np.diag(products), 1e-24))
    correlation = np.clip(products / np.outer(deviation, deviation), -1.0, 1.0)
    independent = np.maximum(counts / _dependence(shown), 3.0)
    apart: Mask = ~np.eye(len(deviation), dtype=bool)
    chance = float(np.sum(((1.0 - correlation**2) ** 2 / independent)[apart]))
    seen = float(np.sum(correlation[apart] ** 2))
    share = min(1.0, max(chance / seen, LEAST)) if seen > 0.0 else 1.0
    shrunk = np.where(apart, (1.0 - share) * correlation, 1.0)
    return shrunk * np.outer(deviation, deviation), share


def _dependence(residuals: Sequence[Array]) -> Array:
    r"""Samples that are worth one independent pair, :math:`\sum_k \rho_i(k)\rho_j(k)` (n, n), at least 1."""
    length = max(len(one) for one in residuals)
    spectrum = sum(np.abs(np.fft.rfft(one, 2 * length, axis=0)) ** 2 for one in residuals)
    seen = np.fft.irfft(spectrum, axis=0)[:length]
    seen = seen / np.maximum(seen[0], 1e-300)
    # An estimated autocorrelation does not decay to zero: each ends at its first zero.
    ends = [int(np.argmax(column <= 0.0)) or length for column in seen.T]
    for joint, end in enumerate(ends):
        seen[end:, joint] = 0.0
    return np.asarray(np.maximum(2.0 * seen.T @ seen - np.outer(seen[0], seen[0]), 1.0))


def whitener(covariance: Array) -> Array:
    """The matrix W (n, n) with W Σ Wᵀ = 1: the inverse of the lower Cholesky factor.

    :raises numpy.linalg.LinAlgError: for a matrix that is not positive definite.
    """
    factor = np.linalg.cholesky(covariance)
    return np.asarray(np.linalg.solve(factor, np.eye(len(factor))))
