r"""Base parameters: the combinations of standard parameters that joint torques determine.

With the independent columns :math:`W_1` of a regressor and the others :math:`W_2 = W_1 K`, the torques
:math:`W\pi` depend only on :math:`\beta = \pi_1 + K\,\pi_2` (Gautier 1991).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from stribeck.core.arrays import Array
from stribeck.dynamics.model import ArmModel
from stribeck.kinematics.independence import independent_columns

TOLERANCE = 1e-7
"""Columns below this share of the largest are zero; the threshold of linear dependence is ten times higher."""


@dataclass(frozen=True)
class BaseParameters:
    r"""The identifiable combinations of the parameters of a regressor.

    :param names: names of the standard parameters, (p,).
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
        """Select the independent columns of a regressor (…, p), result (…, b)."""
        return regressor[..., list(self.chosen)]

    def values(self, parameters: Array) -> Array:
        """Base parameters (b,) from standard parameters (p,)."""
        return np.asarray(self.projection @ parameters)

    def expressions(self, threshold: float = 1e-6) -> tuple[str, ...]:
        """Each base parameter as an expression of standard ones, without coefficients below the threshold."""
        return tuple(
            _expression(self.names, row, chosen, threshold)
            for row, chosen in zip(self.projection, self.chosen, strict=True)
        )

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """Parameters on which no torque depends."""
        norms = np.abs(self.projection).max(axis=0, initial=0.0)
        return tuple(name for name, norm in zip(self.names, norms, strict=True) if norm < TOLERANCE)


def base_parameters(regressor: Array, names: Sequence[str], tolerance: float = TOLERANCE) -> BaseParameters:
    """Base parameters of a stacked regressor.

    :param regressor: (rows, p).
    :param names: names of the p columns; the first of several equivalent columns is chosen.
    :param tolerance: see :data:`TOLERANCE`.
    """
    scale = np.linalg.norm(regressor, axis=0)
    scale[scale <= tolerance * scale.max(initial=0.0)] = np.inf  # columns of zeros stay zero
    triangle = linalg.qr(regressor / scale, mode="r", pivoting=False)[0][: len(scale)]
    chosen = independent_columns(triangle, 10.0 * tolerance)
    independent = triangle[:, chosen]
    coefficients = linalg.lstsq(independent, triangle)[0] if chosen else np.zeros((0, len(scale)))
    kept = np.where(np.isinf(scale), 1.0, scale)
    projection = coefficients * kept / kept[chosen][:, None]
    projection[np.abs(projection) < 1e-10] = 0.0
    singular = linalg.svdvals(independent) if chosen else np.ones(1)
    return BaseParameters(tuple(names), tuple(chosen), projection, float(singular[0] / singular[-1]))


def structural_base_parameters(arm: ArmModel, seed: int = 0) -> BaseParameters:
    """Base parameters of an arm's inertials for any motion, from random states."""
    rng = np.random.default_rng(seed)
    shape = (20 * len(arm), len(arm))
    states = (rng.uniform(-np.pi, np.pi, shape), rng.uniform(-3.0, 3.0, shape), rng.uniform(-9.0, 9.0, shape))
    regressor = arm.regressor(*states)
    return base_parameters(regressor.reshape(-1, regressor.shape[-1]), arm.parameter_names)


def _expression(names: Sequence[str], row: Array, chosen: int, threshold: float) -> str:
    words = [names[chosen]]
    for index in np.flatnonzero(np.abs(row) > threshold).tolist():
        if index != chosen:
            value = row[index]
            size = "" if abs(abs(value) - 1.0) < threshold else f"{abs(value):.6g}*"
            words.append(f"{'+' if value > 0 else '-'} {size}{names[index]}")
    return " ".join(words)
