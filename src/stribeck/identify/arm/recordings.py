"""Read recorded motion of a machine from text files, MAT files or bags, in joint coordinates and SI units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.errors import RecordingError
from stribeck.identify.arm.config import RecordingFormat
from stribeck.model.arrays import Array
from stribeck.model.log import gaps_of
from stribeck.recordings.bags.signals import read_bag_signals, read_undisturbed
from stribeck.recordings.bags.storage import read_messages
from stribeck.recordings.signals.run_units import LARGEST_POSITION, LONGEST_INTERVAL, cause_of
from stribeck.recordings.signals.tracks import Track
from stribeck.recordings.tables.readers import TEXT_SUFFIXES, Table, find_tables, read_table
from stribeck.recordings.tables.signals import files_of, table_signal

SUFFIXES = {"csv": TEXT_SUFFIXES, "mat": (".mat",), "npz": (".npz",), "bag": (".mcap",)}
LARGEST_DECLARED = 100.0
"""Joint positions above this [rad] must be degrees or motor positions, whatever their unit is said to be."""

LARGEST_TWIST = 0.1
"""Largest difference between travels of motor and joint, relative to the travel of the joint."""

WINDOW = 0.1
"""Duration over which displacements are compared with velocities [s]."""


@dataclass(frozen=True)
class ArmRecording:
    """One recorded run of a machine.

    :param name: name in messages and in the row ranges of the protocol.
    :param time: (N,) [s], ascending.
    :param position: joint positions (N, n) [rad or m].
    :param velocity: measured joint velocities (N, n), if recorded.
    :param effort: torques of the joints (N, n) [N m or N].
    :param motor: positions of the motors at the joints' side (N, n) [rad or m], if there are encoders on both sides; NaN of joints without.
    """

    name: str
    joints: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array | None
    effort: Array
    motor: Array | None = None

    def between(self, first: int, end: int) -> ArmRecording:
        """The rows from ``first`` up to ``end``."""
        arrays: dict[str, Any] = {
            key: one[first:end] for key, one in vars(self).items() if isinstance(one, np.ndarray)
        }
        return replace(self, **arrays)


def read_arm_recordings(
    paths: Sequence[Path], form: RecordingFormat, joints: Sequence[str], units: str
) -> list[ArmRecording]:
    """Read the runs in files, folders and bags; if the signals of a run are in several files, each folder is a run.

    :param joints: names of the joints, in the order of the columns.
    :param units: ``rotary`` or ``linear``.
    :raises RecordingError: for missing or damaged files, and implausible signals.
    """
    files = find_tables(paths, SUFFIXES[form.format], ignore=(".urdf",))
    if form.format == "bag":
        table = form.table()
        runs = read_undisturbed(
            files,
            lambda path: run_of_tracks(
                path, read_bag_signals(path, read_messages(path), table, joints), joints
            ),
        )
    else:
        runs = [_from_tables(name, tables, form, joints) for name, tables in _tables(files, form)]
    runs = [_in_joints(run, form) for run in runs]
    for run in runs:
        _check(run, form, units)
    return runs


def _tables(files: Sequence[Path], form: RecordingFormat) -> list[tuple[str, dict[str | None, Table]]]:
    """Name and tables of every run, by the file names given in the signals' sources."""
    wanted = files_of(form.signals.values())
    if not wanted:
        return [(path.stem, {None: read_table(path)}) for path in files]
    folders: dict[Path, dict[str, Path]] = {}
    for path in files:
        folders.setdefault(path.parent, {})[path.name] = path
    for folder, present in folders.items():
        missing = sorted(name for name in wanted if name not in present)
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
        signal: table_signal(tables[source.file], signal, source, ("time",) if signal == "time" else joints)
        for signal, source in form.signals.items()
    }
    lengths = {signal: len(values) for signal, values in signals.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{signal} {length}" for signal, length in lengths.items())
        raise RecordingError(f"{name}: signals differ in length: {listed} rows")
    rows = lengths["position"]
    time = signals["time"][:, 0] if "time" in signals else np.arange(rows) / (form.rate or 1.0)
    names, motor = tuple(joints), signals.get("motor_position")
    return ArmRecording(
        name, names, time, signals["position"], signals.get("velocity"), signals["effort"], motor
    )


def run_of_tracks(
    path: Path, tracks_of: Mapping[str, Mapping[str, Track]], joints: Sequence[str]
) -> ArmRecording:
    """A run of signals that have times of their own, at those of the position of the joint with the fewest samples.

    :param tracks_of: tracks by signal and joint, see :func:`~stribeck.recordings.bags.signals.read_bag_signals`.
    :raises RecordingError: for joints without effort, and signals that were never recorded at the same time.
    """
    found = {
        signal: {joint: track for joint, track in by_joint.items() if joint in joints}
        for signal, by_joint in tracks_of.items()
    }
    lacking = {
        signal: [joint for joint in joints if _is_empty(found.get(signal, {}).get(joint))]
        for signal in ("effort", "velocity")
    }
    if lacking["effort"]:
        raise RecordingError(
            f"{path}: no effort of {', '.join(lacking['effort'])}: an arm can be identified only from torques; record them"
        )
    if lacking["velocity"]:
        found.pop("velocity", None)
    motors = found.pop("motor_position", {})
    time = min((found["position"][joint].time for joint in joints), key=len)
    tracks = [track for by_joint in found.values() for track in by_joint.values()]
    time = time[_within(time, tracks)]
    if not len(time):
        raise RecordingError(f"{path}: there is no time at which position and effort were both recorded")
    signals = {
        signal: np.stack([_at(time, by_joint[joint]) for joint in joints], axis=1)
        for signal, by_joint in found.items()
    }
    motor = np.stack([_at_or_nan(time, motors.get(joint)) for joint in joints], axis=1) if motors else None
    names = tuple(joints)
    return ArmRecording(
        path.name, names, time, signals["position"], signals.get("velocity"), signals["effort"], motor
    )


def _is_empty(track: Track | None) -> bool:
    return track is None or bool(np.isnan(track.value).all())


def _within(time: Array, tracks: Sequence[Track]) -> Array:
    """Whether times lie inside every track, and in no gap of a track."""
    inside = np.ones(len(time), dtype=bool)
    for track in tracks:
        inside &= (time >= track.time[0]) & (time <= track.time[-1])
        steps = np.diff(track.time)
        for k in gaps_of(steps, float(np.median(steps))) if len(steps) else ():
            inside &= (time <= track.time[k]) | (time >= track.time[k + 1])
    return inside


def _at(time: Array, track: Track) -> Array:
    """Values of a track at other times: its own where it has them, else interpolated."""
    own = np.minimum(np.searchsorted(track.time, time), len(track.time) - 1)
    known = track.known()
    return np.where(track.time[own] == time, track.value[own], np.interp(time, known.time, known.value))


def _at_or_nan(time: Array, track: Track | None) -> Array:
    """Values of a track at other times, NaN outside it and without one."""
    if track is None or _is_empty(track):
        return np.full(len(time), np.nan)
    return np.where(_within(time, [track]), _at(time, track), np.nan)


def _in_joints(run: ArmRecording, form: RecordingFormat) -> ArmRecording:
    r"""Motor to joint coordinates: :math:`q = G^{-1} q_m + o`, :math:`\tau = G^T \tau_m` (power is conserved)."""
    position, velocity, effort, motor = run.position, completed(run).velocity, run.effort, run.motor
    if form.gears is not None:
        gears = np.array(form.gears)
        if gears.shape[0] != len(run.joints):
            raise RecordingError(
                f"{run.name}: gears is a matrix for {gears.shape[0]} joints, but the recording has {len(run.joints)}"
            )
        if abs(np.linalg.det(gears)) < 1e-9:
            raise RecordingError(f"{run.name}: the matrix gears cannot be inverted: correct it")
        inverse = np.linalg.inv(gears)
        effort = effort @ gears
        if motor is None:
            position = position @ inverse.T
            velocity = None if velocity is None else velocity @ inverse.T
        else:
            motor = motor @ inverse.T
    if form.offset is not None:
        position = position + np.array(form.offset)
    return replace(run, position=position, velocity=velocity, effort=effort, motor=motor)


def completed(run: ArmRecording) -> ArmRecording:
    """The run with derivatives of positions where the measured velocity is NaN; without velocity, if most of it is.

    Zeros of all joints come from a driver that measures no velocity.
    """
    if run.velocity is None or not np.any(run.velocity):
        return replace(run, velocity=None)
    unknown = np.isnan(run.velocity)
    if not unknown.any():
        return run
    if unknown.mean(axis=0).max() > 0.5 or not np.all(np.diff(run.time) > 0.0):
        return replace(run, velocity=None)
    return replace(run, velocity=np.where(unknown, np.gradient(run.position, run.time, axis=0), run.velocity))


def check_finite(run: ArmRecording) -> None:
    """Refuse missing positions and efforts, and time that does not increase.

    :raises RecordingError: with the first row.
    """
    for name, values in (("time", run.time), ("position", run.position), ("effort", run.effort)):
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0])
            raise RecordingError(f"{run.name}: {name} is missing or not finite in row {row}")
    if not np.all(np.diff(run.time) > 0.0):
        row = int(np.flatnonzero(np.diff(run.time) <= 0.0)[0])
        raise RecordingError(
            f"{run.name}: time does not increase from row {row} to row {row + 1}: {_disorder(run.time, row)}"
        )


