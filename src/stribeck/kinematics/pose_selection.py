r"""Which poses to measure: D-optimal choice among candidates.

The information of a pose about the parameters is :math:`J_i^T J_i`, with the Jacobian of its points scaled by
the prior deviations of the parameters. Chosen is the set S that maximises

.. math:: \log\det\left(\Lambda + \sum_{i \in S} J_i^T J_i / s^2\right)

first greedily, then by exchanging chosen poses for better ones (Fedorov) until no exchange helps. What a pose
adds or takes is a determinant as small as a pose has coordinates:
:math:`\log\det(A + J^TJ) - \log\det A = \log\det(1 + J A^{-1} J^T)`.

Sources: Fedorov, "Theory of Optimal Experiments" (1972); Daney, Papegay and Madeline, "Choosing measurement
poses for robot calibration with the local convergence method and Tabu search", Int. J. Robotics Research 24
(2005).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.kinematics.identifiability import find_dependent
from stribeck.kinematics.model import KinematicModel

FloatArray = npt.NDArray[np.float64]

NOISE = 3e-4
"""Deviation of a measured coordinate [m]: what an arm of this kind leaves unexplained."""

PRIOR_LENGTH, PRIOR_ANGLE = 5e-3, 1e-2
"""Prior deviations of geometry [m, rad]; they decide nothing but the first few poses."""

PRIOR_EXTRA = 1e-3
"""Prior deviation of what goes beyond the geometry [rad, 1]."""

EXCHANGE_ROUNDS = 10
SMALLEST_GAIN = 1e-6


@dataclass(frozen=True)
class PoseChoice:
    """Chosen poses.

    :param chosen: indices of candidates, those chosen first in front.
    :param log_determinant: of the information with them.
    :param random_log_determinant: of as many random candidates.
    :param exchanges: how many of the greedy choice were exchanged.
    """

    chosen: tuple[int, ...]
    log_determinant: float
    random_log_determinant: float
    exchanges: int


def prior_deviations(model: KinematicModel, deviations: Mapping[str, float] | None = None) -> FloatArray:
    """Prior deviation of each parameter [m, rad, 1]; those of groups in ``deviations`` from there."""
    by_group = deviations or {}
    return np.array(
        [
            by_group.get(group, PRIOR_EXTRA)
            if group not in ("base", "marker", "offset", "geometry")
            else (PRIOR_LENGTH if unit == "m" else PRIOR_ANGLE)
            for group, unit in zip(model.groups, model.units, strict=True)
        ]
    )


def information_rows(model: KinematicModel, values: FloatArray, positions: FloatArray) -> FloatArray:
    """Scaled Jacobians of poses (poses, m, independent parameters)."""
    free, _ = find_dependent(model, values, positions)
    jacobian = model.linearise(positions, values)[1]
    scaled: FloatArray = (jacobian * prior_deviations(model) / NOISE)[:, :, free]
    return scaled


def choose_poses(rows: FloatArray, number: int, measured: Sequence[int] = (), seed: int = 0) -> PoseChoice:
    """Choose the next poses to measure.

    :param rows: scaled Jacobians of all poses (poses, m, parameters).
    :param number: how many to choose.
    :param measured: indices of poses that are measured already; they count and are not chosen.
    :param seed: of the random choice to compare with.
    :raises ConfigError: if there are not so many candidates.
    """
    candidates = np.setdiff1d(np.arange(len(rows)), measured)
    if not 0 < number <= len(candidates):
        raise ConfigError(f"cannot choose {number} of {len(candidates)} candidate poses")
    known = np.eye(rows.shape[-1]) + information(rows, measured)
    chosen = _greedy(rows, known, candidates, number)
    exchanges = _exchange(rows, known, candidates, chosen)
    random = np.random.default_rng(seed).choice(candidates, number, replace=False)
    return PoseChoice(
        tuple(chosen),
        _log_determinant(known + information(rows, chosen)),
        _log_determinant(known + information(rows, random)),
        exchanges,
    )


def information(rows: FloatArray, chosen: npt.ArrayLike) -> FloatArray:
    """Sum of the information of poses (parameters, parameters)."""
    found = rows[np.asarray(chosen, dtype=np.int64)].reshape(-1, rows.shape[-1])
    return found.T @ found


def _greedy(rows: FloatArray, known: FloatArray, candidates: FloatArray, number: int) -> list[int]:
    """Add the pose that tells most, one at a time."""
    chosen: list[int] = []
    current = known.copy()
    for _ in range(number):
        left = np.setdiff1d(candidates, chosen)
        best = int(left[np.argmax(gains(rows[left], current))])
        chosen.append(best)
        current += information(rows, [best])
    return chosen


def gains(rows: FloatArray, current: FloatArray) -> FloatArray:
    """What each pose adds to the log-determinant (poses,)."""
    half = np.linalg.inv(np.linalg.cholesky(current))
    spread = rows @ half.T
    inner = spread @ spread.transpose(0, 2, 1)
    found: FloatArray = np.linalg.slogdet(np.eye(rows.shape[1]) + inner)[1]
    return found


def _exchange(rows: FloatArray, known: FloatArray, candidates: FloatArray, chosen: list[int]) -> int:
    """Exchange chosen poses for better candidates, in place, until none helps; how often that was."""
    exchanges = 0
    current = known + information(rows, chosen)
    for _ in range(EXCHANGE_ROUNDS):
        before = exchanges
        for place, pose in enumerate(chosen):
            without = current - information(rows, [pose])
            others = np.append(np.setdiff1d(candidates, chosen), pose)
            found = gains(rows[others], without)
            best = int(np.argmax(found))
            if found[best] > found[-1] + SMALLEST_GAIN:
                chosen[place] = int(others[best])
                current = without + information(rows, [chosen[place]])
                exchanges += 1
        if exchanges == before:
            break
    return exchanges


def _log_determinant(matrix: FloatArray) -> float:
    return float(np.linalg.slogdet(matrix)[1])
