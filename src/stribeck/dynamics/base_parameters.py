r"""Base parameters: what joint torques can tell of the standard parameters, by rank-revealing QR.

With column pivoting, :math:`W P = Q [R_1\; R_2]`: the torques :math:`W\pi` depend on
:math:`\beta = \pi_1 + R_1^{-1} R_2\,\pi_2` alone, where :math:`\pi_1` are the parameters of the first `rank`
columns (Gautier 1991).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from stribeck.core.arrays import Array
from stribeck.dynamics.model import ArmModel

TOLERANCE = 1e-7
"""Columns whose part that is new is smaller than this share of the largest one add nothing."""


@dataclass(frozen=True)
class BaseParameters:
    r"""Which combinations of parameters a regressor can tell apart.

    :param names: the standard parameters, (p,).
    :param chosen: indices of the independent columns, (b,).
    :param projection: :math:`B` (b, p) with :math:`\beta = B\,\pi` and :math:`W\pi = W_{chosen}\beta`.
    :param condition: condition number of the chosen columns, each scaled to unit length.
    """

    names: tuple[str, ...]
    chosen: tuple[int, ...]
    projection: Array
    condition: float

    def __len__(self) -> int:
        return len(self.chosen)

    def reduce(self, regressor: Array) -> Array:
        """The independent columns of a regressor (…, p), (…, b)."""
        return regressor[..., list(self.chosen)]

    def values(self, parameters: Array) -> Array:
        """Base parameters of standard ones, (b,)."""
        return np.asarray(self.projection @ parameters)

    def expressions(self, threshold: float = 1e-6) -> tuple[str, ...]:
        """Each base parameter as an expression of the standard ones.

        :param threshold: smaller coefficients are left out.
        """
        return tuple(
            _expression(self.names, row, chosen, threshold)
            for row, chosen in zip(self.projection, self.chosen, strict=True)
        )

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """Parameters that no torque depends on."""
        norms = np.abs(self.projection).max(axis=0, initial=0.0)
        return tuple(name for name, norm in zip(self.names, norms, strict=True) if norm < TOLERANCE)


def base_parameters(regressor: Array, names: Sequence[str], tolerance: float = TOLERANCE) -> BaseParameters:
    """Base parameters of a stacked regressor.

    :param regressor: (rows, p).
    :param names: names of the p columns. Columns that come first are preferred where several would do.
    :param tolerance: see :data:`TOLERANCE`.
    """
    scale = np.linalg.norm(regressor, axis=0)
    scale[scale <= tolerance * scale.max(initial=0.0)] = np.inf  # columns of zeros stay zeros
    triangle = linalg.qr(regressor / scale, mode="r", pivoting=False)[0][: len(scale)]
    chosen = _independent(triangle, tolerance)
    independent = triangle[:, chosen]
    coefficients = linalg.lstsq(independent, triangle)[0] if chosen else np.zeros((0, len(scale)))
    kept = np.where(np.isinf(scale), 1.0, scale)
    projection = coefficients * kept / kept[chosen][:, None]
    projection[np.abs(projection) < 1e-10] = 0.0
    singular = linalg.svdvals(independent) if chosen else np.ones(1)
    return BaseParameters(tuple(names), tuple(chosen), projection, float(singular[0] / singular[-1]))


def structural_base_parameters(arm: ArmModel, seed: int = 0) -> BaseParameters:
    """Base parameters of the inertials of an arm, whatever it does: from random states.

    :param seed: of the random states.
    """
    rng = np.random.default_rng(seed)
    shape = (20 * len(arm), len(arm))
    states = (rng.uniform(-np.pi, np.pi, shape), rng.uniform(-3.0, 3.0, shape), rng.uniform(-9.0, 9.0, shape))
    regressor = arm.regressor(*states)
    return base_parameters(regressor.reshape(-1, regressor.shape[-1]), arm.parameter_names)


def _independent(triangle: Array, tolerance: float) -> list[int]:
    """Columns that span all, the later of two dependent ones left out (pivoted QR gives the rank)."""
    pivoted = linalg.qr(triangle, mode="r", pivoting=True)[0]
    diagonal = np.abs(np.diag(pivoted))
    rank = int(np.sum(diagonal > tolerance * diagonal.max(initial=0.0)))
    chosen: list[int] = []
    basis = np.zeros((len(triangle), 0))
    for column in range(triangle.shape[1]):
        if len(chosen) == rank:
            break
        rest = triangle[:, column] - basis @ (basis.T @ triangle[:, column])
        rest -= basis @ (basis.T @ rest)
        length = np.linalg.norm(rest)
        if length > tolerance * 10.0:
            chosen.append(column)
            basis = np.column_stack([basis, rest / length])
    return chosen


def _expression(names: Sequence[str], row: Array, chosen: int, threshold: float) -> str:
    words = [names[chosen]]
    for index in np.flatnonzero(np.abs(row) > threshold).tolist():
        if index != chosen:
            value = row[index]
            size = "" if abs(abs(value) - 1.0) < threshold else f"{abs(value):.6g}*"
            words.append(f"{'+' if value > 0 else '-'} {size}{names[index]}")
    return " ".join(words)