def _disorder(time: Array, row: int) -> str:
    """Why time may not increase from a row to the next."""
    back = float(time[row] - time[row + 1])
    if back == 0.0:
        repeated = int(np.sum(np.diff(time) == 0.0))
        return f"{repeated} rows have the same time as the row before: remove them, or record times with a finer resolution"
    if back > 0.5 * float(time[row] - time[0]) and row > 10:
        return "time starts again, so the file contains two tests: split it"
    return "rows are not in the order of time: sort them"


def _check(run: ArmRecording, form: RecordingFormat, units: str) -> None:
    check_finite(run)
    declared = form.position is not None and form.position.unit is not None
    interval = float(np.median(np.diff(run.time)))
    if interval > LONGEST_INTERVAL:
        raise RecordingError(
            f"{run.name}: samples are {interval:.3g} s apart: is the time in milliseconds? Then set unit: ms"
        )
    largest = np.abs(run.position).max(axis=0)
    if units == "rotary" and largest.max() > (LARGEST_DECLARED if declared else LARGEST_POSITION):
        joint = run.joints[int(largest.argmax())]
        raise RecordingError(
            f"{run.name}: the position of {joint} reaches {largest.max():.4g} rad: is it in degrees (set unit: deg), or that of the motor (set "
            f"gears)?{'' if declared else ' If it is correct, set unit: rad'}"
        )
    unit, least = ("rad", 1e-2) if units == "rotary" else ("m", 1e-3)
    travel = np.ptp(run.position, axis=0)
    if travel.max() < least:
        raise RecordingError(
            f"{run.name}: no joint moves by more than {travel.max():.2g} {unit}: friction and inertia can be identified only from motion"
        )
    _check_velocity(run, travel >= least)
    _check_motor(run, travel >= least)
    if not np.any(np.abs(run.effort).max(axis=0) > 0.0):
        raise RecordingError(
            f"{run.name}: all torques are zero: name other columns, or enable torque measurement in the driver"
        )
    if not np.any(np.ptp(run.effort, axis=0) > 0.0):
        raise RecordingError(
            f"{run.name}: the torques are the same in all rows: name other columns, or enable torque measurement in the driver"
        )


