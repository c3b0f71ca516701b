"""Find and read files of measured poses, and check their consistency with each other and the arm.

A set is one folder with one file for each role of the configuration (joints, markers, pose, base), one row per pose.
Several sets are concatenated. Bags hold poses, too (:mod:`stribeck.identify.geometry.bag_poses`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from stribeck.errors import RecordingError
from stribeck.identify.geometry.bag_poses import read_rest_rows
from stribeck.identify.geometry.chain import SerialChain
from stribeck.identify.geometry.config import UNITS, CalibrationConfig, PointsFile, PoseFile
from stribeck.identify.geometry.data_checks import check_angles, check_base, check_lengths, check_markers
from stribeck.identify.geometry.robust_fit import PointData
from stribeck.model.arrays import Array
from stribeck.recordings.bags.storage import is_bag
from stribeck.recordings.sources import bags_below
from stribeck.recordings.tables.readers import read_text_table

JOINTS, POSE, BASE = "joints", "pose", "base"
POSE_COLUMNS = 7
POSE_POINTS = ("origin", "x", "y", "z")
"""Points that represent a full pose: its origin, and one at the distance ``lever`` along each axis."""


@dataclass(frozen=True, eq=False)
class MeasuredPoses:
    """Measured poses in SI units.

    :param data: joint positions and points.
    :param base: median of the fixed point on the base (3,) [m], ``None`` if it was not measured.
    """

    data: PointData
    markers: tuple[str, ...]
    base: Array | None


def read_poses(paths: Sequence[Path], config: CalibrationConfig, chain: SerialChain) -> MeasuredPoses:
    """Read all sets in files and folders, and all bags.

    :raises RecordingError: for missing or damaged files, inconsistent rows, and units that contradict the configuration.
    """
    bags, others = _parted(paths)
    sets = [_read_set(files, config, chain) for files in find_sets(others, config)]
    sets += [_read_bag(path, config, chain) for path in bags]
    joints = np.concatenate([one.data.positions for one in sets])
    points = np.concatenate([one.data.points for one in sets])
    check_lengths(points, chain, sets[0].markers)
    bases = [one.base for one in sets if one.base is not None]
    for base in bases[1:]:
        check_same_base(bases[0], base)
    data = PointData(joints, points, np.arange(len(joints)))
    return MeasuredPoses(data, sets[0].markers, bases[0] if bases else None)


def _parted(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The bags at and below the paths, and the paths without bags."""
    bags: list[Path] = []
    others = []
    for path in paths:
        found = [path] if path.exists() and is_bag(path) else sorted(bags_below(path).finished)
        bags += found
        others += [] if found else [path]
    return bags, others


def _read_bag(path: Path, config: CalibrationConfig, chain: SerialChain) -> MeasuredPoses:
    """The poses at the rests of a bag."""
    data = config.data
    sources: dict[str, PointsFile] = dict(data.markers)
    sources |= {POSE: data.pose} if data.pose is not None else {}
    unnamed = [name for name, source in sources.items() if not source.topic]
    if unnamed:
        raise RecordingError(
            f"{path}: calibration: data: no topic is given for {', '.join(unnamed)}: add topic"
        )
    positions, measured = read_rest_rows(path, chain.names, [(s.topic, s.frame) for s in sources.values()])
    points: dict[str, Array] = {}
    for (name, source), rows in zip(sources.items(), measured, strict=True):
        if name != POSE or data.pose is None:
            points[name] = rows[:, :3]
        elif rows.shape[1] != POSE_COLUMNS:
            raise RecordingError(f"{path}: {source.topic} contains points, not poses: enter it under markers")
        else:
            points |= _points_of(rows[:, :3], rows[:, 3:], data.pose.distance)
    stacked = np.stack(list(points.values()), axis=1)
    check_markers(stacked, tuple(points), str(path))
    return MeasuredPoses(PointData(positions, stacked, np.arange(len(positions))), tuple(points), None)


def check_same_base(first: Array | None, second: Array | None) -> None:
    """Refuse two sets if the arm or the measuring system was moved between them.

    :raises RecordingError: if the base points differ.
    """
    if first is not None and second is not None:
        check_base(np.stack([first, second]), "the fixed point of the base in the two sets", centre=first)


def find_sets(
    paths: Sequence[Path], config: CalibrationConfig, needed: Sequence[str] | None = None
) -> list[dict[str, Path]]:
    """Files by role, for each folder.

    :param needed: roles that must have a file; default: all but the base.
    :raises RecordingError: if the file of a role is missing, or there are several.
    """
    data = config.data
    optional = {POSE: data.pose, BASE: data.base}
    patterns = {JOINTS: data.joints.file, **{name: points.file for name, points in data.markers.items()}}
    patterns |= {name: source.file for name, source in optional.items() if source is not None}
    needed = [name for name in patterns if name != BASE] if needed is None else needed
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        if not path.exists():
            raise RecordingError(f"{path}: no such file or folder")
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        folder = path if path.is_dir() else path.parent
        folders.setdefault(folder.resolve(), []).extend(file for file in files if file.is_file())
    return [_by_role(files, folder, patterns, needed) for folder, files in folders.items()]


