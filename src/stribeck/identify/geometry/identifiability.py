r"""Identifiability of calibration parameters, in general and from the measured poses.

A parameter is not identifiable if its column in the Jacobian of all measured points depends linearly on other columns.
Some parameters are never identifiable, since different sets of frames can describe the same chain: of the six
parameters of each block around R revolute and P prismatic joints only 4R + 2P + 6 constants of base, joints and tool
frame are independent (Everett, Driels and Mooring 1987). Others would need other poses. Dependent parameters stay at
their nominal value; the estimated ones then represent the sums given by :attr:`Dependent.equals`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stribeck.identify.common.independence import dependence, independent_columns
from stribeck.identify.geometry.model import KinematicModel
from stribeck.model.arrays import Array

GENERIC_POSES = 100
GENERIC_SEED = 0

WEAK = 1e-5
"""Smallest independent share of a column in the measured poses; measurement errors are amplified by its inverse."""


@dataclass(frozen=True)
class Dependent:
    """A parameter that stays at its nominal value.

    :param because: ``geometry`` if no poses can identify it, ``poses`` if the measured ones do not.
    :param equals: increments of other parameters, by name, that have the same effect as a unit increment of this one.
    """

    name: str
    because: Literal["geometry", "poses"]
    equals: Mapping[str, float]

    def __str__(self) -> str:
        parts = [f"{value:+.4g} {name}" for name, value in self.equals.items()]
        return f"{self.name} = {' '.join(parts) or '0 (no effect)'}"


def preferred_order(model: KinematicModel) -> list[int]:
    """Indices of all parameters, the preferred first: base, markers, offsets, geometry, other groups."""
    rank = {"base": 0, "marker": 1, "offset": 2, "geometry": 3}
    return sorted(range(len(model.names)), key=lambda p: rank.get(model.groups[p], 4))


def generic_jacobian(model: KinematicModel, values: Array) -> Array:
    """Jacobian of the points in random poses of the whole joint space (rows, parameters)."""
    rng = np.random.default_rng(GENERIC_SEED)
    spread = np.where(model.chain.prismatic, max(model.chain.reach, 1e-3), np.pi)
    positions = rng.uniform(-spread, spread, (GENERIC_POSES, len(spread)))
    return model.linearise(positions, values)[1].reshape(-1, len(values))


def find_dependent(
    model: KinematicModel, values: Array, positions: Array
) -> tuple[list[int], list[Dependent]]:
    """Indices of the identifiable parameters, and the dependent ones.

    The nominal chain is used, so that axes that are parallel by design count as parallel; a fit tilts them by angles
    that no poses determine well.

    :param values: parameter values; only those of the markers are used.
    :param positions: joint positions of the measured poses (poses, n) [rad, m].
    """
    values = np.concatenate([np.zeros(len(model.terms)), values[len(model.terms) :]])
    order = preferred_order(model)
    names = [model.names[p] for p in order]
    anywhere = generic_jacobian(model, values)[:, order]
    kept = independent_columns(anywhere)
    dependent = [_dependent(anywhere, kept, c, names, "geometry") for c in range(len(order)) if c not in kept]
    here = model.linearise(positions, values)[1].reshape(-1, len(values))[:, order]
    identified = [kept[c] for c in independent_columns(here[:, kept], WEAK)]
    dependent += [_dependent(here, identified, c, names, "poses") for c in kept if c not in identified]
    return sorted(order[c] for c in identified), dependent


def _dependent(
    matrix: Array, kept: list[int], column: int, names: list[str], because: Literal["geometry", "poses"]
) -> Dependent:
    equals = dependence(matrix, kept, column)
    return Dependent(names[column], because, {names[c]: value for c, value in equals.items()})
