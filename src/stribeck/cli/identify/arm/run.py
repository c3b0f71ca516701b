"""Implements ``stribeck identify arm``: fits, validation, files and tables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.api.arm import ArmQuestion, ArmTask, arm_task
from stribeck.api.stages import StageLine
from stribeck.cli.compensation_file import COMPENSATION, launch_command, write_compensation_of_arm
from stribeck.cli.data.describe import describe_machine
from stribeck.cli.exit_codes import DONE, INTERRUPTED, NOT_USABLE
from stribeck.cli.identify.arm.options import IdentifyArmOptions
from stribeck.cli.identify.arm.plots import draw
from stribeck.cli.inputs import check_outputs, warn, warn_of_seen, write_json
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.files.drives import write_drives
from stribeck.files.folders import write_atomically
from stribeck.files.robots import RobotConfig, read_robot
from stribeck.identify.arm.elasticity import Elasticity
from stribeck.identify.arm.friction.drives import element_estimates, largest_friction
from stribeck.identify.arm.friction.full_fit import FullFit
from stribeck.identify.arm.friction.width import resolved_speeds
from stribeck.identify.arm.identify import Identification, Scored, arm_of, standstill
from stribeck.identify.arm.least_squares import LinearFit
from stribeck.identify.arm.regressor import regressor_unit
from stribeck.identify.arm.residuals import explain
from stribeck.identify.arm.urdf import urdf_with_inertials
from stribeck.model.estimate import Estimate, estimates_to_json
from stribeck.model.verdict import Verdict


def run(options: IdentifyArmOptions) -> int:
    """Fit, validate, and write the results."""
    started = time.perf_counter()
    robot = read_robot(options.machine or _set_up(options))
    _check_outputs(options, robot)
    warn_of_seen(options.recordings, options.validate)
    line = StageLine(options.quiet)
    question = ArmQuestion(**{entry.name: getattr(options, entry.name) for entry in fields(ArmQuestion)})
    task = arm_task(question, robot, line.tell, warn)
    with line:
        fits = task.fits()
    if len(fits) < len(task.chosen):
        warn(f"interrupted: the results are those of the finished fits, {', '.join(fits)}")
    verdict, carried, work, robot = task.verdict(fits), task.carried, task.work, task.robot
    elastic = task.elasticity(fits)
    seconds = time.perf_counter() - started
    written, verdict = _write(options, task, fits, verdict, elastic)
    summary = _summary(robot, work, fits) | {"wall_seconds": seconds}
    summary |= verdict.to_json(task.names) | {"left_out": dict(task.held)}
    if elastic:
        summary["elasticity"] = {joint: one.to_json() for joint, one in elastic.items()}
    if carried is not None:
        summary["payload"] = carried.to_json()
    write_json(options.json, summary)
    if options.plot is not None:
        written += draw(options.plot, robot, fits)
    _print(robot, work, fits, seconds)
    _print_elasticity(elastic)
    if carried is not None:
        print(carried.line)
    if options.base_parameters:
        _print_base(robot, work, fits)
    starts = [launch_command(path) for path in written if path.name == COMPENSATION]
    print(*written, *(starts if verdict.use != "unusable" else []), *verdict.lines(), sep="\n")
    if len(fits) < len(task.chosen):
        return INTERRUPTED
    return NOT_USABLE if options.strict and verdict.use != "usable" else DONE


def _set_up(options: IdentifyArmOptions) -> str:
    """Write a machine's file by what URDF and recordings tell; returns its path."""
    if options.model is None:
        raise ConfigError(
            "--machine or --model is needed: name a machine, or give the URDF for which a machine file is to be written"
        )
    path = (options.output or Path()) / "machine.yaml"
    describe_machine(options.model, options.recordings, path).check_complete(str(path))
    return str(path)


def _check_outputs(options: IdentifyArmOptions, robot: RobotConfig) -> None:
    """Refuse outputs that cannot be written, or would replace a file that is read."""
    data = [path for path in (*options.recordings, *options.validate) if path.is_file()]
    outputs = [options.json]
    if options.output is not None:
        outputs.append(options.output / f"{robot.name}.urdf")
    if options.plot is not None:
        outputs.append(options.plot / "errors.png")
    check_outputs(outputs, [*data, robot.path, options.model])


