"""``stribeck identify-transmission``: stiffness and hysteresis of transmissions from motor and link encoders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stribeck.cli.inputs import check_outputs, warn, warn_of_seen, write_json
from stribeck.cli.options import Positive, group, option
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError, RecordingError
from stribeck.recordings.signals.run_units import LARGEST_POSITION, LONGEST_INTERVAL
from stribeck.recordings.tables.readers import Table, find_tables, read_table

if TYPE_CHECKING:
    from stribeck.identify.robot.transmission import EncoderRun, Transmission

_columns, _output = group("arrays of the files"), group("output")


@dataclass(frozen=True, kw_only=True)
class IdentifyTransmissionOptions:
    """Options: recordings, names of their arrays, and the output file."""

    data: tuple[Path, ...] = option("recordings with both encoders and torque", metavar="PATH")
    validate: tuple[Path, ...] = option("recordings that are predicted only", (), "PATH")
    motor: str = _columns(
        "motor positions at the link's side, one row or column for each joint", metavar="NAME"
    )
    link: str = _columns("positions of the link", metavar="NAME")
    torque: str = _columns("motor torques at the motor's side [N m]", metavar="NAME")
    ratio: str = _columns("gear ratios: an array, or numbers separated by commas", metavar="NAME")
    rotor_inertia: str = _columns("of the rotors [kg m²], as ratio (default: 0)", "0", "NAME")
    time: str | None = _columns("times [s]", None, "NAME")
    step: Positive | None = _columns("time step [s] where there are no times", None, "S")
    degrees: bool = _columns("positions are in degrees", False)
    joints: tuple[str, ...] = _columns(
        "numbers of the joints from 1, separated by commas or blanks (default: all)", (), "N"
    )
    json: Path | None = _output("parameters and errors for programs", None, "FILE")


def run(options: IdentifyTransmissionOptions) -> int:
    """Fit the transmission of each joint, predict the other recordings, print and write."""
    from stribeck.identify.robot.transmission import identify_transmission

    check_outputs([options.json], [*options.data, *options.validate])
    warn_of_seen(options.data, options.validate)
    fitted = [_read(path, options) for path in find_tables(options.data)]
    unseen = [_read(path, options) for path in find_tables(options.validate)] if options.validate else []
    content: dict[str, Any] = {"schema": 1, "per_joint": {}}
    rows = []
    for joint in _joints(options, fitted):
        found = identify_transmission(fitted, joint)
        errors = {"left_out": found.left_out, "train": _rms(found, fitted, joint)}
        errors |= {"validation": _rms(found, unseen, joint)} if unseen else {}
        content["per_joint"][str(joint + 1)] = {
            "stiffness": found.stiffness,
            "travel": found.travel,
            "parameters": {name: each.to_json() for name, each in found.estimates.items()},
            "rms": errors,
        }
        value = {name: each.value for name, each in found.estimates.items()}
        stiffness = "unknown" if found.stiffness is None else f"{found.stiffness:.4g}"
        cells = [stiffness, f"{_mdeg(value['hysteresis']):.2f}", f"{_mdeg(found.travel):.0f}"]
        cells += [f"{value['skew'] * 1e3:.3f}", *(f"{_mdeg(error):.2f}" for error in errors.values())]
        rows.append([str(joint + 1), *cells])
    errors_of = ["left out", "train", *(["validation"] if unseen else [])]
    head = ["joint", "stiffness [N m/rad]", "hysteresis [mdeg]", "travel [mdeg]", "skew [ms]"]
    print_table([*head, *(f"{name} [mdeg]" for name in errors_of)], rows)
    write_json(options.json, content, allow_nan=False)
    return 0


def _mdeg(angle: float) -> float:
    return float(np.degrees(angle) * 1e3)


def _rms(found: Transmission, runs: list[EncoderRun], joint: int) -> float:
    errors = [run.motor[:, joint] - run.link[:, joint] - found.predict(run, joint) for run in runs]
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


def _joints(options: IdentifyTransmissionOptions, runs: list[EncoderRun]) -> list[int]:
    count = runs[0].motor.shape[1]
    words = [word for text in options.joints for word in text.split(",") if word]
    for word in words:
        if not word.isdecimal() or not 1 <= int(word) <= count:
            raise ConfigError(f"--joints: there is no joint {word}; the recordings have joints 1 to {count}")
    chosen = [int(word) - 1 for word in words] or list(range(count))
    still = {joint: _still(runs, joint) for joint in chosen}
    for joint, encoder in still.items():
        if encoder:
            warn(f"joint {joint + 1} is left out: its {encoder} position never changes")
    if all(still.values()):
        raise RecordingError("no joint moves at both encoders: name the arrays with --motor and --link")
    return [joint for joint in chosen if not still[joint]]


def _read(path: Path, options: IdentifyTransmissionOptions) -> EncoderRun:
    from stribeck.identify.robot.transmission import EncoderRun

    table = read_table(path)
    scale = np.pi / 180.0 if options.degrees else 1.0
    motor, link, torque = (_tall(table, name) for name in (options.motor, options.link, options.torque))
    ratio, rotor = (_numbers(table, text, motor.shape[1]) for text in (options.ratio, options.rotor_inertia))
    if torque.shape != motor.shape:
        raise RecordingError(f"{path}: {options.torque} is {torque.shape}, {options.motor} {motor.shape}")
    steps = np.diff(table.column(options.time)) if options.time else np.full(1, options.step or np.nan)
    dt = float(np.median(steps))
    if not dt > 0.0 or np.any(np.abs(steps - dt) > 0.1 * dt):
        raise RecordingError(f"{path}: times must rise in even steps; give --time or --step")
    if dt > LONGEST_INTERVAL:
        raise RecordingError(
            f"{path}: samples are {dt:g} s apart; are times in milliseconds? Seconds are expected"
        )
    largest = float(max(np.nanmax(np.abs(motor)), np.nanmax(np.abs(link))))
    if not options.degrees and largest > LARGEST_POSITION:
        raise RecordingError(
            f"{path}: positions reach {largest:.1f} rad; are they in degrees? Then give --degrees, else convert them to radians"
        )
    return EncoderRun(path.stem, dt, scale * motor, scale * link, torque * ratio, rotor * ratio**2)


def _still(runs: list[EncoderRun], joint: int) -> str:
    """Which of the encoders of a joint never moves; empty if both do."""
    for name in ("motor", "link"):
        if all(np.ptp(getattr(run, name)[:, joint]) == 0.0 for run in runs):
            return name
    return ""


def _tall(table: Table, name: str) -> Any:
    """An array with time along its first axis (T, J)."""
    values = table.array(name)
    values = values.reshape(len(values), -1)
    return values if values.shape[0] >= values.shape[1] else values.T


def _numbers(table: Table, text: str, count: int) -> Any:
    if text in table.arrays:
        values = table.arrays[text].reshape(-1)
    else:
        try:
            values = np.array([float(word) for word in text.split(",")])
        except ValueError:
            names = ", ".join(table.names[:20])
            raise RecordingError(
                f"{table.path} has no array {text!r}, and it is no number; it has {names}"
            ) from None
    if len(values) not in (1, count):
        raise RecordingError(f"{table.path}: {text} has {len(values)} values for {count} joints")
    return np.broadcast_to(values, (count,))
