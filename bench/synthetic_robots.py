"""Recovery and coverage of ``identify-robot`` on synthetic robots, simulated in MuJoCo with known parameters.

Each repetition draws drives (armature, friction of the law, encoder bias, command delay; stiffness where gains are not given;
backlash), moves the robot of a model file through multisines of all joints, quantises its positions, and identifies it. With backlash or
elastic gears, motors are inertias of their own that push their links through a gap or a spring. With ``--lugre`` friction is that of bristles
(``plants.friction``), with ``--ripple`` it varies over the angle; neither is a law that is identified. With ``--step 0.004`` the plant is
simulated with steps that change the motion. Printed are the median error of the parameters that count as determined, the share of 95 % intervals that hold the truth, those of loosely determined ones included, and both
for the friction in even motion at stated speeds and loads (:mod:`steady_friction`).

    python bench/synthetic_robots.py --model go2.xml --repetitions 40 [--law m6] [--backlash 0.002] [--noise 0.002] [--json F]
    python bench/synthetic_robots.py --model so101_new_calib.xml --drives servos --law m6 --backlash 0.01
    python bench/synthetic_robots.py --model so101_new_calib.xml --drives servos --lugre --ripple 0.05 --elastic 300
    python bench/synthetic_robots.py --pool F F …
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import paths  # noqa: F401
import mujoco
import numpy as np
from scipy.signal import lfilter

from plants.friction import FrictionValues, LuGre
from steady_friction import drawn_friction, even_friction, points, relative_width
from stribeck.identify.robot.drives import robot_drives
from stribeck.identify.robot.identify import RobotFit, identify_robot
from stribeck.identify.robot.problem import CUTOFF, motion_of
from stribeck.identify.robot.recordings import RobotRun
from stribeck.identify.robot.rollout import Array, mean_goals
from stribeck.identify.robot.tree import RobotTree, load_tree
from stribeck.identify.robot.verdict import judge_robot
from stribeck.model.law import LAWS, friction_budget
from stribeck.model.terms import FRICTION_PARAMETERS

STEP = 1e-4
"""Usual step of the simulation of a synthetic robot [s]."""

CORRELATION = 0.05
"""Time constant of the noise [s]."""

CONTACT = 0.2
"""Natural frequency of the contact between motor and link, times the step [rad]."""

ORIGIN = np.zeros(1)
"""Where friction that varies over the angle has its mean [rad]."""

VISCOUS = "friction_viscous"

PLACES = 50
"""Angles over which friction is averaged, evenly among those of the recorded rows."""

SHARES = {
    "friction_stribeck": (0.2, 0.6),
    "dtheta_stribeck": (0.1, 0.4),
    "load_friction_base": (0.03, 0.12),
    "load_friction_stribeck": (0.02, 0.08),
    "load_friction_motor": (0.03, 0.12),
    "load_friction_external": (0.03, 0.12),
    "load_friction_motor_stribeck": (0.02, 0.08),
    "load_friction_external_stribeck": (0.02, 0.08),
    "load_friction_motor_quad": (0.002, 0.01),
    "load_friction_external_quad": (0.002, 0.01),
    "alpha": (1.0, 1.0),
}
"""Ranges of the terms of richer laws; the first is a share of the Coulomb friction."""


@dataclass(frozen=True)
class Drives:
    """Ranges from which drives are drawn, and how they are recorded.

    :param dt: distance of rows [s].
    :param quantum: of positions [rad].
    :param known: whether the recording holds the gains.
    :param geared: whether the encoder is at the motor, before the backlash, not at the link.
    """

    dt: float
    seconds: float
    quantum: float
    known: bool
    geared: bool
    ranges: dict[str, tuple[float, float]]
    derivative: float


DRIVES = {
    "legs": Drives(
        *(0.005, 6.0, 3e-5, True, True),
        {
            "stiffness": (30.0, 30.0),
            "armature": (0.01, 0.04),
            "friction_base": (0.1, 0.6),
            "friction_viscous": (0.05, 0.3),
            "delay": (0.002, 0.012),
            "bias": (-0.02, 0.02),
        },
        1.0,
    ),
    "servos": Drives(
        *(0.02, 20.0, 1.534e-3, False, False),
        {
            "stiffness": (14.0, 22.0),
            "armature": (0.02, 0.035),
            "friction_base": (0.05, 0.2),
            "friction_viscous": (0.6, 1.0),
            "delay": (0.01, 0.05),
            "bias": (-0.02, 0.02),
        },
        0.0,
    ),
}
"""Like those of the Go2 and the SO-101."""


@dataclass(frozen=True)
class Plant:
    """What the joints of a robot are, besides their drives.

    :param law: of the friction, whose terms are drawn.
    :param lugre: whether friction is that of bristles with these values.
    :param backlash: largest width of the gap [rad].
    :param elastic: least stiffness of gears [N m/rad], 0 for rigid ones; joints have up to three times as much.
    :param ripple: largest share by which dry friction varies over the angle.
    :param step: of the simulation [s]; a large one is the plant of a user who simulates with large steps.
    """

    law: str
    lugre: bool = False
    backlash: float = 0.0
    elastic: float = 0.0
    ripple: float = 0.0
    step: float = STEP


def drawn(generator: np.random.Generator, drives: Drives, plant: Plant, count: int) -> dict[str, Array]:
    """Drives of all joints; those of law M3 are the same as without the terms of others."""
    law = plant.law
    truth = {name: generator.uniform(*drives.ranges[name], count) for name in ("armature", "friction_base")}
    truth["friction_viscous"] = generator.uniform(*drives.ranges["friction_viscous"], count)
    load = generator.uniform(*SHARES["load_friction_base"], count)
    truth |= {name: generator.uniform(*drives.ranges[name], count) for name in ("delay", "bias", "stiffness")}
    for name in LAWS[law].parameter_names:
        if name not in truth:
            truth[name] = generator.uniform(*SHARES[name], count) if name != "load_friction_base" else load
    if "friction_stribeck" in truth:
        truth["friction_stribeck"] *= truth["friction_base"]
    truth["backlash"] = generator.uniform(0.5, 1.0, count) * plant.backlash
    truth["elastic"] = generator.uniform(1.0, 3.0, count) * plant.elastic
    truth["ripple"] = generator.uniform(0.0, 1.0, count) * plant.ripple
    truth["ripple_wave"] = generator.uniform(2.0, 60.0, count)
    truth["presliding"] = 10.0 ** generator.uniform(-3.7, -2.5, count)
    return truth


def bristles(truth: dict[str, Array]) -> LuGre:
    """Friction with the values of a law, whose way before it slips is ``presliding`` [rad]."""
    base = truth["friction_base"]
    return LuGre(
        FrictionValues(
            coulomb=base,
            stiction=base + truth["friction_stribeck"],
            viscous=truth["friction_viscous"],
            stribeck_velocity=truth["dtheta_stribeck"],
            presliding=truth["presliding"],
            inertia=truth["armature"],
            asymmetry=0.0 * base,
            ripple=truth["ripple"],
            ripple_wave=truth["ripple_wave"],
            load_share=truth["load_friction_base"],
        )
    )


def steady(
    plant: Plant, truth: dict[str, Array], joint: int, v: Array, load: Array, places: Array = ORIGIN
) -> Array:
    """Friction of a joint against an even motion at speeds and loads (P,) [N m], mean over angles."""
    values = {name: each[joint] for name, each in truth.items()}
    wave = 1.0 + values["ripple"] * np.mean(np.sin(values["ripple_wave"] * places))
    if not plant.lugre:
        law = LAWS[plant.law]
        dry = [
            name for name in law.parameter_names if name != VISCOUS and not FRICTION_PARAMETERS[name].shape
        ]
        return even_friction(law, values | {name: wave * values[name] for name in dry}, v, load, ORIGIN)
    weight = np.exp(-((v / values["dtheta_stribeck"]) ** 2))
    level = wave * (values["friction_base"] + values["friction_stribeck"] * weight)
    return np.asarray(level + values[VISCOUS] * abs(v) + values["load_friction_base"] * abs(load))


def rows_of(drives: Drives, step: float) -> tuple[int, int]:
    """Rows of a run, and steps between them: at least one."""
    inner = max(round(drives.dt / step), 1)
    return round(drives.seconds / (inner * step)), inner


def moved(
    tree: RobotTree,
    drives: Drives,
    plant: Plant,
    truth: dict[str, Array],
    generator: np.random.Generator,
    name: str,
    noise: float,
) -> RobotRun:
    """A run along multisines of all joints, with correlated noise [rad]; before the first row the first goal holds."""
    count, (rows, inner) = len(tree.names), rows_of(drives, plant.step)
    lower, upper = (np.clip(edge, -1.5, 1.5) for edge in tree.range)
    amplitude = np.minimum(0.25 * (upper - lower), 0.4)
    dt = inner * plant.step
    times = np.arange(rows) * dt
    parts = [
        np.sin(2.0 * np.pi * frequency * times[:, None] + generator.uniform(0.0, 6.3, count))
        for frequency in (0.2, 0.53, 1.1, 2.3)
    ]
    goal = 0.5 * (lower + upper) + amplitude * sum(parts) / 2.0
    wanted = mean_goals(goal, truth["delay"] + 0.5 * plant.step, inner, dt) - truth["bias"]
    follow = _with_gears if truth["backlash"].any() or truth["elastic"].any() else _rigid
    position = follow(tree, drives, plant, truth, wanted, goal[0])[::inner]
    gains = (truth["stiffness"], np.full(count, drives.derivative)) if drives.known else (None, None)
    kept = np.exp(-dt / CORRELATION)
    error = generator.normal(0.0, noise, position.shape)
    error[1:] *= np.sqrt(1.0 - kept**2)
    recorded = (
        np.round((position + lfilter([1.0], [1.0, -kept], error, axis=0)) / drives.quantum) * drives.quantum
    )
    return RobotRun(Path(name), dt, goal, recorded, *gains)


def _prepared(tree: RobotTree, start: Array, step: float) -> Any:
    model, data = tree.model, mujoco.MjData(tree.model)
    model.opt.timestep, model.opt.integrator = step, int(mujoco.mjtIntegrator.mjINT_EULER)
    model.opt.gravity[:] = (0.0, 0.0, -9.80665)
    data.qpos[:] = start
    return data


def _wave(truth: dict[str, Array], angle: Array) -> Array:
    """Factor of dry friction at angles (J,)."""
    return np.asarray(1.0 + truth["ripple"] * np.sin(truth["ripple_wave"] * angle))


def _rigid(
    tree: RobotTree, drives: Drives, plant: Plant, truth: dict[str, Array], wanted: Array, start: Array
) -> Array:
    """Links that move as their motors: MuJoCo's own dry friction, implicit damping (T, J)."""
    model, data, law, step = tree.model, _prepared(tree, start, plant.step), LAWS[plant.law], plant.step
    friction = bristles(truth) if plant.lugre else None
    damping = truth["friction_viscous"] * (friction is None) + drives.derivative
    model.dof_armature[:], model.dof_damping[:] = truth["armature"] - 0.5 * step * damping, damping
    model.dof_solimp[:] = (0.9999, 0.9999, 0.001, 0.5, 2.0)
    model.dof_solref[:] = (2.0 * step, 1.0)
    model.dof_frictionloss[:] = 1.0 if friction is None else 0.0
    mujoco.mj_setConst(model, data)
    data.qpos[:] = start
    position, previous = np.empty_like(wanted), np.zeros(len(start))
    dry = {**truth, "friction_viscous": 0.0}
    for k, goal in enumerate(wanted):
        position[k] = data.qpos
        motor = np.clip(truth["stiffness"] * (goal - data.qpos), -tree.limits, tree.limits)
        external = tree.external(data, (data.qvel - previous) / step)
        previous = data.qvel.copy()
        data.qfrc_applied[:] = motor
        if friction is None:
            acting = motor - drives.derivative * data.qvel
            budget = friction_budget(law, dry, acting, external, data.qvel)[0]
            model.dof_frictionloss[:] = budget * _wave(truth, data.qpos)
        else:
            friction.modulate(data.qpos, external)
            data.qfrc_applied[:] -= friction.torque(data.qvel.copy(), step)
        mujoco.mj_step(model, data)
    for values in (model.dof_armature, model.dof_damping, model.dof_frictionloss):
        values[:] = 0.0
    return position


