"""Recordings of mechanisms: CSV with sparse columns, MAT files, bags, on the grid of an estimation."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import io as scipy_io
from scipy.io.matlab import MatReadError
from scipy.ndimage import gaussian_filter1d

from stribeck.errors import RecordingError, TooShortError
from stribeck.io.bag import decode
from stribeck.io.messages import JOINT_COMMANDS, JOINT_STATES
from stribeck.io.storage import is_bag, read_messages
from stribeck.multibody.mechanism import Array, Mechanism, Sensor
from stribeck.multibody.model_file import Column, DataFormat, Model
from stribeck.multibody.problem import Run, Samples

UNITS = {
    "rad": 1.0, "deg": np.pi / 180.0, "m": 1.0, "mm": 1e-3, "rad/s": 1.0, "deg/s": np.pi / 180.0, "m/s": 1.0,
    "mm/s": 1e-3, "V": 1.0, "mV": 1e-3, "s": 1.0, "ms": 1e-3,
}  # fmt: skip
FEWEST_STEPS = 20
FEWEST_SAMPLES = 100
"""Samples are at most so many steps apart."""

SLOPE_TIME = 0.03
"""The rate at the first sample is the slope over this long, if nothing measures it: a motor turns motion within 0.1 s [s]."""

Note = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Recording:
    """One run as it was recorded, in SI units.

    :param time: of the rows that hold samples (N,) [s], ascending.
    :param signals: of the sensors (N, ns), NaN where there is none; angles go on beyond a turn.
    :param voltage: held commands at these rows (N, nm) [V], torques of brakes behind them.
    :param release: what position sensors show before a release from rest at the first row (ns,); NaN for others.
    :param lead: times (K,), below 0, and signals (K, ns) of rows before the first command; they tell the first rates.
    """

    name: str
    time: Array
    signals: Array
    voltage: Array
    release: Array | None = None
    lead: tuple[Array, Array] | None = None


def read_recordings(paths: Sequence[Path], model: Model, note: Note = lambda _: None) -> list[Recording]:
    """The runs in files, bags, or folders of them.

    :param note: is told what was left out.
    :raises RecordingError: for files that are missing, damaged, or hold something else.
    """
    if model.data is None:
        raise RecordingError(
            f"{model.path} has no section data, which says where recordings hold the signals"
        )
    return [_recording(path, model, model.data, note) for path in _files(paths)]


def _files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise RecordingError(f"{path}: no such file")
        if path.is_dir() and not is_bag(path):
            inside = [p for p in sorted(path.iterdir()) if p.suffix.lower() in (".csv", ".mat") or is_bag(p)]
            if not inside:
                raise RecordingError(f"{path} holds no .csv, no .mat and no bag")
            found += inside
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _recording(path: Path, model: Model, data: DataFormat, note: Note) -> Recording:
    if is_bag(path):
        table = _read_bag(path, model)
    elif path.suffix.lower() == ".mat":
        table = _read_mat(path)
    elif path.suffix.lower() in (".csv", ".txt"):
        table = _read_csv(path)
    else:
        raise RecordingError(f"{path}: expected a .csv, a .mat or a bag")
    time = _column(path, table, data.time)
    sensors = model.mechanism.sensors
    signals = np.stack([_column(path, table, data.sensors[s.name]) for s in sensors], axis=1)
    motors = model.mechanism.motors
    # A recording without any command is one of free motion: the motor's leads carry 0 V.
    columns = {m.name: data.motors[m.name] for m in motors}
    commands = [
        _held(_column(path, table, c)) if c.column in table else np.zeros(len(time)) for c in columns.values()
    ]
    for name, c in columns.items():
        if c.column not in table:
            note(f"{path.name}: no column {c.column!r}: {name} is taken to carry 0 V throughout")
    commands += _brakes(path, model.mechanism, data, len(time))
    voltage = np.stack(commands, axis=1) if commands else np.zeros((len(time), 0))
    found = _checked(path.name, time, signals, voltage, model.mechanism, note)
    if not data.release:
        return found
    return replace(found, release=np.array([data.release.get(s.name, np.nan) for s in sensors]))


def _brakes(path: Path, mechanism: Mechanism, data: DataFormat, count: int) -> list[Array]:
    """Torques of the brakes on joints that this recording held."""
    held = data.clamped.get(path.stem, {})
    joints = [mechanism.joints[j].name for j in mechanism.brakes]
    return [np.full(count, held.get(joint, 0.0)) for joint in joints]


def _held(values: Array) -> Array:
    """Each row's value or the last one before it; NaN before the first."""
    last = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(len(values)), -1))
    return np.where(last >= 0, values[last], np.nan)


