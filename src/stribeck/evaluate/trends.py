"""Dependence of residuals on measured quantities."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stribeck.model.arrays import Array
from stribeck.model.log import Batch

TREND_BINS, FEWEST_SAMPLES = 24, 20
"""Number of bins of a trend, and fewest samples per bin."""


class Trend(NamedTuple):
    """Residuals over a quantity, in bins: median, 10 % and 90 % quantiles (B,) [rad]."""

    centre: Array
    median: Array
    low: Array
    high: Array


def trends(batch: Batch, residual: Array) -> dict[str, Trend]:
    """Trends of residuals (T, R) over each measured quantity."""
    temperature = np.full_like(residual, np.nan)
    for r, log in enumerate(batch.logs):
        if log.temperature is not None:
            temperature[:, r] = log.temperature.at(log.start + batch.time)
    measured = {"velocity": batch.velocity, "position": batch.position, "temperature": temperature}
    curves = {name: trend(values, residual) for name, values in measured.items()}
    return {name: curve for name, curve in curves.items() if len(curve.centre) > 0}


def trend(values: Array, residual: Array) -> Trend:
    """Quantiles of residuals in bins of equal width over the central 99 % of ``values``, both of the same shape.

    Samples with NaN in either array are ignored; bins with few samples are left out.
    """
    counts = np.isfinite(values) & np.isfinite(residual)
    values, residual = values[counts], residual[counts]
    if len(values) < FEWEST_SAMPLES:
        return Trend(*np.empty((4, 0)))
    first, last = np.quantile(values, [0.005, 0.995])
    edges = np.linspace(first, max(last, first + 1e-9), TREND_BINS + 1)
    order = np.argsort(values, kind="stable")
    ends = np.searchsorted(values[order], edges, side="right")
    ends[0] = np.searchsorted(values[order], edges[0])
    rows = [
        (0.5 * (edges[k] + edges[k + 1]), *np.quantile(residual[order[start:end]], [0.5, 0.1, 0.9]))
        for k, (start, end) in enumerate(pairwise(ends))
        if end - start >= FEWEST_SAMPLES
    ]
    return Trend(*np.array(rows, dtype=np.float64).reshape(-1, 4).T)