def _with_gears(
    tree: RobotTree, drives: Drives, plant: Plant, truth: dict[str, Array], wanted: Array, start: Array
) -> Array:
    """Motors with friction, and links that they push through a gap or a spring; the trapezoidal rule for damping (T, J)."""
    model, data, law, step = tree.model, _prepared(tree, start, plant.step), LAWS[plant.law], plant.step
    mujoco.mj_forward(model, data)
    link, friction = data.M[tree.diagonal], bristles(truth) if plant.lugre else None
    both = link * truth["armature"] / (link + truth["armature"])
    spring = truth["elastic"] if plant.elastic else (CONTACT / step) ** 2 * both
    damper = (0.05 if plant.elastic else 0.6) * np.sqrt(spring * both)
    viscous = truth["friction_viscous"] * (friction is None) + drives.derivative
    half, dry = 0.5 * step * viscous, {**truth, "friction_viscous": 0.0}
    position, angle, speed, previous = np.empty_like(wanted), start.copy(), 0.0 * start, 0.0 * start
    for k, goal in enumerate(wanted):
        position[k] = angle if drives.geared else data.qpos
        gap = angle - data.qpos
        squeezed = gap - np.clip(gap, -0.5 * truth["backlash"], 0.5 * truth["backlash"])
        push = spring * squeezed + damper * (speed - data.qvel)
        if truth["backlash"].any():
            push = np.where(push * squeezed > 0.0, push, 0.0)
        motor = np.clip(truth["stiffness"] * (goal - position[k]), -tree.limits, tree.limits)
        external = tree.external(data, (data.qvel - previous) / step)
        previous = data.qvel.copy()
        momentum = (truth["armature"] - half) * speed + step * (motor - push)
        angle += 0.5 * step * speed
        if friction is None:
            budget = friction_budget(law, dry, motor - drives.derivative * speed, external, speed)[0]
            budget = step * budget * _wave(truth, angle)
            momentum -= np.clip(momentum, -budget, budget)
        else:
            friction.modulate(angle, external)
            momentum -= step * friction.torque(speed, step)
        speed = momentum / (truth["armature"] + half)
        angle += 0.5 * step * speed
        data.qfrc_applied[:] = push
        mujoco.mj_step(model, data)
    return position


