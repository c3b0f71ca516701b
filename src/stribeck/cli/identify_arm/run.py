"""Implements ``stribeck identify-arm``: fits, validation, files and tables."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stribeck.cli.compensation_file import COMPENSATION, launch_command, write_compensation
from stribeck.cli.exit_codes import DONE, INTERRUPTED, NOT_USABLE
from stribeck.cli.identify_arm.options import IdentifyArmOptions
from stribeck.cli.identify_arm.payload import CarriedPayload, carried_payload
from stribeck.cli.identify_arm.plots import draw
from stribeck.cli.inputs import check_outputs, warn, warn_of_seen, write_json
from stribeck.cli.progress import StageLine
from stribeck.cli.setup_robot.machine import set_up
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.files.drives import Drives, MachineParameters, write_drives
from stribeck.files.folders import write_atomically
from stribeck.files.robots import RobotConfig, read_robot
from stribeck.files.torque_drives import parameter_unit, torque_actuator
from stribeck.identify.arm.config import IdentificationConfig, Protocol, identification_config
from stribeck.identify.arm.friction.drives import joint_drives
from stribeck.identify.arm.friction.full_fit import FullFit
from stribeck.identify.arm.identify import NEED_URDF, USUAL, Identification, Scored, arm_of, standstill
from stribeck.identify.arm.joint_limits import torque_limits
from stribeck.identify.arm.least_squares import LinearFit
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.motion import held_out, usable_parts
from stribeck.identify.arm.plausibility import check_positions, check_torques
from stribeck.identify.arm.recordings import ArmRecording, read_recordings
from stribeck.identify.arm.regressor import Machine, machine_of, regressor_unit
from stribeck.identify.arm.residuals import explain
from stribeck.identify.arm.urdf import urdf_with_inertials
from stribeck.identify.arm.verdict import judge_filters, judge_fits
from stribeck.identify.common.noise import tunings
from stribeck.model.actuator import Actuator
from stribeck.model.estimate import estimates_to_json
from stribeck.model.verdict import Reason, Verdict

SCHEMA = 1

HELD_OUT = 1.0 / 3.0
"""Last part of each recording that is not fitted, where neither a machine's file nor recordings for validation are given."""

"""Name of the parameters of the compensation node in the output folder."""


def run(options: IdentifyArmOptions) -> int:
    """Fit, validate, and write the results."""
    started = time.perf_counter()
    robot = read_robot(options.config or _set_up(options))
    config = identification_config(robot)
    _check_outputs(options, robot)
    warn_of_seen(options.data, options.validate)
    machine = _machine(options, robot, config)
    runs = _read(options.data, machine, robot, config)
    others = _read(options.validate, machine, robot, config) if options.validate else []
    share = options.hold_out
    if share is None:
        share = 0.0 if options.config or options.validate else HELD_OUT
    if share > 0.0:
        parts = [held_out(run, config.protocol, share) for run in runs]
        runs, others = [first for first, _ in parts], [*others, *(last for _, last in parts)]
    runs, others = _parts(runs, config.protocol), _parts(others, config.protocol) if others else []
    line = StageLine(options.quiet)
    work, carried = _with_payload(
        options, Identification(machine, config, runs, others, line.tell, options.terms)
    )
    machine = work.machine
    if machine.arm is not None:
        check_positions([*runs, *others], machine.arm)
        check_torques([motion for motions in work.motions().values() for motion in motions], machine.arm)
    chosen = options.fits or tuple(name for name in USUAL if work.applies(name))
    unfit = [name for name in chosen if not work.applies(name)]
    if unfit:
        raise ConfigError(
            f"--fits {', '.join(unfit)}: {robot.path} names no URDF, which {', '.join(NEED_URDF)} need"
        )
    with threadpool_limits(limits=1, user_api="blas"), line:
        fits = _fits(work, chosen)
    if len(fits) < len(chosen):
        warn(f"interrupted: these are the results of {', '.join(fits)}")
    seconds = time.perf_counter() - started
    if len(fits) < len(chosen):
        verdict = Verdict((Reason("unfinished", "doubtful", f"interrupted after {', '.join(fits)}"),))
    else:
        verdict = judge_fits(fits, work.motions()["train"], config.neighbourhood)
        verdict = verdict.with_reasons(judge_filters(runs, config.protocol))
    written, verdict = _write(options, robot, work, fits, runs, verdict, carried)
    summary = _summary(robot, work, fits) | {"wall_seconds": seconds}
    summary |= verdict.to_json([run.name for run in (*runs, *others)])
    if carried is not None:
        summary["payload"] = carried.to_json()
    write_json(options.json, summary)
    if options.plots is not None:
        written += draw(options.plots, robot, fits)
    _print(robot, work, fits, seconds)
    if carried is not None:
        print(carried.line)
    if options.base_parameters:
        _print_base(robot, work, fits)
    print(*written, *verdict.lines(), sep="\n")
    for path in written:
        if path.name == COMPENSATION and verdict.use != "unusable":
            print(launch_command(path))
    if len(fits) < len(chosen):
        return INTERRUPTED
    return NOT_USABLE if options.strict and verdict.use != "usable" else DONE


