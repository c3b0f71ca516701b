"""Quantiles for confidence intervals, and estimates with normal ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from stribeck.model.estimate import CONFIDENCE, Estimate, estimate_of


def student_quantile(freedom: Any, confidence: float = CONFIDENCE) -> Any:
    """Half-width of a two-sided Student's t interval in standard deviations, for degrees of freedom (…)."""
    return stdtrit(np.asarray(freedom, dtype=np.float64), 0.5 * (1.0 + confidence))[()]


def normal_quantile(confidence: float = CONFIDENCE) -> float:
    """Half-width of a two-sided normal interval in standard deviations; 1.96 for 95 %."""
    return float(ndtri(0.5 * (1.0 + confidence)))


def normal_estimate(value: float, unit: str, deviation: float, **judged: Any) -> Estimate:
    """An estimate with the normal interval of its standard deviation; without one if the deviation is not finite.

    :param judged: bounds, prior and scale of :func:`~stribeck.model.estimate.estimate_of`.
    """
    half = normal_quantile() * deviation
    return estimate_of(value, unit, (value - half, value + half) if math.isfinite(half) else None, **judged)
