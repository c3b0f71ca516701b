"""Reasons to reject measured states."""

from __future__ import annotations

import math

from stribeck.model.arrays import Array


class DoubtError(Exception):
    """Why a state cannot be trusted."""


class BridgedError(Exception):
    """Why a state is skipped while the last torque stays valid for a moment."""


def finite(values: Array) -> bool:
    """Whether all values are finite; a finite sum of squares is the fastest test."""
    return math.isfinite(values.dot(values)) or all(map(math.isfinite, values.tolist()))
