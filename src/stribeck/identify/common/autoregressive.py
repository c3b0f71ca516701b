r"""Covariance of least-squares estimates whose residuals are correlated in time.

Filters and model errors make neighbouring residuals alike. Treating them as independent would overstate the precision
many times over. With the Jacobian :math:`J_j` of joint j's rows, divided by its noise :math:`\sigma_j`,
and the matrix :math:`\Gamma_j(t, s) = \gamma_j(t - s)` of the noise's autocovariance :math:`\gamma_j`,

.. math::

    C = H^{-1} \Big(w^2\Lambda + \sum_j J_j^T \Gamma_j J_j\Big) H^{-1}, \qquad H = w\Lambda + \sum_j J_j^T J_j

where :math:`\Lambda` is the precision of a prior to which the fit gave the weight w. This is the covariance of
(weighted) least squares under stationary noise. The autocovariance is that of an autoregressive model (den Haan and
Levin 1997) whose order is chosen by the criterion of Hannan and Quinn (1979); white noise has order 0. Unlike a
truncated sum over lags, the model includes the negative lobes that low-pass filters cause.

A fit absorbs part of the noise, above all its slow part, so residuals are smaller than the noise. The autocovariance is
therefore corrected iteratively until the residuals that it predicts have the observed autocovariance:

.. math::

    E\Big[\sum_t r_j(t)\,r_j(t+k)\Big] = \sum_t \gamma_j(k)
      - 2 \sum_t J_j(t+k)\,H^{-1} (\Gamma_j J_j)(t)^T + \sum_t J_j(t+k)\,C\,J_j(t)^T

At lag 0 and for white noise this is the usual correction for degrees of freedom, for each joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft, linalg, signal

from stribeck.model.arrays import Array

CORRECTIONS = 4
"""Number of iterations that correct the autocovariance for what the fit absorbed."""

FLOOR = 0.01
"""White noise added to every model, as a share of the variance; keeps models of low-pass filtered noise regular."""


def covariance(
    jacobians: Sequence[Array],
    residuals: Sequence[Array],
    sigma: Array,
    prior: Array | None = None,
    weight: float = 1.0,
) -> Array:
    """Covariance of the parameters, (p, p).

    :param jacobians: Jacobian of each run (N, n, p); rows that were not fitted are zero.
    :param residuals: residuals of each run (N, n); rows that were not fitted are zero.
    :param sigma: standard deviation of each joint's noise (n,).
    :param prior: precision of a prior (p, p).
    :param weight: weight w of the prior in the fit.
    """
    size = jacobians[0].shape[-1]
    series = _series_of(jacobians, jacobians, residuals, sigma)
    return _sandwich(series, np.zeros((size, size)) if prior is None else prior, weight)[0]


def covariance_of(
    functions: Sequence[Array], jacobians: Sequence[Array], residuals: Sequence[Array]
) -> Array:
    r"""Covariance (f, f) of linear functions of the noise, :math:`\sum_j F_j^T e_j`, of which a fit tells the autocovariance.

    :param functions: F of each run (N, n, f); rows that were not fitted are zero.
    :param jacobians, residuals: of the fit, as for :func:`covariance`, in units of the noise.
    """
    ones, size, total = np.ones(residuals[0].shape[-1]), jacobians[0].shape[-1], functions[0].shape[-1]
    series = _series_of(jacobians, jacobians, residuals, ones)
    _, absorbed = _sandwich(series, np.zeros((size, size)), 1.0)
    pairs = zip(_series_of(functions, jacobians, residuals, ones), absorbed, strict=True)
    return _sum((one.spread(_middle(one, one.smoothed(lost)), total) for one, lost in pairs), total)


def _series_of(
    rows: Sequence[Array], jacobians: Sequence[Array], residuals: Sequence[Array], sigma: Array
) -> list[_Series]:
    """The series of the joints of all runs that have a Jacobian."""
    return [
        _Series.of(one[:, j] / noise, residual[:, j] / noise)
        for one, jacobian, residual in zip(rows, jacobians, residuals, strict=True)
        for j, noise in enumerate(sigma)
        if np.any(jacobian[:, j])
    ]


def _sandwich(series: Sequence[_Series], precision: Array, weight: float) -> tuple[Array, list[Array]]:
    """Covariance of the parameters (p, p), and the sums of products that the fit absorbed, of each series (K,)."""
    size = len(precision)
    hessian = weight * precision + _sum((one.spread(one.rows.T @ one.rows, size) for one in series), size)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    inverse = linalg.pinvh(hessian * np.outer(scale, scale), rtol=1e-13) * np.outer(scale, scale)
    absorbed = [np.zeros(len(one.products)) for one in series]
    for left in reversed(range(CORRECTIONS + 1)):
        smoothed = [one.smoothed(lost) for one, lost in zip(series, absorbed, strict=True)]
        parts = (one.spread(_middle(one, s), size) for one, s in zip(series, smoothed, strict=True))
        middle = weight**2 * precision + _sum(parts, size)
        sandwich = inverse @ middle @ inverse
        if left:
            absorbed = [one.absorbed(s, inverse, sandwich) for one, s in zip(series, smoothed, strict=True)]
    return np.asarray(sandwich), absorbed


def standard_deviations(matrix: Array) -> Array:
    """Square roots of the diagonal of a covariance (p, p), shape (p,)."""
    return np.sqrt(np.maximum(np.diag(matrix), 0.0))


@dataclass(frozen=True)
class _Series:
    """Rows of one joint in one run.

    :param columns: parameters that the joint's torque depends on (c,).
    :param rows: (N, c), divided by the noise; zero for samples not fitted.
    :param products: sums of the products of residuals k rows apart, k = 0 … K - 1, (K,).
    :param pairs: number of these products (K,).
    """

    columns: npt.NDArray[np.intp]
    rows: Array
    products: Array
    pairs: Array

    @classmethod
    def of(cls, rows: Array, residual: Array) -> _Series:
        used = np.any(rows != 0.0, axis=1).astype(np.float64)
        lags = 1 + highest_order(int(used.sum()))
        columns = np.flatnonzero(rows.any(axis=0))
        return cls(
            columns,
            np.ascontiguousarray(rows[:, columns]),
            np.array([residual[k:] @ residual[: len(rows) - k] for k in range(lags)]),
            np.array([used[k:] @ used[: len(rows) - k] for k in range(lags)]),
        )

    def smoothed(self, absorbed: Array) -> Array:
        r""":math:`\Gamma J` (N, c), for the autocovariance of the residuals corrected by the absorbed part (K,)."""
        covariances = (self.products + absorbed) / np.maximum(self.pairs, 1.0)
        gamma = autoregressive_covariance(covariances, int(self.pairs[0]), len(self.rows))
        size = fft.next_fast_len(2 * len(self.rows), real=True)
        circular = np.zeros(size)
        circular[: len(gamma)] = gamma
        circular[size - len(gamma) + 1 :] = gamma[:0:-1]
        power = fft.rfft(circular).real
        spectrum = fft.rfft(self.rows, size, axis=0) * power[:, None]
        return np.asarray(fft.irfft(spectrum, size, axis=0)[: len(self.rows)])

    def spread(self, matrix: Array, size: int) -> Array:
        """A matrix of the joint's parameters (c, c), embedded in one of all parameters (size, size)."""
        whole = np.zeros((size, size))
        whole[np.ix_(self.columns, self.columns)] = matrix
        return whole

    def absorbed(self, smoothed: Array, inverse: Array, sandwich: Array) -> Array:
        """The part of the sums of products that the fit absorbs, (K,)."""
        n, columns = len(self.rows), np.ix_(self.columns, self.columns)
        weighted = 2.0 * smoothed @ inverse[columns] - self.rows @ sandwich[columns]
        return np.array(
            [np.einsum("tp,tp->", self.rows[k:], weighted[: n - k]) for k in range(len(self.products))]
        )


