r"""Quality measures of an identification (Reiners et al. 2025, eqs. 15–17)."""

from __future__ import annotations

import numpy as np

from stribeck.identify.posterior.diagnostics import interval_levels
from stribeck.identify.posterior.network import Mechanical
from stribeck.model.arrays import Array

BINS = 60
"""Number of histogram bins for the total variation distance."""


def mae(found: Array, true: Array) -> float:
    r"""Mean absolute error :math:`\overline{|A - B|}/\overline{|B|}` [%]."""
    return float(100.0 * np.mean(np.abs(found - true)) / np.mean(np.abs(true)))


def cosine_similarity(found: Array, true: Array) -> float:
    r""":math:`\langle A, B\rangle / (\|A\| \|B\|)`, in [-1, 1]."""
    return float(found.ravel() @ true.ravel() / (np.linalg.norm(found) * np.linalg.norm(true)))


def rmse(found: Array, measured: Array) -> float:
    """Root mean square error relative to the measured values [%]."""
    return float(100.0 * np.sqrt(np.mean(((found - measured) / measured) ** 2)))


def total_variation(one: Array, other: Array) -> float:
    r"""Total variation distance :math:`\frac12\sum|p - q|` of two sets of draws from histograms with common bins, in [0, 1]."""
    edges = np.histogram_bin_edges(np.concatenate([one, other]), BINS)
    p, q = (np.histogram(draws, edges)[0] / len(draws) for draws in (one, other))
    return float(0.5 * np.sum(np.abs(p - q)))


def within(draws: Array, true: Array) -> tuple[int, int]:
    """Number of values (P,) that lie within the 95 % intervals of draws (S, P), and P."""
    low, high = np.quantile(draws, interval_levels(), axis=0)
    return int(np.sum((true >= low) & (true <= high))), len(true)


def mechanical_mae(found: Mechanical, true: Mechanical) -> dict[str, float]:
    """MAE of masses, centres of mass, inertias and motor inertias, and their mean ``all`` [%].

    Kinds whose true values are all zero are omitted.
    """
    parts = {
        "mass": (found.mass, true.mass),
        "com": (found.com, true.com),
        "inertia": (found.inertia, true.inertia),
        "motor": (found.motor, true.motor),
    }
    errors = {name: mae(np.asarray(a), np.asarray(b)) for name, (a, b) in parts.items() if np.any(b)}
    return {**errors, "all": float(np.mean(list(errors.values())))}


def mechanical_cosine(found: Mechanical, true: Mechanical) -> float:
    """Mean cosine similarity of the four kinds, without those that are all zero."""
    pairs = [(a, b) for a, b in zip(found, true, strict=True) if np.any(a) and np.any(b)]
    return float(np.mean([cosine_similarity(np.asarray(a), np.asarray(b)) for a, b in pairs]))
