r"""Base parameters: the combinations of standard parameters that joint torques determine.

With the independent columns :math:`W_1` of a regressor and the others :math:`W_2 = W_1 K`, the torques
:math:`W\pi` depend only on :math:`\beta = \pi_1 + K\,\pi_2` (Gautier 1991).

**Rounded angles.** A URDF with ``rpy="1.5708"`` describes axes that are 3.7e-6 rad away from perpendicular or parallel, one
with 1.57 axes that are 8e-4 rad away. An axis that is :math:`\epsilon` away turns a dependent column into one of which the
share :math:`\epsilon` to :math:`2\epsilon` is independent, and a zero column into one that is :math:`\epsilon` times as long as others. No
recording determines such a parameter: its standard deviation is :math:`1/\epsilon` times that of its neighbours. Columns whose
independent share, or whose length relative to the longest, is below :data:`TOLERANCE` are therefore not chosen, but
projected on the others; what that leaves out of their torques is less than that share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from stribeck.identify.arm.model import ArmModel
from stribeck.identify.common.independence import independent_columns
from stribeck.model.arrays import Array

TOLERANCE = 2e-3
"""Independent share of a column, and length relative to the longest column, below which it is left out."""

NEGLIGIBLE = 1e-7
"""Parameters whose coefficients in all combinations are below this have no effect on torques."""


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
        return tuple(name for name, norm in zip(self.names, norms, strict=True) if norm < NEGLIGIBLE)


def base_parameters(regressor: Array, names: Sequence[str]) -> BaseParameters:
    """Base parameters of a stacked regressor.

    :param regressor: (rows, p).
    :param names: names of the p columns; the first of several equivalent columns is chosen.
    """
    scale = np.linalg.norm(regressor, axis=0)
    longest = scale.max(initial=0.0)
    eligible = np.flatnonzero(scale > TOLERANCE * longest).tolist()
    scale[scale <= NEGLIGIBLE * longest] = np.inf  # columns of zeros stay zero
    triangle = linalg.qr(regressor / scale, mode="r", pivoting=False)[0][: len(scale)]
    chosen = [eligible[k] for k in independent_columns(triangle[:, eligible], TOLERANCE)]
    independent = triangle[:, chosen]
    coefficients = linalg.lstsq(independent, triangle)[0] if chosen else np.zeros((0, len(scale)))
    kept = np.where(np.isinf(scale), 1.0, scale)
    projection = coefficients * kept / kept[chosen][:, None]
    projection[np.abs(projection) < 1e-10] = 0.0
    singular = linalg.svdvals(independent) if chosen else np.ones(1)
    return BaseParameters(tuple(names), tuple(chosen), projection, float(singular[0] / singular[-1]))


def structural_base_parameters(arm: ArmModel) -> BaseParameters:
    """Base parameters of an arm's inertials for any motion, from random states."""
    rng = np.random.default_rng(0)
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