def _column(path: Path, table: Mapping[str, Array], column: Column) -> Array:
    if column.column not in table:
        raise RecordingError(f"{path} has no column {column.column!r} of numbers; it has {', '.join(table)}")
    return table[column.column] * UNITS[column.unit]


def _read_csv(path: Path) -> dict[str, Array]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
    except UnicodeDecodeError:
        raise RecordingError(f"{path} is not a text file") from None
    except (OSError, csv.Error) as error:
        raise RecordingError(f"cannot read {path}: {error}") from None
    if len(rows) < 2:
        raise RecordingError(f"{path} has no rows of data")
    names, body = [name.strip() for name in rows[0]], [row for row in rows[1:] if row]
    for number, row in enumerate(body, start=2):
        if len(row) != len(names):
            raise RecordingError(f"{path}: row {number} has {len(row)} fields, the head has {len(names)}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RecordingError(f"{path} has two columns {twice!r}")
    columns = {}
    for k, name in enumerate(names):
        try:
            columns[name] = np.array([float(row[k]) if row[k].strip() else np.nan for row in body])
        except ValueError:
            continue  # a column of text; named by the message if it is asked for
    if not columns:
        raise RecordingError(
            f"{path} has no column of numbers: the head is {','.join(rows[0])!r}; columns end with commas"
        )
    return columns


def _read_mat(path: Path) -> dict[str, Array]:
    try:
        content = scipy_io.loadmat(path)
    except (OSError, ValueError, TypeError, NotImplementedError, MatReadError) as error:
        raise RecordingError(f"{path} is not a MAT file that can be read: {error}") from None
    found = {
        name: np.asarray(value, dtype=np.float64).reshape(-1)
        for name, value in content.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.size > 1
    }
    if len({len(value) for value in found.values()}) > 1:
        longest = max(len(value) for value in found.values())
        found = {name: value for name, value in found.items() if len(value) == longest}
    return found


def _read_bag(path: Path, model: Model) -> dict[str, Array]:
    """Joint states and commands as columns ``<joint>/position``, ``<joint>/velocity``, ``<joint>/effort_command``."""
    content = read_messages(path)
    rows: list[dict[str, float]] = []
    for message in content.messages:
        if message.topic not in (JOINT_STATES, JOINT_COMMANDS):
            continue
        state = decode(path, message, content.typestore)
        row = {"time": state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec}
        for k, joint in enumerate(state.name):
            if message.topic == JOINT_STATES:
                for kind, values in (("position", state.position), ("velocity", state.velocity)):
                    if len(values) > k:
                        row[f"{joint}/{kind}"] = values[k]
            elif len(state.effort) > k:
                row[f"{joint}/effort_command"] = state.effort[k]
        rows.append(row)
    if not rows:
        raise RecordingError(f"{path}: no messages on {JOINT_STATES.name}")
    rows.sort(key=lambda row: row["time"])
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def _checked(
    name: str, time: Array, signals: Array, voltage: Array, mechanism: Mechanism, note: Note
) -> Recording:
    measured = np.isfinite(signals).any(axis=1)
    if not measured.any():
        raise RecordingError(f"{name}: no row has a value of {', '.join(s.name for s in mechanism.sensors)}")
    if not np.isfinite(time[measured]).all():
        raise RecordingError(f"{name}: rows without time")
    known = np.isfinite(voltage).all(axis=1)
    if not known.any():
        raise RecordingError(f"{name}: the command has no value at all")
    early = int(np.sum(measured & ~known))
    if early:
        note(
            f"{name}: {early} samples before the first command are left out: what drove the motor is not known"
        )
    keep, before = measured & known, measured & (np.cumsum(known) == 0)
    lead_time, lead = time[before], signals[before]
    time, signals, voltage = time[keep], signals[keep], voltage[keep]
    if len(time) < FEWEST_STEPS:
        raise TooShortError(f"{name}: {len(time)} samples; at least {FEWEST_STEPS} are needed")
    late = np.flatnonzero(np.diff(time) <= 0.0)
    if len(late):
        raise RecordingError(f"{name}: time does not grow from sample {late[0]} to {late[0] + 1}")
    for k, sensor in enumerate(mechanism.sensors):
        _check_count(name, signals[:, k], sensor)
        if sensor.quantity == "position" and mechanism.joints[sensor.joint].kind == "revolute":
            _check_angle(name, time, signals[:, k], sensor)
            ends = np.concatenate([lead[:, k], signals[:, k]])
            ends[np.isfinite(ends)] = _continuous(ends[np.isfinite(ends)])
            lead[:, k], signals[:, k] = np.split(ends, [len(lead)])
    _check_rates(name, time, signals, mechanism)
    return Recording(name, time - time[0], signals, voltage, lead=(lead_time - time[0], lead))


def _check_count(name: str, values: Array, sensor: Sensor) -> None:
    if np.isfinite(values).sum() < 2:
        raise RecordingError(f"{name}: {sensor.name} has fewer than two values")


def _check_angle(name: str, time: Array, values: Array, sensor: Sensor) -> None:
    seen = np.isfinite(values)
    jumps, apart = np.abs(np.diff(values[seen])), np.diff(time[seen])
    jumps = jumps[apart <= 3.0 * np.median(apart)]  # across a gap there is no telling
    if np.median(jumps) > 1.0 or (jumps.max() > np.pi and _counts_turns(values[seen])):
        raise RecordingError(
            f"{name}: {sensor.name} jumps by {jumps.max():.3g} rad between samples: degrees (say unit: deg), or "
            "too few samples to follow it?"
        )


def _counts_turns(values: Array) -> bool:
    """Whether angles go on beyond a turn, as those of an encoder that counts."""
    return float(np.ptp(values)) > 2.0 * np.pi * 1.001


def _continuous(values: Array) -> Array:
    """Angles without jumps by a turn; those that count turns stay as they are, across gaps too."""
    return values if _counts_turns(values) else np.unwrap(values)


def _check_rates(name: str, time: Array, signals: Array, mechanism: Mechanism) -> None:
    """A measured velocity has to be the derivative of the measured position: other units and signs show."""
    for k, sensor in enumerate(mechanism.sensors):
        for j, other in enumerate(mechanism.sensors):
            if (sensor.quantity, other.quantity) != ("velocity", "position") or sensor.joint != other.joint:
                continue
            both = np.isfinite(signals[:, [j, k]]).all(axis=1)
            slope = np.gradient(signals[both, j], time[both])
            width = max(1.0, 0.02 / float(np.median(np.diff(time[both]))))
            slope = gaussian_filter1d(slope, width) * other.sign
            rate = gaussian_filter1d(signals[both, k], width) * sensor.sign
            power = float(slope @ slope)
            if power > 0.0 and not 0.7 < (share := float(slope @ rate) / power) < 1.3:
                raise RecordingError(
                    f"{name}: {sensor.name} is {share:.3g} times the derivative of {other.name}: "
                    "other units, another sign, or other columns"
                )


def on_grid(recording: Recording, mechanism: Mechanism, step: float) -> Run:
    """A recording on a grid of time steps.

    Samples within a step are averaged, value and place. The command of step k is the mean of the held command from half
    a step before :math:`t_k` to half a step after: that is what carries one velocity of the leapfrog to the next.

    :param step: h [s].
    :raises TooShortError: for recordings of few steps.
    :raises RecordingError: for samples that are too far apart to follow.
    """
    time = recording.time
    apart = float(np.median(np.diff(time)))
    if apart > FEWEST_SAMPLES * step:
        raise RecordingError(
            f"{recording.name}: samples are {apart:g} s apart, {apart / step:.0f} steps of {step:g} s: another unit of time "
            "(say unit: ms), or too few samples"
        )
    steps = int(np.floor(time[-1] / step + 1e-9)) + 2
    if steps < FEWEST_STEPS:
        raise TooShortError(
            f"{recording.name}: {steps} steps of {step:g} s; at least {FEWEST_STEPS} are needed"
        )
    index = np.minimum((time / step + 1e-9).astype(int), steps - 2)
    place = time / step - index
    value, where, count = (np.zeros((steps, len(mechanism.sensors))) for _ in range(3))
    for k in range(len(mechanism.sensors)):
        signal = recording.signals[:, k]
        seen = np.isfinite(signal)
        number = np.bincount(index[seen], minlength=steps).astype(float)
        safe = np.maximum(number, 1.0)
        value[:, k] = np.bincount(index[seen], signal[seen], minlength=steps) / safe
        where[:, k] = np.bincount(index[seen], place[seen], minlength=steps) / safe
        count[:, k] = number
    path = np.stack([_path(recording, k, steps, step) for k in range(len(mechanism.sensors))], axis=1)
    linked = np.arange(steps) < steps - 1
    voltage = _mean_voltage(recording, steps, step)
    rates = np.array([_start_rate(recording, mechanism, k) for k in range(len(mechanism.sensors))])
    if recording.release is not None:
        known = np.isfinite(recording.release)
        path[0, known] = recording.release[known]
        rates = np.zeros_like(rates)
    samples = Samples(voltage, value, where, count, linked)
    return Run(recording.name, samples, path, rates, recording.release is not None)


def _path(recording: Recording, k: int, steps: int, step: float) -> Array:
    """A smooth signal at the steps; straight across gaps."""
    seen = np.isfinite(recording.signals[:, k])
    time, signal = recording.time[seen], recording.signals[seen, k]
    apart = float(np.median(np.diff(time)))
    straight = np.interp(step * np.arange(steps), time, signal)
    return np.asarray(gaussian_filter1d(straight, max(apart / step, 1.0), mode="nearest"))


def _mean_voltage(recording: Recording, steps: int, step: float) -> Array:
    time = np.append(recording.time, recording.time[-1] + 2.0 * step)
    held = recording.voltage
    integral = np.vstack([np.zeros((1, held.shape[1])), np.cumsum(held * np.diff(time)[:, None], axis=0)])
    edges = step * (np.arange(steps + 1) - 0.5)
    columns = [
        np.interp(edges, time, integral[:, m]) + np.minimum(edges, 0.0) * held[0, m]
        for m in range(held.shape[1])
    ]
    return np.diff(np.array(columns), axis=1).T / step if columns else np.zeros((steps, 0))


def _start_rate(recording: Recording, mechanism: Mechanism, k: int) -> float:
    """Rate of the coordinate that a position sensor measures, at the first sample."""
    sensor = mechanism.sensors[k]
    for j, other in enumerate(mechanism.sensors):
        if other.quantity == "velocity" and other.joint == sensor.joint:
            first = recording.signals[np.isfinite(recording.signals[:, j]), j][0]
            return float(first * other.sign * sensor.sign)
    before = _slope(*recording.lead, k, at=-1) if recording.lead is not None else None
    found = before if before is not None else _slope(recording.time, recording.signals, k, at=0)
    return 0.0 if found is None else found


def _slope(time: Array, signals: Array, k: int, at: int) -> float | None:
    """Slope at time 0 of a signal that ends (``at`` -1) or begins (0) there; ``None`` if it has no four values nearby.

    Before the first command nothing changes suddenly, so these rows tell more than those after it.
    """
    seen = np.isfinite(signals[:, k])
    time, signal = time[seen], signals[seen, k]
    if len(time) < 4:
        return None
    near = np.abs(time) <= max(SLOPE_TIME, abs(time[3 if at == 0 else -4]))
    if at == -1 and (np.abs(time[near]).max() > 2.0 * SLOPE_TIME or np.any(np.diff(time[near]) <= 0.0)):
        return None
    return float(np.polyfit(time[near], signal[near], 2 if near.sum() > 5 else 1)[-2])


def joined(runs: Sequence[Run]) -> tuple[Samples, Array, Array]:
    """All runs one after another: samples (N, …), smooth paths (N, ns), index of each run's first state."""
    samples = Samples(*(np.concatenate(parts) for parts in zip(*(run.samples for run in runs), strict=True)))
    lengths = [len(run.path) for run in runs]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(int)
    return samples, np.concatenate([run.path for run in runs]), starts
