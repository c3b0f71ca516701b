"""What measured poses cannot be: in other units, of points that are one, or of an arm that was moved."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stribeck.errors import RecordingError
from stribeck.kinematics.chain import SerialChain

FloatArray = npt.NDArray[np.float64]

LARGEST_TURN = 4.0 * np.pi
"""No joint of an arm is read beyond two turns [rad]."""

MOVED = 1e-3
"""A base reflector that moves by more [m] says that the arm or the measuring system was moved."""

SAME_POINT = 1e-3
"""Markers nearer to each other than this [m] are one marker."""

RIGID = 2e-3
"""Typical change of the distance between two markers [m] from which on the rows do not belong together."""

COLLINEAR = 0.01
"""Sine of the angle in a triangle of markers below which they are on one line."""

SMALLEST_SPREAD, LARGEST_SPREAD = 1e-2, 20.0
"""Range of the points' spread, as a share of the reach of the nominal arm."""


def check_angles(table: FloatArray, units: Sequence[str], what: str) -> None:
    """Refuse degrees that are called rad, and the other way round.

    :param table: joint positions as in the file (poses, n).
    :param units: of its columns.
    :raises RecordingError: if the numbers cannot be in these units.
    """
    in_rad = [j for j, unit in enumerate(units) if unit == "rad"]
    in_deg = [j for j, unit in enumerate(units) if unit == "deg"]
    if in_rad and np.abs(table[:, in_rad]).max() > LARGEST_TURN:
        largest = np.abs(table[:, in_rad]).max()
        raise RecordingError(
            f"{what}: joint positions up to {largest:.4g} cannot be rad; say unit: deg in the YAML, or convert the file"
        )
    if in_deg and np.abs(table[:, in_deg]).max() <= 2.0 * np.pi:
        largest = np.abs(table[:, in_deg]).max()
        raise RecordingError(
            f"{what}: no joint position is beyond ±{largest:.3g}: these look like rad, not deg; say unit: rad in the "
            "YAML, or move the joints farther"
        )


def check_lengths(points: FloatArray, chain: SerialChain, markers: Sequence[str], config: str) -> None:
    """Refuse mm that are called m, and the other way round.

    :param points: (poses, k, 3) [m].
    :raises RecordingError: if the points lie much farther apart than the arm reaches, or hardly move.
    """
    spread = np.linalg.norm(np.ptp(points, axis=0), axis=1)
    for marker, size in zip(markers, spread, strict=True):
        share = float(size) / max(chain.reach, 1e-9)
        if SMALLEST_SPREAD <= share <= LARGEST_SPREAD:
            continue
        problem = "more than it can" if share > LARGEST_SPREAD else "next to nothing"
        raise RecordingError(
            f"marker {marker} moves by {size:.3g} m, {problem} on an arm of {chain.reach:.3g} m: check the units of the "
            f"points and of the nominal geometry in {config} (mm or m)"
        )


def check_markers(points: FloatArray, markers: Sequence[str], what: str) -> None:
    """Refuse markers that are one, that lie on a line, or whose distances change from pose to pose.

    :param points: (poses, k, 3) [m].
    :raises RecordingError: as said.
    """
    for (i, first), (j, second) in itertools.combinations(enumerate(markers), 2):
        distances = np.linalg.norm(points[:, i] - points[:, j], axis=1)
        middle = float(np.median(distances))
        if middle < SAME_POINT:
            raise RecordingError(
                f"{what}: markers {first} and {second} are the same point; give each file once, and name the markers right"
            )
        change = float(np.median(np.abs(distances - middle)))
        if change > RIGID:
            raise RecordingError(
                f"{what}: the distance between {first} and {second} changes by {1e3 * change:.1f} mm from pose to pose: "
                "are rows missing in one file, or the markers loose?"
            )
    if len(markers) >= 3 and _collinear(points):
        raise RecordingError(
            f"{what}: the markers {', '.join(markers)} lie on one line, which says nothing about turns around it; put "
            "one of them beside it, or use two"
        )


def _collinear(points: FloatArray) -> bool:
    """Whether all markers lie on one line, in the typical pose."""
    centred = points - points.mean(axis=1, keepdims=True)
    sizes = np.linalg.svd(centred, compute_uv=False)
    return bool(np.median(sizes[:, 1] / sizes[:, 0]) < COLLINEAR)


def check_base(points: FloatArray, what: str, centre: FloatArray) -> None:
    """Refuse a fixed point that moved.

    :param points: (rows, 3) [m].
    :param centre: where it is (3,) [m].
    :raises RecordingError: with the first row that is too far away.
    """
    away = np.linalg.norm(points - centre, axis=1)
    moved = np.flatnonzero(away > MOVED)
    if len(moved):
        raise RecordingError(
            f"{what}: in row {moved[0]} the fixed point is {1e3 * away[moved[0]]:.2f} mm from where it is otherwise "
            f"({len(moved)} rows): the arm or the measuring system was moved; leave these rows out of all files, or "
            "calibrate before and after separately"
        )