def _by_role(
    files: Sequence[Path], folder: Path, patterns: Mapping[str, str], needed: Sequence[str]
) -> dict[str, Path]:
    """The file for each role in one folder."""
    by_role = {}
    for name, pattern in patterns.items():
        matching = list(dict.fromkeys(file for file in files if fnmatch(file.name, pattern)))
        if len(matching) > 1:
            names = ", ".join(file.name for file in matching)
            raise RecordingError(
                f"{folder}: several files match {pattern}, the pattern for {name}: {names}; give one of them"
            )
        if matching:
            by_role[name] = matching[0]
        elif name in needed:
            raise RecordingError(
                f"{folder}: no file {pattern} for {name} was given; all of {', '.join(patterns[key] for key in needed)} are needed"
            )
    return by_role


def _read_set(files: Mapping[str, Path], config: CalibrationConfig, chain: SerialChain) -> MeasuredPoses:
    joints, data = read_joints(files[JOINTS], config, chain), config.data
    points = {
        name: read_columns(files[name], 3) * UNITS[source.unit] for name, source in data.markers.items()
    }
    if data.pose is not None:
        points |= _pose_points(files[POSE], data.pose)
    for name, positions in points.items():
        if len(positions) != len(joints):
            raise RecordingError(
                f"{files.get(name, files.get(POSE))} has {len(positions)} rows, but {files[JOINTS]} has "
                f"{len(joints)}: row n of every file must belong to the same pose"
            )
    stacked = np.stack(list(points.values()), axis=1)
    check_markers(stacked, tuple(points), str(files[JOINTS].parent))
    base = None
    if data.base is not None and BASE in files:
        fixed = read_columns(files[BASE], 3) * UNITS[data.base.unit]
        base = np.median(fixed, axis=0)
        check_base(fixed, str(files[BASE]), centre=base)
    return MeasuredPoses(PointData(joints, stacked, np.arange(len(joints))), tuple(points), base)


def read_joints(path: Path, config: CalibrationConfig, chain: SerialChain) -> Array:
    """Joint positions in a file (poses, n) [rad, m].

    :raises RecordingError: if the file is damaged, or its units contradict the configuration.
    """
    units = config.data.joints.units(len(chain.names))
    table = read_columns(path, len(units))
    check_angles(table, units, str(path))
    return table * [UNITS[unit] for unit in units]


def _pose_points(path: Path, source: PoseFile) -> dict[str, Array]:
    """Points by name that represent the full poses ``x y z qx qy qz qw`` in a file."""
    table = read_columns(path, POSE_COLUMNS)
    origin, quaternion = table[:, :3] * UNITS[source.unit], table[:, 3:]
    size = np.linalg.norm(quaternion, axis=1)
    wrong = np.flatnonzero(np.abs(size - 1.0) > 0.01)
    if len(wrong):
        raise RecordingError(
            f"{path}: row {wrong[0]}: the quaternion has length {size[wrong[0]]:.3g}, expected 1: columns must be "
            "x y z qx qy qz qw"
        )
    return _points_of(origin, quaternion, source.distance)


def _points_of(origin: Array, quaternion: Array, lever: float) -> dict[str, Array]:
    """Points by name that represent poses with origins (P, 3) [m] and quaternions x, y, z, w (P, 4).

    :param lever: their distance [m].
    """
    x, y, z, w = (quaternion / np.linalg.norm(quaternion, axis=1)[:, None]).T
    axes = (
        np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)], axis=1),
        np.stack([2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)], axis=1),
        np.stack([2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)], axis=1),
    )
    levers = [np.zeros_like(origin), *(lever * axis for axis in axes)]
    return {f"pose_{name}": origin + lever for name, lever in zip(POSE_POINTS, levers, strict=True)}


def read_columns(path: Path, count: int) -> Array:
    """The numbers of a text file (rows, count); lines that begin with # and blank lines are skipped.

    :raises RecordingError: for another number of columns, text, or numbers that are not finite.
    """
    table = read_text_table(path)
    if len(table.names) != count:
        raise RecordingError(f"{path}: {len(table.names)} columns, expected {count}")
    values = table.columns(0, count)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise RecordingError(
            f"{path}: row {bad[0]}: a number is missing or not finite: remove poses that were not measured from all files"
        )
    return values
