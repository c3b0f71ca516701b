"""``identify-robot`` beside CMA-ES on ``mujoco.rollout``, as programs that identify robots by simulation do.

Both fit armature, Coulomb and viscous friction, bias and delay of every joint to the same runs, from goals alone. As legs of a
hung robot do not move each other, CMA-ES has a population of its own for each leg, and all share the rollouts; gravity is
upright there, and the bias takes the attitude. Printed are time and error of both, on the fitted runs and on the others.

    python bench/robot_cmaes.py --model go2.xml --data rx_run0.npz rx_run3.npz --validate rx_run5.npz --seconds 300
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import cmaes
import mujoco
import numpy as np
from mujoco import rollout

from stribeck.identify.robot.identify import identify_robot
from stribeck.identify.robot.recordings import RobotRun, read_runs
from stribeck.identify.robot.rollout import mean_goals
from stribeck.identify.robot.tree import RobotTree, load_tree

BOUNDS = np.array([[1e-4, 0.08], [0.0, 1.5], [0.0, 0.8], [-0.1, 0.1], [0.0, 0.02]])
"""Armature, Coulomb and viscous friction, bias, delay."""

POPULATION, STEPS = 24, 2


def model_of(tree: RobotTree, run: RobotRun, values: np.ndarray) -> Any:
    """The robot with the drives (J, 5); the servo is a spring to 0, and its goal a torque."""
    model = tree.model.__copy__()
    model.opt.timestep, model.opt.integrator = run.dt / STEPS, int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    model.opt.gravity[:] = (0.0, 0.0, -9.80665)
    model.dof_armature[:], model.dof_frictionloss[:] = values[:, 0], values[:, 1]
    model.dof_damping[:] = values[:, 2] + run.derivative
    model.dof_solimp[:] = (0.9999, 0.9999, 0.001, 0.5, 2.0)
    model.dof_solref[:] = (2.0 * model.opt.timestep, 1.0)
    model.jnt_stiffness[:], model.qpos_spring[:] = run.stiffness, 0.0
    return model


def squares(tree: RobotTree, runs: list[RobotRun], candidates: np.ndarray) -> np.ndarray:
    """Mean squared errors (C, J) of candidates (C, J, 5)."""
    total = np.zeros(candidates.shape[:2])
    for run in runs:
        models = [model_of(tree, run, values) for values in candidates]
        data = mujoco.MjData(models[0])
        start = np.concatenate([[0.0], run.position[0], np.zeros(len(tree.names))])
        torque = [
            run.stiffness * (mean_goals(run.goal, values[:, 4], STEPS, run.dt) - values[:, 3])
            for values in candidates
        ]
        state, _ = rollout.rollout(
            models,
            [data, mujoco.MjData(models[0])],
            np.tile(start, (len(models), 1)),
            np.stack(torque),
            control_spec=int(mujoco.mjtState.mjSTATE_QFRC_APPLIED),
        )
        count = len(tree.names)
        moved = np.concatenate(
            [np.tile(run.position[0], (len(models), 1, 1)), state[:, STEPS - 1 :: STEPS, 1 : 1 + count]],
            axis=1,
        )
        error = (moved[:, :-1] - run.position)[:, run.first :]
        total += np.mean(error**2, axis=1) / len(runs)
    return total


def searched(tree: RobotTree, runs: list[RobotRun], budget: float) -> np.ndarray:
    """The best drives (J, 5) within a time [s]."""
    legs = [range(first, first + 3) for first in range(0, len(tree.names), 3)]
    middle = np.tile([0.25, 0.2, 0.2, 0.5, 0.3], 3)
    unit = np.tile([[0.0, 1.0]], (15, 1))
    searches = [
        cmaes.CMA(mean=middle, sigma=0.2, bounds=unit, seed=leg, population_size=POPULATION)
        for leg in range(len(legs))
    ]
    best, least = np.empty((len(tree.names), 5)), np.full(len(legs), np.inf)
    started, rollouts, told = time.perf_counter(), 0, 0.0
    while time.perf_counter() - started < budget:
        asked = [[search.ask() for _ in range(POPULATION)] for search in searches]
        drives = np.stack(asked, axis=1).reshape(POPULATION, len(tree.names), 5)
        values = BOUNDS[:, 0] + drives * (BOUNDS[:, 1] - BOUNDS[:, 0])
        found = squares(tree, runs, values)
        rollouts += POPULATION * len(runs)
        for leg, joints in enumerate(legs):
            cost = found[:, list(joints)].mean(axis=1)
            searches[leg].tell(list(zip(asked[leg], cost.tolist(), strict=True)))
            if cost.min() < least[leg]:
                least[leg], best[list(joints)] = cost.min(), values[np.argmin(cost), list(joints)]
        if time.perf_counter() - started > told:
            told += 30.0
            error = np.sqrt(least.mean()) * 1e3
            print(
                f"CMA-ES {time.perf_counter() - started:6.0f} s {rollouts} rollouts {error:.2f} mrad",
                flush=True,
            )
    return best


def main() -> None:
    """Fit by both, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--validate", type=Path, nargs="+", required=True)
    parser.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    tree = load_tree(options.model)
    runs, others = (read_runs(paths, tree) for paths in (options.data, options.validate))
    begin = time.perf_counter()
    fit = identify_robot(tree, runs, others)
    spent = time.perf_counter() - begin
    train, unseen = (
        np.sqrt(np.mean([each.squares.mean() for each in scores])) * 1e3
        for scores in (fit.train, fit.validation)
    )
    print(f"identify-robot {spent:.0f} s: {train:.2f} mrad, other runs {unseen:.2f} mrad", flush=True)
    best = searched(load_tree(options.model), runs, options.seconds)
    train, unseen = (float(np.sqrt(squares(tree, part, best[None]).mean())) * 1e3 for part in (runs, others))
    print(f"CMA-ES on mujoco.rollout {options.seconds:.0f} s: {train:.2f} mrad, other runs {unseen:.2f} mrad")


if __name__ == "__main__":
    main()
