"""``stribeck identify transmission``: stiffness and hysteresis of transmissions from motor and link encoders."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from stribeck.cli.inputs import check_outputs, warn, warn_of_seen, words_of, write_json
from stribeck.cli.options import Positive, declared, group, option
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError, RecordingError
from stribeck.recordings.signals.run_units import LARGEST_POSITION, LONGEST_INTERVAL
from stribeck.recordings.tables.readers import Table, find_tables, read_table

if TYPE_CHECKING:
    from stribeck.identify.common.encoder_runs import EncoderRun
    from stribeck.identify.common.transmission import Transmission

NEEDED = ("motor", "link", "torque", "ratio")

_data, _output = group("recordings"), group("output")


class Arrays(NamedTuple):
    """Arrays of the files.

    :param motor: positions of the motor at the link's side, one row or column for each joint.
    :param link: positions of the link.
    :param torque: of the motor, at the motor's side [N m].
    :param ratio: gear ratios: an array, or numbers separated by commas.
    :param rotor_inertia: of the rotors [kg m²], as ``ratio``.
    :param time: times [s]; ``None`` without.
    """

    motor: str
    link: str
    torque: str
    ratio: str
    rotor_inertia: str = "0"
    time: str | None = None


def arrays(text: str) -> Arrays:
    """Parse ``motor=NAME,link=NAME,torque=NAME,ratio=100,100``; a part without = goes on with the one before."""
    found: dict[str, str] = {}
    name = ""
    for part in text.split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        if equals:
            name = key
            found[name] = value
        elif name:
            found[name] += f",{key}"
    unknown, missing = [k for k in found if k not in Arrays._fields], [k for k in NEEDED if k not in found]
    if unknown or missing:
        wrong = f"unknown {', '.join(unknown)}" if unknown else f"{', '.join(missing)} missing"
        raise argparse.ArgumentTypeError(
            f"{wrong}; expected {', '.join(f'{k}=NAME' for k in Arrays._fields)}"
        )
    return Arrays(**found)


@declared
class IdentifyTransmissionOptions:
    """Options: recordings, names of their arrays, and the output file."""

    recordings: tuple[Path, ...] = option(
        "recordings of motor and link encoders and torque", metavar="RECORDING", positional=True
    )
    validate: tuple[Path, ...] = _data("recordings for validation", (), "PATH")
    columns: Annotated[Arrays, arrays] = _data(
        "arrays in the files: motor=NAME and link=NAME (positions on the link side), torque=NAME (on the "
        "motor side [N m]), ratio=NAME or numbers, rotor_inertia=… [kg m²], time=NAME",
        metavar="SIGNAL=NAME,…",
    )
    step: Positive | None = _data("time step [s], for files without times", metavar="S")
    degrees: bool = _data("positions are in degrees")
    joint: tuple[str, ...] = _data(
        "numbers of the joints from 1, separated by commas or blanks (default: all)", (), "N"
    )
    json: Path | None = _output("JSON file of parameters and errors")


def run(options: IdentifyTransmissionOptions) -> int:
    """Fit the transmission of each joint, predict the other recordings, print and write."""
    from stribeck.identify.common.transmission import identify_transmission

    check_outputs([options.json], [*options.recordings, *options.validate])
    warn_of_seen(options.recordings, options.validate)
    fitted = [_read(path, options) for path in find_tables(options.recordings)]
    unseen = [_read(path, options) for path in find_tables(options.validate)] if options.validate else []
    content: dict[str, Any] = {"per_joint": {}}
    rows = []
    for joint in _joints(options, fitted):
        found = identify_transmission(fitted, joint)
        errors = {"left_out": found.left_out, "train": _rms(found, fitted, joint)}
        errors |= {"validation": _rms(found, unseen, joint)} if unseen else {}
        content["per_joint"][str(joint + 1)] = {
            **found.stiffness_to_json(),
            "travel": found.model.travel,
            "parameters": {name: each.to_json() for name, each in found.estimates.items()},
            "rms": errors,
        }
        value = {name: each.value for name, each in found.estimates.items()}
        stiffness = "not identifiable" if found.stiffness is None else f"{found.stiffness.value:.4g}"
        cells = [stiffness, f"{_mdeg(value['hysteresis']):.2f}", f"{_mdeg(found.model.travel):.0f}"]
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
    errors = [run.motor[:, joint] - run.link[:, joint] - found.model.predict(run, joint) for run in runs]
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


def _joints(options: IdentifyTransmissionOptions, runs: list[EncoderRun]) -> list[int]:
    count = runs[0].motor.shape[1]
    words = words_of(options.joint)
    for word in words:
        if not word.isdecimal() or not 1 <= int(word) <= count:
            raise ConfigError(f"--joint: there is no joint {word}; the recordings have joints 1 to {count}")
    chosen = [int(word) - 1 for word in words] or list(range(count))
    still = {joint: _still(runs, joint) for joint in chosen}
    for joint, encoder in still.items():
        if encoder:
            warn(f"joint {joint + 1} is not identified: its {encoder} position never changes")
    if all(still.values()):
        raise RecordingError(
            "no joint moves according to both encoders: give the correct arrays with --columns"
        )
    return [joint for joint in chosen if not still[joint]]


def _read(path: Path, options: IdentifyTransmissionOptions) -> EncoderRun:
    from stribeck.identify.common.encoder_runs import EncoderRun

    table, given = read_table(path), options.columns
    scale = np.pi / 180.0 if options.degrees else 1.0
    motor, link, torque = (_tall(table, name) for name in given[:3])
    ratio, rotor = (_numbers(table, text, motor.shape[1]) for text in given[3:5])
    if torque.shape != motor.shape:
        raise RecordingError(
            f"{path}: {given.torque} has shape {torque.shape}, but {given.motor} has {motor.shape}: both must be equal"
        )
    steps = np.diff(table.column(given.time)) if given.time else np.full(1, options.step or np.nan)
    dt = float(np.median(steps))
    if not dt > 0.0 or np.any(np.abs(steps - dt) > 0.1 * dt):
        raise RecordingError(
            f"{path}: times must increase in equal steps: give the time in --columns, or --step"
        )
    if dt > LONGEST_INTERVAL:
        raise RecordingError(
            f"{path}: samples are {dt:g} s apart; are times in milliseconds? Seconds are expected"
        )
    largest = float(max(np.nanmax(np.abs(motor)), np.nanmax(np.abs(link))))
    if not options.degrees and largest > LARGEST_POSITION:
        raise RecordingError(
            f"{path}: positions reach {largest:.1f} rad: are they in degrees? Then give --degrees. Otherwise convert them to radians"
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
                f"{table.path}: {text!r} is neither an array nor a number; arrays: {names}"
            ) from None
    if len(values) not in (1, count):
        raise RecordingError(
            f"{table.path}: {text} has {len(values)} values, expected one, or one for each of {count} joints"
        )
    return np.broadcast_to(values, (count,))