def _check_velocity(run: ArmRecording, moving: Array) -> None:
    """Refuse velocities that are not the derivatives of the positions; a wrong unit shows as a wrong slope."""
    if run.velocity is None:
        return
    if not np.isfinite(run.velocity).all():
        raise RecordingError(
            f"{run.name}: some velocities are not finite: leave velocity out, so that it is computed from positions"
        )
    slopes, power = velocity_slopes(run)
    clear = moving & (power > 0.01 * power.max(initial=0.0))
    slopes = slopes[clear]
    wrong = np.flatnonzero(np.abs(slopes - 1.0) > 0.3)
    if len(wrong):
        joint = run.joints[int(np.flatnonzero(clear)[wrong[0]])]
        raise RecordingError(
            f"{run.name}: the velocity of {joint} is {slopes[wrong[0]]:.3g} times the derivative of its position: {cause_of(float(slopes[wrong[0]]))}: set "
            "the unit or sign of the signal, or leave velocity out"
        )


def _check_motor(run: ArmRecording, moving: Array) -> None:
    """Refuse motor positions that are not those of the joints but for a small twist; joints without motor encoder are zero or NaN."""
    if run.motor is None:
        return
    for k in np.flatnonzero(moving & (np.ptp(run.motor, axis=0) > 0.0)):
        position, motor = (values[:, k] - values[:, k].mean() for values in (run.position, run.motor))
        slope = float(position @ motor / (position @ position))
        if abs(slope - 1.0) > LARGEST_TWIST:
            raise RecordingError(
                f"{run.name}: the motor of {run.joints[k]} turns {slope:.4g} times as far as the joint: its motor_position needs the gear "
                f"ratio (scale: {1.0 / slope if slope else 0.0:.4g}, or gears), or another sign"
            )


def velocity_slopes(run: ArmRecording) -> tuple[Array, Array]:
    """Measured velocities relative to the derivatives of the positions, (n,), and the power of the motion, (n,).

    Displacements over :data:`WINDOW` are compared with integrals of the velocity, so that noise matters little.
    """
    velocity = np.zeros_like(run.position) if run.velocity is None else run.velocity
    steps = np.diff(run.time)[:, None]
    travelled = np.cumsum(0.5 * steps * (velocity[1:] + velocity[:-1]), axis=0)
    width = max(1, min(round(WINDOW / float(np.median(steps))), len(travelled) // 2))
    spans = run.time[1 + width :] - run.time[1:-width]
    whole = spans < 1.5 * np.median(spans)  # nothing is known of the motion in a gap
    moved = (run.position[1 + width :] - run.position[1:-width])[whole]
    integral = (travelled[width:] - travelled[:-width])[whole]
    power = np.sum(moved * moved, axis=0)
    return np.sum(moved * integral, axis=0) / np.where(power > 0.0, power, np.inf), power
