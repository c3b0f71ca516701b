r"""Model discrepancy: effective sample size of correlated residuals.

Residuals of recorded motion are smooth because of model error. N residuals with autocorrelation ρ are equivalent to

.. math:: N_{eff} = N \Big/ \Big(1 + 2\sum_{k \ge 1} \rho_k\Big)

independent ones. Counting them as N independent samples would make the posterior far too narrow.
"""

from __future__ import annotations

import numpy as np

from stribeck.identify.common.autoregressive import autoregressive_covariance, highest_order
from stribeck.identify.common.correlation import correlation_time
from stribeck.model.arrays import Array


def effective_samples(residual: Array) -> float:
    """Effective sample size of one series (N,), at least 2; see :mod:`stribeck.identify.common.autoregressive`."""
    count = len(residual)
    seen = np.array([residual[k:] @ residual[: count - k] / count for k in range(1 + highest_order(count))])
    covariance = autoregressive_covariance(seen, count, count)
    if not covariance[0] > 0.0:
        return float(max(count, 2))
    total = 1.0 + 2.0 * float(np.sum(covariance[1:]) / covariance[0])
    return float(np.clip(count / max(total, 1.0), 2.0, count))


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
