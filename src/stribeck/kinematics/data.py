"""Files of measured poses: found by their names, read strictly, checked against each other and the arm.

A set is one folder with one file for each role of the configuration, one row per pose, columns separated by
blanks, commas or semicolons. Several sets are put one behind the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError, RecordingError
from stribeck.io import strict
from stribeck.kinematics.chain import SerialChain
from stribeck.kinematics.config import CalibrationConfig, Role
from stribeck.kinematics.data_checks import check_angles, check_base, check_lengths, check_markers
from stribeck.kinematics.robust_fit import PointData

FloatArray = npt.NDArray[np.float64]

JOINTS, POSE, BASE = "joints", "pose", "base"
POSE_COLUMNS = 7
POSE_POINTS = ("origin", "x", "y", "z")
"""The points that stand for a full pose: its origin, and one lever along each of its axes."""


@dataclass(frozen=True, eq=False)
class MeasuredPoses:
    """What the files say, in SI.

    :param data: joints and points.
    :param markers: names of the points.
    :param base: median of the point that does not move (3,) [m], ``None`` if it was not measured.
    """

    data: PointData
    markers: tuple[str, ...]
    base: FloatArray | None


def read_poses(paths: Sequence[Path], config: CalibrationConfig, chain: SerialChain) -> MeasuredPoses:
    """Read all sets that files and folders hold.

    :raises RecordingError: for missing or damaged files, rows that do not belong together, and units that
        cannot be those of the configuration.
    """
    sets = [_read_set(files, config, chain) for files in find_sets(paths, config)]
    joints = np.concatenate([found.data.positions for found in sets])
    points = np.concatenate([found.data.points for found in sets])
    check_lengths(points, chain, sets[0].markers, str(config.path))
    bases = [found.base for found in sets if found.base is not None]
    for base in bases[1:]:
        check_same_base(bases[0], base)
    return MeasuredPoses(
        PointData(joints, points, np.arange(len(joints))), sets[0].markers, bases[0] if bases else None
    )


def check_same_base(first: FloatArray | None, second: FloatArray | None) -> None:
    """Refuse sets between which the arm or the measuring system was moved.

    :raises RecordingError: if the points of the base differ.
    """
    if first is not None and second is not None:
        check_base(np.stack([first, second]), "the base's reflector of two sets", centre=first)


def roles_of(config: CalibrationConfig) -> dict[str, Role]:
    """All roles by name."""
    optional = {POSE: config.pose, BASE: config.base}
    return {
        JOINTS: config.joints,
        **config.markers,
        **{name: role for name, role in optional.items() if role is not None},
    }


def find_sets(
    paths: Sequence[Path], config: CalibrationConfig, needed: Sequence[str] | None = None
) -> list[dict[str, Path]]:
    """Files by role, for each folder that they lie in.

    :param needed: roles that have to be there; default: all but the base.
    :raises RecordingError: if a role's file is missing or there are several.
    """
    roles = roles_of(config)
    needed = [name for name in roles if name != BASE] if needed is None else needed
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        if not path.exists():
            raise RecordingError(f"{path}: no such file or folder")
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        folder = path if path.is_dir() else path.parent
        folders.setdefault(folder.resolve(), []).extend(file for file in files if file.is_file())
    return [_by_role(files, folder, roles, needed) for folder, files in folders.items()]


def _by_role(
    files: Sequence[Path], folder: Path, roles: Mapping[str, Role], needed: Sequence[str]
) -> dict[str, Path]:
    """The file of each role among those of one folder."""
    found = {}
    for name, role in roles.items():
        matching = list(dict.fromkeys(file for file in files if fnmatch(file.name, role.pattern)))
        if len(matching) > 1:
            names = ", ".join(file.name for file in matching)
            raise RecordingError(
                f"{folder}: several files for {name} ({role.pattern}): {names}; give one of them"
            )
        if matching:
            found[name] = matching[0]
        elif name in needed:
            raise RecordingError(
                f"{folder}: no file {role.pattern} for {name} among those given; all of "
                f"{', '.join(roles[key].pattern for key in needed)} are needed"
            )
    return found


def _read_set(files: Mapping[str, Path], config: CalibrationConfig, chain: SerialChain) -> MeasuredPoses:
    """The files of one folder."""
    joints = read_joints(files[JOINTS], config, chain)
    points = {}
    for name, role in config.markers.items():
        points[name] = read_table(files[name], 3) * role.scales(3)
    if config.pose is not None:
        points |= _pose_points(files[POSE], config.pose)
    for name, found in points.items():
        if len(found) != len(joints):
            source = files.get(name, files.get(POSE))
            raise RecordingError(
                f"{source} has {len(found)} rows, {files[JOINTS]} has {len(joints)}: row n of every file has to be of "
                "the same pose"
            )
    stacked = np.stack(list(points.values()), axis=1)
    check_markers(stacked, tuple(points), str(files[JOINTS].parent))
    base = None
    if config.base is not None and BASE in files:
        fixed = read_table(files[BASE], 3) * config.base.scales(3)
        base = np.median(fixed, axis=0)
        check_base(fixed, str(files[BASE]), centre=base)
    return MeasuredPoses(PointData(joints, stacked, np.arange(len(joints))), tuple(points), base)


def read_joints(path: Path, config: CalibrationConfig, chain: SerialChain) -> FloatArray:
    """A file of joint positions (poses, n) [rad, m].

    :raises RecordingError: if it is damaged, or its units cannot be those of the configuration.
    """
    n, units = len(chain.names), config.joints.units
    if len(units) not in (1, n):
        raise ConfigError(
            f"{config.path}: joints: {len(units)} units for {n} joints; give one, or one for each"
        )
    table = read_table(path, n)
    check_angles(table, units * n if len(units) == 1 else units, str(path))
    return table * config.joints.scales(n)


def _pose_points(path: Path, role: Role) -> dict[str, FloatArray]:
    """Points that stand for full poses ``x y z qx qy qz qw``, by name.

    :raises RecordingError: for quaternions that are far from unit length.
    """
    table = read_table(path, POSE_COLUMNS)
    origin, quaternion = table[:, :3] * role.scales(3), table[:, 3:]
    size = np.linalg.norm(quaternion, axis=1)
    wrong = np.flatnonzero(np.abs(size - 1.0) > 0.01)
    if len(wrong):
        raise RecordingError(
            f"{path}: row {wrong[0]}: the quaternion has length {size[wrong[0]]:.3g}, expected 1: columns have to be "
            "x y z qx qy qz qw"
        )
    x, y, z, w = (quaternion / size[:, None]).T
    axes = (
        np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)], axis=1),
        np.stack([2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)], axis=1),
        np.stack([2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)], axis=1),
    )
    levers = [np.zeros_like(origin), *(float(role.lever or 0.0) * axis for axis in axes)]
    return {f"pose_{name}": origin + lever for name, lever in zip(POSE_POINTS, levers, strict=True)}


def read_table(path: Path, columns: int) -> FloatArray:
    """Numbers of a text file (rows, columns); lines that begin with # and blank ones are skipped.

    :raises RecordingError: for another number of columns, text that is no number, or numbers not finite.
    """
    lines = strict.read_text(path, RecordingError).splitlines()
    rows = []
    for number, line in enumerate(lines, start=1):
        words = line.replace(",", " ").replace(";", " ").split()
        if not words or words[0].startswith("#"):
            continue
        rows.append(_numbers(words, columns, f"{path}: line {number}"))
    if not rows:
        raise RecordingError(f"{path} holds no poses; expected one row of {columns} numbers for each")
    return np.array(rows)


def _numbers(words: Sequence[str], columns: int, what: str) -> list[float]:
    if len(words) != columns:
        raise RecordingError(f"{what}: {len(words)} columns, expected {columns}")
    try:
        found = [float(word) for word in words]
    except ValueError:
        raise RecordingError(f"{what}: {' '.join(words)[:40]!r} are not {columns} numbers") from None
    if not np.all(np.isfinite(found)):
        raise RecordingError(
            f"{what}: a number is not finite; leave poses out that were not measured, in all files"
        )
    return found
