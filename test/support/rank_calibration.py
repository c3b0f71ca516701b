r"""Whether intervals mean what they say: simulation-based ranks (Talts et al. 2018).

Parameters drawn from the prior, data simulated with them, a posterior of each: then the rank of each true value among its
posterior's draws is uniform, whatever the model. Tested by χ² over bins for each parameter, with Holm's correction over all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from stribeck.identify.posterior.diagnostics import LEVELS

Array = npt.NDArray[np.float64]

LEVEL = 0.01


@dataclass(frozen=True)
class RankCalibration:
    """Ranks of D true values of P parameters.

    :param ranks: how many of the draws are below the truth (D, P).
    :param draws: number of draws of each posterior.
    :param p_values: of the uniformity of each parameter's ranks (P,), before correction.
    :param coverage: share of true values within the 95 % intervals, of each parameter (P,).
    """

    names: tuple[str, ...]
    ranks: npt.NDArray[np.int64]
    draws: int
    p_values: Array
    coverage: Array

    @property
    def adjusted(self) -> Array:
        """Holm's p-values (P,)."""
        order = np.argsort(self.p_values)
        factors = np.arange(len(order), 0, -1)
        found = np.empty(len(order))
        found[order] = np.minimum(np.maximum.accumulate(self.p_values[order] * factors), 1.0)
        return found

    @property
    def uniform(self) -> bool:
        """Whether no parameter's ranks are far from uniform."""
        return bool(np.all(self.adjusted > LEVEL))

    @property
    def pooled_coverage(self) -> float:
        """Share of true values within the 95 % intervals."""
        return float(self.coverage.mean())


def calibrate(names: tuple[str, ...], truth: Array, draws: Array, bins: int = 20) -> RankCalibration:
    """Ranks of truths (D, P) among nearly independent draws (D, S, P)."""
    below = np.sum(draws < truth[:, None], axis=1)
    count = draws.shape[1]
    # Ranks are 0 to S; bins as even as they can be, and expected counts by their real widths.
    edges = np.linspace(0, count + 1, bins + 1).round()
    expected = len(truth) * np.diff(edges) / (count + 1)
    observed = [np.histogram(column, edges)[0] for column in below.T]
    p_values = np.array([stats.chisquare(one, expected).pvalue for one in observed])
    low, high = np.quantile(draws, LEVELS, axis=1)
    coverage = np.mean((truth >= low) & (truth <= high), axis=0)
    return RankCalibration(names, below, count, p_values, coverage)
