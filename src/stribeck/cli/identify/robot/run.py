"""What ``stribeck identify robot`` does: read, fit, predict, print and write."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.api.robot import content_of, rms
from stribeck.cli.compensation_file import COMPENSATION, launch_command, write_compensation
from stribeck.cli.exit_codes import DONE, NOT_USABLE
from stribeck.cli.identify.robot.drift import report_drift
from stribeck.cli.identify.robot.options import IdentifyRobotOptions
from stribeck.cli.inputs import check_outputs, warn, warn_of_seen, write_json
from stribeck.cli.table import print_table
from stribeck.exports.robot_draws import lines_of, with_draw_sizes
from stribeck.files.drives import Drives, write_drives
from stribeck.identify.common.noise import tunings
from stribeck.identify.robot.drives import robot_drives
from stribeck.identify.robot.identify import RobotFit, RunScore, identify_robot, left_out
from stribeck.identify.robot.recordings import RobotRun, read_runs
from stribeck.identify.robot.tree import load_tree
from stribeck.identify.robot.verdict import judge_robot
from stribeck.model.estimate import Estimate, Status
from stribeck.model.verdict import Verdict
from stribeck.recordings.readable import read_usable

MARKS: dict[Status, str] = {"not determined": "*", "at bound": "†"}
"""Marks of values in the table by their status."""


def run(options: IdentifyRobotOptions) -> int:
    """Identify the drives, print errors and parameters, write the requested files."""
    started = time.perf_counter()
    summary = options.output / "robot.json" if options.output else None
    check_outputs([options.json, summary], [options.model, *options.recordings, *options.validate])
    warn_of_seen(options.recordings, options.validate)
    excluded, same, goal_joints = map(_words, (options.exclude, options.same, options.goal_joints))

    def note(text: str) -> None:
        if not options.quiet:
            print(f"[{time.perf_counter() - started:6.1f} s] {text}", file=sys.stderr, flush=True)

    tree = load_tree(options.model)

    def read(paths: Sequence[Path]) -> list[RobotRun]:
        return read_runs(paths, tree, excluded, options.degrees, goal_joints, options.calibration)

    train = read(options.recordings)
    validation = read_usable(options.validate, read, warn) if options.validate else []
    for run in (*train, *validation):
        for text in run.notes:
            note(f"{run.name}: {text}")
    if options.since:
        return report_drift(options.since, options, tree, train, excluded, note)
    setting: dict[str, Any] = {
        "law": options.law,
        "terms": options.terms,
        "excluded": excluded,
        "same": same,
        "polish": not options.no_polish,
        "play": options.backlash,
    }
    fit = identify_robot(tree, train, validation, **setting, note=note)
    alone = left_out(fit, note) if options.leave_one_out else ()
    _print(fit, alone)
    verdict = judge_robot(fit)
    runs = [score.run.name for score in (*fit.train, *fit.validation)]
    content = content_of(fit, alone) | verdict.to_json(runs)
    content["seconds"] = time.perf_counter() - started
    write_json(options.json, content, allow_nan=False)
    if summary:
        from stribeck.cli.identify.robot.plots import write_motion, write_pictures

        note("computes how wide draws of the parameters have to be")
        drives = with_draw_sizes(robot_drives(fit, verdict), fit.problem, fit.x)
        print(*lines_of(drives), *_write(options.model, fit, verdict, drives, summary), sep="\n")
        write_motion(fit, summary.parent)
        write_pictures(fit, alone, summary.parent)
    print(*verdict.lines(), sep="\n")
    return NOT_USABLE if options.strict and verdict.use != "usable" else DONE


def _write(model: Path, fit: RobotFit, verdict: Verdict, drives: Drives, path: Path) -> list[str]:
    """Write the file of drives and the parameters of the compensation; returns their paths, and how to start it."""
    positions = [run.position[:, fit.problem.joints] for run in fit.problem.runs]
    write_drives(path, drives)
    parameters = path.with_name(COMPENSATION)
    loaded = "motor" in fit.problem.kind.law.inputs
    kept = write_compensation(
        parameters,
        fit.joints,
        path,
        model if model.suffix == ".urdf" else None,
        fit.tree.limits[list(fit.problem.joints)],
        tunings(positions),
        rate=1.0 / fit.problem.runs[0].dt,
        units=["rad" if drive.actuator.units == "rotary" else "m" for drive in drives.joints.values()],
        verdict=verdict,
        command="identify robot",
        effort_meaning="motor" if loaded else "none",
    )
    if kept is not None:
        warn(f"{COMPENSATION} already existed; the old file is now {kept}")
    start = [] if verdict.use == "unusable" else [launch_command(parameters)]
    return [str(path), str(parameters), *start]


def _words(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for text in given for word in text.split(",") if word)


def _cell(one: Estimate) -> str:
    """Value, half of its interval, and a mark if it is not determined or at a bound."""
    half = "" if one.interval is None else f" ± {0.5 * (one.interval[1] - one.interval[0]):.2g}"
    return f"{one.value:.4g}{half}{MARKS.get(one.status, '')}"


def _print(fit: RobotFit, alone: Sequence[RunScore]) -> None:
    """Errors by joint and run, parameters, and what the data leave open."""
    units = {name: one.unit for found in fit.estimates.values() for name, one in found.items()}
    names = list(units)
    rows = []
    for index, joint in enumerate(fit.joints):
        error = float(np.sqrt(np.mean([score.squares[index] for score in fit.train])))
        values = [fit.estimates[joint].get(name) for name in names]
        rows.append([joint, f"{error * 1e3:.2f}", *("" if each is None else _cell(each) for each in values)])
    heads = [name if units[name] in ("1", "") else f"{name} [{units[name]}]" for name in names]
    print_table(["joint", "rms [mrad]", *heads], rows)
    print(f"±: half of the 95 % interval; {', '.join(f'{mark} {status}' for status, mark in MARKS.items())}")
    for title, scores in (("train", fit.train), ("validation", fit.validation), ("left out", alone)):
        for score in scores:
            late = f", goals delayed by {score.rows_late:+d} rows" if score.rows_late else ""
            flaw = f" ({score.run.flaw})" if score.run.flaw else ""
            print(f"{title:10s} {score.run.name}: {np.sqrt(score.squares.mean()) * 1e3:.2f} mrad{late}{flaw}")
        if rms(scores) is not None:
            print(f"{title:10s} all: {(rms(scores) or 0.0) * 1e3:.2f} mrad")
    for name, population in fit.populations.items():
        print(
            f"equal drives: {name} {population.mean:.4g} ± {population.half_width:.2g}, standard deviation between joints {population.scatter:.2g}"
        )
    print(
        "changes of parameters that hide each other, and the relative increase of the error (the values hold together, not one by one; "
        "draws vary them together):"
    )
    for doubt in fit.doubts:
        told = ", ".join(f"{name} {change:+.1%}" for name, change in doubt.direction.items())
        print(
            f"  {doubt.joint}: {told}: {doubt.error_rise:.1%} if all change, up to {doubt.alone:.1%} if only one of them changes"
        )
