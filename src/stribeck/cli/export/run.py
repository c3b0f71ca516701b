"""Implements ``stribeck export``: checks, projection, files and the error of the export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stribeck.cli.exit_codes import DONE
from stribeck.cli.export.options import ExportOptions
from stribeck.cli.inputs import (
    check_outputs,
    check_servo,
    parameter_files_of,
    recordings_of,
    warn,
    write_json,
)
from stribeck.cli.options import ParameterFileOptions, RecordingOptions
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import Stepping, stepping_of
from stribeck.exports.loss import SCHEMA, Loss, loss_of
from stribeck.exports.projection import closest, lost, missing_terms, plain, rest_remark
from stribeck.exports.registry import FORMATS, Format, format_named
from stribeck.exports.runs import batch_of_source, bench_runs, usual_gain
from stribeck.exports.task import ExportTask, JointServo, Written, check_names
from stribeck.files.folders import write_atomically
from stribeck.model.control_laws import Gains
from stribeck.model.joint import Drive, Servo
from stribeck.model.log import Batch, Log
from stribeck.strict import read_bytes


class _Judged(NamedTuple):
    """A parameter file with its runs, as recorded and as the source law moves, and what the format holds of it."""

    path: Path
    source: Drive
    runs: tuple[Batch, Batch]
    stepping: Stepping
    held: Drive


def run(options: ExportOptions) -> int:
    """Write the files of an export; print and write what it costs."""
    if options.format == "list":
        print_table(["format", "holds"], [[form.name, form.title] for form in FORMATS.values()], left=2)
        return DONE
    form, output = format_named(options.format), options.output
    form.module_of()  # says at once which library is missing
    if not options.params or output is None:
        raise ConfigError("name the parameter files (--params) and the file to write (--output)")
    _check_model(form, options)
    files = parameter_files_of(ParameterFileOptions(params=options.params, actuator=options.servo))
    joints = _joints(options.joint, options.params)
    logs = _logs(options)
    if logs:
        check_servo(logs, files, supply=False)
    beside = output.parent / f"{output.name}.loss"  # no .json: other programs read all such files of a folder
    check_outputs([output, beside], [*options.params, options.model], options.recordings)
    used = Gains(
        1.0, np.array([log.setup.ki for log in logs]), np.array([options.kd, *(log.setup.kd for log in logs)])
    )
    missing = {path: lost(file, form, used) for path, file in files}
    _check_strict(options, form, missing)
    sources = [path for path, _ in files] * (len(joints) if len(files) == 1 else 1)
    supplies = {path: _supply(options, form, logs, path, file) for path, file in files}

    def task_of(held: Mapping[Path, Drive]) -> ExportTask:
        servos = tuple(
            JointServo(joint, _servo(options, form, logs, held[path], supplies[path]))
            for joint, path in zip(joints, sources, strict=True)
        )
        return ExportTask(servos, output, options.model, options.step, tuple(sources))

    form.write(task_of({path: plain(file, form) for path, file in files}))  # refuses early what does not fit
    judged = [_judged(path, file, form, options, logs, used, supplies[path]) for path, file in files]
    task = task_of({one.path: one.held for one in judged})
    written = form.write(task)
    check_outputs(list(written.files)[1:], [*options.params, options.model], options.recordings)
    losses = []
    for one in judged:
        driven = [servo for servo, path in zip(task.joints, sources, strict=True) if path == one.path]
        names = ", ".join(joint for joint, _ in driven)
        if (remark := rest_remark(one.source, one.held, form)) is not None:
            warn(f"{names}: {remark}")
        of_file = (one.runs, one.stepping, missing[one.path])
        losses.append(
            loss_of(names, driven[0].servo, form, *of_file, recorded=bool(logs), timestep=options.step)
        )
    _finish(form, written, losses, beside, files, options)
    return DONE


def _finish(
    form: Format,
    written: Written,
    losses: Sequence[Loss],
    beside: Path,
    files: Sequence[tuple[Path, Drive]],
    options: ExportOptions,
) -> None:
    for path, content in written.files.items():
        write_atomically(path, content)
    entries = [{"params": str(path), **loss.to_json()} for (path, _), loss in zip(files, losses, strict=True)]
    write_json(beside, {"schema": SCHEMA, "format": form.name, "plain": options.plain, "joints": entries})
    for note in written.notes:
        warn(note)
    for path in (*written.files, beside):
        print(path)
    for loss in losses:
        print(loss.line())


def _check_model(form: Format, options: ExportOptions) -> None:
    if form.model and options.model is None:
        raise ConfigError(f"--format {form.name} changes a robot file: name it with --model")
    if form.model is False and options.model is not None:
        raise ConfigError(f"--format {form.name} does not use --model {options.model}: leave it out")
    if options.model is not None:
        read_bytes(options.model, ConfigError)  # says at once that it is missing, or no file


def _check_strict(options: ExportOptions, form: Format, missing: Mapping[Path, tuple[str, ...]]) -> None:
    for path, words in missing.items():
        if options.strict and words:
            raise ConfigError(
                f"{path}: {form.name} cannot hold {', '.join(words)}: leave out --strict to export the closest law that "
                "it holds, or choose c or bam"
            )


def _joints(names: Sequence[str], params: Sequence[Path]) -> tuple[str, ...]:
    """Names of the joints: as given, otherwise ``joint``, or the names of several parameter files."""
    chosen = tuple(names) or (("joint",) if len(params) == 1 else tuple(path.stem for path in params))
    check_names(chosen)
    if len(params) not in (1, len(chosen)):
        raise ConfigError(
            f"{len(params)} parameter files for {len(chosen)} joints ({', '.join(chosen)}): give one for all or one for each"
        )
    return chosen


def _logs(options: ExportOptions) -> list[Log]:
    if not options.recordings:
        given = {"--signals": options.signals, "--bench": options.bench, "--arm-mass": options.arm_mass}
        for name, value in given.items():
            if value is not None:
                raise ConfigError(f"{name} describes recordings: name them, or leave it out")
        return []
    chosen = RecordingOptions(
        recordings=options.recordings, signals=options.signals, bench=options.bench, arm_mass=options.arm_mass
    )
    return recordings_of(chosen, options.servo)


def _judged(
    path: Path,
    file: Drive,
    form: Format,
    options: ExportOptions,
    logs: Sequence[Log],
    used: Gains,
    supply: float | None,
) -> _Judged:
    """The runs of a file, and its law as the format holds it."""
    stepping = stepping_of(file)
    benches = bench_runs(
        file, options.kp or usual_gain(file), supply or file.actuator.supply.nominal, options.kd
    )
    recorded, of_source = batch_of_source(file, logs or benches, stepping)
    runs = (recorded if logs else of_source, of_source)
    missing = missing_terms(file, form, used)
    held = plain(file, form) if options.plain or not missing else closest(file, form, of_source, stepping)
    return _Judged(path, file, runs, stepping, held)


def _supply(
    options: ExportOptions, form: Format, logs: Sequence[Log], path: Path, file: Drive
) -> float | None:
    """The supply voltage [V] of the options, of the recordings or of the fit; ``None`` where nothing depends on it."""
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
        f"the recordings have {', '.join(f'{volts:g}' for volts in sorted(known))} V"
        if known
        else f"{path} states none"
    )
    raise ConfigError(f"--format {form.name} holds the supply voltage, and {found}: give one with --supply")


def _servo(
    options: ExportOptions, form: Format, logs: Sequence[Log], held: Drive, supply: float | None
) -> Servo:
    """The servo with its gain, from the options or from the recordings, and its supply."""
    gains = sorted({log.setup.kp for log in logs})
    if form.gain and options.kp is None and len(gains) != 1:
        found = (
            f"the recordings have {', '.join(f'{gain:g}' for gain in gains)}"
            if gains
            else "there are no recordings"
        )
        raise ConfigError(f"--format {form.name} holds the firmware's gain, and {found}: give one with --kp")
    kp = options.kp or (gains[0] if gains else usual_gain(held))
    return Servo(held, kp, kd=options.kd if form.gains else 0.0, supply_voltage=supply)
