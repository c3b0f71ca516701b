"""``stribeck evaluate``: errors of parameter files on recordings."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stribeck.cli.inputs import (
    check_actuators,
    check_distinct,
    display_name,
    parameter_files_of,
    recordings_of,
    warn_of_supply,
)
from stribeck.cli.table import print_table
from stribeck.fit.assessment import Recordings, simulated, stepping_of
from stribeck.io.files import check_writable, write_atomically
from stribeck.io.parameter_file import ParameterFile

SCHEMA = 1


def run(arguments: argparse.Namespace) -> int:
    """Simulate every run with every file, as the file says, and compare."""
    check_distinct([arguments.json], arguments.params, arguments.logdir)
    if arguments.json is not None:
        check_writable(arguments.json)
    evaluate_files(parameter_files_of(arguments), arguments)
    return 0


def evaluate_files(files: Sequence[tuple[Path, ParameterFile]], arguments: argparse.Namespace) -> None:
    """Print the errors of parameter files on the recordings that the options name, and write them."""
    logs = recordings_of(arguments)
    check_actuators(logs, files)
    warn_of_supply(logs, files[0][1].actuator)
    recordings = Recordings(logs)
    results = [
        evaluation(path, file, recordings, arguments.dt, arguments.reset_period) for path, file in files
    ]
    print_errors([path for path, _ in files], results)
    if arguments.json is not None:
        write_atomically(arguments.json, json.dumps({"schema": SCHEMA, "results": results}, indent=1) + "\n")


def evaluation(
    path: Path, file: ParameterFile, recordings: Recordings, dt: float | None, reset_period: float | None
) -> dict[str, Any]:
    """Errors of one parameter file, run by run [rad].

    :param dt, reset_period: as the file was fitted, if they are not given.
    """
    batch, position = simulated(path, file, recordings, stepping_of(file, dt, reset_period))
    errors = batch.mean_absolute_errors(position).tolist()
    return {
        "params": str(path),
        "model": file.law.name,
        "mae": sum(errors) / len(errors),
        "per_log": [
            {"log": log.name, "kp": log.setup.kp, "trajectory": log.trajectory, "mae": error}
            for log, error in zip(recordings.logs, errors, strict=True)
        ],
    }


def print_errors(paths: Sequence[Path], results: Sequence[dict[str, Any]]) -> None:
    """A table of mean absolute errors: runs down, parameter files across."""
    header = ["mean absolute error [mrad]", *(display_name(path, paths) for path in paths)]
    rows = [
        [entries[0]["log"], *(f"{1e3 * entry['mae']:.2f}" for entry in entries)]
        for entries in zip(*(result["per_log"] for result in results), strict=True)
    ]
    print_table(header, [*rows, ["mean of all runs", *(f"{1e3 * result['mae']:.2f}" for result in results)]])
