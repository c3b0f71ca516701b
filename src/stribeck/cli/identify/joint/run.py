"""Implements ``stribeck identify joint``: reads tables, prints the law with intervals and verdict, writes files."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from stribeck.api.joint import joint_result
from stribeck.api.stages import StageLine
from stribeck.cli.exit_codes import DONE, NOT_USABLE
from stribeck.cli.identify.joint.options import IdentifyJointOptions
from stribeck.cli.inputs import check_outputs, warn, warn_of_seen, write_json
from stribeck.cli.table import print_table
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import write_drive
from stribeck.identify.common.quantiles import normal_quantile
from stribeck.identify.joint.identify import JointResult
from stribeck.identify.joint.joint_file import ACTUATOR, joint_file
from stribeck.identify.joint.model import OF_ANGLE
from stribeck.identify.joint.run import JointRun
from stribeck.identify.joint.sweeps import friction_points
from stribeck.identify.joint.uncertainty import spread_of
from stribeck.identify.joint.verdict import WORDS, FileError, parts_of
from stribeck.model.estimate import Estimate

SMALLEST = 1e-3
"""Smallest velocity of the curve, relative to the largest."""


def run(options: IdentifyJointOptions) -> int:
    """Identify, print and write."""
    started = time.perf_counter()
    check_outputs([options.output, options.json, options.plot], [*options.recordings, *options.validate])
    warn_of_seen(options.recordings, options.validate)
    with StageLine(options.quiet) as line:
        result = joint_result(
            options.recordings,
            options.validate,
            law=options.law,
            terms=options.terms,
            columns=options.columns,
            joint=options.joint,
            fixed=options.set or {},
            tell=line.tell,
            note=warn,
        )
    seconds = time.perf_counter() - started
    write_json(options.json, {**result.to_json(), "seconds": seconds}, allow_nan=False)
    written = [path for path in (options.output, options.plot) if path is not None]
    if options.output is not None:
        write_drive(options.output, joint_file(result, load_actuator(ACTUATOR)))
    if options.plot is not None:
        _draw(result, options.plot)
    _print(result, seconds)
    print(*written, *result.verdict.lines(), sep="\n")
    return NOT_USABLE if options.strict and result.verdict.use != "usable" else DONE


def _print(result: JointResult, seconds: float) -> None:
    structure = result.fit.structure
    rows = sum(len(run.time) for run in result.runs)
    parts = [structure.law.title, *structure.terms]
    print(f"{', '.join(parts)}: fitted to {rows} rows, {seconds:.1f} s")
    if result.plateaus:
        print(
            f"constant-velocity sweep: {len(result.plateaus)} plateaus; rows outside the plateaus are not fitted"
        )
    table = [_estimate_row(name, one) for name, one in result.uncertainty.estimates.items()]
    print_table(["parameter", "value", "± 95 %", "unit", "status"], table)
    errors = [_error_row("fitted", one) for one in result.train]
    errors += [_error_row("validation", one) for one in result.validation]
    errors += [
        [WORDS[kind].replace(", left out of the fit,", " left out"), "", "", f"{100.0 * error:.1f}"]
        for kind, error in result.left_out.items()
    ]
    print_table(["error", "file", "rms [N m]", "of the torque [%]"], errors, left=2)


def _estimate_row(name: str, one: Estimate) -> list[str]:
    half = "" if one.interval is None else f"{0.5 * (one.interval[1] - one.interval[0]):.2g}"
    status = (
        one.status if not one.reason or one.status == "loosely determined" else f"{one.status}: {one.reason}"
    )
    return [name, f"{one.value:.5g}", half, one.unit, status]


def _error_row(what: str, one: FileError) -> list[str]:
    return [what, one.file, f"{one.rms:.4g}", f"{100.0 * one.relative:.1f}"]


def _draw(result: JointResult, path: Path) -> None:
    from stribeck.report.joint_figures import JointDrawing, draw_joint, evenly
    from stribeck.report.style import save

    fit, runs = result.fit, result.runs
    _, angle = parts_of(fit, runs)
    inertia = fit.values.get("inertia", 0.0)
    rest = angle + np.concatenate([run.rigid + inertia * run.acceleration for run in runs])
    velocity = evenly(SMALLEST * fit.frame.speed, fit.frame.speed)
    steady = [_steady(velocity[velocity < 0.0][::-1], result), _steady(velocity[velocity > 0.0], result)]
    alone = replace(fit, structure=fit.structure.without(OF_ANGLE))
    friction = [alone.torque(run)[1:] for run in steady]
    half = [normal_quantile() * spread_of(alone, result.uncertainty, run)[1:] for run in steady]
    speeds = [run.velocity[1:] for run in steady]
    curve = np.stack([np.concatenate(part) for part in (speeds, friction, half)], axis=1)
    curve = curve[np.argsort(curve[:, 0])]
    points = np.stack(friction_points(result.plateaus), axis=1)
    points[:, 2] *= normal_quantile()
    moving = np.concatenate([run.velocity for run in runs])
    torque = np.concatenate([run.torque for run in runs])
    longest = max(runs, key=lambda run: len(run.time))
    title = f"{longest.file}: {', '.join((fit.structure.law.title, *fit.structure.terms))}"
    run = longest.time, longest.torque, fit.torque(longest)
    save(draw_joint(JointDrawing(title, moving, torque - rest, points, curve, *run)), path)


def _steady(velocity: np.ndarray, result: JointResult) -> JointRun:
    """Rows of even motion in one direction at the middle of the travel, after friction has developed."""
    frame, count = result.fit.frame, len(velocity) + 1
    zero = np.zeros(count)
    far = 100.0 * (frame.upper - frame.lower) * np.sign(velocity[0])
    position = np.full(count, frame.centre)
    position[0] -= far
    heat = np.full(count, frame.temperature)
    first = np.concatenate([velocity[:1], velocity])
    return JointRun("", zero, position, first, zero, zero, zero, zero, zero + 1.0, heat)