def compared(
    tree: RobotTree, plant: Plant, truth: dict[str, Array], runs: Sequence[RobotRun], fit: RobotFit
) -> list[list[Any]]:
    """Of each joint and stated point true friction, that of the fit, and the ends of the 95 % band of draws."""
    motions = [motion_of(run.position, run.dt, CUTOFF) for run in runs]
    parts = [tree.loads(*motion) for motion in motions]
    gravity = [-9.80665 * each.gravity[..., 2] for each in parts]
    load = -np.concatenate([each.torque + pull for each, pull in zip(parts, gravity, strict=True)])
    position, velocity = (np.concatenate([motion[k] for motion in motions]) for k in (0, 1))
    rows = []
    for name, drive in robot_drives(fit, judge_robot(fit)).joints.items():
        joint = tree.names.index(name)
        speed, carried = points(velocity[:, joint], load[:, joint])
        places = np.quantile(position[:, joint], np.linspace(0.01, 0.99, PLACES))
        found, draws = drawn_friction(drive, speed, carried, places)
        low, high = np.quantile(draws, (0.025, 0.975), axis=0)
        true = steady(plant, truth, joint, speed, carried, places)
        rows += [
            [name, *each] for each in zip(*(part.tolist() for part in (true, found, low, high)), strict=True)
        ]
    return rows


