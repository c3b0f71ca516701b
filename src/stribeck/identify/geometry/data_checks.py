"""Plausibility checks of measured poses: units, markers, and whether the arm was moved."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from stribeck.errors import RecordingError
from stribeck.identify.geometry.chain import SerialChain
from stribeck.model.arrays import Array

LARGEST_TURN = 4.0 * np.pi
"""Joint positions beyond two turns [rad] must be degrees."""

MOVED = 1e-3
"""If a base reflector moves by more than this [m], the arm or the measuring system was moved."""

SAME_POINT = 1e-3
"""Markers closer together than this [m] are the same marker."""

RIGID = 2e-3
"""Median change of the distance between two markers [m] above which the rows of their files do not match."""

COLLINEAR = 0.01
"""Ratio of the second to the first singular value of the markers below which they are collinear."""

SMALLEST_SPREAD, LARGEST_SPREAD = 1e-2, 20.0
"""Valid range of the spread of the points, relative to the reach of the nominal arm."""


def check_angles(table: Array, units: Sequence[str], place: str) -> None:
    """Refuse degrees that are declared as rad, and vice versa.

    :param table: joint positions as in the file (poses, n).
    :param units: declared units of its columns.
    :raises RecordingError: if the numbers are implausible in these units.
    """
    largest = {
        unit: float(np.abs(table[:, [j for j, other in enumerate(units) if other == unit]]).max())
        for unit in set(units)
    }
    if largest.get("rad", 0.0) > LARGEST_TURN:
        raise RecordingError(
            f"{place}: joint positions of up to {largest['rad']:.4g} are too large for rad: set unit: deg in the YAML file, or convert the positions"
        )
    if largest.get("deg", np.inf) <= 2.0 * np.pi:
        raise RecordingError(
            f"{place}: all joint positions are within ±{largest['deg']:.3g}, which is too small for deg: set "
            "unit: rad in the YAML file, or record a wider motion"
        )


def check_lengths(points: Array, chain: SerialChain, markers: Sequence[str]) -> None:
    """Reject lengths in mm that are declared as m, and vice versa.

    :param points: (poses, k, 3) [m].
    :raises RecordingError: if the spread of the points is far above the arm's reach, or almost zero.
    """
    spread = np.linalg.norm(np.ptp(points, axis=0), axis=1)
    for marker, size in zip(markers, spread, strict=True):
        share = float(size) / max(chain.reach, 1e-9)
        if not SMALLEST_SPREAD <= share <= LARGEST_SPREAD:
            problem = "too far" if share > LARGEST_SPREAD else "too little"
            raise RecordingError(
                f"marker {marker} moves by {size:.3g} m, {problem} for an arm with a reach of {chain.reach:.3g} m: check "
                "the units (mm or m) in the robot's YAML file, calibration: data and nominal"
            )


def check_markers(points: Array, markers: Sequence[str], place: str) -> None:
    """Refuse markers that coincide, are collinear, or whose distances change from pose to pose.

    :param points: (poses, k, 3) [m].
    :raises RecordingError: with the names of the markers.
    """
    for (i, first), (j, second) in itertools.combinations(enumerate(markers), 2):
        distances = np.linalg.norm(points[:, i] - points[:, j], axis=1)
        middle = float(np.median(distances))
        if middle < SAME_POINT:
            raise RecordingError(
                f"{place}: markers {first} and {second} have the same positions: give each marker its own file"
            )
        change = float(np.median(np.abs(distances - middle)))
        if change > RIGID:
            raise RecordingError(
                f"{place}: the distance between {first} and {second} changes by {1e3 * change:.1f} mm from pose to "
                "pose: are rows missing in one file, or the markers loose?"
            )
    if len(markers) >= 3:
        sizes = np.linalg.svd(points - points.mean(axis=1, keepdims=True), compute_uv=False)
        if np.median(sizes[:, 1] / sizes[:, 0]) < COLLINEAR:
            raise RecordingError(
                f"{place}: the markers {', '.join(markers)} lie on one line, so rotations about this line "
                "cannot be measured: move one marker off the line, or use only two"
            )


def check_base(points: Array, place: str, centre: Array) -> None:
    """Refuse a fixed point that moved.

    :param points: (rows, 3) [m].
    :param centre: its position (3,) [m].
    :raises RecordingError: with the first row that is too far away.
    """
    away = np.linalg.norm(points - centre, axis=1)
    moved = np.flatnonzero(away > MOVED)
    if len(moved):
        raise RecordingError(
            f"{place}: in row {moved[0]} the fixed point is {1e3 * away[moved[0]]:.2f} mm away from its median ({len(moved)} such rows): the arm or the "
            "measuring system was moved: remove these rows from all files, or calibrate separately before and after the move"
        )
