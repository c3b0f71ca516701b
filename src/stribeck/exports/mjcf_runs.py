"""Runs of a bench in MuJoCo with an exported MJCF file, and the files that an MJCF model consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from stribeck.model.arrays import Array
from stribeck.model.joint import Servo
from stribeck.model.log import Batch, Setup
from stribeck.mujoco.bench import pendulum


def model_of(setup: Setup, q_offset: float, text: str, name: str) -> mujoco.MjModel:
    """The bench with an exported file for its joint.

    :param text: the file to include.
    :param name: class of the joint in that file.
    """
    xml = pendulum(setup, q_offset, '<include file="servo.xml"/>', f'class="{name}"')
    return mujoco.MjSpec.from_string(xml, include={"servo.xml": text.encode()}).compile()


def play(
    model: mujoco.MjModel, goal: Array, enable: Array, start: tuple[float, float], substeps: int
) -> Array:
    """Positions (T,) [rad] at the times of the commands; with torque off the actuator group is disabled.

    :param start: position [rad] and velocity [rad/s].
    """
    data, found = mujoco.MjData(model), np.empty_like(goal)
    data.qpos[0], data.qvel[0] = start
    data.ctrl[:] = goal[0]
    if model.na:  # the ramp of a dcmotor begins at the goal
        data.act[:] = goal[0]
    for k, (target, on) in enumerate(zip(goal.tolist(), enable.tolist(), strict=True)):
        found[k] = data.qpos[0]
        data.ctrl[:] = target
        model.opt.disableactuator = 0 if on >= 0.5 else 1
        for _ in range(substeps):
            mujoco.mj_step(model, data)
    return found


def runs_of(
    servo: Servo, runs: Batch, texts: Sequence[tuple[str, str]], substeps: int, start: Array
) -> Array:
    """Positions (T, R) [rad] of all runs.

    :param texts: exported file and class of the joint, for each run.
    :param start: first positions and velocities (2, R).
    """
    offset = servo.parameters.values["q_offset"]
    columns = [
        play(
            model_of(log.setup, offset, text, name),
            runs.goal[:, r],
            runs.torque_enable[:, r],
            (float(start[0, r]), float(start[1, r])),
            substeps,
        )
        for r, (log, (text, name)) in enumerate(zip(runs.logs, texts, strict=True))
    ]
    return np.stack(columns, axis=1)


def servo_of_run(servo: Servo, runs: Batch, r: int) -> Servo:
    """The servo with the gains and the supply of a run."""
    setup = runs.logs[r].setup
    return replace(servo, kp=setup.kp, ki=setup.ki, kd=setup.kd, supply_voltage=setup.supply_voltage)


def parts_of(model: Path) -> list[Path]:
    """An MJCF model and all files that it includes; their paths are relative to the model's folder.

    A file that cannot be read is listed, but its includes are not.
    """
    parts = [model]
    for path in parts:  # the list grows during the loop
        try:
            elements = ElementTree.parse(path).iter("include")  # noqa: S314  # a file that MuJoCo also reads
        except (OSError, ElementTree.ParseError):
            continue
        included = (model.parent / element.get("file", "") for element in elements)
        parts += [part for part in included if part not in parts]
    return parts
