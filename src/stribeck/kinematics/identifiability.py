r"""What a calibration can tell: which parameters depend on others, in general and in the poses at hand.

With Jacobian J of all measured points, parameters whose columns depend on those of others cannot be told
apart from them. Some never can, since a chain may be described by many sets of frames: of 6-parameter
blocks around R revolute and P prismatic joints only 4R + 2P + 6 constants of base, joints and a tool frame
are independent. Others would need other poses. Dependent ones stay at their nominal value; the kept ones then
stand for the sums that :attr:`Dependent.equals` names.

Source for the number: Everett, Driels and Mooring, "Kinematic modelling for robot calibration", IEEE Int.
Conf. Robotics and Automation (1987).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from stribeck.kinematics.independence import dependence, independent_columns
from stribeck.kinematics.model import KinematicModel

FloatArray = npt.NDArray[np.float64]

GENERIC_POSES = 100
GENERIC_SEED = 0

WEAK = 1e-5
"""Share of a column that has to be independent in the poses at hand; below it, errors grow 10⁵-fold."""


@dataclass(frozen=True)
class Dependent:
    """A parameter that was left at its nominal value.

    :param name: of the parameter.
    :param because: ``geometry`` if no poses could tell, ``poses`` if those at hand cannot.
    :param equals: an increment of the parameter has the effect of these increments of others, by name.
    """

    name: str
    because: Literal["geometry", "poses"]
    equals: Mapping[str, float]

    def __str__(self) -> str:
        """The dependence as an expression."""
        parts = [f"{value:+.4g} {name}" for name, value in self.equals.items()]
        return f"{self.name} = {' '.join(parts) or '0 (no effect)'}"


def preferred_order(model: KinematicModel) -> list[int]:
    """Indices of all parameters: base and markers first, then offsets, geometry, and what goes beyond."""
    rank = {"base": 0, "marker": 1, "offset": 2, "geometry": 3}
    return sorted(range(len(model.names)), key=lambda p: rank.get(model.groups[p], 4))


def generic_jacobian(model: KinematicModel, values: FloatArray) -> FloatArray:
    """Jacobian of the points in poses all over the joint space (rows, parameters)."""
    rng = np.random.default_rng(GENERIC_SEED)
    spread = np.where(model.chain.prismatic, max(model.chain.reach, 1e-3), np.pi)
    positions = rng.uniform(-spread, spread, (GENERIC_POSES, len(spread)))
    jacobian = model.linearise(positions, values)[1]
    return jacobian.reshape(-1, len(values))


def find_dependent(
    model: KinematicModel, values: FloatArray, positions: FloatArray
) -> tuple[list[int], list[Dependent]]:
    """Parameters that the poses tell, by index, and those that they do not.

    The chain is taken as nominal: axes that are parallel by design are so here, although a fit turns them apart
    by what no poses could tell well.

    :param values: parameter values, of which the markers count.
    :param positions: joint positions of the poses at hand (poses, n) [rad, m].
    """
    values = np.concatenate([np.zeros(len(model.terms)), values[len(model.terms) :]])
    order = preferred_order(model)
    names = [model.names[p] for p in order]
    anywhere = generic_jacobian(model, values)[:, order]
    kept = independent_columns(anywhere)
    found = [_dependent(anywhere, kept, c, names, "geometry") for c in range(len(order)) if c not in kept]
    here = model.linearise(positions, values)[1].reshape(-1, len(values))[:, order]
    told = [kept[c] for c in independent_columns(here[:, kept], WEAK)]
    found += [_dependent(here, told, c, names, "poses") for c in kept if c not in told]
    return sorted(order[c] for c in told), found


def _dependent(
    matrix: FloatArray, kept: list[int], column: int, names: list[str], because: Literal["geometry", "poses"]
) -> Dependent:
    equals = dependence(matrix, kept, column)
    return Dependent(names[column], because, {names[c]: value for c, value in equals.items()})
