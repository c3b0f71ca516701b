r"""Model discrepancy: how many independent samples residuals are worth.

What a model leaves of a recorded motion is smooth: neighbouring residuals say the same thing again. N of them are worth

.. math:: N_{eff} = N \Big/ \Big(1 + 2\sum_{k \ge 1} \rho_k\Big)

independent ones, ρ their autocorrelation. Counted as N, a likelihood prefers by thousands of nats whatever bends the smooth
error a little; counted as N_eff it says how sure the data make a model that is not quite true.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stribeck.estimates.autoregressive import autoregressive_covariance, highest_order
from stribeck.estimates.correlation import correlation_time

Array = npt.NDArray[np.float64]


def effective_samples(residual: Array) -> float:
    """Effective samples of one series (N,), by the autoregressive model of :mod:`stribeck.estimates.autoregressive`; at least 2."""
    count = len(residual)
    seen = np.array([residual[k:] @ residual[: count - k] / count for k in range(1 + highest_order(count))])
    found = autoregressive_covariance(seen, count, count)
    if not found[0] > 0.0:
        return float(max(count, 2))
    total = 1.0 + 2.0 * float(np.sum(found[1:]) / found[0])
    return float(np.clip(count / max(total, 1.0), 2.0, count))


def effective_samples_of_runs(residual: Array, dt: float) -> float:
    r"""Effective samples of runs (T, R) together, at least 2.

    .. math:: N_{eff} = \frac{R\,T\,\Delta t}{t_c} \Big/ \frac1R\sum_{ij} r_{ij}

    :math:`t_c` twice the integral of the autocorrelation, :math:`r_{ij}` the correlation of runs i and j: what a model
    gets wrong at one gain it gets wrong at the next. Neither is taken about a run's mean, for a likelihood knows no mean
    but zero: a run that is off by a constant says one thing, for all its length.
    """
    length, runs = residual.shape
    time = dt * correlation_time(residual.T, centred=False)
    size = np.maximum(np.linalg.norm(residual, axis=0), 1e-300)
    together = float(np.sum((residual / size).T @ (residual / size))) / runs
    alone = np.clip(length * dt / max(time, dt), 1.0, length)
    return float(max(runs * alone / max(together, 1.0), 2.0))
