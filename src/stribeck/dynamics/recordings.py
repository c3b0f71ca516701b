"""Recorded motion of a machine, from text, MAT files or bags, in joint coordinates and SI units."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import io as scipy_io
from scipy.io.matlab import MatReadError

from stribeck.errors import RecordingError
from stribeck.io.bag import decode
from stribeck.io.identification_config import UNITS, RecordingFormat, SignalSource
from stribeck.io.messages import JOINT_STATES
from stribeck.io.storage import is_bag, read_messages

Array = npt.NDArray[np.float64]

SUFFIXES = {"csv": (".csv", ".txt"), "mat": (".mat",)}
LARGEST_POSITION = 100.0
"""Joint positions beyond it are degrees or motor positions [rad]."""


@dataclass(frozen=True)
class ArmRecording:
    """One run of a machine as it was recorded.

    :param name: for messages and for the rows of the protocol.
    :param joints: names of the joints.
    :param time: (N,) [s], ascending.
    :param position: joint positions (N, n) [rad or m].
    :param velocity: measured joint velocities (N, n), where there are any.
    :param effort: torques of the joints (N, n) [N m or N].
    """

    name: str
    joints: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array | None
    effort: Array

    def between(self, first: int, end: int) -> ArmRecording:
        """The rows from ``first`` up to ``end``."""
        rows = slice(first, end)
        velocity = None if self.velocity is None else self.velocity[rows]
        return ArmRecording(
            self.name, self.joints, self.time[rows], self.position[rows], velocity, self.effort[rows]
        )


def read_recordings(
    paths: Sequence[Path], form: RecordingFormat, joints: Sequence[str], units: str
) -> list[ArmRecording]:
    """The runs in files, folders and bags.

    Where a run lies in several files, those of one folder make a run.

    :param joints: names of the joints, in the order of the columns.
    :param units: ``rotary`` or ``linear``.
    :raises RecordingError: for files that are missing, damaged, or hold something else.
    """
    if form.format == "bag":
        found = [_from_bag(path, joints) for path in _bags(paths)]
    else:
        found = [_from_tables(name, files, form, joints) for name, files in _runs(paths, form)]
    found = [_in_joints(run, form) for run in found]
    for run in found:
        _check(run, units)
    return found


def _runs(paths: Sequence[Path], form: RecordingFormat) -> list[tuple[str, dict[str | None, Path]]]:
    """Name and files of every run, by the file name that signals are asked from."""
    wanted = {source.file for source in form.signals.values()} - {None}
    files = _files(paths, SUFFIXES[form.format], wanted)
    if not wanted:
        return [(path.stem, {None: path}) for path in files]
    runs: dict[Path, dict[str | None, Path]] = {}
    for path in files:
        runs.setdefault(path.parent, {})[path.name] = path
    for folder, found in runs.items():
        missing = sorted(str(name) for name in wanted if name not in found)
        if missing:
            raise RecordingError(
                f"{folder}: {', '.join(missing)} missing, beside {', '.join(map(str, found))}"
            )
    return [(folder.resolve().name, found) for folder, found in runs.items()]


def _files(paths: Sequence[Path], suffixes: Sequence[str], wanted: set[str | None]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += [file for file in sorted(path.iterdir()) if file.suffix.lower() in suffixes]
        elif not path.exists():
            raise RecordingError(f"{path}: no such file")
        elif path.suffix.lower() in suffixes:
            found.append(path)
        elif path.suffix.lower() != ".urdf":
            raise RecordingError(f"{path}: expected a file that ends with {' or '.join(suffixes)}")
    if wanted:
        found = [path for path in found if path.name in wanted]
    if not found:
        names = ", ".join(sorted(str(name) for name in wanted)) or f"*{', *'.join(suffixes)}"
        raise RecordingError(f"no recordings in {', '.join(map(str, paths))}: expected {names}")
    return list(dict.fromkeys(found))


def _from_tables(
    name: str, files: Mapping[str | None, Path], form: RecordingFormat, joints: Sequence[str]
) -> ArmRecording:
    tables = {
        key: _read_mat(path) if form.format == "mat" else _read_text(path) for key, path in files.items()
    }
    width = {"time": 1}
    signals = {}
    for signal, source in form.signals.items():
        path, table = files[source.file], tables[source.file]
        signals[signal] = _signal(path, table, signal, source, width.get(signal, len(joints)))
    lengths = {signal: len(values) for signal, values in signals.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{signal} {length}" for signal, length in lengths.items())
        raise RecordingError(f"{name}: signals differ in length: {told} rows")
    rows = lengths["position"]
    time = signals["time"][:, 0] if "time" in signals else np.arange(rows) / (form.rate or 1.0)
    return ArmRecording(
        name, tuple(joints), time, signals["position"], signals.get("velocity"), signals["effort"]
    )


def _signal(
    path: Path, table: Mapping[str, Array] | Array, name: str, source: SignalSource, width: int
) -> Array:
    if isinstance(table, np.ndarray):
        first, end = source.columns or (0, width)
        if end > table.shape[1]:
            raise RecordingError(
                f"{path}: {name} is columns {first} to {end - 1}, the file has {table.shape[1]}"
            )
        values = table[:, first:end]
    else:
        values = _variable(path, table, source.variable or name)
    if values.shape[1] != width:
        raise RecordingError(
            f"{path}: {name} has {values.shape[1]} columns, expected {width}, one for each joint"
        )
    scale: float | Array
    if isinstance(source.scale, str):
        if isinstance(table, np.ndarray):
            raise RecordingError(
                f"{path}: the scale {source.scale!r} of {name} is the name of a MAT variable"
            )
        scale = _variable(path, table, source.scale)
    else:
        scale = np.asarray(source.scale)
    return np.asarray(values * scale * UNITS[source.unit])


def _variable(path: Path, table: Mapping[str, Array], name: str) -> Array:
    if name not in table:
        raise RecordingError(f"{path} has no variable {name!r}; it has {', '.join(table)}")
    return table[name]


def _read_text(path: Path) -> Array:
    """Numbers separated by commas, semicolons or blanks, with or without one line of names."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
        words = first.replace(";", ",").replace(",", " ").split()
        delimiter = "," if "," in first else ";" if ";" in first else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty file; said below
            table = np.loadtxt(path, delimiter=delimiter, skiprows=0 if _numeric(words) else 1, ndmin=2)
    except UnicodeDecodeError:
        raise RecordingError(f"{path} is not a text file") from None
    except ValueError as error:
        raise RecordingError(f"{path} is not a table of numbers: {error}") from None
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}") from None
    if not table.size:
        raise RecordingError(f"{path} is empty")
    return table