def _fits(work: Identification, names: Sequence[str]) -> dict[str, Scored]:
    """The fits by name; after Ctrl-C those that are complete.

    :raises KeyboardInterrupt: if none is.
    """
    fits: dict[str, Scored] = {}
    try:
        for name in names:
            fits[name] = work.fit(name)
    except KeyboardInterrupt:
        if not fits:
            raise
    return fits


def _set_up(options: IdentifyArmOptions) -> str:
    """Write a machine's file by what URDF and recordings tell; returns its path."""
    if options.urdf is None:
        raise ConfigError(
            "neither --config nor --urdf: name a machine, or give the URDF from which its file is written"
        )
    path = (options.output or Path()) / "machine.yaml"
    set_up(options.urdf, options.data, path)
    return str(path)


def _machine(options: IdentifyArmOptions, robot: RobotConfig, config: IdentificationConfig) -> Machine:
    path = options.urdf or robot.find_urdf(options.data)
    arm = None if path is None else load_arm(path, robot.joints)
    joints = robot.joints or (() if arm is None else arm.joints)
    if not joints:
        raise ConfigError(f"{robot.path}: joints missing: name them, or give a urdf")
    return machine_of(joints, arm, config.couplings)


def _with_payload(
    options: IdentifyArmOptions, work: Identification
) -> tuple[Identification, CarriedPayload | None]:
    """The identification of the arm with its payload, known or identified, as part of the link that carries it."""
    if options.payload is None:
        if options.payload_link is not None:
            raise ConfigError("--payload-link without --payload: say what the arm carries, or `identify`")
        return work, None
    arm = work.machine.arm
    if arm is None:
        raise ConfigError("--payload: the machine has no URDF, to whose links it could belong")
    carried = carried_payload(options.payload, options.payload_link, work, arm)
    return work.of(carried.machine), carried


def _read(
    paths: Sequence[Path], machine: Machine, robot: RobotConfig, config: IdentificationConfig
) -> list[ArmRecording]:
    """Recordings as they are."""
    return read_recordings(paths, config.recording, machine.joints, robot.units)


def _parts(runs: Sequence[ArmRecording], protocol: Protocol) -> list[ArmRecording]:
    """Recordings, cut at their gaps."""
    parts, lines = usable_parts(runs, protocol)
    for line in lines:
        warn(line)
    return parts


def _check_outputs(options: IdentifyArmOptions, robot: RobotConfig) -> None:
    """Refuse outputs that cannot be written, or would replace a file that is read."""
    data = [path for path in (*options.data, *options.validate) if path.is_file()]
    outputs = [options.json]
    if options.output is not None:
        outputs.append(options.output / f"{robot.name}.urdf")
    if options.plots is not None:
        outputs.append(options.plots / "errors.png")
    check_outputs(outputs, [*data, robot.path, options.urdf])


