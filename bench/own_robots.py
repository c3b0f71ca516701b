r"""Arms of which only the URDF is known: excitation, simulation, bag, ``setup-robot`` and ``identify-arm``, one after another.

``python bench/own_robots.py`` takes every robot of example-robot-data with 4 to 8 joints that are not those of a gripper (several
minutes for each, so it is no part of ``make bench``); ``python bench/own_robots.py xarm7 z1`` takes some. Figures are kept in
``build/own_robots.json``, bags and files in ``build/own_robots``; robots that are in it already are left out unless ``--again`` is given.

The simulated arm differs from what the program knows and can represent: masses off by up to 10 %, rotors, friction

.. math::

    \tau_f = [1 + a\,sign(v)]\,[F_c + F_s e^{-(v/v_s)^2}] + F_v |v|^{0.85} + k \sqrt{\tau_l^2 + c^2}

against the motion (:math:`\tau_l`: torque of the links), states recorded 3 ms late by 16-bit encoders, velocities as the drive's
filtered differences, and white noise of 3 % of each joint's rms torque.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from stribeck.excitation.defaults import robot_of_urdf
from stribeck.files.robots import example_robots, read_robot
from stribeck.identify.arm.config import identification_config
from stribeck.identify.arm.model import ArmModel, load_arm
from stribeck.identify.arm.motion import motion_of
from stribeck.identify.arm.recordings import read_arm_recordings
from stribeck.identify.arm.residuals import relative_error
from stribeck.rigid.urdf import MOVABLE
from stribeck.session.excitation_file import read_excitation_file

ROOT = Path(__file__).resolve().parents[1] / "build"
FIGURES = ROOT / "own_robots.json"
STEP, EVERY, LATE, REST = 1e-3, 2, 3, 1.0
"""Time step [s], steps per message, steps by which states are late, and rest before and after the motion [s]."""

COUNTS, NOISE = 2**16, 0.03
STORE = get_typestore(Stores.ROS2_JAZZY)
SAME = re.compile("joint_limited|_collision|gripper.urdf")
"""Variants of a robot that is there already."""


@dataclass(frozen=True)
class Truth:
    """The simulated arm and its friction; arrays (n,)."""

    arm: ArmModel
    rotors: np.ndarray
    scale: np.ndarray
    fastest: np.ndarray

    def friction(self, velocity: np.ndarray, load: np.ndarray) -> np.ndarray:
        """Friction torque [N m or N] at velocities [rad/s or m/s] and torques of the links."""
        speed, size = np.abs(velocity) / self.fastest, self.scale
        dry = (1.0 + 0.12 * np.sign(velocity)) * size * (0.1 + 0.05 * np.exp(-((speed / 0.05) ** 2)))
        return dry + 0.1 * size * speed**0.85 + 0.05 * np.sqrt(load**2 + (0.1 * size) ** 2)


def robots() -> dict[str, Path]:
    """The URDFs with 4 to 8 joints besides grippers, by name."""
    found = {}
    for path in example_robots("*.urdf"):
        root = ElementTree.parse(path).getroot()  # noqa: S314 - files of an installed package
        if not root.findall("joint") or SAME.search(path.name):
            continue
        movable = sum(joint.get("type") in MOVABLE for joint in root.findall("joint"))
        if 4 <= movable <= 12 and 4 <= len(robot_of_urdf(path).arm) <= 8:
            found[path.stem] = path
    return found


def truth_of(path: Path, trajectory: Any, seed: int) -> Truth:
    """A robot with other masses than its URDF, rotors, and friction in proportion to its torques."""
    rng, arm = np.random.default_rng(seed), load_arm(path, trajectory.joints)
    masses = np.repeat(rng.uniform(0.9, 1.1, len(arm)), 10)
    states = trajectory.states(np.linspace(0.0, trajectory.duration, 500))
    size = np.sqrt(np.mean(arm.inverse_dynamics(*states) ** 2, axis=0))
    data = arm.model.createData()
    inertia = np.mean(
        [np.diag(pin.crba(arm.model, data, q)) for q in arm.configuration(states[0][::25])], axis=0
    )
    order = [arm.model.idx_vs[arm.model.getJointId(name)] for name in arm.joints]
    rotors = rng.uniform(0.2, 0.5, len(arm)) * inertia[order]
    return Truth(arm.with_inertials(arm.inertials * masses), rotors, size, np.abs(states[1]).max(axis=0))


def simulate(
    path: Path, trajectory: Any, truth: Truth
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Time (N,), position, velocity and motor torque (N, n) under computed-torque control with the inertials of the URDF."""
    arm, nominal = truth.arm, load_arm(path, trajectory.joints)
    model, data = arm.model, arm.model.createData()
    order = [model.idx_vs[model.getJointId(name)] for name in arm.joints]
    steps = round((trajectory.duration + 2 * REST) / STEP)
    times = np.clip(STEP * np.arange(steps) - REST, 0.0, trajectory.duration)
    goal = trajectory.states(times)
    inside = ((times > 0.0) & (times < trajectory.duration))[:, None]
    goal = (goal[0], goal[1] * inside, goal[2] * inside)
    ahead = nominal.inverse_dynamics(*goal)
    q, v = goal[0][0].copy(), np.zeros(len(arm))
    positions, velocities, torques = (np.empty((steps, len(arm))) for _ in range(3))
    load, still = np.zeros(len(arm)), 2e-4 * truth.fastest
    for k in range(steps):
        configuration = arm.configuration(q)
        mass = pin.crba(model, data, configuration)[np.ix_(order, order)]
        mass = np.triu(mass) + np.triu(mass, 1).T if not np.allclose(mass, mass.T) else mass
        bias = pin.nonLinearEffects(model, data, configuration, arm.tangent(v))[order]
        torque = ahead[k] + mass @ (900.0 * (goal[0][k] - q) + 60.0 * (goal[1][k] - v))
        inertia = mass + np.diag(truth.rotors)
        positions[k], velocities[k], torques[k] = q, v, torque
        new = v.copy()
        for _ in range(8):  # Newton: friction at the end of the step, smoothed about zero velocity
            shape, size = np.tanh(new / still), truth.friction(new, load)
            gap = inertia @ (new - v) / STEP + bias + shape * size - torque
            slope = inertia / STEP + np.diag(size * (1.0 - shape**2) / still)
            change = np.linalg.solve(slope, gap)
            new = new - change
            if np.abs(change / truth.fastest).max() < 1e-9:
                break
        load = mass @ (new - v) / STEP + bias
        v = new
        q = q + STEP * v
    return STEP * np.arange(steps), positions, velocities, torques


