r"""D-optimal selection of the poses to measure from candidates.

With the Jacobians :math:`J_i` of the points of pose i, scaled by the prior standard deviations of the parameters, the
selection is the set S that maximises

.. math:: \log\det\left(1 + \sum_{i \in S} J_i^T J_i / s^2\right)

first greedily, then by exchanging selected poses for better ones (Fedorov 1972) until no exchange helps. The gain of
one pose is a determinant whose size is the number of coordinates of a pose:
:math:`\log\det(A + J^TJ) - \log\det A = \log\det(1 + J A^{-1} J^T)`. See also Daney, Papegay and Madeline 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.identify.geometry.calibration import align
from stribeck.identify.geometry.chain import SerialChain
from stribeck.identify.geometry.config import CalibrationConfig
from stribeck.identify.geometry.data import MeasuredPoses
from stribeck.identify.geometry.identifiability import find_dependent
from stribeck.identify.geometry.model import EXTRA, GEOMETRY, KinematicModel, candidate_terms
from stribeck.model.arrays import Array

NOISE = 3e-4
"""Standard deviation s of a measured coordinate [m], typical of the residuals of a calibrated industrial arm."""

PRIOR_LENGTH, PRIOR_ANGLE = 5e-3, 1e-2
"""Prior standard deviations of the geometry [m, rad]; they influence the first few poses only."""

PRIOR_EXTRA = 1e-3
"""Prior standard deviation of the groups beyond the geometry [rad, 1]."""

DESIGN = (*GEOMETRY, "gain", "compliance")
"""Groups of parameters that the selected poses should determine."""

EXCHANGE_ROUNDS = 10
SMALLEST_GAIN = 1e-6


@dataclass(frozen=True)
class PoseChoice:
    """Selected poses.

    :param chosen: indices of the selected candidates, in the order of selection.
    :param log_determinant: log-determinant of the information with them.
    :param random_log_determinant: the same with as many randomly selected candidates.
    :param exchanges: number of exchanges after the greedy selection.
    """

    chosen: tuple[int, ...]
    log_determinant: float
    random_log_determinant: float
    exchanges: int


def design_model(
    config: CalibrationConfig, chain: SerialChain, base: Array, points: Array, markers: Sequence[str]
) -> tuple[KinematicModel, Array]:
    """The model whose parameters the selected poses should determine, and its parameters.

    :param base: pose of the robot's base (4, 4).
    :param points: marker positions behind the flange (markers, 3) [m].
    """
    terms = candidate_terms(chain, config.gravity)
    model = KinematicModel(chain, base, terms, tuple(markers), config.gravity).keep(DESIGN)
    return model, np.concatenate([np.zeros(len(model.terms)), points.ravel()])


def d_optimal_rows(
    config: CalibrationConfig, chain: SerialChain, measured: MeasuredPoses, number: int, seed: int
) -> list[int]:
    """Rows of the most informative measured poses, in ascending order.

    The measurements are only used for an initial guess of base and markers.
    """
    base, points = align(chain, measured.data)
    model, values = design_model(config, chain, base, points, measured.markers)
    scaled = information_rows(model, values, measured.data.positions)
    return sorted(choose_poses(scaled, number, seed=seed).chosen)


def information_rows(model: KinematicModel, values: Array, positions: Array) -> Array:
    """Scaled Jacobians of poses (poses, m, independent parameters)."""
    free, _ = find_dependent(model, values, positions)
    priors = np.array(
        [
            PRIOR_EXTRA if group in EXTRA else PRIOR_LENGTH if unit == "m" else PRIOR_ANGLE
            for group, unit in zip(model.groups, model.units, strict=True)
        ]
    )
    return np.asarray((model.linearise(positions, values)[1] * priors / NOISE)[:, :, free])


def choose_poses(rows: Array, number: int, measured: Sequence[int] = (), seed: int = 0) -> PoseChoice:
    """Select the next poses to measure.

    :param rows: scaled Jacobians of all poses (poses, m, parameters).
    :param number: how many to select.
    :param measured: indices of poses that were measured before; their information counts.
    :param seed: seed of the random selection for comparison.
    :raises ConfigError: if there are fewer candidates.
    """
    candidates = np.setdiff1d(np.arange(len(rows)), measured)
    if not 0 < number <= len(candidates):
        raise ConfigError(f"cannot choose {number} poses out of {len(candidates)}: choose fewer")
    before = np.eye(rows.shape[-1]) + information(rows, measured)
    chosen = _greedy(rows, before, candidates, number)
    exchanges = _exchange(rows, before, candidates, chosen)
    random = np.random.default_rng(seed).choice(candidates, number, replace=False)
    return PoseChoice(
        tuple(chosen),
        float(np.linalg.slogdet(before + information(rows, chosen))[1]),
        float(np.linalg.slogdet(before + information(rows, random))[1]),
        exchanges,
    )


def information(rows: Array, chosen: npt.ArrayLike) -> Array:
    """Sum of the information of the chosen poses (parameters, parameters)."""
    stacked = rows[np.asarray(chosen, dtype=np.int64)].reshape(-1, rows.shape[-1])
    return stacked.T @ stacked


def _greedy(rows: Array, before: Array, candidates: Array, number: int) -> list[int]:
    """Add the most informative pose, one at a time."""
    chosen: list[int] = []
    current = before.copy()
    for _ in range(number):
        remaining = np.setdiff1d(candidates, chosen)
        best = int(remaining[np.argmax(gains(rows[remaining], current))])
        chosen.append(best)
        current += information(rows, [best])
    return chosen


def gains(rows: Array, current: Array) -> Array:
    """Increase of the log-determinant by each pose (poses,)."""
    whitened = rows @ np.linalg.inv(np.linalg.cholesky(current)).T
    return np.asarray(np.linalg.slogdet(np.eye(rows.shape[1]) + whitened @ whitened.transpose(0, 2, 1))[1])


def _exchange(rows: Array, before: Array, candidates: Array, chosen: list[int]) -> int:
    """Exchange chosen poses for better candidates, in place, until no exchange helps; return the number of exchanges."""
    exchanges = 0
    current = before + information(rows, chosen)
    for _ in range(EXCHANGE_ROUNDS):
        exchanged_before = exchanges
        for place, pose in enumerate(chosen):
            without = current - information(rows, [pose])
            others = np.append(np.setdiff1d(candidates, chosen), pose)
            gain = gains(rows[others], without)
            best = int(np.argmax(gain))
            if gain[best] > gain[-1] + SMALLEST_GAIN:
                chosen[place] = int(others[best])
                current = without + information(rows, [chosen[place]])
                exchanges += 1
        if exchanges == exchanged_before:
            break
    return exchanges
