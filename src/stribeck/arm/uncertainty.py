r"""Standard deviations of estimates whose residuals are correlated in time.

Neighbouring residuals are alike: filters, and what the model lacks, make them so. Treated as independent they
would promise many times the precision there is. With the Jacobian :math:`J_j` of joint j's rows, noise
:math:`\sigma_j` and the autocovariance :math:`\gamma_j` of its residuals, estimated up to its first zero,

.. math::

    C = H^{-1} \Big(\sum_j \sigma_j^{-4} \sum_{k} \gamma_j(k) \sum_t J_j(t) J_j(t+k)^T\Big) H^{-1},
    \qquad H = \sum_j \sigma_j^{-2} J_j^T J_j + \Lambda

where :math:`\Lambda` is the precision of prior knowledge. It is the covariance of (weighted) least squares under
stationary noise, with the autocovariance put in (Newey and West 1987, with a parametric middle).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import linalg, signal

from stribeck.arm.signals import autocovariance

Array = npt.NDArray[np.float64]


def covariance(
    jacobians: Sequence[Array],
    residuals: Sequence[Array],
    sigma: Array,
    prior: Array | None = None,
    free: int | None = None,
) -> Array:
    """Covariance of the parameters, (p, p).

    :param jacobians: of each run (N, n, p); rows that were not fitted are zero.
    :param residuals: of each run (N, n); rows that were not fitted are zero.
    :param sigma: noise of each joint (n,).
    :param prior: precision of prior knowledge (p, p).
    :param free: number of parameters that were fitted, p if left out; residuals are smaller for them.
    """
    size = jacobians[0].shape[-1]
    count = sum(int(np.count_nonzero(np.any(j != 0.0, axis=-1))) for j in jacobians)
    inflation = count / max(count - (size if free is None else free), 1)
    hessian = np.zeros((size, size)) if prior is None else prior.copy()
    middle = np.zeros((size, size))
    for jacobian, residual in zip(jacobians, residuals, strict=True):
        for j, noise in enumerate(sigma):
            rows = jacobian[:, j] / noise
            hessian += rows.T @ rows
            middle += _correlated(rows, residual[:, j] / noise) * inflation
    if prior is not None:
        middle += prior
    scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    inverse = linalg.pinvh(hessian * np.outer(scale, scale), rtol=1e-13) * np.outer(scale, scale)
    return np.asarray(inverse @ middle @ inverse)


def standard_deviations(found: Array) -> Array:
    """Roots of the diagonal of a covariance, (p,)."""
    return np.sqrt(np.maximum(np.diag(found), 0.0))


def _correlated(rows: Array, residual: Array) -> Array:
    r""":math:`\sum_k \gamma(k) \sum_t J(t) J(t+k)^T` of one joint."""
    used = np.any(rows != 0.0, axis=1)
    if not used.any():
        return np.zeros((rows.shape[1],) * 2)
    gamma = autocovariance(residual) * (len(residual) / used.sum())
    two_sided = np.concatenate([gamma[:0:-1], gamma])
    smoothed = signal.oaconvolve(rows, two_sided[:, None], mode="full", axes=0)
    first = len(gamma) - 1
    product = rows.T @ smoothed[first : first + len(rows)]
    return np.asarray(0.5 * (product + product.T))
