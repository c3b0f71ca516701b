r"""Least squares for a given structure: coefficients by non-negative least squares, shapes by a search.

With the regressor :math:`A(s)` at shapes s, :math:`\min_s \min_{x \ge 0} |\tau - \tau_{rigid} - A(s)x|^2` (variable
projection, Golub and Pereyra 1973); coefficients of any sign enter twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import minimize, nnls

from stribeck.identify.joint.model import (
    LENGTH,
    PER_KELVIN,
    SECOND_LENGTH,
    Frame,
    Shapes,
    Structure,
    columns_of,
    signed,
    torque_of,
)
from stribeck.identify.joint.run import JointRun, joined
from stribeck.model.arrays import Array, Mask
from stribeck.model.terms import FRICTION_PARAMETERS

RIDGE = 1e-9
"""Diagonal added to normal equations, relative to their largest scaled eigenvalue."""

ROUNDING = 1e-12
"""What rounding leaves of the square of a column when all its rows are taken away, relative to what it was."""

SMALLEST_SPEED, LARGEST_SPEED = 0.01, 0.3
"""Stribeck velocities that are searched, in shares of the largest speed: the effect has ended where the fastest rows are."""

SHORTEST, LONGEST = 2e-4, 0.3
"""Presliding lengths that are searched, as shares of the travel."""

SECOND_LONGEST = 1.0
"""The same for a second element, the longest one."""

SEPARATE = 5.0
"""Least ratio of the two presliding lengths: elements of alike lengths are one."""

SEARCH = 90
"""Evaluations of the search for the shapes."""


@dataclass(frozen=True)
class LeastSquares:
    """Normal equations of some rows: products of the columns, with the torque, and of the torque itself."""

    gram: Array
    slope: Array
    square: float

    def __sub__(self, other: LeastSquares) -> LeastSquares:
        gram, slope = self.gram - other.gram, self.slope - other.slope
        gone = np.diag(gram) <= ROUNDING * np.diag(self.gram)  # these columns are in the other rows alone
        gram[gone, :] = gram[:, gone] = slope[gone] = 0.0
        return LeastSquares(gram, slope, self.square - other.square)

    def solution(self, names: Sequence[str]) -> Array:
        """Coefficients (k,) that minimise the squared error, those without a sign free, the others at least zero."""
        empty = np.diag(self.gram) <= 0.0
        size = np.sqrt(np.where(empty, 1.0, np.diag(self.gram)))
        scaled = self.gram / np.outer(size, size) + RIDGE * len(size) * np.eye(len(size))
        weight, axes = np.linalg.eigh(scaled)  # a difference of products may have eigenvalues below zero
        root = np.sqrt(np.maximum(weight, RIDGE * len(size)))
        factor, target = root[:, None] * axes.T, axes.T @ (self.slope / size) / root
        free = [k for k, name in enumerate(names) if signed(name)]
        wide = np.concatenate([factor, -factor[:, free]], axis=1)
        found, _ = nnls(wide, target, maxiter=50 * wide.shape[1])
        values = found[: len(names)]
        values[free] -= found[len(names) :]
        return np.where(empty, 0.0, values / size)

    def error(self, values: Array) -> float:
        """Squared error of coefficients."""
        return float(self.square - 2.0 * values @ self.slope + values @ self.gram @ values)


def normal_of(columns: Array, torque: Array) -> LeastSquares:
    """Normal equations of rows (N, k)."""
    return LeastSquares(columns.T @ columns, columns.T @ torque, float(torque @ torque))


@dataclass(frozen=True, eq=False)
class JointFit:
    """A fitted structure.

    :param values: of all parameters.
    """

    structure: Structure
    frame: Frame
    values: Mapping[str, float]

    def torque(self, run: JointRun) -> Array:
        """Predicted torque of a run (N,) [N m]."""
        return torque_of(run, self.structure, self.values, self.frame)

    @property
    def shapes(self) -> dict[str, float]:
        """Values of the parameters on which the torque does not depend linearly."""
        return {name: self.values[name] for name in self.structure.shapes}

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Names of the others that were identified."""
        given = {*self.structure.shapes, *self.frame.places}
        return tuple(name for name in self.values if name not in given)


def regressor(
    runs: Sequence[JointRun], structure: Structure, shapes: Shapes, frame: Frame, values: Shapes | None = None
) -> tuple[tuple[str, ...], Array]:
    """Names of the coefficients and the columns of all runs (N, k)."""
    parts = [columns_of(run, structure, shapes, frame, values) for run in runs]
    names = tuple(parts[0])
    return names, np.concatenate([np.stack([part[name] for name in names], axis=1) for part in parts])


