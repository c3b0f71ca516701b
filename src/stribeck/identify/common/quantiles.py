"""Confidence intervals from standard deviations and covariances, and estimates with them."""

from __future__ import annotations

import math
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