def write_bag(
    path: Path, names: list[str], truth: Truth, run: Any, still: list[str], seed: int, noise: float = NOISE
) -> None:
    """Messages of ``/joint_states`` as a driver publishes them; joints of a gripper stand still."""
    time_, position, _, torque = run
    rng = np.random.default_rng(seed)
    kinds = [truth.arm.model.joints[truth.arm.model.getJointId(name)].shortname() for name in names]
    quantum = np.where(["P" in kind.removeprefix("JointModel") for kind in kinds], 1e-5, 2 * np.pi / COUNTS)
    read = np.round(position / quantum) * quantum
    rate = np.diff(read, axis=0, prepend=read[:1]) / STEP
    share = 1.0 - np.exp(-2 * np.pi * 100.0 * STEP)
    for k in range(1, len(rate)):  # the drive's low-pass filter at 100 Hz
        rate[k] = rate[k - 1] + share * (rate[k] - rate[k - 1])
    measured = torque + noise * np.sqrt(np.mean(torque**2, axis=0)) * rng.normal(size=torque.shape)
    shutil.rmtree(path, ignore_errors=True)
    kind, stamp = STORE.types["sensor_msgs/msg/JointState"], STORE.types["builtin_interfaces/msg/Time"]
    header = STORE.types["std_msgs/msg/Header"]
    rest = np.zeros(len(still))
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=STORE)
        for k in range(LATE, len(time_), EVERY):
            nanoseconds = 1_700_000_000_000_000_000 + round(1e9 * time_[k])
            when = header(stamp(nanoseconds // 10**9, nanoseconds % 10**9), "")
            values = (read[k - LATE], rate[k - LATE], measured[k])
            message = kind(when, [*names, *still], *(np.append(one, rest) for one in values))
            writer.write(connection, nanoseconds, STORE.serialize_cdr(message, "sensor_msgs/msg/JointState"))


def stribeck(*words: object, log: Path) -> float:
    """Run a verb in a process of its own; returns its wall time [s]."""
    begin = time.perf_counter()
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"$ stribeck {' '.join(map(str, words))}\n")
        stream.flush()
        command = [sys.executable, "-m", "stribeck", *map(str, words)]
        done = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        last = log.read_text(encoding="utf-8").strip().splitlines()[-1]
        raise RuntimeError(f"stribeck {words[0]}: exit code {done.returncode}: {last}")
    return time.perf_counter() - begin


def floor(machine: Path, joints: tuple[str, ...], bag: Path, clean: Path) -> float:
    """Relative error of the true torque on moving rows: that of the noise, processed as the recording."""
    robot = read_robot(str(machine))
    config = identification_config(robot)
    motions = [
        motion_of(run, config.protocol)
        for run in (
            read_arm_recordings([path], config.recording, joints, robot.units)[0] for path in (bag, clean)
        )
    ]
    moving = motions[0].moving
    return relative_error(motions[0].torque[moving], motions[1].torque[moving])


def one(name: str, path: Path, seed: int = 0, seconds: float = 20.0) -> dict[str, Any]:
    """All steps for one robot; the figures."""
    folder = ROOT / "own_robots" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log, bags, wall = folder / "log.txt", {}, {}
    truth = None
    alone = robot_of_urdf(path)
    root = ElementTree.parse(path).getroot()  # noqa: S314 - a file of an installed package
    movable = [joint.get("name", "") for joint in root.findall("joint") if joint.get("type") in MOVABLE]
    still = [joint for joint in movable if joint not in alone.arm.joints]
    for number, part in enumerate(("train", "validation")):
        file = folder / f"{part}.yaml"
        options = ["--seconds", seconds, "--seed", seed + number, "--output", file, "--quiet"]
        wall[f"design {part}"] = stribeck(
            "design", "trajectory", "--model", path, *options, "--json", file.with_suffix(".json"), log=log
        )
        trajectory = read_excitation_file(file).trajectory
        truth = truth or truth_of(path, trajectory, seed)
        run = simulate(path, trajectory, truth)
        bags[part] = folder / f"{part}_bag"
        write_bag(bags[part], list(trajectory.joints), truth, run, still, seed + number)
    write_bag(folder / "clean_bag", list(trajectory.joints), truth, run, still, 0, noise=0.0)
    machine, fits = folder / "machine.yaml", folder / "fits.json"
    wall["data describe"] = stribeck(
        "data", "describe", bags["train"], "--model", path, "--output", machine, log=log
    )
    words = [bags["train"], "--machine", machine, "--model", path, "--validate", bags["validation"]]
    wall["identify arm"] = stribeck(
        "identify",
        "arm",
        *words,
        "--json",
        fits,
        "--output",
        folder / "identified",
        "--fits",
        "ols,full",
        "--quiet",
        log=log,
    )
    found = json.loads(fits.read_text(encoding="utf-8"))
    errors = {fit: found["fits"][fit]["validation"]["moving"]["all"] for fit in ("ols", "full")}
    full = found["fits"]["full"]
    return {
        "joints": len(alone.arm),
        "floor": floor(machine, tuple(found["joints"]), bags["validation"], folder / "clean_bag"),
        **errors,
        "law": full["law"] + (", asymmetric" if full["asymmetric"] else ""),
        "gain": json.loads((folder / "train.json").read_text(encoding="utf-8"))["gain"],
        "delay_ms": 1e3 * full["delay"],
        "wall": wall,
    }


def table(figures: dict[str, Any]) -> None:
    """Print all robots as Markdown, and the median."""
    print(
        "| robot | joints | noise floor [%] | `ols` [%] | `full` [%] | full / floor | full / ols | law | delay [ms] |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for name, f in figures.items():
        if "error" in f:
            print(f"| {name} | | | | | | | {f['error']} | |")
            continue
        ratios.append((f["full"] / f["floor"], f["full"] / f["ols"]))
        print(
            f"| {name} | {f['joints']} | {100 * f['floor']:.2f} | {100 * f['ols']:.2f} | {100 * f['full']:.2f} | "
            f"{ratios[-1][0]:.2f} | {ratios[-1][1]:.2f} | {f['law']} | {f['delay_ms']:.1f} |"
        )
    if ratios:
        middle = np.median(ratios, axis=0)
        print(f"| median of {len(ratios)} | | | | | {middle[0]:.2f} | {middle[1]:.2f} | | |")


def main() -> None:
    """Run the chosen robots, and print all figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="ROBOT", help="(default: all)")
    parser.add_argument("--again", action="store_true", help="also robots that are measured already")
    parser.add_argument("--list", action="store_true", help="print the names of the robots")
    options = parser.parse_args()
    present = robots()
    if options.list:
        print(*present, sep="\n")
        return
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {}
    for name in options.names or present:
        if name in figures and not options.again:
            continue
        try:
            figures[name] = one(name, present[name])
        except RuntimeError as problem:
            figures[name] = {"error": str(problem)}
        FIGURES.write_text(json.dumps(figures, indent=1), encoding="utf-8")
        print(name, figures[name], flush=True)
    table(figures)


if __name__ == "__main__":
    main()
