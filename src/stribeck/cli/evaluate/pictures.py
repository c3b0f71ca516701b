"""Pictures of measured and simulated motion, for ``stribeck evaluate --plot``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stribeck.cli.evaluate.options import EvaluateOptions
from stribeck.cli.inputs import display_name
from stribeck.evaluate.assessment import DEFAULT_STEP, Recordings, simulated, stepping_of
from stribeck.identify.servo.prediction import half_widths
from stribeck.model.joint import Drive
from stribeck.model.log import Log
from stribeck.report.figures import RunDrawing, draw_overview, draw_run
from stribeck.report.style import save_all


def draw_runs(
    files: Sequence[tuple[Path, Drive]], logs: Sequence[Log], options: EvaluateOptions, folder: Path
) -> None:
    """Draw one figure per run, and one of all runs."""
    recordings, step = Recordings(logs), options.step or DEFAULT_STEP
    batch = recordings.batch(step, options.integrator or "exponential")
    motions, errors, bands = {}, {}, {}
    for path, file in files:
        label = display_name(path, options.params)
        stepping = stepping_of(file, step, options.reset_period, options.integrator)
        _, motions[label] = simulated(path, file, recordings, stepping)
        errors[label] = batch.mean_absolute_errors(motions[label])
        widths = half_widths(file, batch, stepping.integrator, stepping.reset_period)
        if np.all(np.isfinite(widths)):
            bands[label] = widths
    drawings = []
    for r, log in enumerate(logs):
        length = len(log.resample(step).time)
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
    print(*save_all(pictures, folder), sep="\n")