def repetition(tree: RobotTree, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Parameters of one robot: truth, value, interval and status by joint."""
    generator, drives = np.random.default_rng(seed), DRIVES[options.drives]
    plant = Plant(
        "m4" if options.lugre else options.law,
        options.lugre,
        options.backlash,
        options.elastic,
        options.ripple,
        options.step,
    )
    truth = drawn(generator, drives, plant, len(tree.names))
    started = time.perf_counter()
    runs = [
        moved(tree, drives, plant, truth, generator, f"run{k}", options.noise) for k in range(options.runs)
    ]
    simulated = time.perf_counter() - started
    note = print if options.verbose else (lambda text: None)
    setting = {"law": options.law, "excluded": options.exclude, "backlash": options.seek_backlash}
    fit = identify_robot(tree, runs, **setting, note=note)
    rows = []
    for joint, found in fit.estimates.items():
        for name, each in found.items():
            if name in truth and not (plant.lugre and name in FRICTION_PARAMETERS):
                true = float(truth[name][tree.names.index(joint)])
                rows.append([joint, name, true, each.value, each.interval, each.status])
    rms = float(np.sqrt(np.mean([score.squares.mean() for score in fit.train])))
    seconds = [simulated, time.perf_counter() - started - simulated]
    even = compared(tree, plant, truth, runs, fit)
    return {"seed": seed, "rms": rms, "seconds": seconds, "rows": rows, "even": even}


def told(repetitions: Sequence[dict[str, Any]]) -> str:
    """Errors and coverage, pooled; of a bias, whose size means nothing, only the coverage."""
    rows = [row for each in repetitions for row in each["rows"]]
    known = [row for row in rows if row[5] in ("determined", "loosely determined") and row[4]]
    names = list(dict.fromkeys(row[1] for row in rows))
    errors = {
        name: [
            abs(value / true - 1.0)
            for _, each, true, value, _, status in known
            if each == name != "bias" and status == "determined"
        ]
        for name in names
    }
    hits = {name: [row[4][0] <= row[2] <= row[4][1] for row in known if row[1] == name] for name in names}
    everything, pooled = (list(chain(*parts.values())) for parts in (errors, hits))
    lines = [
        f"{len(repetitions)} repetitions: rms {np.mean([each['rms'] for each in repetitions]) * 1e3:.3f} mrad, median error "
        f"{np.median(everything):.2%}, intervals hold {np.mean(pooled):.1%} of {len(pooled)}"
    ]
    for name in names:
        total = sum(row[1] == name for row in rows)
        error = f"{np.median(errors[name]):.2%}" if errors[name] else "-"
        held = f"{np.mean(hits[name]):.1%} of {len(hits[name])}" if hits[name] else "none"
        lines.append(f"  {name:32s} {error:>8s}  {held}, {total - len(hits[name])} not reported")
    bands = np.array([row[1:] for each in repetitions for row in each["even"]]).T
    true, found, low, high = bands
    held = np.mean((low <= true) & (true <= high))
    lines.append(
        f"  friction in even motion: median error {np.median(abs(found / true - 1.0)):.2%}, bands hold {held:.1%} of {len(true)}, "
        f"median half-width {np.median(0.5 * (high - low) / true):.2%}, {relative_width(*bands):.2f} of what is needed"
    )
    return "\n".join(lines)


def main() -> None:
    """Repeat, and print after each repetition."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--drives", default="legs", choices=tuple(DRIVES))
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--law", default="m3", choices=(*LAWS, "auto"))
    parser.add_argument("--backlash", type=float, default=0.0, help="largest width of the gap [rad]")
    parser.add_argument("--lugre", action="store_true", help="friction of bristles")
    parser.add_argument("--elastic", type=float, default=0.0, help="least stiffness of the gears [N m/rad]")
    parser.add_argument("--ripple", type=float, default=0.0, help="share of friction over the angle")
    parser.add_argument("--step", type=float, default=STEP, help="of the simulation of the plant [s]")
    parser.add_argument("--seek-backlash", action="store_true", help="identify with backlash")
    parser.add_argument("--noise", type=float, default=0.0, help="of positions, correlated over 50 ms [rad]")
    parser.add_argument("--first", type=int, default=0, help="seed of the first repetition")
    parser.add_argument("--exclude", nargs="*", default=[])
    parser.add_argument("--json", type=Path, help="repetitions, for --pool")
    parser.add_argument("--pool", type=Path, nargs="+", help="only print what these files hold together")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.pool:
        print(told([each for path in options.pool for each in json.loads(path.read_text())]))
        return
    if options.model is None:
        parser.error("--model or --pool is needed")
    found = []
    for seed in range(options.first, options.first + options.repetitions):
        found.append(repetition(load_tree(options.model), options, seed))
        print(f"{told(found)}\n  {' + '.join(f'{part:.0f}' for part in found[-1]['seconds'])} s", flush=True)
        if options.json:
            options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
