r"""Levenberg-Marquardt within a box, on normal equations that the caller assembles."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg

Array = npt.NDArray[np.float64]

ITERATIONS = 100
LEAST_GAIN = 1e-6
"""Steps that gain less than this share of the cost, twice in a row, end the search."""


class NormalEquations(NamedTuple):
    """A sum of squares at a point.

    :param cost: half the sum of squares.
    :param gradient: (p,).
    :param hessian: Gauss-Newton's approximation, or the exact one (p, p).
    """

    cost: float
    gradient: Array
    hessian: Array


def minimise(
    equations: Callable[[Array], NormalEquations],
    start: Array,
    lower: Array,
    upper: Array,
    size: Array,
    iterations: int = ITERATIONS,
) -> Array:
    """The point of a box where a sum of squares is least, from a start.

    :param equations: normal equations at a point.
    :param start, lower, upper: (p,); the start is clipped into the box.
    :param size: what each coordinate may change by in one step (p,).
    """
    point = np.clip(start, lower, upper)
    here, damping, idle = equations(point), 1e-3, 0
    for _ in range(iterations):
        trial = np.clip(point + _step(here, point, lower, upper, size, damping), lower, upper)
        there = equations(trial)
        if not there.cost < here.cost:
            damping *= 5.0
            if damping > 1e12:
                break
            continue
        gain = (here.cost - there.cost) / max(abs(here.cost), 1e-300)
        idle = idle + 1 if gain < LEAST_GAIN else 0
        point, here = trial, there
        damping = max(damping / 5.0, 1e-12)
        if idle == 2:
            break
    return point


def _step(
    here: NormalEquations, point: Array, lower: Array, upper: Array, size: Array, damping: float
) -> Array:
    """A damped step of the coordinates that no bound holds, no longer than ``size``."""
    held = ((point <= lower) & (here.gradient > 0.0)) | ((point >= upper) & (here.gradient < 0.0))
    free = np.flatnonzero(~held)
    step = np.zeros_like(point)
    if not len(free):
        return step
    unit = size[free]
    hessian = here.hessian[np.ix_(free, free)] * np.outer(unit, unit)
    diagonal = np.abs(np.diag(hessian))
    diagonal = diagonal + 1e-8 * diagonal.max(initial=1e-300)
    while True:
        try:
            factor = linalg.cho_factor(hessian + damping * np.diag(diagonal))
            break
        except linalg.LinAlgError:  # an exact Hessian need not be positive definite
            damping = max(3.0 * damping, 1e-6)
    found = -linalg.cho_solve(factor, here.gradient[free] * unit)
    step[free] = unit * found / max(1.0, np.abs(found).max())
    return step
