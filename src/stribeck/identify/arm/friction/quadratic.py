"""Sums of squares: their minimum, by normal equations and by a parabola through three of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from scipy import linalg

from stribeck.model.arrays import Array


def sum_of(parts: Iterable[Array]) -> Array:
    """Sum of arrays of the same shape."""
    return np.asarray(np.sum(list(parts), axis=0))


def solved(gram: Array, slope: Array, precision: Array) -> Array:
    """Solution (p,) of the normal equations (p, p) with the precision of a prior (p,), scaled to a unit diagonal."""
    matrix = gram + np.diag(precision)
    scale = 1.0 / np.sqrt(np.diag(matrix))
    factor = linalg.cho_factor(matrix * np.outer(scale, scale) + 1e-12 * np.eye(len(scale)))
    return np.asarray(scale * linalg.cho_solve(factor, scale * slope))


def vertex(errors: Mapping[int, float], centre: int) -> float:
    """Minimum of the parabola through the squared errors at ``centre`` and its neighbours, relative to ``centre``."""
    left, middle, right = (errors.get(centre + k, np.inf) ** 2 for k in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    return round(float(0.5 * (left - right) / bend), 3) if 0.0 < bend < np.inf else 0.0
