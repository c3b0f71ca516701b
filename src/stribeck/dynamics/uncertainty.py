r"""Standard deviations of estimates whose residuals are correlated in time.

Neighbouring residuals are alike: filters, and what the model lacks, make them so. Treated as independent they
would promise many times the precision there is. With the Jacobian :math:`J_j` of joint j's rows, divided by its noise
:math:`\sigma_j`, and the autocovariance :math:`\gamma_j` of what disturbs them, as the matrix
:math:`\Gamma_j(t, s) = \gamma_j(t - s)`,

.. math::

    C = H^{-1} \Big(w^2\Lambda + \sum_j J_j^T \Gamma_j J_j\Big) H^{-1}, \qquad H = w\Lambda + \sum_j J_j^T J_j

where :math:`\Lambda` is the precision of prior knowledge, which the fit gave the weight w. It is the covariance of (weighted) least squares under
stationary noise, with an autoregressive model of it put in (den Haan and Levin 1997): the model's order is chosen
by Hannan's and Quinn's criterion, 0 for white noise, and unlike a sum that stops at some lag it sees the negative lobes that low-pass filters make.

Residuals are less than what disturbs: a fit takes up what it can, the slow part first, the more the more alike they
are. So the autocovariance is that which makes the residuals' own what it is seen to be,

.. math::

    E\Big[\sum_t r_j(t)\,r_j(t+k)\Big] = \sum_t \gamma_j(k)
      - 2 \sum_t J_j(t+k)\,H^{-1} (\Gamma_j J_j)(t)^T + \sum_t J_j(t+k)\,C\,J_j(t)^T

by iteration. At lag 0 with white noise this is the count of degrees of freedom, for each joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft, linalg, signal

Array = npt.NDArray[np.float64]

CORRECTIONS = 4
"""How often the autocovariance is corrected for what the fit took up of it."""

FLOOR = 0.01
"""White noise, as a share of the variance, that a model always has: a low-pass filter leaves too little at high
frequencies for a well-conditioned model, and no parameter is told from there."""


def covariance(
    jacobians: Sequence[Array],
    residuals: Sequence[Array],
    sigma: Array,
    prior: Array | None = None,
    weight: float = 1.0,
) -> Array:
    """Covariance of the parameters, (p, p).

    :param jacobians: of each run (N, n, p); rows that were not fitted are zero.
    :param residuals: of each run (N, n); rows that were not fitted are zero.
    :param sigma: noise of each joint (n,).
    :param prior: precision of prior knowledge (p, p).
    :param weight: how many times the fit counted it, as it has to beside rows that are alike.
    """
    size = jacobians[0].shape[-1]
    series = [
        _Series.of(jacobian[:, j] / noise, residual[:, j] / noise)
        for jacobian, residual in zip(jacobians, residuals, strict=True)
        for j, noise in enumerate(sigma)
        if np.any(jacobian[:, j])
    ]
    known = np.zeros((size, size)) if prior is None else prior
    hessian = weight * known + _sum((one.spread(one.rows.T @ one.rows, size) for one in series), size)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    inverse = linalg.pinvh(hessian * np.outer(scale, scale), rtol=1e-13) * np.outer(scale, scale)
    taken = [np.zeros(len(one.seen)) for one in series]
    for _ in range(CORRECTIONS + 1):
        smoothed = [one.smoothed(lost) for one, lost in zip(series, taken, strict=True)]
        parts = (one.spread(_middle(one, s), size) for one, s in zip(series, smoothed, strict=True))
        middle = weight**2 * known + _sum(parts, size)
        found = inverse @ middle @ inverse
        taken = [one.taken(s, inverse, found) for one, s in zip(series, smoothed, strict=True)]
    return np.asarray(found)


def standard_deviations(found: Array) -> Array:
    """Roots of the diagonal of a covariance, (p,)."""
    return np.sqrt(np.maximum(np.diag(found), 0.0))


@dataclass(frozen=True)
class _Series:
    """Rows of one joint in one run.

    :param columns: parameters that the joint's torque depends on (c,).
    :param rows: (N, c), over the noise; zero where nothing was fitted.
    :param seen: sums of products of residuals so many rows apart, (K,).
    :param pairs: number of these products (K,).
    """

    columns: npt.NDArray[np.intp]
    rows: Array
    seen: Array
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

    def smoothed(self, taken: Array) -> Array:
        r""":math:`\Gamma J` (N, p), with the autocovariance of the residuals and what the fit took up."""
        covariances = (self.seen + taken) / np.maximum(self.pairs, 1.0)
        gamma = autoregressive_covariance(covariances, int(self.pairs[0]), len(self.rows))
        size = fft.next_fast_len(2 * len(self.rows), real=True)
        circular = np.zeros(size)
        circular[: len(gamma)] = gamma
        circular[size - len(gamma) + 1 :] = gamma[:0:-1]
        power = fft.rfft(circular).real
        spectrum = fft.rfft(self.rows, size, axis=0) * power[:, None]
        return np.asarray(fft.irfft(spectrum, size, axis=0)[: len(self.rows)])

    def spread(self, matrix: Array, size: int) -> Array:
        """A matrix of the joint's parameters (c, c) among all (size, size)."""
        found = np.zeros((size, size))
        found[np.ix_(self.columns, self.columns)] = matrix
        return found

    def taken(self, smoothed: Array, inverse: Array, found: Array) -> Array:
        """What the fit takes up of the sums of products, (K,)."""
        n, own = len(self.rows), np.ix_(self.columns, self.columns)
        weighed = 2.0 * smoothed @ inverse[own] - self.rows @ found[own]
        return np.array(
            [np.einsum("tp,tp->", self.rows[k:], weighed[: n - k]) for k in range(len(self.seen))]
        )


def _sum(parts: Iterable[Array], size: int) -> Array:
    return np.asarray(sum(parts, np.zeros((size, size))))


def _middle(series: _Series, smoothed: Array) -> Array:
    product = series.rows.T @ smoothed
    return np.asarray(0.5 * (product + product.T))


def highest_order(rows: int) -> int:
    """Highest order of an autoregressive model that so many rows are asked for."""
    return max(min(int(10.0 * np.log10(max(rows, 1))), rows // 10), 0)


def autoregressive_covariance(seen: Array, rows: int, lags: int) -> Array:
    r"""Autocovariance (lags,) of the autoregressive model of a signal, by Levinson's recursion.

    :param seen: autocovariance of the signal at lags 0 to the highest order (K,).
    :param rows: number N of samples behind it.

    The order p is that of least :math:`N\log\sigma_p^2 + 2p\log\log N` (Hannan and Quinn 1979), among those for which
    ``seen`` is an autocovariance at all; beyond the order it goes on as the model says.
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
    r"""Autocovariances by :math:`\gamma_k = \sum_i a_i\gamma_{k-i}` from the first ones on, (lags,)."""
    order = len(coefficients)
    found = np.zeros(lags)
    found[: order + 1] = first[:lags]
    if order and lags > order + 1:
        recursion = np.concatenate([[1.0], -coefficients])
        state = signal.lfiltic([1.0], recursion, first[:0:-1])
        found[order + 1 :] = signal.lfilter([1.0], recursion, np.zeros(lags - order - 1), zi=state)[0]
    return found
