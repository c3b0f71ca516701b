r"""Correlation times, effective sample sizes and long-run covariances of time series.

The integrated correlation time of a signal with autocorrelation :math:`\rho_k` is

.. math:: \tau = 1 + 2\sum_{k=1}^{K} \rho_k

samples; N samples are worth :math:`N/\tau` independent ones. An estimated :math:`\rho` does not decay to zero, so the
sum is truncated at K: the first zero of :math:`\rho`, or Sokal's self-consistent window, the smallest K with
:math:`K \ge 5\,\tau(K)`, which includes negative :math:`\rho` as well.

Sources: Sokal 1997; Newey and West 1987; Kiefer and Vogelsang 2005.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from stribeck.model.arrays import Array, Indices

SOKAL = 5.0
"""Length of the self-consistent window, in correlation times."""

CORRELATED = 3.0
"""Length of an independent block in correlation times."""

MOST, SPARE = 60, 3
"""Largest number of blocks, and how many more than parameters there are at least."""


def correlation_time(
    runs: Iterable[Array],
    window: Literal["first zero", "self-consistent"] = "first zero",
    *,
    centred: bool = True,
) -> float:
    """Integrated correlation time of a signal in several runs [samples]; 0 for a zero signal, else at least 1.

    :param runs: series (N,) each, of any lengths.
    :param centred: subtract each run's mean first.
    """
    series = [run - np.mean(run) if centred else run for run in runs]
    length = max((len(run) for run in series), default=0)
    spectrum = sum((np.abs(np.fft.rfft(run, 2 * length)) ** 2 for run in series), np.zeros(length + 1))
    covariance = np.fft.irfft(spectrum)[:length] if length else np.zeros(1)
    if covariance[0] <= 0.0:
        return 0.0
    sums = 2.0 * np.cumsum(covariance / covariance[0]) - 1.0
    if window == "first zero":
        ends = np.flatnonzero(covariance <= 0.0) - 1
    else:
        ends = np.flatnonzero(np.arange(length) >= SOKAL * sums)
    return float(max(sums[ends[0] if ends.size else -1], 1.0))


def long_run_covariance(scores: Array, runs: Sequence[slice], windows: Sequence[int]) -> Array:
    r"""Sum of the covariances of scores within runs, weighted by Bartlett's kernel (Newey and West 1987), (p, p).

    .. math:: \Gamma = \sum_{|i-j| < L} (1 - |i-j|/L)\, u_iu_j^T

    :param scores: u (N, p).
    :param runs: samples of each run.
    :param windows: L of each run [samples]; 1 for white scores.
    """
    total = np.zeros((scores.shape[1], scores.shape[1]))
    for run, window in zip(runs, windows, strict=True):
        of_run = scores[run]
        total += of_run.T @ of_run
        for lag in range(1, min(window, len(of_run))):
            cross = of_run[lag:].T @ of_run[:-lag]
            total += (1.0 - lag / window) * (cross + cross.T)
    return total


def independent_blocks(series: Sequence[Array], parameters: int) -> list[Indices]:
    """Rows of blocks of time of residuals that are longer than their correlation; no block goes over the end of a run.

    :param series: residuals (N,) of each run.
    :param parameters: of the fit; there are at least :data:`SPARE` more blocks.
    """
    ends = np.cumsum([len(run) for run in series])
    rows, length = int(ends[-1]), CORRELATED * max(correlation_time(series), 1.0)
    wanted = int(np.clip(rows / length, parameters + SPARE, MOST))
    blocks: list[Indices] = []
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        pieces = max(1, round(wanted * (end - start) / rows))
        blocks += np.array_split(np.arange(start, end), pieces)
    return blocks


def effective_samples_of_runs(residual: Array, dt: float) -> float:
    r"""Joint effective sample size of runs (T, R), at least 2.

    .. math:: N_{eff} = \frac{R\,T\,\Delta t}{t_c} \Big/ \frac1R\sum_{ij} r_{ij}

    with the correlation time :math:`t_c` and the correlation :math:`r_{ij}` of runs i and j, because model errors repeat from
    run to run. Both are computed about zero, the mean of the likelihood: a run with a constant error counts as one sample.
    """
    length, runs = residual.shape
    time = dt * correlation_time(residual.T, centred=False)
    size = np.maximum(np.linalg.norm(residual, axis=0), 1e-300)
    together = float(np.sum((residual / size).T @ (residual / size))) / runs
    alone = np.clip(length * dt / max(time, dt), 1.0, length)
    return float(max(runs * alone / max(together, 1.0), 2.0))
