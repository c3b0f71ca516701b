"""``stribeck evaluate``: errors of parameter files on recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.cli.fit.options import FitOptions
from stribeck.cli.inputs import (
    check_outputs,
    check_recorded,
    display_name,
    parameter_files_of,
    recordings_of,
    write_json,
)
from stribeck.cli.options import (
    ParameterFileOptions,
    Positive,
    RecordingOptions,
    SimulationOptions,
    group,
    option,
)
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import Recordings, Stepping, simulated, stepping_of
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive
from stribeck.identify.servo.prediction import COVERAGE, coverage_of, half_widths
from stribeck.model.joint import Drive

SCHEMA = 1

OTHERS = {".xml": "mjcf", ".urdf": "urdf", ".yaml": "isaaclab", ".yml": "isaaclab"}
"""Formats of other programs among ``--params``, by the end of the file name."""

_others = group("--params that are MJCF (.xml), URDF (.urdf) or Isaac Lab (.yaml) files")


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(SimulationOptions, RecordingOptions, ParameterFileOptions):
    """Options: parameter files and recordings."""

    json: Path | None = option("errors for scripts", None, "FILE")
    file_joint: str | None = _others("joint to read (default: the only one)", None, "NAME")
    file_kp: Positive | None = _others("firmware gain that their stiffness belongs to", None, "K")
    file_supply: Positive | None = _others("voltage of their torques (default: the nominal one)", None, "V")
    file_motor: Path | None = _others("parameter file with the motor, for URDF files", None, "P.json")


def run(options: EvaluateOptions) -> int:
    """Simulate every run with every file; print and write the errors."""
    check_outputs([options.json], options.params, options.logdir)
    own = tuple(path for path in options.params if path.suffix not in OTHERS)
    files = dict(parameter_files_of(replace(options, params=own)))
    files |= {path: _imported(path, options) for path in options.params if path.suffix in OTHERS}
    evaluate_files([(path, files[path]) for path in options.params], options)
    return 0


def _imported(path: Path, options: EvaluateOptions) -> Drive:
    """A file of another program, as ``stribeck import-params`` reads it."""
    from stribeck.exports.import_task import ImportTask
    from stribeck.exports.imports import imported

    if options.actuator is None:
        raise ConfigError(f"{path} does not name its servo: give --actuator, and --file-kp for its stiffness")
    actuator = load_actuator(options.actuator)
    motor = None if options.file_motor is None else read_drive(options.file_motor, actuator)
    of_file = (options.file_joint, options.file_kp, options.file_supply, motor)
    return imported(OTHERS[path.suffix], ImportTask(path, actuator, *of_file))


def evaluate_files(files: Sequence[tuple[Path, Drive]], options: EvaluateOptions | FitOptions) -> None:
    """Print and write the errors of parameter files on the recordings selected by the options."""
    logs = recordings_of(options, options.actuator)
    check_recorded(logs, files)
    recordings = Recordings(logs)
    results = [
        evaluation(
            path, file, recordings, stepping_of(file, options.dt, options.reset_period, options.integrator)
        )
        for path, file in files
    ]
    print_errors([path for path, _ in files], results)
    write_json(options.json, {"schema": SCHEMA, "results": results})


def evaluation(path: Path, file: Drive, recordings: Recordings, stepping: Stepping) -> dict[str, Any]:
    """Errors of one parameter file for each run [rad]."""
    batch, position = simulated(path, file, recordings, stepping)
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
        print(f"± half-width of the {100 * COVERAGE:g} % band of the motion (share of the samples within it)")


def _entry(entry: dict[str, Any]) -> str:
    error = f"{1e3 * entry['mae']:.2f}"
    if "band_coverage" not in entry:
        return error
    return f"{error} ± {1e3 * entry['band_half_width']:.0f} ({100 * entry['band_coverage']:.0f} %)"
