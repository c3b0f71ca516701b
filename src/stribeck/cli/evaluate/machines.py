"""``stribeck evaluate`` with drives of arms and robots: errors by recording and joint, pictures, report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.api.machines import Sources, predict_machine, quantity_of
from stribeck.cli.evaluate.options import EvaluateOptions
from stribeck.cli.inputs import display_name, warn, write_json
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.files.drives import Drives, read_drives
from stribeck.identify.common.machine_motion import MachineMotion, errors_of, overall_error

UNIT = {
    "torque": ("relative error of torque [%], rows with motion", 100.0),
    "position": ("root mean square error of position [mrad or mm]", 1e3),
}
"""Title of the table and factor of its numbers, by what is predicted."""


def machine_files(options: EvaluateOptions) -> list[tuple[Path, Drives]]:
    """The files among ``--params`` if they are drives of arms or robots; empty if none is.

    :raises ConfigError: for files of both kinds.
    """
    found = [(path, read_drives(path)) for path in options.params if path.suffix == ".json"]
    machines = [(path, content) for path, content in found if quantity_of(content) is not None]
    if machines and len(machines) < len(options.params):
        other = next(path for path in options.params if path not in dict(machines))
        raise ConfigError(
            f"{machines[0][0]} contains the drives of an arm or a robot, {other} does not: evaluate them separately"
        )
    return machines


def evaluate_machines(files: Sequence[tuple[Path, Drives]], options: EvaluateOptions) -> int:
    """Predict every recording with every file; print and write what is asked for."""
    if options.diagram is not None or options.output is not None:
        raise ConfigError(
            "--diagram and its --output need parameter files of servos, but this file contains the drives of an arm or a robot"
        )
    if options.plot is not None and options.plot.suffix == ".gif":
        raise ConfigError(f"{options.plot}: animations show servos only: for an arm or a robot name a folder")
    sources = Sources(options.model, options.machine, options.degrees, options.calibration)
    results = []
    predicted = {
        path: predict_machine(content, path, options.recordings, sources, warn) for path, content in files
    }
    for path, motions in predicted.items():
        if len(files) > 1:
            print(path)
        _print(motions)
        results.append(_result(path, motions))
    write_json(options.json, {"results": results})
    if options.plot is not None:
        _draw(predicted, options, options.plot)
    if options.report is not None:
        from stribeck.api.reporting import write_drives_report

        path, content = files[0]
        if len(files) > 1:
            raise ConfigError("--report needs one file of drives: name one")
        write_drives_report(options.report, path, content, predicted[path])
        print(f"{options.report} ({options.report.stat().st_size / 1e6:.1f} MB)")
    return 0


def _result(path: Path, motions: Sequence[MachineMotion]) -> dict[str, Any]:
    def entries(some: Sequence[MachineMotion]) -> dict[str, Any]:
        return {joint: error.to_json() for joint, error in errors_of(some).items()}

    return {
        "params": str(path),
        "quantity": motions[0].quantity,
        "per_joint": entries(motions),
        "per_file": [{"file": motion.name, "per_joint": entries([motion])} for motion in motions],
    }


def _print(motions: Sequence[MachineMotion]) -> None:
    """One row for each recording and one for all, a column for each joint and one for all joints together."""
    title, factor = UNIT[motions[0].quantity]
    several = len(motions[0].joints) > 1

    def cells(some: Sequence[MachineMotion]) -> list[str]:
        errors = errors_of(some).values()
        values = [error.relative if motions[0].quantity == "torque" else error.rms for error in errors]
        if several:
            values.append(overall_error(some))
        return ["-" if not np.isfinite(value) else f"{factor * value:.2f}" for value in values]

    rows = [[motion.name, *cells([motion])] for motion in motions]
    if len(motions) > 1:
        rows.append(["all recordings", *cells(motions)])
    print(title)
    print_table(["recording", *motions[0].joints, *(["all"] if several else [])], rows)


def _draw(predicted: dict[Path, list[MachineMotion]], options: EvaluateOptions, folder: Path) -> None:
    from stribeck.report.arm_figures import draw_machine_motion
    from stribeck.report.style import save_all

    pictures = {}
    for path, motions in predicted.items():
        before = f"{display_name(path, options.params)}-" if len(predicted) > 1 else ""
        for motion in motions:
            name = "".join(c if c.isprintable() and c != "/" else "_" for c in before + motion.name)
            pictures[name] = draw_machine_motion(motion)
    print(*save_all(pictures, folder), sep="\n")
