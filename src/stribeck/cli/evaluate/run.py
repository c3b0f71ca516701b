"""Implements ``stribeck evaluate``: errors of parameter files on recordings, pictures, diagram, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.cli.evaluate.machines import evaluate_machines, machine_files
from stribeck.cli.evaluate.options import EvaluateOptions
from stribeck.cli.identify.servo.options import IdentifyServoOptions
from stribeck.cli.inputs import (
    check_outputs,
    check_recorded,
    display_name,
    engine_of,
    parameter_files_of,
    recordings_of,
    write_json,
)
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import Recordings, Simulator, Stepping, simulated, stepping_of
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, read_drives
from stribeck.identify.servo.prediction import COVERAGE, averaged, coverage_of, half_widths
from stribeck.model.joint import Drive
from stribeck.model.log import Log

OTHERS = {".xml": "mjcf", ".urdf": "urdf", ".yaml": "isaaclab", ".yml": "isaaclab"}
"""Formats of other programs among ``--params``, by the end of the file name."""


def run(options: EvaluateOptions) -> int:
    """Simulate every run with every file; print and write what is asked for."""
    _check(options)
    if options.report is not None and not options.recordings:
        return _report_of_file(options, options.report)
    if options.recordings and (machines := machine_files(options)):
        return evaluate_machines(machines, options)
    if options.model or options.machine or options.degrees or options.calibration:
        raise ConfigError(
            "--model, --machine, --degrees and --calibration are valid only with the drives of an arm or a robot"
        )
    own = tuple(path for path in options.params if path.suffix not in OTHERS)
    files = dict(parameter_files_of(replace(options, params=own)))
    files |= {path: _imported(path, options) for path in options.params if path.suffix in OTHERS}
    given = [(path, files[path]) for path in options.params]
    logs = recordings_of(options, options.servo) if options.recordings else []
    if given and logs:
        check_recorded(logs, given)
    if options.diagram is not None:
        from stribeck.cli.evaluate.diagram import draw_diagrams

        draw_diagrams(given, logs, options, options.diagram)
    if not logs:
        return 0
    if given and (options.json is not None or not (options.plot or options.report or options.diagram)):
        _evaluate(given, logs, options)
    if options.plot is not None:
        from stribeck.cli.evaluate.pictures import draw_runs

        draw_runs(given, logs, options, options.plot)
    if options.report is not None:
        _report(given, logs, options, options.report)
    return 0


def _check(options: EvaluateOptions) -> None:
    """Refuse contradictions, and outputs that cannot be written, before anything is computed."""
    if not options.recordings and options.diagram is None and options.report is None:
        raise ConfigError(
            "recordings missing: name them before the options (they can be omitted only for --diagram, and for --report of one file)"
        )
    if not options.recordings and options.report is not None and len(options.params) != 1:
        raise ConfigError(
            "a report without recordings needs exactly one parameter file: name one, or name recordings before the options"
        )
    for word in ("plot", "json"):
        if not options.recordings and getattr(options, word) is not None:
            raise ConfigError(f"--{word} needs recordings: name them before the options")
    if not options.params and (
        options.plot is None or options.report is not None or options.diagram is not None
    ):
        raise ConfigError("--params missing: name the parameter files (only --plot works without them)")
    twice = len({path.resolve() for path in options.params}) < len(options.params)
    if options.report is not None and twice:
        raise ConfigError("--params names a file twice; name each once")
    animated = options.plot is not None and options.plot.suffix == ".gif"
    pictures = options.plot if options.plot is None or animated else options.plot / "overview.png"
    if options.report is not None:
        from stribeck.api.reporting import check_report

        check_report(options.report)
    if options.output is not None and (options.diagram is None or not options.recordings):
        raise ConfigError(
            "--output is the parameter file that is fitted to torques measured for --diagram: give recordings and --diagram"
        )
    outputs = [options.json, options.report, options.diagram, options.output, pictures]
    check_outputs(outputs, options.params, options.recordings)


def _report_of_file(options: EvaluateOptions, path: Path) -> int:
    """Write the report on a file of drives alone."""
    from stribeck.api.reporting import write_drives_report

    servo = None if options.servo is None else load_actuator(options.servo)
    write_drives_report(path, options.params[0], read_drives(options.params[0], servo))
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
    return 0


def _report(
    files: Sequence[tuple[Path, Drive]], logs: Sequence[Log], options: EvaluateOptions, path: Path
) -> None:
    from stribeck.api.reporting import write_report

    named = [(display_name(file, options.params), file, drive) for file, drive in files]
    if options.integrator == "mujoco":
        raise ConfigError("--integrator mujoco is not possible with --report: remove one of them")
    write_report(path, named, logs, options.step, options.reset_period, options.integrator)
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


def _imported(path: Path, options: EvaluateOptions) -> Drive:
    """A file of another program, as ``stribeck import-model`` reads it."""
    from stribeck.exports.import_task import ImportTask
    from stribeck.exports.imports import imported

    if options.servo is None:
        raise ConfigError(
            f"{path} does not name its servo: give --servo, and --kp to which its stiffness belongs"
        )
    actuator = load_actuator(options.servo)
    motor = None if options.motor is None else read_drive(options.motor, actuator)
    of_file = (options.file_joint, options.kp, options.supply, motor)
    return imported(OTHERS[path.suffix], ImportTask(path, actuator, *of_file))


def evaluate_files(files: Sequence[tuple[Path, Drive]], options: IdentifyServoOptions) -> None:
    """Print and write the errors of parameter files on the recordings selected by the options."""
    logs = recordings_of(options, options.servo)
    check_recorded(logs, files)
    _evaluate(files, logs, options)


def _evaluate(
    files: Sequence[tuple[Path, Drive]], logs: Sequence[Log], options: EvaluateOptions | IdentifyServoOptions
) -> None:
    recordings = Recordings(logs)
    integrator, simulator = engine_of(options.integrator)
    results = []
    for path, file in files:
        stepping = stepping_of(file, options.step, options.reset_period, integrator)
        results.append(evaluation(path, file, recordings, stepping, simulator))
    print_errors([path for path, _ in files], results)
    write_json(options.json, {"results": results})


def evaluation(
    path: Path, file: Drive, recordings: Recordings, stepping: Stepping, simulator: Simulator | None = None
) -> dict[str, Any]:
    """Errors of one parameter file for each run [rad]."""
    batch, motion = simulated(path, file, recordings, stepping, simulator)
    position = motion.position
    best = batch.mean_absolute_errors(position).tolist()
    # Another program simulates the law of the file alone.
    others = 0 if file.prediction is None or simulator is not None else len(file.prediction.members)
    if others:
        position = averaged(file, batch, stepping.integrator, stepping.reset_period, position).mean
    errors = batch.mean_absolute_errors(position).tolist()
    widths = half_widths(file, batch, stepping.integrator, stepping.reset_period)
    bands: list[dict[str, float]] = [{} for _ in recordings.logs]
    if np.all(np.isfinite(widths)):
        shares, means = coverage_of(position - batch.position, widths, batch), np.mean(widths, axis=0)
        bands = [
            {"band_half_width": float(mean), "band_coverage": share}
            for mean, share in zip(means, shares, strict=True)
        ]
    return {
        "params": str(path),
        "model": file.law.name,
        "mae": sum(errors) / len(errors),
        **({"averaged": 1 + others, "mae_best": sum(best) / len(best)} if others else {}),
        "per_log": [
            {"log": log.name, "kp": log.setup.kp, "trajectory": log.trajectory, "mae": error, **band}
            for log, error, band in zip(recordings.logs, errors, bands, strict=True)
        ],
    }


def print_errors(paths: Sequence[Path], results: Sequence[dict[str, Any]]) -> None:
    """Print a table of mean absolute errors, with the 90 % band of the motion and the share of samples in it.

    One row per run, one column per parameter file.
    """
    header = ["mean absolute error [mrad]", *(display_name(path, paths) for path in paths)]
    rows = [
        [entries[0]["log"], *map(_entry, entries)]
        for entries in zip(*(result["per_log"] for result in results), strict=True)
    ]
    print_table(header, [*rows, ["mean of all runs", *(f"{1e3 * result['mae']:.2f}" for result in results)]])
    if any("band_coverage" in one for result in results for one in result["per_log"]):
        print(
            f"± half-width of the {100 * COVERAGE:g} % band of the motion (in parentheses: share of the samples within it)"
        )
    for path, result in zip(paths, results, strict=True):
        if "averaged" in result:
            print(
                f"{display_name(path, paths)}: mean motion of {result['averaged']} fits that predict about as well; the law of the file alone has {1e3 * result['mae_best']:.2f} mrad"
            )


def _entry(entry: dict[str, Any]) -> str:
    error = f"{1e3 * entry['mae']:.2f}"
    if "band_coverage" not in entry:
        return error
    return f"{error} ± {1e3 * entry['band_half_width']:.0f} ({100 * entry['band_coverage']:.0f} %)"
