r"""Torque that repeats over the angle: its wave number, from residuals over the position.

Residuals are averaged in bins of the position, and the periodogram :math:`|\sum_b r_b e^{-iwq_b}|^2` is searched; the wave counts if
it explains :data:`SHARE` of the variance.
"""

from __future__ import annotations

import numpy as np

from stribeck.model.arrays import Array

FEWEST_PERIODS = 4.0
"""Least number of periods within the travel."""

BINS = 2000
SHARE = 0.1


def ripple_wave(position: Array, residual: Array) -> float:
    """Periods per 2π rad of a ripple in residuals (N,), 0 without one."""
    lower, span = float(position.min()), float(np.ptp(position))
    bins = min(BINS, len(position) // 4)
    if bins < 32 or span <= 0.0:
        return 0.0
    place = np.minimum((bins * (position - lower) / span).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    mean = np.bincount(place, residual, minlength=bins) / np.maximum(count, 1)
    known = count > 0
    if known.mean() < 0.5:
        return 0.0
    mean = np.where(known, mean - mean[known].mean(), 0.0)
    padded = 8 * bins
    power = np.abs(np.fft.rfft(mean, padded)) ** 2
    first, last = int(FEWEST_PERIODS * 8), padded // 4
    best = first + int(np.argmax(power[first:last]))
    wave = 2.0 * np.pi * best / padded * bins / span
    angle = wave * position
    columns = np.stack([np.sin(angle), np.cos(angle), np.ones_like(angle)], axis=1)
    values, *_ = np.linalg.lstsq(columns, residual, rcond=None)
    left = float(np.var(residual - columns @ values))
    return wave if left < (1.0 - SHARE) * float(np.var(residual)) else 0.0
