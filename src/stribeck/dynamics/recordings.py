"""Read recorded motion of a machine from text files, MAT files or bags, in joint coordinates and SI units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stribeck.core.arrays import Array
from stribeck.errors import RecordingError
from stribeck.io.identification_config import UNITS, RecordingFormat, SignalSource
from stribeck.io.messages import JOINT_STATES
from stribeck.io.tables import TEXT_SUFFIXES, Table, find_tables, read_joint_states, read_table

SUFFIXES = {"csv": TEXT_SUFFIXES, "mat": (".mat",), "bag": (".mcap",)}
LARGEST_POSITION = 100.0
"""Joint positions above this [rad] must be degrees or motor positions."""


@dataclass(frozen=True)
class ArmRecording:
    """One recorded run of a machine.

    :param name: name in messages and in the row ranges of the protocol.
    :param time: (N,) [s], ascending.
    :param position: joint positions (N, n) [rad or m].
    :param velocity: measured joint velocities (N, n), if recorded.
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
        return replace(
            self,
            time=self.time[rows],
            position=self.position[rows],
            velocity=velocity,
            effort=self.effort[rows],
        )


def read_recordings(
    paths: Sequence[Path], form: RecordingFormat, joints: Sequence[str], units: str
) -> list[ArmRecording]:
    """Read the runs in files, folders and bags; if the signals of a run are in several files, each folder is a run.

    :param joints: names of the joints, in the order of the columns.
    :param units: ``rotary`` or ``linear``.
    :raises RecordingError: for missing or damaged files, and implausible signals.
    """
    files = find_tables(paths, SUFFIXES[form.format], ignore=(".urdf",))
    if form.format == "bag":
        runs = [_from_bag(path, joints) for path in files]
    else:
        runs = [_from_tables(name, tables, form, joints) for name, tables in _tables(files, form)]
    runs = [_in_joints(run, form) for run in runs]
    for run in runs:
        _check(run, units)
    return runs


def _tables(files: Sequence[Path], form: RecordingFormat) -> list[tuple[str, dict[str | None, Table]]]:
    """Name and tables of every run, by the file names given in the signals' sources."""
    wanted = {source.file for source in form.signals.values()} - {None}
    if not wanted:
        return [(path.stem, {None: read_table(path)}) for path in files]
    folders: dict[Path, dict[str, Path]] = {}
    for path in files:
        folders.setdefault(path.parent, {})[path.name] = path
    for folder, present in folders.items():
        missing = sorted(str(name) for name in wanted if name not in present)
        if missing:
            raise RecordingError(f"{folder}: {', '.join(missing)} missing, found {', '.join(present)}")
    return [
        (folder.resolve().name, {name: read_table(path) for name, path in present.items() if name in wanted})
        for folder, present in folders.items()
    ]


