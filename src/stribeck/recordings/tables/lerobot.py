r"""LeRobot data sets, versions 2.0 to 3.0: goals and positions of all joints by episode, in radians.

A data set is a folder with ``meta/info.json``, or one of the Hugging Face hub around it (``snapshots``). Its numbers have no unit. LeRobot
writes degrees from the middle of the calibrated range, or the share of that range from -100 to 100 (grippers: 0 to 100). With the calibration
:math:`[r_0, r_1]` of a joint in counts, and 4095 counts a turn as LeRobot has it,

.. math:: \theta = \frac{v}{100} \cdot \frac{r_1 - r_0}{2} \cdot \frac{2\pi}{4095}

for a value :math:`v` from -100 to 100, with the opposite sign in ``drive_mode`` 1; the zero is that of the degrees. Shares are not told from degrees by
their size: without a calibration one has to say which they are.

Times are counted: the row in its episode over ``fps``, unless ``timestamp`` differs by more than its own rounding (float32) and
:data:`TOLERANCE`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stribeck import strict
from stribeck.errors import RecordingError
from stribeck.model.arrays import Array
from stribeck.recordings.tables.readers import Table, read_parquet_table

INFO = Path("meta/info.json")
STATE, ACTION = "observation.state", "action"
FROM_ZERO = ("gripper",)
"""Joints whose shares count from 0, the lower end of the range, to 100."""

SUFFIXES, PREFIXES = (".pos", ".position"), ("main_",)
"""What names of joints have besides the name."""

TOLERANCE = 1e-4
"""Largest deviation of a time stamp from a count, as LeRobot itself checks it [s]."""

COUNTS = 4095.0
"""Counts of a turn by which LeRobot converts to degrees."""

LARGEST_ANGLE = 2.0 * math.pi
"""Larger numbers are no radians."""

LARGEST_SHARE = 100.5
"""Larger numbers are no shares of a range."""

UNITS = {"deg": "degrees", "degree": "degrees", "degrees": "degrees", "rad": "radians", "radian": "radians"}
UNITS |= {"radians": "radians"}
"""Words for units in ``info.json``, where a data set states them."""


@dataclass(frozen=True)
class JointRange:
    """Calibration of one joint.

    :param lower, upper: ends of its range [counts].
    :param reversed: whether shares count backwards.
    """

    lower: float
    upper: float
    reversed: bool = False

    @property
    def half(self) -> float:
        """Half of the range [rad]."""
        return (self.upper - self.lower) * math.pi / COUNTS


def _json(path: Path) -> Any:
    return strict.parse_json(strict.read_text(path, RecordingError), path, RecordingError)


def data_set_of(path: Path) -> Path | None:
    """The folder with ``meta/info.json``: the path itself, or the newest snapshot in a folder of the hub; else ``None``.

    :raises RecordingError: for a folder inside a data set, and a name on the hub.
    """
    if (path / INFO).is_file():
        return path
    inside = [snapshot for snapshot in sorted(path.glob("snapshots/*")) if (snapshot / INFO).is_file()]
    if inside:
        return max(inside, key=lambda snapshot: (snapshot / INFO).stat().st_mtime)
    around = [folder for folder in path.parents if (folder / INFO).is_file()]
    if around and path.is_dir():
        raise RecordingError(f"{path} is part of a LeRobot data set: give its folder, {around[0]}")
    if not path.exists() and len(path.parts) == 2 and not path.suffix:
        raise RecordingError(
            f"{path}: no such folder; a data set on the hub has to be downloaded first (huggingface_hub.snapshot_download with repo_type dataset)"
        )
    return None


def read_calibration(path: Path) -> dict[str, JointRange]:
    """Read a calibration file of LeRobot (``~/.cache/huggingface/lerobot/calibration/robots/…/NAME.json``).

    :raises RecordingError: for another file.
    """
    content = _json(path)
    try:
        found = {
            str(name): JointRange(
                float(keys["range_min"]), float(keys["range_max"]), bool(keys.get("drive_mode", 0))
            )
            for name, keys in content.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise RecordingError(
            f"{path} is not a calibration file of LeRobot: expected range_min and range_max of each joint"
        ) from None
    for name, joint in found.items():
        if not joint.upper > joint.lower:
            raise RecordingError(
                f"{path}: joint {name!r}: range_min {joint.lower:g} is not below range_max {joint.upper:g}; calibrate the arm again"
            )
    return found


def read_data_set(
    root: Path,
    *,
    degrees: bool = False,
    calibration: Mapping[str, JointRange] | None = None,
    excluded: Iterable[str] = (),
) -> list[Table]:
    """Read a data set: one table for each episode, with ``time``, ``position`` and ``goal`` (N, k) and columns by joint.

    :param root: of :func:`data_set_of`.
    :param degrees: whether the numbers are degrees.
    :param calibration: of :func:`read_calibration`, for numbers that are shares of the range.
    :param excluded: joints whose numbers are not converted.
    :raises RecordingError: for another folder, and numbers whose unit is not known.
    :raises MissingDependencyError: without PyArrow.
    """
    info = _json(root / INFO)
    version = str(info.get("codebase_version", ""))
    if not version.lstrip("v").startswith(("2.", "3.")):
        raise RecordingError(
            f"{root}: unknown codebase_version {version or 'missing'}; valid: v2.0, v2.1, v3.0"
        )
    try:
        fps, names = float(info["fps"]), _names(info["features"][STATE]["names"])
    except (KeyError, TypeError, ValueError):
        raise RecordingError(
            f"{root / INFO}: the features must include fps, and the names of {STATE}"
        ) from None
    files = sorted((root / "data").rglob("*.parquet"))
    if not files:
        raise RecordingError(f"{root} has no data/**/*.parquet: download the data, not only the videos")
    used = np.array([name not in set(excluded) for name in names])
    feature = info["features"][STATE]
    words = [str(feature[key]).lower() for key in ("unit", "units") if key in feature]
    whole = [_rows(file, len(names)) for file in files]
    columns = {name: np.concatenate([part[name] for part in whole]) for name in whole[0]}
    largest = max(float(np.nanmax(np.abs(columns[key][:, used]), initial=0.0)) for key in (STATE, ACTION))
    unit = (UNITS.get(words[0]) if words else None) or (
        "degrees" if degrees else _guessed(root, largest, calibration is not None)
    )
    _check_unit(root, unit, largest, degrees=degrees, calibrated=calibration is not None)
    scale = _scale(root, unit, names, used, calibration)
    return [
        _episode(root, columns, episode, fps, names, scale) for episode in np.unique(columns["episode_index"])
    ]


def _names(given: Any) -> list[str]:
    """Names of the joints, of a list or of the only list in a mapping, without what LeRobot adds to them."""
    if isinstance(given, Mapping):
        (given,) = given.values()
    names = []
    for name in given:
        for suffix in SUFFIXES:
            name = name.removesuffix(suffix)
        for prefix in PREFIXES:
            name = name.removeprefix(prefix)
        names.append(name)
    return names


def _guessed(root: Path, largest: float, calibrated: bool) -> str:
    """The unit by the largest number, if only one is possible."""
    if calibrated:
        if largest > LARGEST_SHARE:
            raise RecordingError(
                f"{root}: a joint reaches {largest:.0f}, more than 100 % of its range: the values are in degrees: give `degrees` instead of `calibration`"
            )
        return "shares"
    if largest > LARGEST_SHARE:
        return "degrees"
    if largest > LARGEST_ANGLE:
        raise RecordingError(
            f"{root}: values of up to {largest:.0f} may be degrees, or -100 to 100 of the calibrated range: "
            "give `degrees`, or the `calibration` file of the arm"
        )
    return "radians"


def _check_unit(root: Path, unit: str, largest: float, *, degrees: bool, calibrated: bool) -> None:
    """Refuse what contradicts itself: two units, another one in ``info.json``, and numbers so small that they are radians."""
    given = "`degrees`" if degrees else "`calibration`"
    if degrees and calibrated:
        raise RecordingError(
            f"{root}: `degrees` and `calibration` exclude each other: give `calibration` for values from -100 "
            "to 100 of the calibrated range, otherwise `degrees`"
        )
    if (degrees and unit != "degrees") or (calibrated and unit != "shares"):
        raise RecordingError(f"{root}: meta/info.json states {unit}: remove {given}")
    if (degrees or calibrated) and 0.0 < largest < math.pi:
        raise RecordingError(
            f"{root}: all values are below {largest:.2g}, too small for {given}: are they radians? Then remove {given}"
        )


def _scale(
    root: Path,
    unit: str,
    names: list[str],
    used: np.typing.NDArray[np.bool_],
    calibration: Mapping[str, JointRange] | None,
) -> tuple[Array, Array]:
    """Radians for one unit of each joint's numbers, and at zero (k,)."""
    factors, zeros = np.full(len(names), math.pi / 180.0 if unit == "degrees" else 1.0), np.zeros(len(names))
    if unit != "shares":
        return factors, zeros
    known = calibration or {}
    missing = [name for name, use in zip(names, used, strict=True) if use and name not in known]
    if missing:
        raise RecordingError(
            f"{root}: the calibration has no joint {', '.join(missing)}; it has {', '.join(known)}: `exclude` the others, or give the file of this arm"
        )
    for k, name in enumerate(names):
        if not used[k]:
            continue
        sign, half = -1.0 if known[name].reversed else 1.0, known[name].half
        from_zero = name in FROM_ZERO
        factors[k] = sign * half * (2.0 if from_zero else 1.0) / 100.0
        zeros[k] = -sign * half if from_zero else 0.0
    return factors, zeros


