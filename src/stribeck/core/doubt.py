"""Reasons why measured states count for nothing."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class DoubtError(Exception):
    """Why a state cannot be trusted."""


class BridgedError(Exception):
    """Why a state says nothing, while the last one still holds for a moment."""


def finite(values: FloatArray) -> bool:
    """Whether all are numbers; a finite sum of squares tells it fastest."""
    return math.isfinite(values.dot(values)) or all(map(math.isfinite, values.tolist()))
