"""``stribeck plot``: figures of measured and simulated motion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stribeck.cli.inputs import check_recorded, display_name, parameter_files_of, recordings_of
from stribeck.cli.options import (
    ParameterFileOptions,
    RecordingOptions,
    SimulationOptions,
    TimeStep,
    group,
    option,
)
from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import Recordings, simulated, stepping_of
from stribeck.files.folders import check_writable
from stribeck.identify.servo.prediction import half_widths


@dataclass(frozen=True, kw_only=True)
class PlotOptions(SimulationOptions, RecordingOptions, ParameterFileOptions):
    """Options: recordings, and parameter files to simulate them with."""

    params: tuple[Path, ...] = option("parameter files", (), "FILE")
    dt: TimeStep = group("simulation")("time step (default: 0.005)", 0.005, "S")
    sim: bool = option("draw the simulations of the parameter files", False)
    output: Path = option("folder for the pictures", metavar="DIR")


def run(options: PlotOptions) -> int:
    """Draw one figure per run, and one of all runs."""
    from stribeck.report.figures import RunDrawing, draw_overview, draw_run
    from stribeck.report.style import save_all

    if options.sim and not options.params:
        raise ConfigError("--sim draws simulations of parameter files: name them with --params")
    check_writable(options.output / "overview.png")
    files = parameter_files_of(options)
    logs = recordings_of(options, options.actuator)
    check_recorded(logs, files, supply=False)
    recordings = Recordings(logs)
    batch = recordings.batch(options.dt, options.integrator or "exponential")
    motions, errors, bands = {}, {}, {}
    for path, file in files if options.sim else ():
        label = display_name(path, options.params)
        stepping = stepping_of(file, options.dt, options.reset_period, options.integrator)
        _, motions[label] = simulated(path, file, recordings, stepping)
        errors[label] = batch.mean_absolute_errors(motions[label])
        widths = half_widths(file, batch, stepping.integrator, stepping.reset_period)
        if np.all(np.isfinite(widths)):
            bands[label] = widths
    drawings = []
    for r, log in enumerate(logs):
        length = len(log.resample(options.dt).time)
        drawings.append(
            RunDrawing(
                time=batch.time[:length],
                measured=batch.position[:length, r],
                goal=batch.goal[:length, r],
                torque_enable=batch.torque_enable[:length, r],
                simulated={label: motion[:length, r] for label, motion in motions.items()},
                title=log.name,
                errors={label: float(by_run[r]) for label, by_run in errors.items()},
                bands={label: widths[:length, r] for label, widths in bands.items()},
            )
        )
    pictures = {"overview": draw_overview(drawings)}
    for drawing in drawings:
        name = "".join(c if c.isprintable() and c != "/" else "_" for c in drawing.title)
        pictures[f"{'run_' * (name == 'overview')}{name}"] = draw_run(drawing)
    print(*save_all(pictures, options.output), sep="\n")
    return 0
