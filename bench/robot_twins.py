"""Recovery and coverage of ``identify-robot`` on twins of real robots that MuJoCo moves by itself.

Each repetition draws drives (armature, Coulomb, viscous and load-dependent friction, encoder bias, command delay), moves the
robot of a model file through multisines at steps of 0.1 ms, quantises its positions, and identifies it. Printed are the median
error of the parameters that count as determined, and the share of 95 % intervals that hold the truth.

    python bench/robot_twins.py --model go2.xml --repetitions 40 [--exclude JOINT …]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import mujoco
import numpy as np

from stribeck.robots.identify import identify_robot
from stribeck.robots.recordings import RobotRun
from stribeck.robots.tree import RobotTree, load_tree

DT, INNER = 0.005, 50
KP, KD = 30.0, 1.0
QUANTUM = 3e-5
NAMES = ("armature", "friction_base", "friction_viscous", "load_friction_base", "delay")


def drawn(generator: np.random.Generator, count: int, load: bool) -> dict[str, np.ndarray]:
    """Drives of all joints."""
    return {
        "armature": generator.uniform(0.01, 0.04, count),
        "friction_base": generator.uniform(0.1, 0.6, count),
        "friction_viscous": generator.uniform(0.05, 0.3, count),
        "load_friction_base": generator.uniform(0.03, 0.12, count) * load,
        "delay": generator.uniform(0.002, 0.012, count),
        "bias": generator.uniform(-0.02, 0.02, count),
    }


def moved(
    tree: RobotTree, truth: dict[str, np.ndarray], generator: np.random.Generator, seconds: float, name: str
) -> RobotRun:
    """A run: MuJoCo's own dry friction and servos, positions in the middle of each row's grid."""
    count, rows = len(tree.names), round(seconds / DT)
    lower, upper = (np.clip(edge, -1.5, 1.5) for edge in tree.range)
    amplitude = np.minimum(0.25 * (upper - lower), 0.4)
    times = np.arange(rows) * DT
    parts = [
        np.sin(2.0 * np.pi * frequency * times[:, None] + generator.uniform(0.0, 6.3, count))
        for frequency in (0.2, 0.53, 1.1, 2.3)
    ]
    goal = 0.5 * (lower + upper) + amplitude * sum(parts) / 2.0
    model, data, step = tree.model, mujoco.MjData(tree.model), DT / INNER
    model.opt.timestep, model.opt.integrator = step, int(mujoco.mjtIntegrator.mjINT_EULER)
    model.opt.gravity[:] = (0.0, 0.0, -9.80665)
    damping = truth["friction_viscous"] + KD
    model.dof_armature[:], model.dof_damping[:] = truth["armature"] - 0.5 * step * damping, damping
    model.dof_solimp[:] = (0.9999, 0.9999, 0.001, 0.5, 2.0)
    model.dof_solref[:] = (2.0 * step, 1.0)
    model.dof_frictionloss[:] = 1.0
    mujoco.mj_setConst(model, data)
    data.qpos[:] = goal[0]
    position, previous, coupled = np.empty((rows, count)), np.zeros(count), np.zeros(count)
    edges = np.arange(rows * INNER + 1) * step - 0.5 * step
    held = np.concatenate([np.zeros((1, count)), np.cumsum(goal * DT, axis=0)])
    integral = np.stack(
        [
            np.interp(edges - late, np.arange(rows + 1) * DT, held[:, j], left=np.nan)
            for j, late in enumerate(truth["delay"])
        ],
        axis=1,
    )
    integral = np.where(np.isnan(integral), (edges[:, None] - truth["delay"]) * goal[0], integral)
    wanted = np.diff(integral, axis=0) / step
    diagonal = model.M_rowadr + model.M_rownnz - 1
    for k, late in enumerate(wanted):
        if k % INNER == 0:
            position[k // INNER] = data.qpos
        motor = KP * (late - truth["bias"] - data.qpos)
        acceleration, previous = (data.qvel - previous) / step, data.qvel.copy()
        mujoco.mj_mulM(model, data, coupled, acceleration)
        external = -(data.qfrc_bias + coupled - data.M[diagonal] * acceleration)
        load = np.abs(motor - KD * data.qvel - external)
        model.dof_frictionloss[:] = truth["friction_base"] + truth["load_friction_base"] * load
        data.qfrc_applied[:] = motor
        mujoco.mj_step(model, data)
    for values in (model.dof_armature, model.dof_damping, model.dof_frictionloss):
        values[:] = 0.0
    gains = np.full(count, KP), np.full(count, KD)
    return RobotRun(Path(name), DT, goal, np.round(position / QUANTUM) * QUANTUM, *gains)


def main() -> None:
    """Repeat, and print after each repetition."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--law", default="m3", choices=("m1", "m3"))
    parser.add_argument("--first", type=int, default=0, help="seed of the first repetition")
    parser.add_argument("--exclude", nargs="*", default=[])
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    errors: dict[str, list[float]] = {name: [] for name in NAMES}
    hits: dict[str, list[bool]] = {name: [] for name in NAMES}
    for repetition in range(options.first, options.first + options.repetitions):
        started, generator = time.perf_counter(), np.random.default_rng(repetition)
        tree = load_tree(options.model)
        truth = drawn(generator, len(tree.names), options.law == "m3")
        runs = [moved(tree, truth, generator, options.seconds, f"run{k}") for k in range(options.runs)]
        fit = identify_robot(
            tree,
            runs,
            law=options.law,
            excluded=options.exclude,
            note=print if options.verbose else (lambda text: None),
        )
        for joint, found in fit.estimates.items():
            index = tree.names.index(joint)
            for name in NAMES:
                if name in found and found[name].known and found[name].interval:
                    true = float(truth[name][index])
                    errors[name].append(abs(found[name].value / true - 1.0))
                    hits[name].append(found[name].interval[0] <= true <= found[name].interval[1])
                    if options.verbose:
                        width = 0.5 * (found[name].interval[1] - found[name].interval[0])
                        print(joint, name, f"{true:.5f} {found[name].value - true:+.6f} +- {width:.6f}")
        pooled = [hit for name in NAMES for hit in hits[name]]
        told = ", ".join(
            f"{name} {np.median(errors[name]):.1%} ({np.mean(hits[name]):.0%} of {len(hits[name])})"
            for name in NAMES
            if errors[name]
        )
        everything = np.median([error for name in NAMES for error in errors[name]])
        print(
            f"{repetition + 1}: median error {everything:.2%}, intervals hold {np.mean(pooled):.1%} of {len(pooled)}; {told}; "
            f"{time.perf_counter() - started:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
