"""Reads recordings of mechanisms from tables and bags, checks them, and averages them onto the estimation time grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter1d

from stribeck.errors import RecordingError, TooShortError
from stribeck.identify.mechanism.mechanism import Mechanism, Sensor
from stribeck.identify.mechanism.model_file import DataFormat, MechanismModel
from stribeck.identify.mechanism.problem import GridRun, GridSamples, refuse_contacts
from stribeck.model.arrays import Array
from stribeck.recordings.bags.signals import read_bag_signals, read_undisturbed
from stribeck.recordings.bags.storage import is_bag, read_messages
from stribeck.recordings.signals.sources import SignalSource
from stribeck.recordings.signals.tracks import Track
from stribeck.recordings.tables.readers import Table, find_tables, read_table
from stribeck.recordings.tables.signals import has, table_signal

SUFFIXES = (".csv", ".txt", ".mat", ".npz", ".mcap")
FEWEST_STEPS = 20
LARGEST_SPACING = 100.0
"""Longest median time between samples, in steps."""

SLOPE_TIME = 0.03
"""Duration [s] for the initial slope where no sensor measures velocity; a motor reverses motion within 0.1 s."""

Note = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class MechanismRecording:
    """One recorded run, in SI units.

    :param time: times of the samples (N,) [s], ascending from 0.
    :param signals: sensor signals (N, ns), NaN where missing; angles continue beyond a turn.
    :param voltage: held commands at these times [V], followed by brake torques [N m or N], (N, nm + brakes).
    :param release: position sensor readings before a release from rest at the first row (ns,); NaN otherwise.
    :param lead: times (K,), below 0, and signals (K, ns) of rows before the first command, used for the initial rates.
    """

    name: str
    time: Array
    signals: Array
    voltage: Array
    release: Array | None = None
    lead: tuple[Array, Array] | None = None


def read_mechanism_recordings(
    paths: Sequence[Path], model: MechanismModel, note: Note = lambda _: None
) -> list[MechanismRecording]:
    """Read the runs in files, bags, or folders of them.

    :param note: called with a sentence for every omission or assumption.
    :raises RecordingError: for files that are missing or damaged or do not match the model.
    :raises ConfigError: for a mechanism with contacts.
    """
    refuse_contacts(model.mechanism)
    if model.data is None:
        raise RecordingError(
            f"{model.path} has no section data, which states where the signals are in recordings: add it"
        )
    data = model.data
    files = find_tables(paths, SUFFIXES) if paths else []
    return read_undisturbed(files, lambda path: _recording(path, model, data, note))


def _recording(path: Path, model: MechanismModel, data: DataFormat, note: Note) -> MechanismRecording:
    mechanism = model.mechanism
    topics = any(one.place == "bag" for one in (*data.sensors.values(), *data.motors.values()))
    if topics and is_bag(path):
        time, measured, commanded = _of_topics(path, data)
    else:
        table = read_table(path)
        time = _column(table, "time", data.time)
        measured = {name: _column(table, name, source) for name, source in data.sensors.items()}
        commanded = {
            name: _column(table, name, source)
            for name, source in data.motors.items()
            if has(table, source, "")
        }
    signals = np.stack([measured[sensor.name] for sensor in mechanism.sensors], axis=1)
    commands = []
    for motor in mechanism.motors:
        if motor.name in commanded:
            commands.append(_held(commanded[motor.name]))
        else:  # recording of free motion with shorted motor leads
            source = data.motors[motor.name]
            place = (
                f"topic {source.topic}" if source.topic else f"column {source.column or source.variable!r}"
            )
            commands.append(np.zeros(len(time)))
            note(f"{path.name}: no {place}: 0 V is assumed at {motor.name} throughout")
    clamped = data.clamped.get(path.stem, {})
    commands += [np.full(len(time), clamped.get(mechanism.joints[j].name, 0.0)) for j in mechanism.brakes]
    voltage = np.stack(commands, axis=1) if commands else np.zeros((len(time), 0))
    recording = _checked(path.name, time, signals, voltage, mechanism, note)
    if not data.release:
        return recording
    return replace(recording, release=np.array([data.release.get(s.name, np.nan) for s in mechanism.sensors]))


def _of_topics(path: Path, data: DataFormat) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    """Times of all messages of a bag (N,), and sensors and motors by name (N,), NaN where a message is of another."""
    bag = read_messages(path)
    present = {message.topic.name for message in bag.messages}
    tracks: list[dict[str, Track]] = []
    for sources, required in ((data.sensors, True), (data.motors, False)):
        found = {}
        for name, source in sources.items():
            if required or source.topic in present:
                joint = source.joint or ""
                found[name] = read_bag_signals(path, bag, {name: (source,)}, (joint,), (name,))[name][joint]
        tracks.append(found)
    time = np.unique(np.concatenate([track.time for found in tracks for track in found.values()]))
    rows: list[dict[str, Array]] = [{}, {}]
    for columns, found in zip(rows, tracks, strict=True):
        for name, track in found.items():
            columns[name] = np.full(len(time), np.nan)
            columns[name][np.searchsorted(time, track.time)] = track.value
    return time, rows[0], rows[1]


def _held(values: Array) -> Array:
    """Hold the last value in rows without one; NaN before the first."""
    last = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(len(values)), -1))
    return np.where(last >= 0, values[last], np.nan)


def _column(table: Table, name: str, source: SignalSource) -> Array:
    return table_signal(table, name, source, (name,))[:, 0]


def _checked(
    name: str, time: Array, signals: Array, voltage: Array, mechanism: Mechanism, note: Note
) -> MechanismRecording:
    measured = np.isfinite(signals).any(axis=1)
    if not measured.any():
        raise RecordingError(
            f"{name}: {', '.join(s.name for s in mechanism.sensors)} have no value in any row"
        )
    if not np.isfinite(time[measured]).all():
        raise RecordingError(f"{name}: rows without time")
    has_voltage = np.isfinite(voltage).all(axis=1)
    if not has_voltage.any():
        raise RecordingError(f"{name}: the command has no value in any row")
    early = int(np.sum(measured & ~has_voltage))
    if early:
        note(
            f"{name}: {early} samples before the first command are not used, because the voltage of the motor is not known"
        )
    keep, before = measured & has_voltage, measured & (np.cumsum(has_voltage) == 0)
    lead_time, lead = time[before], signals[before]
    time, signals, voltage = time[keep], signals[keep], voltage[keep]
    if len(time) < FEWEST_STEPS:
        raise TooShortError(f"{name} has {len(time)} samples, but at least {FEWEST_STEPS} are needed")
    late = np.flatnonzero(np.diff(time) <= 0.0)
    if len(late):
        raise RecordingError(f"{name}: time does not increase from sample {late[0]} to {late[0] + 1}")
    for k, sensor in enumerate(mechanism.sensors):
        if np.isfinite(signals[:, k]).sum() < 2:
            raise RecordingError(f"{name}: {sensor.name} has fewer than two values: at least two are needed")
        if mechanism.is_angle(sensor):
            _check_angle(name, time, signals[:, k], sensor)
            ends = np.concatenate([lead[:, k], signals[:, k]])
            seen = np.isfinite(ends)
            if not _counts_turns(ends[seen]):
                ends[seen] = np.unwrap(ends[seen])
            lead[:, k], signals[:, k] = np.split(ends, [len(lead)])
    _check_rates(name, time, signals, mechanism)
    return MechanismRecording(name, time - time[0], signals, voltage, lead=(lead_time - time[0], lead))


def _check_angle(name: str, time: Array, values: Array, sensor: Sensor) -> None:
    seen = np.isfinite(values)
    jumps, apart = np.abs(np.diff(values[seen])), np.diff(time[seen])
    jumps = jumps[apart <= 3.0 * np.median(apart)]  # across a gap any angle change is possible
    if np.median(jumps) > 1.0 or (jumps.max() > np.pi and _counts_turns(values[seen])):
        raise RecordingError(
            f"{name}: {sensor.name} jumps by {jumps.max():.3g} rad between samples: is it in degrees (unit: deg), or is the sampling rate too low?"
        )


def _counts_turns(values: Array) -> bool:
    """Whether angles continue beyond a turn, as from a multi-turn encoder."""
    return float(np.ptp(values)) > 2.0 * np.pi * 1.001


def _check_rates(name: str, time: Array, signals: Array, mechanism: Mechanism) -> None:
    """Reject a measured velocity that is not the derivative of the measured position (wrong unit or sign)."""
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
                    f"{name}: {sensor.name} is {share:.3g} times the derivative of {other.name}: check unit, sign and column"
                )


def on_grid(recording: MechanismRecording, mechanism: Mechanism, step: float) -> GridRun:
    """Average a recording onto a grid of time steps.

    Values and times of the samples within a step are averaged. The command of step k is the mean of the held command from
    half a step before :math:`t_k` to half a step after it, the interval between two leapfrog velocities.

    :param step: h [s].
    :raises TooShortError: for recordings of fewer than :data:`FEWEST_STEPS` steps.
    :raises RecordingError: for samples more than :data:`LARGEST_SPACING` steps apart.
    """
    time = recording.time
    apart = float(np.median(np.diff(time)))
    if apart > LARGEST_SPACING * step:
        raise RecordingError(
            f"{recording.name}: samples are {apart:g} s apart, which is {apart / step:.0f} steps of {step:g} "
            "s: is time in another unit (unit: ms), or is the sampling rate too low?"
        )
    steps = int(np.floor(time[-1] / step + 1e-9)) + 2
    if steps < FEWEST_STEPS:
        raise TooShortError(
            f"{recording.name}: the recording has {steps} steps of {step:g} s, but at least {FEWEST_STEPS} are needed"
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
        has_release = np.isfinite(recording.release)
        path[0, has_release] = recording.release[has_release]
        rates = np.zeros_like(rates)
    samples = GridSamples(voltage, value, where, count, linked)
    return GridRun(recording.name, samples, path, rates, recording.release is not None)


def _path(recording: MechanismRecording, k: int, steps: int, step: float) -> Array:
    """Smoothed signal at the steps, interpolated linearly across gaps."""
    seen = np.isfinite(recording.signals[:, k])
    time, signal = recording.time[seen], recording.signals[seen, k]
    apart = float(np.median(np.diff(time)))
    straight = np.interp(step * np.arange(steps), time, signal)
    return np.asarray(gaussian_filter1d(straight, max(apart / step, 1.0), mode="nearest"))


def _mean_voltage(recording: MechanismRecording, steps: int, step: float) -> Array:
    time = np.append(recording.time, recording.time[-1] + 2.0 * step)
    held = recording.voltage
    integral = np.vstack([np.zeros((1, held.shape[1])), np.cumsum(held * np.diff(time)[:, None], axis=0)])
    edges = step * (np.arange(steps + 1) - 0.5)
    columns = [
        np.interp(edges, time, integral[:, m]) + np.minimum(edges, 0.0) * held[0, m]
        for m in range(held.shape[1])
    ]
    return np.diff(np.array(columns), axis=1).T / step if columns else np.zeros((steps, 0))


def _start_rate(recording: MechanismRecording, mechanism: Mechanism, k: int) -> float:
    """Rate of a position sensor's coordinate at the first sample."""
    sensor = mechanism.sensors[k]
    for j, other in enumerate(mechanism.sensors):
        if other.quantity == "velocity" and other.joint == sensor.joint:
            first = recording.signals[np.isfinite(recording.signals[:, j]), j][0]
            return float(first * other.sign * sensor.sign)
    before = _slope(*recording.lead, k, at=-1) if recording.lead is not None else None
    rate = before if before is not None else _slope(recording.time, recording.signals, k, at=0)
    return 0.0 if rate is None else rate


def _slope(time: Array, signals: Array, k: int, at: int) -> float | None:
    """Slope at time 0 of a signal that ends (``at`` -1) or starts (0) there; ``None`` with fewer than four values nearby.

    Rows before the first command are preferred, because motion is smooth there.
    """
    seen = np.isfinite(signals[:, k])
    time, signal = time[seen], signals[seen, k]
    if len(time) < 4:
        return None
    near = np.abs(time) <= max(SLOPE_TIME, abs(time[3 if at == 0 else -4]))
    if at == -1 and (np.abs(time[near]).max() > 2.0 * SLOPE_TIME or np.any(np.diff(time[near]) <= 0.0)):
        return None
    return float(np.polyfit(time[near], signal[near], 2 if near.sum() > 5 else 1)[-2])


def joined(runs: Sequence[GridRun]) -> tuple[GridSamples, Array, Array]:
    """Concatenate runs: samples (N, …), smoothed paths (N, ns), index of each run's first state."""
    samples = GridSamples(
        *(np.concatenate(parts) for parts in zip(*(run.samples for run in runs), strict=True))
    )
    lengths = [len(run.path) for run in runs]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(int)
    return samples, np.concatenate([run.path for run in runs]), starts
