"""What ``stribeck identify robot`` does: read, fit, predict, print and write."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.api.robot import content_of, rms
from stribeck.cli.compensation_file import COMPENSATION, launch_command, write_compensation
from stribeck.cli.exit_codes import DONE, NOT_USABLE
from stribeck.cli.identify.robot.options import IdentifyRobotOptions
from stribeck.cli.inputs import check_outputs, warn, warn_of_seen, words_of, write_json
from stribeck.cli.table import print_table
from stribeck.exports.robot_draws import lines_of, with_draw_sizes
from stribeck.files.drives import Drives, read_drives, write_drives
from stribeck.identify.common.noise import tunings
from stribeck.identify.robot.drift import FALSE_ALARMS, JointDrift, friction_over_runs
from stribeck.identify.robot.drives import robot_drives
from stribeck.identify.robot.identify import RobotFit, RunScore, identify_robot, left_out, usable
from stribeck.identify.robot.recordings import RobotRun, read_runs
from stribeck.identify.robot.tree import RobotTree, load_tree
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
    excluded, same, goal_joints = map(words_of, (options.exclude, options.same, options.goal_joints))

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
        return _report_drift(options.since, options, tree, train, excluded, note)
    chosen: dict[str, Any] = {"law": options.law, "terms": options.terms, "excluded": excluded, "same": same}
    chosen |= {"polish": not options.no_polish, "backlash": options.backlash}
    fit = identify_robot(tree, train, validation, **chosen, note=note)
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
    write_compensation(
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
        effort_meaning="motor" if fit.problem.kind.law.load_inputs else "none",
    )
    start = [] if verdict.use == "unusable" else [launch_command(parameters)]
    return [str(path), str(parameters), *start]


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


def _report_drift(
    since: Path,
    options: IdentifyRobotOptions,
    tree: RobotTree,
    runs: list[RobotRun],
    excluded: tuple[str, ...],
    note: Callable[[str], None],
) -> int:
    """Print friction by joint and run, draw it, and write the requested files."""
    picture = options.output / "drift.png" if options.output else None
    check_outputs([options.json, picture], [options.model, since, *options.recordings])
    good = usable(runs, note)
    names = [run.name for run in good]
    found = friction_over_runs(tree, good, read_drives(since), excluded)
    rows = []
    for each in found:
        values = [
            f"{value:.3f}±{1.96 * width:.3f}"
            for value, width in zip(each.friction, each.deviation, strict=True)
        ]
        change = f"{_change(each):+.0%} since {names[each.since]}" if each.since is not None else "none"
        rows.append([each.joint, f"{each.speed:.2f}", f"{each.earlier[0]:.3f}", *values, change])
    print("friction [N m] at the given speed [rad/s], and its change as far as it is statistically certain")
    print_table(["joint", "speed", "earlier", *names, "change"], rows)
    unsure = [each.joint for each in found if not np.isfinite(each.earlier[1])]
    if unsure:
        print(
            f"not tested: {', '.join(unsure)}. The earlier fit states no intervals for these joints, which need at least three runs"
        )
    print(
        f"probability of a false alarm in any joint, for any number of later runs: at most {FALSE_ALARMS:.0%}"
    )
    content: dict[str, Any] = {"runs": names, "false_alarms": FALSE_ALARMS}
    content["drift"] = {each.joint: _drift_of(each, names) for each in found}
    write_json(options.json, content, allow_nan=False)
    if picture:
        from stribeck.report.robots import draw_drift
        from stribeck.report.style import save

        picture.parent.mkdir(parents=True, exist_ok=True)
        save(draw_drift(found, names), picture)
    return 0


def _change(drift: JointDrift) -> float:
    """Relative change of the mean over all runs, weighted by their variances."""
    weight = drift.deviation**-2
    return float(np.sum(weight * drift.friction) / weight.sum() / max(drift.earlier[0], 1e-12) - 1.0)


def _drift_of(drift: JointDrift, names: list[str]) -> dict[str, Any]:
    wide = 1.96 * drift.deviation
    intervals = np.stack([drift.friction - wide, drift.friction + wide], axis=1)
    spread = drift.earlier[1]
    return {
        "speed": drift.speed,
        "earlier": drift.earlier[0],
        "earlier_deviation": spread if np.isfinite(spread) else None,
        "friction": drift.friction.tolist(),
        "intervals": intervals.tolist(),
        "log_evidence": drift.evidence.tolist(),
        "changed": drift.since is not None,
        "since": None if drift.since is None else names[drift.since],
        "change": _change(drift),
    }