def _write(
    options: IdentifyArmOptions,
    task: ArmTask,
    fits: Mapping[str, Scored],
    verdict: Verdict,
    elastic: Mapping[str, Elasticity],
) -> tuple[list[Path], Verdict]:
    """Write the URDF of the last fit that has one, and the files of the compensation; returns the paths and the verdict."""
    robot, carried = task.robot, task.carried
    arms = [arm for scored in fits.values() if (arm := arm_of(scored.fit)) is not None]
    inertials = arms[-1].inertials if arms else np.zeros(0)
    if arms and carried is not None:
        inertials, reasons = carried.taken_off(arms[-1])
        verdict = verdict.with_reasons(reasons)
    folder = options.output
    if folder is None:
        return [], verdict
    written = []
    if arms:
        written.append(folder / f"{robot.name}.urdf")
        write_atomically(written[0], urdf_with_inertials(arms[-1].path, arms[-1].joints, inertials))
    if "full" in fits and isinstance(fit := fits["full"].fit, FullFit):
        drives = folder / f"{robot.name}.json"
        write_drives(drives, task.drives(fits, verdict, elastic))
        written += [drives, folder / COMPENSATION]
        of_arm = robot, fit.machine, task.runs, fit.choice.presliding
        write_compensation_of_arm(
            written[-1],
            drives,
            written[0] if arms else None,
            *of_arm,
            verdict=verdict,
            command="identify arm",
            payload=None if carried is None else carried.payload,
            friction=largest_friction(fit, [m for part in fits["full"].motions.values() for m in part]),
        )
    if not written:
        warn(
            f"nothing was written to {folder}: only the fits consistent, log-cholesky and full produce files"
        )
    return written, verdict


def _summary(robot: RobotConfig, work: Identification, fits: Mapping[str, Scored]) -> dict[str, Any]:
    """The content of the ``--json`` file."""
    summary: dict[str, Any] = {
        "machine": robot.name,
        "joints": list(work.machine.joints),
        "base_parameters": list(work.base.expressions()),
        "unidentifiable": list(work.base.unidentifiable),
        "fits": {},
    }
    for name, scored in fits.items():
        entry: dict[str, Any] = {
            "status": scored.fit.status.value,
            "parameters": scored.parameters,
            "estimates": estimates_to_json(scored.estimates(robot.units)),
            **scored.errors,
        }
        if isinstance(scored.fit, FullFit):
            entry |= _details(work, scored, scored.fit)
            entry["resolved_from"] = _resolved(work, scored)
        elif isinstance(scored.fit, LinearFit):
            entry |= {"condition": scored.fit.condition, "noise_covariance": scored.fit.spread.tolist()}
            if scored.fit.hausman_p is not None:
                entry["hausman_p"] = scored.fit.hausman_p
        summary["fits"][name] = entry
    return summary


def _details(work: Identification, scored: Scored, fit: FullFit) -> dict[str, Any]:
    choice, steps = work.choice
    return {
        "law": choice.law.name,
        "asymmetric": "asymmetric" in choice.law.optional_terms,
        "delay": choice.delay,
        "presliding": choice.presliding,
        "prior": choice.prior,
        "correlated_rows": choice.correlated,
        "selection": dict(steps),
        "standstill": {name: standstill(fit, motions) for name, motions in scored.motions.items()},
        "residual": {
            name: {m.name: explain(m, p) for m, p in zip(motions, scored.predictions[name], strict=True)}
            for name, motions in scored.motions.items()
        },
    }


def _print(robot: RobotConfig, work: Identification, fits: Mapping[str, Scored], seconds: float) -> None:
    joints = work.machine.joints
    print(f"{robot.title}: {len(work.base)} base parameters of {len(work.base.names)}, {seconds:.1f} s")
    for rows, title in (("moving", "rows with motion"), ("every_row", "every row")):
        table = []
        for name, scored in fits.items():
            for part, errors in scored.errors.items():
                cells = [errors[rows]["all"], *errors[rows]["per_joint"]]
                table.append([name, part, *("-" if e is None else f"{100 * e:.2f}" for e in cells)])
        print(f"relative error of torque [%], {title}")
        print_table(["fit", "runs", "all", *joints], table, left=2)
    for name, scored in fits.items():
        if isinstance(scored.fit, LinearFit) and scored.fit.rejected:
            print(
                f"{name}: an error of the model depends on the motion (Hausman's test, p = {scored.fit.hausman_p:.2g}), "
                "and correlations would carry it to other joints; these are the values of the weighted fit"
            )
    if "full" in fits and isinstance(fit := fits["full"].fit, FullFit):
        _print_full(robot, work, fit)
        _print_resolved(robot, work, fits["full"])


