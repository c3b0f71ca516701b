"""Pictures of measured and simulated motion, for ``stribeck evaluate --plot`` and ``stribeck simulate --plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stribeck.cli.evaluate.options import EvaluateOptions
from stribeck.cli.inputs import display_name, engine_of
from stribeck.evaluate.assessment import DEFAULT_STEP, Recordings, simulated, stepping_of
from stribeck.identify.servo.prediction import averaged, half_widths
from stribeck.model.arrays import Array
from stribeck.model.bench import gravity_torque
from stribeck.model.joint import Drive
from stribeck.model.log import Batch, Log
from stribeck.model.step import Simulation
from stribeck.report.animation import write_animation
from stribeck.report.figures import RECORDED, RunDrawing, draw_overview, draw_run
from stribeck.report.style import save_all

VELOCITY, MOTOR, LOAD, DUTY = "velocity [rad/s]", "motor torque\n[N m]", "load [N m]", "duty [1]"
"""Labels of the axes of further signals."""


def draw_runs(
    files: Sequence[tuple[Path, Drive]], logs: Sequence[Log], options: EvaluateOptions, folder: Path
) -> None:
    """Draw one figure per run, and one of all runs; or a moving picture of the benches."""
    recordings, step = Recordings(logs), options.step or DEFAULT_STEP
    integrator, simulator = engine_of(options.integrator)
    batch = recordings.batch(step, integrator or "exponential")
    motions, errors, bands = {}, {}, {}
    for path, file in files:
        label = display_name(path, options.params)
        stepping = stepping_of(file, step, options.reset_period, integrator)
        _, motions[label] = simulated(path, file, recordings, stepping, simulator, with_torques=True)
        if simulator is None:  # torques are those of the law of the file alone
            mean = averaged(
                file, batch, stepping.integrator, stepping.reset_period, motions[label].position
            ).mean
            motions[label] = motions[label]._replace(position=mean)
        errors[label] = batch.mean_absolute_errors(motions[label].position)
        widths = half_widths(file, batch, stepping.integrator, stepping.reset_period)
        if np.all(np.isfinite(widths)):
            bands[label] = widths
    drawings = []
    for r, (log, length) in enumerate(zip(logs, batch.lengths, strict=True)):
        drawings.append(
            RunDrawing(
                time=batch.time[:length],
                measured=batch.position[:length, r],
                goal=batch.goal[:length, r],
                torque_enable=batch.torque_enable[:length, r],
                simulated={label: motion.position[:length, r] for label, motion in motions.items()},
                title=log.name,
                errors={label: float(by_run[r]) for label, by_run in errors.items()},
                bands={label: widths[:length, r] for label, widths in bands.items()},
                panels=panels_of(batch, r, length, motions, log),
            )
        )
    write_drawings(drawings, folder)


def write_drawings(drawings: Sequence[RunDrawing], place: Path) -> None:
    """Write the figures into a folder, or all runs as one GIF."""
    if place.suffix == ".gif":
        write_animation(place, drawings)
        print(place)
        return
    pictures = {"overview": draw_overview(drawings)}
    for drawing in drawings:
        name = "".join(c if c.isprintable() and c != "/" else "_" for c in drawing.title)
        pictures[f"{'run_' * (name == 'overview')}{name}"] = draw_run(drawing)
    print(*save_all(pictures, place), sep="\n")


def panels_of(
    batch: Batch, r: int, length: int, motions: Mapping[str, Simulation], log: Log | None
) -> dict[str, dict[str, Array]]:
    """Speed, what the firmware does, and load of a run: as recorded, and as simulated.

    :param log: the recording; ``None`` of a run that was not recorded.
    """
    found: dict[str, dict[str, Array]] = {VELOCITY: {}, MOTOR: {}, LOAD: {}, DUTY: {}}
    for label, motion in motions.items():
        found[VELOCITY][label] = motion.velocity[:length, r]
        for name, signal in ((MOTOR, motion.motor_torque), (LOAD, motion.external_torque)):
            if signal is not None:
                found[name][label] = signal[:length, r]
    if log is not None:
        time = log.start + batch.time[:length]
        found[VELOCITY] = {RECORDED: batch.velocity[:length, r], **found[VELOCITY]}
        measured = gravity_torque(batch.pendulum, batch.position, 0.0)[:length, r]
        found[LOAD] = {RECORDED: np.asarray(measured), **found[LOAD]}
        if log.effort is not None:
            found[MOTOR] = {RECORDED: log.effort.at(time), **found[MOTOR]}
        if log.pwm is not None:
            found[DUTY][RECORDED] = log.pwm.at(time)
    return {name: signals for name, signals in found.items() if signals}
