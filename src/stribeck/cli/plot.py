"""``stribeck plot``: measured and simulated motion as pictures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from stribeck.cli.inputs import check_actuators, display_name, parameter_files_of, recordings_of
from stribeck.core.log import Log, batch_of
from stribeck.core.step import simulate
from stribeck.errors import ConfigError
from stribeck.io.files import check_writable
from stribeck.io.parameter_file import ParameterFile
from stribeck.report.figures import RunDrawing, draw_overview, draw_run, save


def run(arguments: argparse.Namespace) -> int:
    """One picture per run, and one of all runs."""
    if arguments.sim and not arguments.params:
        raise ConfigError("--sim draws simulations of parameter files: name them with --params")
    check_writable(arguments.output / "overview.png")
    files = parameter_files_of(arguments)
    logs = recordings_of(arguments)
    check_actuators(logs, files)
    chosen = files if arguments.sim else []
    for path in draw(arguments.output, logs, chosen, arguments.dt, arguments.reset_period):
        print(path)
    return 0


def draw(
    folder: Path,
    logs: Sequence[Log],
    files: Sequence[tuple[Path, ParameterFile]],
    dt: float,
    reset_period: float | None,
) -> list[Path]:
    """Draw runs with the simulations of parameter files into a folder, and name the pictures."""
    batch = batch_of([log.resample(dt) for log in logs])
    paths = [path for path, _ in files]
    motions, errors = {}, {}
    for path, file in files:
        label = display_name(path, paths)
        motions[label] = simulate(
            batch, file.actuator, file.law, file.values, reset_period=reset_period
        ).position
        errors[label] = batch.mean_absolute_errors(motions[label])
    drawings = []
    for r, log in enumerate(logs):
        length = len(log.resample(dt).time)
        drawings.append(
            RunDrawing(
                time=batch.time[:length],
                measured=batch.position[:length, r],
                goal=batch.goal[:length, r],
                torque_enable=batch.torque_enable[:length, r],
                simulated={label: motion[:length, r] for label, motion in motions.items()},
                title=log.name,
                errors={label: float(found[r]) for label, found in errors.items()},
            )
        )
    written = [folder / "overview.png"]
    save(draw_overview(drawings), written[0])
    for drawing in drawings:
        name = "".join(c if c.isprintable() and c != "/" else "_" for c in drawing.title)
        written.append(folder / f"{'run_' * (name == 'overview')}{name}.png")
        save(draw_run(**vars(drawing)), written[-1])
    return written
