"""Confidence intervals from standard deviations and covariances, estimates with them, and means of populations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from stribeck.model.arrays import Array, Mask
from stribeck.model.estimate import CONFIDENCE, Estimate, estimate_of


def student_quantile(freedom: Any, confidence: float = CONFIDENCE) -> Any:
    """Half-width of a two-sided Student's t interval in standard deviations, for degrees of freedom (…)."""
    return stdtrit(np.asarray(freedom, dtype=np.float64), 0.5 * (1.0 + confidence))[()]


def normal_quantile(confidence: float = CONFIDENCE) -> float:
    """Half-width of a two-sided normal interval in standard deviations; 1.96 for 95 %."""
    return float(ndtri(0.5 * (1.0 + confidence)))


def half_widths(
    covariance: Array, freedom: Any, unknown: Mask | None = None, confidence: float = CONFIDENCE
) -> Array:
    """Half-widths of the intervals (n,) of Student's t for a covariance (n, n); infinite where nothing is known.

    :param freedom: degrees of freedom of all or of each parameter.
    :param unknown: parameters that take part in a direction without information (n,).
    """
    width = student_quantile(freedom, confidence) * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return np.asarray(width if unknown is None else np.where(unknown, np.inf, width))


def estimate_about(value: float, unit: str, half: float, **judged: Any) -> Estimate:
    """An estimate with an interval of half-width ``half`` about it; without one if that is not finite.

    :param judged: bounds, prior, scale, confidence and reason of :func:`~stribeck.model.estimate.estimate_of`.
    """
    interval = (float(value - half), float(value + half)) if math.isfinite(half) else None
    return estimate_of(float(value), unit, interval, **judged)


def normal_estimate(value: float, unit: str, deviation: float, **judged: Any) -> Estimate:
    """An estimate with the normal interval of its standard deviation; without one if the deviation is not finite.

    :param judged: bounds, prior and scale of :func:`~stribeck.model.estimate.estimate_of`.
    """
    return estimate_about(value, unit, normal_quantile() * deviation, **judged)


@dataclass(frozen=True)
class Population:
    """Mean, standard error of the mean, half-width of its 95 % interval, and standard deviation between members."""

    mean: float
    deviation: float
    half_width: float
    scatter: float


def population_of(values: Array, variances: Array) -> Population:
    r"""Mean and scatter of ``values`` (k,) with the variances of their errors (k,); infinite ones do not count.

    :math:`x_j = \mu + u_j + e_j` with :math:`u_j \sim N(0, \tau^2)` and known variances :math:`v_j` of :math:`e_j`. The scatter is
    the moment estimate of DerSimonian and Laird, :math:`\hat\tau^2 = \max(0, (Q - k + 1) / (\sum w - \sum w^2 / \sum w))` with
    :math:`w = 1/v`, :math:`Q = \sum w (x - \bar x_w)^2`; the mean has the weights :math:`1/(v_j + \hat\tau^2)` and the interval of
    Hartung and Knapp with k - 1 degrees of freedom. Sources: DerSimonian and Laird 1986; Hartung and Knapp 2001.

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