def _rows(file: Path, count: int) -> dict[str, Array]:
    """The columns of a file that are needed."""
    table = read_parquet_table(file)
    found = {name: table.array(name) for name in (STATE, ACTION, "timestamp", "episode_index")}
    for name in (STATE, ACTION):
        found[name] = found[name].reshape(len(found[name]), -1)
        if found[name].shape[1] != count:
            raise RecordingError(
                f"{file}: {name} has {found[name].shape[1]} numbers in each row, but meta/info.json names {count} joints"
            )
    return found


def _episode(
    root: Path,
    columns: Mapping[str, Array],
    episode: float,
    fps: float,
    names: list[str],
    scale: tuple[Array, Array],
) -> Table:
    factors, zeros = scale
    rows = columns["episode_index"] == episode
    stamps = columns["timestamp"][rows]
    counted = np.arange(len(stamps)) / fps
    rounding = np.spacing(np.abs(stamps).max().astype(np.float32))
    nominal = np.abs(stamps - stamps[0] - counted).max() <= TOLERANCE + rounding
    position, goal = (factors * columns[key][rows] + zeros for key in (STATE, ACTION))
    arrays = {"time": counted if nominal else stamps, "position": position, "goal": goal}
    for k, name in enumerate(names):
        arrays[f"{name}/position"], arrays[f"{name}/position_command"] = position[:, k], goal[:, k]
    path = root.with_name(f"{root.name}-episode-{episode:g}")
    return Table(path, tuple(arrays), arrays)
