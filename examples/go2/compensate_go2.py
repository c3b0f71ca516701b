"""A hung Go2 in MuJoCo whose friction is not that of the file: goals followed with and without compensation.

Run it as ``compensate_go2.py go2.xml OUT/robot.json``, where ``OUT/robot.json`` is what ``stribeck identify robot --output OUT`` wrote.
Each joint has the armature of the file, and its friction times a factor between 0.6 and 1.4. It follows a sum of two sines under the
gains of the file (PD control at 500 Hz, gravity compensated); the compensation sees measured positions and velocities with
noise, and the goals.
"""

import argparse
from pathlib import Path

import mujoco
import numpy as np

import stribeck as sb
from stribeck.files.drives import read_drives
from stribeck.identify.robot.tree import gravity_vector, load_tree
from stribeck.mujoco.joints import friction_solver

RATE, STEPS, DURATION, BEGIN = 500.0, 4, 20.0, 5.0
"""Control rate [Hz], steps of the simulation per period, duration, and time from which errors count [s]."""

NOISE = 1e-4, 5e-3
"""Of measured positions and velocities [rad, rad/s]."""


def plant(model: Path, drives, joints, factors) -> mujoco.MjModel:
    """The robot with the friction of the file times factors, its base held."""
    tree = load_tree(model)
    plant, base = tree.model, drives.machine.estimates
    plant.opt.timestep = 1.0 / RATE / STEPS
    plant.opt.gravity[:] = gravity_vector([base[name].value for name in ("tilt_x", "tilt_y")])
    for joint, factor in zip(joints, factors, strict=True):
        index, p = tree.names.index(joint), drives.joints[joint].values
        plant.dof_armature[index] = p["armature"]
        plant.dof_frictionloss[index] = factor * p["friction_base"]
        plant.dof_damping[index] = factor * p["friction_viscous"]
        plant.dof_solref[index], plant.dof_solimp[index] = (
            [*solver, *old[len(solver) :]]
            for solver, old in zip(
                friction_solver(plant.opt.timestep),
                (plant.dof_solref[index], plant.dof_solimp[index]),
                strict=True,
            )
        )
    return plant


def follow(model: mujoco.MjModel, drives, joints, compensator=None) -> np.ndarray:
    """Root mean square error of each joint [rad]."""
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    columns = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in joints]
    kp, kd = (np.array([getattr(drives.joints[name].gains, key) for name in joints]) for key in ("kp", "kd"))
    middle = model.jnt_range[columns].mean(axis=1)
    phase, errors = np.linspace(0.0, 6.0, len(joints)), []
    data.qpos[columns] = middle + 0.3 * np.sin(phase)
    for k in range(round(DURATION * RATE)):
        t = k / RATE
        w = 2.0 * np.pi * np.array([0.2, 0.7])
        goal = middle + 0.3 * np.sin(w[0] * t + phase) + 0.1 * (np.sin(w[1] * t + phase) - np.sin(phase))
        rate = 0.3 * w[0] * np.cos(w[0] * t + phase) + 0.1 * w[1] * np.cos(w[1] * t + phase)
        q = data.qpos[columns] + NOISE[0] * rng.normal(size=len(joints))
        qd = data.qvel[columns] + NOISE[1] * rng.normal(size=len(joints))
        torque = kp * (goal - q) + kd * (rate - qd) + data.qfrc_bias[columns]
        if compensator is not None:
            torque += compensator.torque(q, qd, q_goal=goal, qd_goal=rate, t=t)
        if t >= BEGIN:
            errors.append(goal - data.qpos[columns])
        data.qfrc_applied[columns] = torque
        for _ in range(STEPS):
            mujoco.mj_step(model, data)
    return np.sqrt(np.mean(np.square(errors), axis=0))


def main(model: Path, file: Path) -> float:
    """Print the errors of all joints; returns the mean ratio."""
    compensator, drives = sb.Compensator(file), read_drives(file)
    joints = compensator.joints
    factors = np.random.default_rng(1).uniform(0.6, 1.4, len(joints))
    made = plant(model, drives, joints, factors)
    plain, better = follow(made, drives, joints), follow(made, drives, joints, compensator)
    for row in zip(joints, factors, 1e3 * plain, 1e3 * better, better / plain, strict=True):
        print("{:20s} friction x {:.2f}: {:6.2f} -> {:6.2f} mrad, {:.2f}".format(*row))
    print(f"mean ratio {np.mean(better / plain):.2f}, worst {np.max(better / plain):.2f}")
    return float(np.mean(better / plain))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, metavar="go2.xml")
    parser.add_argument("file", type=Path, metavar="robot.json")
    main(**vars(parser.parse_args()))
