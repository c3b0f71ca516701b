"""Implements ``stribeck export``: checks, projection, files and the error of the export."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stribeck.api.stages import StageLine
from stribeck.cli.exit_codes import DONE
from stribeck.cli.export.draws import BESIDE_LAW, Drawn, Judged, check_draws, check_units, drawn_of
from stribeck.cli.export.options import ExportOptions
from stribeck.cli.inputs import (
    check_outputs,
    check_recorded,
    check_servo,
    recordings_of,
    warn,
    warn_of_friction,
    write_json,
)
from stribeck.cli.options import RecordingOptions
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import stepping_of
from stribeck.exports.draws import explained
from stribeck.exports.loss import SCHEMA, Loss, lines_of, loss_of, unsimulated
from stribeck.exports.projection import (
    armature_remark,
    closest,
    lost,
    missing_terms,
    over_the_position,
    plain,
    rest_remark,
)
from stribeck.exports.registry import FORMATS, Format, format_named
from stribeck.exports.runs import batch_of_source, bench_runs, usual_gain
from stribeck.exports.task import ExportTask, JointServo, Written, check_names
from stribeck.exports.variants import table_path, variants
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drives
from stribeck.files.folders import write_atomically
from stribeck.model.control_laws import Gains, TorqueControl
from stribeck.model.joint import Drive, Servo
from stribeck.model.log import Log
from stribeck.strict import read_bytes

SEVERAL = 5
"""From this number of joints on, all of them are not listed by name."""


class _Asked(NamedTuple):
    """What is asked for: options, format and recordings."""

    options: ExportOptions
    form: Format
    logs: Sequence[Log]


class _Driven(NamedTuple):
    """A joint and the drive of it, with the file that has it."""

    joint: str
    path: Path
    file: Drive


def run(options: ExportOptions) -> int:
    """Write the files of an export; print and write what it costs."""
    if options.format == "list":
        print_table(["format", "holds"], [[form.name, form.title] for form in FORMATS.values()], left=2)
        return DONE
    form, output = format_named(options.format), options.output
    form.module_of()  # says at once which library is missing
    if not options.params or output is None:
        raise ConfigError("--params and --output are needed: name the parameter files and the file to write")
    _check_model(form, options)
    check_draws(form, options)
    driven = _driven(options)
    files = list({id(one.file): (one.path, one.file) for one in driven}.values())
    places = [next(k for k, (_, file) in enumerate(files) if file is one.file) for one in driven]
    for path, file in files:
        warn_of_friction(path, file)
    logs = _logs(options, [file for _, file in files])
    if logs:
        check_recorded(logs, files, supply=False)
    beside = output.parent / f"{output.name}.loss"  # no .json: other programs read all such files of a folder
    table = None if options.draws is None else table_path(output)
    outputs = [output, beside, *([] if table is None else [table])]
    check_outputs(outputs, [*options.params, options.model], options.recordings)
    asked = _Asked(options, form, logs)
    used = [_gains(asked, file) for _, file in files]
    missing = [lost(file, form, gains) for (_, file), gains in zip(files, used, strict=True)]
    _check_strict(asked, dict(zip((path for path, _ in files), missing, strict=True)))
    check_units(options, {one.joint: (one.path, one.file) for one in driven})
    supplies = [_supply(asked, path, file) for path, file in files]

    def task_of(held: Sequence[Drive]) -> ExportTask:
        servos = tuple(
            JointServo(one.joint, _servo(asked, one.file, held[place], supplies[place]))
            for one, place in zip(driven, places, strict=True)
        )
        sources = tuple(one.path for one in driven)
        by_torque = frozenset(one.joint for one in driven if _by_torque(asked, one.file))
        return ExportTask(servos, output, options.model, options.step, sources, table, by_torque)

    form.write(task_of([plain(file, form) for _, file in files]))  # refuses early what does not fit
    judged: list[Judged] = []
    with StageLine(quiet=len(files) == 1 or all(file.of_robot for _, file in files)) as line:
        for (path, file), gains, supply in zip(files, used, supplies, strict=True):
            line.tell(f"drives in the format {form.name}, {len(judged) + 1} of {len(files)}")
            judged.append(_judged(asked, path, file, gains, supply))
    task = task_of([one.held for one in judged])
    written = form.write(task)
    check_outputs(list(written.files)[1:], [*options.params, options.model], options.recordings)
    losses = _losses(asked, task, judged, places, missing)
    drawn: list[Drawn] = []
    if options.draws is not None:
        drawn = drawn_of(judged, {one.joint: one.file for one in driven}, options, options.draws)
        more = variants(form, task, [drawn[place].sets for place in places], options.draws)
        check_outputs(list(more), [*options.params, options.model], options.recordings)
        numbered = tuple(path for path in more if path != table)
        written = Written({**written.files, **more}, written.notes, numbered)
    _finish(asked, written, judged, losses, drawn, beside, _remarks(driven))
    return DONE


def _remarks(driven: Sequence[_Driven]) -> list[str]:
    """What no format can contain, and values that the recordings do not determine."""
    found = []
    for name, words in BESIDE_LAW.items():
        if with_it := [one.joint for one in driven if name in one.file.stated]:
            named = len(with_it) < max(len(driven), SEVERAL)
            joints = ", ".join(with_it) if named else f"all {len(with_it)} joints"
            found.append(f"the file cannot contain the {words} of {joints}")
    found += [text for one in driven if (text := armature_remark(one.joint, one.file)) is not None]
    return found


def _losses(
    asked: _Asked,
    task: ExportTask,
    judged: Sequence[Judged],
    places: Sequence[int],
    missing: Sequence[tuple[str, ...]],
) -> list[Loss]:
    """The error of each file; warns of friction at rest that gets lost."""
    losses, form = [], asked.form
    for k, one in enumerate(judged):
        own = [servo for servo, place in zip(task.joints, places, strict=True) if place == k]
        names = ", ".join(joint for joint, _ in own)
        if (remark := rest_remark(one.source, one.held, form)) is not None:
            warn(f"{names}: {remark}")
        if one.runs is None:
            losses.append(unsimulated(names, missing[k]))
            continue
        of_file = (one.runs, one.stepping, missing[k])
        losses.append(
            loss_of(
                names, own[0].servo, form, *of_file, recorded=bool(asked.logs), timestep=asked.options.step
            )
        )
    return losses


def _finish(
    asked: _Asked,
    written: Written,
    judged: Sequence[Judged],
    losses: Sequence[Loss],
    drawn: Sequence[Drawn],
    beside: Path,
    remarks: Sequence[str],
) -> None:
    options, form, _ = asked
    for path, content in written.files.items():
        write_atomically(path, content)
    entries = [{"params": str(one.path), **loss.to_json()} for one, loss in zip(judged, losses, strict=True)]
    for entry, one in zip(entries, drawn, strict=False):
        entry["draws"] = {"count": options.draws, "seed": options.seed, **vars(one.width)}
    write_json(beside, {"schema": SCHEMA, "format": form.name, "plain": options.plain, "joints": entries})
    for path in (*written.files, beside):
        if path not in written.variants:
            print(path)
    if written.variants:
        print(f"{written.variants[0]} … {written.variants[-1].name}")
    print(*lines_of(losses), sep="\n")
    sources = {loss.joint: one.source for loss, one in zip(losses, judged, strict=True)}
    if (lost_there := over_the_position(sources, form)) is not None:
        print(lost_there)
    for loss, one in zip(losses, drawn, strict=False):
        print(f"{loss.joint}: {one.width.line(options.draws or 0)}")
    if text := explained([one.width for one in drawn]):
        print(text)
    sys.stdout.flush()
    for note in (*written.notes, *remarks):
        warn(note)


def _check_model(form: Format, options: ExportOptions) -> None:
    if form.model and options.model is None:
        raise ConfigError(f"--format {form.name} writes into a robot file: name it with --model")
    if form.model is False and options.model is not None:
        raise ConfigError(f"--format {form.name} does not use a robot file: remove --model {options.model}")
    if options.model is not None:
        read_bytes(options.model, ConfigError)  # says at once that it is missing, or no file


def _check_strict(asked: _Asked, missing: Mapping[Path, tuple[str, ...]]) -> None:
    for path, words in missing.items():
        if asked.options.strict and words:
            raise ConfigError(
                f"{path}: {asked.form.name} cannot represent {', '.join(words)}: remove --strict to export the "
                "closest law that the format can represent, or choose the format c or bam"
            )


def _gains(asked: _Asked, file: Drive) -> Gains:
    """The gains with which a servo is used, as far as they count for what a format lacks."""
    setups, stated = [log.setup for log in asked.logs], [] if file.gains is None else [file.gains.kd]
    derivative = [asked.options.kd, *stated, *(setup.kd for setup in setups)]
    return Gains(1.0, np.array([setup.ki for setup in setups]), np.array(derivative))


def _driven(options: ExportOptions) -> list[_Driven]:
    """The joints: as given, otherwise those of a file with several, or named as the files are."""
    servo = None if options.servo is None else load_actuator(options.servo)
    read = [(path, read_drives(path, servo)) for path in options.params]
    several = [path for path, drives in read if len(drives.joints) > 1]
    if several and len(read) > 1:
        raise ConfigError(
            f"{several[0]} contains several joints: give only this file, or only files of one joint each"
        )
    if len(read) == 1:
        names = tuple(name or "joint" for name in read[0][1].joints)
    else:
        names = tuple(path.stem for path in options.params)
    chosen = options.joint or names
    check_names(chosen)
    if len(read) not in (1, len(chosen)):
        raise ConfigError(
            f"found {len(read)} parameter files for {len(chosen)} joints ({', '.join(chosen)}): give one for all joints, or one for each"
        )
    places = zip(chosen, read * len(chosen) if len(read) == 1 else read, strict=True)
    found = [_Driven(name, path, drives.drive(name, path)) for name, (path, drives) in places]
    if servo is not None:
        for one in found:
            check_servo(one.path, one.file, servo)
    return found


def _logs(options: ExportOptions, files: Sequence[Drive]) -> list[Log]:
    if options.recordings and any(file.of_robot for file in files):
        raise ConfigError(
            "recordings are for servos and single joints: the drives of a robot are exported as they were identified, and draws are as wide "
            "as the file states: remove the recordings (docs/robots.md shows how the exported model is simulated in them)"
        )
    if not options.recordings:
        given = {"--signals": options.signals, "--bench": options.bench, "--arm-mass": options.arm_mass}
        for name, value in given.items():
            if value is not None:
                raise ConfigError(f"{name} is only for recordings: name recordings, or remove the option")
        return []
    chosen = RecordingOptions(
        recordings=options.recordings, signals=options.signals, bench=options.bench, arm_mass=options.arm_mass
    )
    return recordings_of(chosen, options.servo)


def _judged(asked: _Asked, path: Path, file: Drive, used: Gains, supply: float | None) -> Judged:
    """The runs of a file, and its law as the format holds it."""
    (options, form, logs), stepping = asked, stepping_of(file)
    if file.of_robot:
        return Judged(path, file, None, stepping, plain(file, form))
    benches = bench_runs(
        file,
        options.kp or usual_gain(file),
        supply or file.actuator.supply.nominal,
        options.kd or (0.0 if file.gains is None else float(file.gains.kd)),
    )
    recorded, of_source = batch_of_source(file, logs or benches, stepping)
    runs = (recorded if logs else of_source, of_source)
    missing = missing_terms(file, form, used)
    held = plain(file, form) if options.plain or not missing else closest(file, form, of_source, stepping)
    return Judged(path, file, runs, stepping, held)


def _supply(asked: _Asked, path: Path, file: Drive) -> float | None:
    """The supply voltage [V] of the options, of the recordings or of the fit; ``None`` where nothing depends on it."""
    options, form, logs = asked
    if options.supply is not None:
        return options.supply
    stated = file.provenance.supply_voltage if file.provenance is not None else None
    nominal = None if stated is None else stated.nominal
    known = {log.setup.supply_voltage for log in logs} or ({nominal} if nominal else set())
    if len(known) == 1:
        return known.pop()
    if not form.supply or not ("R" in file.values or file.actuator.control.kind == "voltage"):
        return None
    found = (
        f"the recordings have different ones, {', '.join(f'{volts:g}' for volts in sorted(known))} V"
        if known
        else f"{path} states none"
    )
    raise ConfigError(f"--format {form.name} needs the supply voltage, but {found}: give it with --supply")


def _by_torque(asked: _Asked, file: Drive) -> bool:
    """Whether the commands of a joint are torques: nothing states a gain of its position control, and it has none of its own."""
    control = file.actuator.control
    commanded = isinstance(control, TorqueControl) and not control.damping
    unstated = asked.options.kp is None and not asked.logs and file.gains is None
    return asked.form.torque and commanded and unstated


def _servo(asked: _Asked, file: Drive, held: Drive, supply: float | None) -> Servo:
    """What the format holds of a file as a servo, with its supply and its gain, from options, recordings or the file."""
    options, form, logs = asked
    gains = sorted({log.setup.kp for log in logs})
    stated = options.kp is not None or len(gains) == 1 or file.gains is not None
    if form.gain and not stated and not _by_torque(asked, file):
        found = (
            f"the recordings have different ones, {', '.join(f'{gain:g}' for gain in gains)}"
            if gains
            else "there are no recordings"
        )
        raise ConfigError(
            f"--format {form.name} needs the gain of the firmware, but {found}: give it with --kp"
        )
    if form.gain and options.kp is not None and file.gains is not None:
        warn(
            f"--kp {options.kp:g} replaces the gain {file.gains.kp:.3g} in the file; its unit is N m/rad, not that of a servo's register"
        )
    kp = options.kp or (gains[0] if gains else usual_gain(file))
    kd = options.kd or (0.0 if file.gains is None else float(file.gains.kd))
    return Servo(held, kp, kd=kd if form.gains else 0.0, supply_voltage=supply)