def _sum(parts: Iterable[Array], size: int) -> Array:
    return np.asarray(sum(parts, np.zeros((size, size))))


def _middle(series: _Series, smoothed: Array) -> Array:
    product = series.rows.T @ smoothed
    return np.asarray(0.5 * (product + product.T))


def highest_order(rows: int) -> int:
    """Highest order tried for an autoregressive model of this many rows."""
    return max(min(int(10.0 * np.log10(max(rows, 1))), rows // 10), 0)


def autoregressive_covariance(seen: Array, rows: int, lags: int) -> Array:
    r"""Autocovariance (lags,) of the autoregressive model of a signal, by Levinson's recursion.

    :param seen: autocovariance of the signal at lags 0 to the highest order (K,).
    :param rows: number N of samples from which it was computed.

    The order p minimises :math:`N\log\sigma_p^2 + 2p\log\log N` (Hannan and Quinn 1979) among the orders up to which
    ``seen`` is positive definite; lags beyond the order follow from the model.
    """
    if not seen[0] > 0.0:
        return np.zeros(lags)
    seen = np.concatenate([[(1.0 + FLOOR) * seen[0]], seen[1:]])
    coefficients, error = np.zeros(0), float(seen[0])
    penalty = 2.0 * np.log(np.log(max(rows, 3)))
    best, chosen = rows * np.log(error), coefficients
    for order in range(1, len(seen)):
        reflection = float(seen[order] - coefficients @ seen[order - 1 : 0 : -1]) / error
        if not abs(reflection) < 1.0:
            break
        coefficients = np.append(coefficients - reflection * coefficients[::-1], reflection)
        error *= 1.0 - reflection**2
        criterion = rows * np.log(error) + penalty * order
        if criterion < best:
            best, chosen = criterion, coefficients
    return _extended(seen[: len(chosen) + 1], chosen, lags)


def _extended(first: Array, coefficients: Array, lags: int) -> Array:
    r"""Autocovariances (lags,), extrapolated from the first ones by :math:`\gamma_k = \sum_i a_i\gamma_{k-i}`."""
    order = len(coefficients)
    gamma = np.zeros(lags)
    gamma[: order + 1] = first[:lags]
    if order and lags > order + 1:
        recursion = np.concatenate([[1.0], -coefficients])
        state = signal.lfiltic([1.0], recursion, first[:0:-1])
        gamma[order + 1 :] = signal.lfilter([1.0], recursion, np.zeros(lags - order - 1), zi=state)[0]
    return gamma


def effective_samples(residual: Array) -> float:
    r"""Effective sample size of one series (N,), at least 2: :math:`N / (1 + 2\sum_{k \ge 1} \rho_k)`.

    Residuals of recorded motion are smooth because of model error. Counting them as N independent samples would make a posterior
    far too narrow.
    """
    count = len(residual)
    seen = np.array([residual[k:] @ residual[: count - k] / count for k in range(1 + highest_order(count))])
    covariance = autoregressive_covariance(seen, count, count)
    if not covariance[0] > 0.0:
        return float(max(count, 2))
    total = 1.0 + 2.0 * float(np.sum(covariance[1:]) / covariance[0])
    return float(np.clip(count / max(total, 1.0), 2.0, count))
