"""``stribeck posterior --config``: mechanical parameters of an arm, from no measurement, inertias or torques."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.arm.design import machine_of
from stribeck.arm.least_squares import fit_rows
from stribeck.arm.model import ArmModel, load_arm
from stribeck.arm.motion import motion_of
from stribeck.arm.recordings import read_recordings
from stribeck.bayes.arm import ArmDraws, Posterior, infer, zero_shot
from stribeck.bayes.diagnostics import Summary, summarise, write_netcdf
from stribeck.bayes.knowledge import Datasheet, prior_named, reach_of, read_table
from stribeck.bayes.likelihood import InertiaPosterior, torque_posterior
from stribeck.bayes.measures import total_variation
from stribeck.bayes.network import inertia_base, inertia_regressor, link_frames
from stribeck.bayes.robots import total_mass
from stribeck.cli.posterior import Array, Watch, print_summary
from stribeck.errors import ConfigError, RecordingError
from stribeck.io.files import write_atomically
from stribeck.io.identification_config import identification_config
from stribeck.io.robot_config import RobotConfig, read_robot
from stribeck.report.bayes_figures import draw_densities, draw_intervals, save

SCHEMA = 1
PRIOR_DRAWS = 2000
POSES = 30
"""Random poses whose inertias are told without measured ones."""


def run_arm(arguments: argparse.Namespace) -> int:
    """Read, sample, write."""
    started = time.perf_counter()
    robot = read_robot(arguments.config)
    arm = _arm(arguments, robot)
    posterior, measured = _posterior(arguments, robot, arm)
    before = zero_shot(posterior, PRIOR_DRAWS, arguments.seed)
    after = None
    if measured is not None or arguments.data:
        watch = Watch(
            arguments.quiet, lambda x: ArmDraws(posterior, x).named(arm.joints)[1], arguments.effective
        )
        after = infer(
            posterior,
            measured,
            arguments.draws,
            arguments.seed + 1,
            sampler=arguments.sampler,
            progress=watch,
            enough=watch.enough,
        )
    names, values = before.named(arm.joints) if after is None else after.named(arm.joints)
    summary = summarise(names, values)
    seconds = time.perf_counter() - started
    _write(arguments, robot, arm, before, after, summary, measured, seconds)
    mode = "zero-shot: the prior's prediction" if after is None else f"{after.divergences} divergences"
    print(f"{robot.title}, prior {arguments.prior}: {mode}")
    print_summary(summary, seconds)
    return 0


def _arm(arguments: argparse.Namespace, robot: RobotConfig) -> ArmModel:
    folders = [*arguments.data, *([] if arguments.inertias is None else [arguments.inertias.parent])]
    path = arguments.urdf or robot.find_urdf(folders)
    if path is None:
        raise ConfigError(f"{robot.path} names no URDF that is here: give --urdf")
    return load_arm(path, robot.joints)


def _posterior(
    arguments: argparse.Namespace, robot: RobotConfig, arm: ArmModel
) -> tuple[Posterior, Array | None]:
    if arguments.data and arguments.inertias is not None:
        raise ConfigError("--data and --inertias are two kinds of measurements: give one")
    rotors = None if arguments.rotors is None else np.array(arguments.rotors)
    if rotors is not None and len(rotors) != len(arm):
        raise ConfigError(f"--rotors: expected {len(arm)} inertias, found {len(rotors)}")
    if rotors is None and (arguments.prior != "cad" or not arguments.data):
        raise ConfigError(
            "--rotors missing: inertias of the rotors on the joints' side, of the motors' datasheet times gear ratio squared"
        )
    sheet = Datasheet(
        arguments.total_mass or total_mass(arm),
        arguments.reach or reach_of(arm),
        np.full(len(arm), 1.0) if rotors is None else rotors,
    )
    table = read_table(arguments.table) if arguments.prior == "empirical" else None
    prior = prior_named(arguments.prior, arm, sheet, table)
    frames = link_frames(arm)
    if arguments.data:
        config = identification_config(robot)
        machine = machine_of(arm.joints, arm, config.couplings)
        runs = read_recordings(arguments.data, config.recording, machine.joints, robot.units)
        motions = [motion_of(run, config.protocol) for run in runs]
        return (
            torque_posterior(
                prior,
                frames,
                machine,
                motions,
                config.protocol.rest,
                lambda motion: fit_rows(motion, config.protocol),
                discrepancy=not arguments.independent,
                rotors_known=rotors is not None,
            ),
            None,
        )
    if arguments.inertias is None:
        poses = np.random.default_rng(arguments.seed).uniform(-np.pi, np.pi, (POSES, len(arm)))
        rows = inertia_regressor(arm, poses).reshape(POSES * len(arm), -1)
        return InertiaPosterior(prior, frames, rows), None
    poses, axes, measured = read_inertias(arguments.inertias, len(arm))
    rows = inertia_regressor(arm, poses)[np.arange(len(poses)), axes]
    return InertiaPosterior(prior, frames, rows), measured


def read_inertias(path: Path, joints: int) -> tuple[Array, Any, Array]:
    """Poses (N, n) [rad], axes (N,) from 0, and inertias (N,) [kg m^2] of a CSV file.

    :raises RecordingError: for a file that is not such a table.
    """
    try:
        rows = np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path}: cannot read inertias: {error}") from None
    if rows.shape[1:] != (joints + 2,) or len(rows) == 0 or not np.all(np.isfinite(rows)):
        raise RecordingError(
            f"{path}: expected rows of {joints} joint positions, the axis and its inertia; found {rows.shape[-1]} columns"
        )
    axes, measured = rows[:, joints].astype(int) - 1, rows[:, joints + 1]
    if (
        np.any(axes != rows[:, joints] - 1)
        or np.any((axes < 0) | (axes >= joints))
        or np.any(measured <= 0.0)
    ):
        raise RecordingError(f"{path}: axes must be 1 to {joints} and inertias positive")
    return rows[:, :joints], axes, measured


def _write(
    arguments: argparse.Namespace,
    robot: RobotConfig,
    arm: ArmModel,
    before: ArmDraws,
    after: ArmDraws | None,
    summary: Summary,
    measured: Array | None,
    seconds: float,
) -> None:
    names, prior = before.named(arm.joints)
    draws = None if after is None else after.named(arm.joints)[1]
    base = inertia_base(arm)
    known = before if after is None else after
    lambdas = summarise(base.expressions(), known.standard @ base.projection.T)
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": "arm",
        "machine": robot.name,
        "prior": arguments.prior,
        "mode": "zero-shot" if after is None else "inference",
        "converged": summary.converged,
        "parameters": summary.json,
        "base_parameters": lambdas.json,
        "wall_seconds": seconds,
    }
    if after is not None:
        content["divergences"] = after.divergences
        pairs = zip(names, _flat(prior).T, _flat(after.named(arm.joints)[1]).T, strict=True)
        content["total_variation"] = {name: total_variation(first, then) for name, first, then in pairs}
    if arguments.json is not None:
        write_atomically(arguments.json, json.dumps(content, indent=1) + "\n")
    if arguments.netcdf is not None:
        values = prior if draws is None else draws
        kept = None if draws is None else {name: prior[..., k] for k, name in enumerate(names)}
        write_netcdf(arguments.netcdf, {name: values[..., k] for k, name in enumerate(names)}, kept)
    if arguments.plots is not None:
        _draw(arguments.plots, arm, before, after, base.projection, measured)


def _draw(
    folder: Path,
    arm: ArmModel,
    before: ArmDraws,
    after: ArmDraws | None,
    projection: Array,
    measured: Array | None,
) -> None:
    names, prior = before.named(arm.joints)
    draws = None if after is None else _flat(after.named(arm.joints)[1])
    last = [k for k, name in enumerate(names) if name.endswith(f"_{arm.joints[-1]}")]
    own = None if draws is None else draws[:, last]
    title = [names[k] for k in last]
    written = [save(draw_densities(title, _flat(prior)[:, last], own), folder / "posterior.png")]

    def drawn(draws: ArmDraws | None, rows: Array) -> Array | None:
        return None if draws is None else _flat(draws.inertias(rows))

    kinds: list[tuple[str, Array, Array | None]] = [("base parameters", projection, None)]
    if isinstance(before.posterior, InertiaPosterior):
        kinds.append(("inertias of the axes", before.posterior.regressor, measured))
    for (words, rows, seen), name in zip(kinds, ("base_parameters", "inertias"), strict=False):
        figure = draw_intervals(words, "kg m²", _flat(before.inertias(rows)), drawn(after, rows), seen)
        written.append(save(figure, folder / f"{name}.png"))
    for path in written:
        print(path)


def _flat(draws: Array) -> Array:
    """Draws of all chains (C S, P)."""
    return draws.reshape(-1, draws.shape[-1])