def _resolved(work: Identification, scored: Scored) -> dict[str, float]:
    """Speeds from which on the friction of each joint is resolved by the torque filter; none without one."""
    torques = work.config.protocol.effort_filter
    motions = [motion for part in scored.motions.values() for motion in part]
    return {} if torques is None else resolved_speeds(motions, torques.cutoff)


def _print_resolved(robot: RobotConfig, work: Identification, scored: Scored) -> None:
    """Name the joints whose friction is not resolved in a part of the rows in motion."""
    protocol, units = work.config.protocol, work.machine.units(robot.units)
    coarse = {joint: speed for joint, speed in _resolved(work, scored).items() if speed > protocol.moving}
    if coarse and protocol.effort_filter is not None:
        speeds = (
            f"{joint} {speed:.2g} {'rad/s' if units[joint] == 'rotary' else 'm/s'}"
            for joint, speed in coarse.items()
        )
        print(
            f"full: the torques are filtered at {protocol.effort_filter.cutoff:g} Hz, so friction at rest and the Stribeck term depend on the filter; "
            f"friction is not resolved below {', '.join(speeds)}"
        )


def _print_base(robot: RobotConfig, work: Identification, fits: Mapping[str, Scored]) -> None:
    """Print base parameters as expressions of the standard parameters, with the values of the first linear fit."""
    fit = next(
        (s.fit for s in fits.values() if isinstance(s.fit, LinearFit) and s.fit.friction == "symmetric"), None
    )
    if fit is None:
        print("base parameters")
        print(*work.base.expressions(), sep="\n")
        return
    units = [regressor_unit(name, work.machine.units(robot.units)) for name in fit.named]
    rows = [
        [f"{value:.5g}", f"{deviation:.2g}", unit, expression]
        for value, deviation, unit, expression in zip(
            fit.values, fit.sigma, units, fit.base.expressions(), strict=True
        )
    ]
    print(f"condition number of the fitted rows, with columns scaled to length one: {fit.condition:.3g}")
    print_table(["value", "standard deviation", "unit", "base parameter"], rows, left=4)


def _print_full(robot: RobotConfig, work: Identification, fit: FullFit) -> None:
    choice = fit.choice
    terms = [choice.law.title, *choice.law.optional_terms]
    if choice.presliding is not None:
        terms.append(f"presliding {choice.presliding:g}")
    if choice.delay:
        terms[-1] += f"; measured states lag the torques by {1e3 * choice.delay:.2g} ms"
    print(f"full: {', '.join(terms)}")
    rows, units = [], work.machine.units(robot.units)
    for element in work.machine.elements:
        estimates = element_estimates(fit, element, units[element])
        for name, one in estimates.items():
            interval = "" if one.interval is None else "{:.4g} to {:.4g}".format(*one.interval)
            rows.append([element, name, one.unit, f"{one.value:.5g}", interval, one.status])
    print_table(["joint", "parameter", "unit", "value", "95 % interval", "status"], rows, left=3)


def _print_elasticity(joints: Mapping[str, Elasticity]) -> None:
    """Print stiffness, backlash and errors of the twist of joints with two encoders; nothing without any."""
    if not joints:
        return
    rows, reasons = [], []
    for joint, one in joints.items():
        if one.reason:
            reasons.append(f"the stiffness of {joint} is not identifiable: {one.reason}")
        if one.found is None:
            continue
        known, backlash = one.found.stiffness, one.found.estimates.get("backlash")
        cells = [joint, "-" if known is None else f"{known.value:.4g}", _interval(known)]
        cells += [
            "-" if backlash is None else f"{1e3 * backlash.value:.3g}",
            f"{1e3 * one.found.estimates['skew'].value:.3g}",
        ]
        for name in ("train", "validation"):
            cells += [f"{1e3 * value:.3g}" for value in one.rms.get(name, ())] or ["-", "-"]
        rows.append(cells)
    if rows:
        print("elasticity, from encoders on motors and links")
        head = ["joint", "stiffness [N m/rad]", "95 % interval", "backlash [mrad]", "skew [ms]"]
        errors = ["twist [mrad]", "error [mrad]", "validation: twist", "error"]
        print_table([*head, *errors], rows)
    print(*reasons, sep="\n", end="\n" if reasons else "")


def _interval(known: Estimate | None) -> str:
    return "-" if known is None or known.interval is None else "{:.4g} to {:.4g}".format(*known.interval)
