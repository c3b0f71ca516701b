"""Reasons to reject measured states."""

from __future__ import annotations

import math

import numpy as np

from stribeck.model.arrays import Array


class DoubtError(Exception):
    """Why a state cannot be trusted."""


class BridgedError(Exception):
    """Why a state is skipped while the last torque stays valid for a moment."""


LARGEST = 1e9
"""Larger positions [rad] and velocities [rad/s] are no measurements; their squares would overflow to infinity and NaN."""


def possible(values: Array) -> bool:
    """Whether all values are numbers of at most :data:`LARGEST`; the sum of squares is the fastest test."""
    return bool(values.dot(values) <= LARGEST * LARGEST or np.all(np.abs(values) <= LARGEST))


def finite(values: Array) -> bool:
    """Whether all values are finite; a finite sum of squares is the fastest test."""
    return math.isfinite(values.dot(values)) or all(map(math.isfinite, values.tolist()))