def _numeric(words: Sequence[str]) -> bool:
    try:
        [float(word) for word in words]
    except ValueError:
        return False
    return True


def _read_mat(path: Path) -> dict[str, Array]:
    try:
        content = scipy_io.loadmat(path)
    except (OSError, ValueError, TypeError, NotImplementedError, MatReadError) as error:
        raise RecordingError(f"{path} is not a MAT file that can be read: {error}") from None
    return {
        name: np.asarray(value, dtype=np.float64)
        for name, value in content.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim == 2
    }


def _bags(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        below = (
            [path]
            if is_bag(path)
            else sorted(p for p in path.iterdir() if is_bag(p))
            if path.is_dir()
            else []
        )
        if not below and path.suffix.lower() != ".urdf":
            raise RecordingError(f"{path}: expected a bag, or a folder with bags")
        found += below
    return found


def _from_bag(path: Path, joints: Sequence[str]) -> ArmRecording:
    """Joint states by their header stamps."""
    content = read_messages(path)
    stamps, rows, names = [], [], []
    for message in content.messages:
        if message.topic != JOINT_STATES:
            continue
        state = decode(path, message, content.typestore)
        names = list(state.name)
        missing = [joint for joint in joints if joint not in names]
        if missing:
            raise RecordingError(
                f"{path}: no joint {', '.join(missing)} in joint_states, which has {', '.join(names)}"
            )
        order = [names.index(joint) for joint in joints]
        values = (state.position, state.velocity, state.effort)
        stamps.append(state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec)
        rows.append([[v[k] if len(v) > k else np.nan for k in order] for v in values])
    if not rows:
        raise RecordingError(f"{path}: no messages on {JOINT_STATES.name}")
    order_in_time = np.argsort(np.array(stamps), kind="stable")
    table = np.array(rows)[order_in_time]
    if not np.isfinite(table[:, 2]).all():
        raise RecordingError(f"{path}: joint states without effort: torque is needed to identify an arm")
    velocity = table[:, 1] if np.isfinite(table[:, 1]).all() else None
    return ArmRecording(
        path.name, tuple(joints), np.array(stamps)[order_in_time], table[:, 0], velocity, table[:, 2]
    )


def _in_joints(run: ArmRecording, form: RecordingFormat) -> ArmRecording:
    r"""Motor side to joint side: :math:`q = G^{-1} q_m + o`, :math:`\tau = G^T \tau_m` (power is conserved)."""
    position, velocity, effort = run.position, run.velocity, run.effort
    if form.gears is not None:
        gears = np.array(form.gears)
        if gears.shape[0] != len(run.joints):
            raise RecordingError(f"{run.name}: {len(run.joints)} joints, but gears of {gears.shape[0]}")
        if abs(np.linalg.det(gears)) < 1e-9:
            raise RecordingError(f"{run.name}: the matrix of gears has no inverse")
        inverse = np.linalg.inv(gears)
        position, effort = position @ inverse.T, effort @ gears
        velocity = None if velocity is None else velocity @ inverse.T
    if form.offset is not None:
        position = position + np.array(form.offset)
    return ArmRecording(run.name, run.joints, run.time, position, velocity, effort)


def _check(run: ArmRecording, units: str) -> None:
    for what, values in (("time", run.time), ("position", run.position), ("effort", run.effort)):
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0])
            raise RecordingError(f"{run.name}: {what} is not a number in row {row}")
    if not np.all(np.diff(run.time) > 0.0):
        row = int(np.flatnonzero(np.diff(run.time) <= 0.0)[0])
        raise RecordingError(f"{run.name}: time does not grow from row {row} to {row + 1}")
    largest = np.abs(run.position).max(axis=0)
    if units == "rotary" and largest.max() > LARGEST_POSITION:
        joint = run.joints[int(largest.argmax())]
        raise RecordingError(
            f"{run.name}: {joint} goes to {largest.max():.4g} rad: degrees (say unit: deg), or positions of the "
            "motor (give gears)?"
        )
    _check_velocity(run)
    if not np.any(np.abs(run.effort).max(axis=0) > 0.0):
        raise RecordingError(f"{run.name}: all torques are zero")


def _check_velocity(run: ArmRecording) -> None:
    """Measured velocities have to be the derivatives of positions: another unit shows."""
    if run.velocity is None:
        return
    if not np.isfinite(run.velocity).all():
        raise RecordingError(
            f"{run.name}: velocity is not a number in some rows; leave it out to differentiate"
        )
    moved = np.gradient(run.position, run.time, axis=0)
    power = np.sum(moved * moved, axis=0)
    clear = power > 0.01 * power.max(initial=0.0)
    slopes = np.sum(moved * run.velocity, axis=0)[clear] / power[clear]
    wrong = np.flatnonzero(np.abs(slopes - 1.0) > 0.3)
    if len(wrong):
        joint = run.joints[int(np.flatnonzero(clear)[wrong[0]])]
        raise RecordingError(
            f"{run.name}: the velocity of {joint} is {slopes[wrong[0]]:.3g} times the derivative of its position: "
            "other units (degrees?), another side of the gears, or other columns"
        )