def measured(runs: Sequence[JointRun]) -> Array:
    """Torque of all runs that the model has to explain (N,)."""
    return joined(runs, "torque") - joined(runs, "rigid")


def kept_rows(runs: Sequence[JointRun]) -> Mask:
    """The rows of all runs that are fitted (N,)."""
    return np.asarray(joined(runs, "kept") > 0.999)


def shape_grid(structure: Structure, frame: Frame) -> dict[str, Array]:
    """Values of each shape from which a search starts."""
    span = frame.upper - frame.lower
    grids = {
        "dtheta_stribeck": frame.speed * np.geomspace(SMALLEST_SPEED, LARGEST_SPEED, 8),
        "alpha": np.array([1.0, 2.0]),
        LENGTH: span * np.geomspace(SHORTEST, LONGEST, 10),
        SECOND_LENGTH: span * np.geomspace(10.0 * SHORTEST, LONGEST, 4),
        PER_KELVIN: np.array([-0.01, 0.0, 0.005, 0.01, 0.02, 0.03]),
    }
    return {name: grids[name] for name in structure.shapes}


def shape_bounds(name: str, frame: Frame) -> tuple[float, float]:
    """Bounds of the search for a shape."""
    span = frame.upper - frame.lower
    return {
        "dtheta_stribeck": (0.2 * SMALLEST_SPEED * frame.speed, LARGEST_SPEED * frame.speed),
        "alpha": (FRICTION_PARAMETERS["alpha"].lower, 4.0),
        LENGTH: (1e-6 * span, LONGEST * span),
        SECOND_LENGTH: (1e-5 * span, SECOND_LONGEST * span),
        PER_KELVIN: (-0.05, 0.05),
    }[name]


def combinations(grid: Mapping[str, Array]) -> list[dict[str, float]]:
    """All combinations of values."""
    return [dict(zip(grid, map(float, values), strict=True)) for values in product(*grid.values())]


def fit_structure(
    runs: Sequence[JointRun],
    structure: Structure,
    frame: Frame,
    *,
    start: Shapes | None = None,
    evaluations: int = SEARCH,
) -> JointFit:
    """Fit a structure to runs.

    :param start: shapes to start from; by default the best of a grid.
    """
    target = measured(runs)
    rows = kept_rows(runs)

    def solved(shapes: Shapes) -> tuple[float, tuple[str, ...], Array]:
        names, columns = regressor(runs, structure, shapes, frame)
        normal = normal_of(columns[rows], target[rows])
        values = normal.solution(names)
        return normal.error(values), names, values

    shapes = {**start} if start else {}
    if structure.shapes and not shapes:
        shapes = min(combinations(shape_grid(structure, frame)), key=lambda one: solved(one)[0])
    if structure.shapes:
        shapes = _searched(lambda one: solved(one)[0], shapes, frame, evaluations)
    _, names, values = solved(shapes)
    found = {**dict(zip(names, values.tolist(), strict=True)), **shapes}
    found |= {name: one for name, one in frame.places.items() if name in structure.law.parameter_names}
    return JointFit(structure, frame, found)


def _searched(error: object, start: Shapes, frame: Frame, evaluations: int) -> dict[str, float]:
    """The shapes at a local minimum, by the simplex method in logarithms within bounds."""
    names = tuple(start)
    linear = [name == PER_KELVIN for name in names]
    bounds = [shape_bounds(name, frame) for name in names]

    def shapes_at(point: Array) -> dict[str, float]:
        plain = [x if flat else float(np.exp(x)) for x, flat in zip(point.tolist(), linear, strict=True)]
        found = {name: float(np.clip(x, *bound)) for name, x, bound in zip(names, plain, bounds, strict=True)}
        if SECOND_LENGTH in found:
            found[SECOND_LENGTH] = max(found[SECOND_LENGTH], SEPARATE * found[LENGTH])
        return found

    origin = np.array([start[n] if flat else np.log(start[n]) for n, flat in zip(names, linear, strict=True)])
    size = np.array([0.005 if flat else 0.3 for flat in linear])
    simplex = np.concatenate([origin[None], origin + np.diag(size)])
    best = minimize(
        lambda point: error(shapes_at(point)),  # type: ignore[operator]
        origin,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": evaluations, "xatol": 1e-3, "fatol": 0.0},
    )
    return shapes_at(np.asarray(best.x))
