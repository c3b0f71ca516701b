r"""Mean and scatter of a quantity over members of a population, each estimated with an error of its own.

:math:`x_j = \mu + u_j + e_j` with :math:`u_j \sim N(0, \tau^2)` and known variances :math:`v_j` of :math:`e_j`. The scatter is
the moment estimate of DerSimonian and Laird, :math:`\hat\tau^2 = \max(0, (Q - k + 1) / (\sum w - \sum w^2 / \sum w))` with
:math:`w = 1/v`, :math:`Q = \sum w (x - \bar x_w)^2`; the mean has the weights :math:`1/(v_j + \hat\tau^2)` and the interval of
Hartung and Knapp with k - 1 degrees of freedom. Sources: DerSimonian and Laird 1986; Hartung and Knapp 2001.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stribeck.identify.common.quantiles import student_quantile
from stribeck.model.arrays import Array


@dataclass(frozen=True)
class Population:
    """Mean, standard error of the mean, half-width of its 95 % interval, and standard deviation between members."""

    mean: float
    deviation: float
    half_width: float
    scatter: float


def population_of(values: Array, variances: Array) -> Population:
    """Mean and scatter of ``values`` (k,) with the variances of their errors (k,); infinite ones do not count.

    :raises ValueError: if fewer than two variances are finite.
    """
    counts = np.isfinite(variances)
    if counts.sum() < 2:
        raise ValueError("a population needs at least two members with a finite variance")
    x, v = values[counts], np.maximum(variances[counts], 1e-300)
    weights = v.min() / v
    freedom = len(x) - 1
    excess = weights @ (x - np.average(x, weights=weights)) ** 2 - freedom * v.min()
    squared = max(excess / (weights.sum() - weights @ weights / weights.sum()), 0.0)
    weights = 1.0 / (v + squared)
    mean = float(np.average(x, weights=weights))
    spread = max(weights @ (x - mean) ** 2 / freedom, 1.0)
    deviation = float(np.sqrt(spread / weights.sum()))
    return Population(mean, deviation, float(student_quantile(freedom)) * deviation, float(np.sqrt(squared)))