def _from_tables(
    name: str, tables: Mapping[str | None, Table], form: RecordingFormat, joints: Sequence[str]
) -> ArmRecording:
    signals = {
        signal: _signal(tables[source.file], signal, source, 1 if signal == "time" else len(joints))
        for signal, source in form.signals.items()
    }
    lengths = {signal: len(values) for signal, values in signals.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{signal} {length}" for signal, length in lengths.items())
        raise RecordingError(f"{name}: signals differ in length: {listed} rows")
    rows = lengths["position"]
    time = signals["time"][:, 0] if "time" in signals else np.arange(rows) / (form.rate or 1.0)
    return ArmRecording(
        name, tuple(joints), time, signals["position"], signals.get("velocity"), signals["effort"]
    )


def _signal(table: Table, name: str, source: SignalSource, width: int) -> Array:
    """A signal in SI units (N, width)."""
    if source.variable is None:
        values = table.columns(*(source.columns or (0, width)))
    else:
        values = table.array(source.variable)
        values = values[:, None] if values.ndim == 1 else values
    if values.shape[1] != width:
        raise RecordingError(
            f"{table.path}: {name} has {values.shape[1]} columns, expected {width}, one for each joint"
        )
    if isinstance(source.scale, str) and source.variable is None:
        raise RecordingError(
            f"{table.path}: the scale {source.scale!r} of {name} is the name of a MAT variable"
        )
    scale = table.array(source.scale) if isinstance(source.scale, str) else np.asarray(source.scale)
    return np.asarray(values * scale * UNITS[source.unit])


def _from_bag(path: Path, joints: Sequence[str]) -> ArmRecording:
    """Read joint states by their header stamps."""
    table = read_joint_states(path, (JOINT_STATES,))
    present = list(dict.fromkeys(name.rpartition("/")[0] for name in table.names if "/" in name))
    missing = [joint for joint in joints if joint not in present]
    if missing:
        raise RecordingError(
            f"{path}: no joint {', '.join(missing)} in joint_states, which has {', '.join(present)}"
        )
    rows = len(table.array("time"))
    position, velocity, effort = (
        np.stack([table.arrays.get(f"{joint}/{name}", np.full(rows, np.nan)) for joint in joints], axis=1)
        for name in ("position", "velocity", "effort")
    )
    if not np.isfinite(effort).all():
        raise RecordingError(f"{path}: joint states without effort: torque is needed to identify an arm")
    measured = velocity if np.isfinite(velocity).all() else None
    return ArmRecording(path.name, tuple(joints), table.array("time"), position, measured, effort)


def _in_joints(run: ArmRecording, form: RecordingFormat) -> ArmRecording:
    r"""Motor to joint coordinates: :math:`q = G^{-1} q_m + o`, :math:`\tau = G^T \tau_m` (power is conserved)."""
    position, velocity, effort = run.position, run.velocity, run.effort
    if form.gears is not None:
        gears = np.array(form.gears)
        if gears.shape[0] != len(run.joints):
            raise RecordingError(f"{run.name}: {len(run.joints)} joints, but gears of {gears.shape[0]}")
        if abs(np.linalg.det(gears)) < 1e-9:
            raise RecordingError(f"{run.name}: the matrix of gears is singular")
        inverse = np.linalg.inv(gears)
        position, effort = position @ inverse.T, effort @ gears
        velocity = None if velocity is None else velocity @ inverse.T
    if form.offset is not None:
        position = position + np.array(form.offset)
    return replace(run, position=position, velocity=velocity, effort=effort)


def _check(run: ArmRecording, units: str) -> None:
    for name, values in (("time", run.time), ("position", run.position), ("effort", run.effort)):
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0])
            raise RecordingError(f"{run.name}: {name} is missing or not finite in row {row}")
    if not np.all(np.diff(run.time) > 0.0):
        row = int(np.flatnonzero(np.diff(run.time) <= 0.0)[0])
        raise RecordingError(f"{run.name}: time does not increase from row {row} to {row + 1}")
    largest = np.abs(run.position).max(axis=0)
    if units == "rotary" and largest.max() > LARGEST_POSITION:
        joint = run.joints[int(largest.argmax())]
        raise RecordingError(
            f"{run.name}: {joint} goes to {largest.max():.4g} rad: degrees (set unit: deg), or positions of the "
            "motor (set gears)?"
        )
    _check_velocity(run)
    if not np.any(np.abs(run.effort).max(axis=0) > 0.0):
        raise RecordingError(f"{run.name}: all torques are zero")


def _check_velocity(run: ArmRecording) -> None:
    """Refuse velocities that are not the derivatives of the positions; a wrong unit shows as a wrong slope."""
    if run.velocity is None:
        return
    if not np.isfinite(run.velocity).all():
        raise RecordingError(
            f"{run.name}: velocity is missing or not finite in some rows; leave it out to differentiate positions"
        )
    rates = np.gradient(run.position, run.time, axis=0)
    power = np.sum(rates * rates, axis=0)
    clear = power > 0.01 * power.max(initial=0.0)
    slopes = np.sum(rates * run.velocity, axis=0)[clear] / power[clear]
    wrong = np.flatnonzero(np.abs(slopes - 1.0) > 0.3)
    if len(wrong):
        joint = run.joints[int(np.flatnonzero(clear)[wrong[0]])]
        raise RecordingError(
            f"{run.name}: the velocity of {joint} is {slopes[wrong[0]]:.3g} times the derivative of its position: "
            "other units (degrees?), another side of the gears, or other columns"
        )