def _write(
    options: IdentifyArmOptions,
    robot: RobotConfig,
    work: Identification,
    fits: Mapping[str, Scored],
    runs: Sequence[ArmRecording],
    verdict: Verdict,
    carried: CarriedPayload | None,
) -> tuple[list[Path], Verdict]:
    """Write the URDF of the last fit that has one, and the files of the compensation; returns the paths and the verdict."""
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
        units = work.machine.units(robot.units)
        actuators = [torque_actuator(units[joint]) for joint in work.machine.joints]
        drives = folder / f"{robot.name}.json"
        write_drives(drives, _drives(robot, fits["full"], fit, actuators, runs, verdict))
        urdf = written[0] if written else None
        written += [drives, folder / COMPENSATION]
        kept = write_compensation(
            written[-1],
            work.machine.joints,
            drives,
            urdf,
            torque_limits(fit.machine.arm, robot.limit("effort", len(actuators)), runs),
            tunings(
                [run.position for run in runs],
                [run.velocity for run in runs if run.velocity is not None],
                fit.choice.presliding,
            ),
            rate=min(1.0 / float(np.median(np.diff(run.time))) for run in runs),
            units=["rad" if units[joint] == "rotary" else "m" for joint in work.machine.joints],
            verdict=verdict,
            command="identify-arm",
            payload=None if carried is None else carried.payload,
        )
        if kept is not None:
            warn(f"the old {COMPENSATION} is now {kept}")
    if not written:
        warn(f"nothing to write into {folder}: only the fits consistent, log-cholesky and full give files")
    return written, verdict


def _drives(
    robot: RobotConfig,
    scored: Scored,
    fit: FullFit,
    actuators: Sequence[Actuator],
    runs: Sequence[ArmRecording],
    verdict: Verdict,
) -> Drives:
    """The joints, and inertial parameters and couplings of the arm."""
    joints = joint_drives(fit, actuators, runs, scored.errors)
    of_joints = {f"{name}_{joint}" for joint, drive in joints.items() for name in drive.stated}
    others = {name: one for name, one in scored.estimates(robot.units).items() if name not in of_joints}
    provenance = next(iter(joints.values())).provenance
    joints = {name: replace(drive, verdict=verdict.of(name)) for name, drive in joints.items()}
    return Drives(joints, MachineParameters(robot.name, others), verdict, provenance)


def _summary(robot: RobotConfig, work: Identification, fits: Mapping[str, Scored]) -> dict[str, Any]:
    """The content of the ``--json`` file."""
    summary: dict[str, Any] = {
        "schema": SCHEMA,
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
        elif isinstance(scored.fit, LinearFit):
            entry["condition"] = scored.fit.condition
        summary["fits"][name] = entry
    return summary


def _details(work: Identification, scored: Scored, fit: FullFit) -> dict[str, Any]:
    choice, steps = work.choice
    return {
        "law": choice.law.name,
        "asymmetric": choice.law.differs_by_direction,
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
    for rows, title in (("moving", "moving rows"), ("every_row", "every row")):
        table = []
        for name, scored in fits.items():
            for part, errors in scored.errors.items():
                cells = [errors[rows]["all"], *errors[rows]["per_joint"]]
                table.append([name, part, *("-" if e is None else f"{100 * e:.2f}" for e in cells)])
        print(f"relative error of torque [%], {title}")
        print_table(["fit", "runs", "all", *joints], table, left=2)
    if "full" in fits and isinstance(fit := fits["full"].fit, FullFit):
        _print_full(robot, work, fit)


def _print_base(robot: RobotConfig, work: Identification, fits: Mapping[str, Scored]) -> None:
    """Print base parameters as expressions of the standard parameters, with the values of the first linear fit."""
    fit = next(
        (s.fit for s in fits.values() if isinstance(s.fit, LinearFit) and s.fit.friction == "symmetric"),
        None,
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
    print(f"condition number of the fitted rows, columns scaled to one: {fit.condition:.3g}")
    print_table(["value", "standard deviation", "unit", "base parameter"], rows, left=4)


def _print_full(robot: RobotConfig, work: Identification, fit: FullFit) -> None:
    choice = fit.choice
    terms = [choice.law.title, *["asymmetric"] * choice.law.differs_by_direction]
    if choice.presliding is not None:
        terms.append(f"presliding {choice.presliding:g}")
    print(f"full: {', '.join(terms)}; states come {1e3 * choice.delay:.2g} ms after torques")
    rows, units = [], work.machine.units(robot.units)
    for k, element in enumerate(work.machine.elements):
        values = fit.values(element)
        for (name, value), deviation in zip(values.items(), fit.sigma[k], strict=True):
            unit = parameter_unit(name, units[element])
            rows.append([element, name, unit, f"{value:.5g}", f"{deviation:.2g}"])
    print_table(["joint", "parameter", "unit", "value", "standard deviation"], rows, left=3)
