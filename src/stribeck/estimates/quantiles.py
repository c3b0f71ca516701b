"""Quantiles for confidence intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from stribeck.estimates.estimate import CONFIDENCE


def student_quantile(freedom: Any, confidence: float = CONFIDENCE) -> Any:
    """Half-width of a two-sided Student's t interval in standard deviations, for degrees of freedom (…)."""
    return stdtrit(np.asarray(freedom, dtype=np.float64), 0.5 * (1.0 + confidence))[()]


def normal_quantile(confidence: float = CONFIDENCE) -> float:
    """Half-width of a two-sided normal interval in standard deviations; 1.96 for 95 %."""
    return float(ndtri(0.5 * (1.0 + confidence)))
