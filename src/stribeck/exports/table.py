"""Export as a table (CSV): friction over velocity and load, for lookup tables and plots.

Each row has the velocity, the motor torque, the external torque that balances it, and the friction budget against
motion in positive and in negative direction; where friction depends on the position, that comes first. Velocities and torques reach the limits
of the joint in the robot's URDF, if there is one, else those of the servo's datasheet.
"""

from __future__ import annotations

import csv
import io

import numpy as np

from stribeck.errors import ConfigError
from stribeck.exports.task import ExportTask, Written
from stribeck.live.friction import FASTEST, stall_torque
from stribeck.model.law import friction_budget
from stribeck.rigid.urdf import JointLimit, joint_limits

UNITS = {"rotary": ("rad", "torque", "N m"), "linear": ("m", "force", "N")}
"""Unit of positions, load, and its unit."""

SPEEDS = 81
"""Velocities of the table, denser towards rest, where friction changes most."""

LOADS = 21
"""Motor torques of the table."""

PLACES = 25
"""Positions of the table over one turn, where friction depends on the position."""


def write(task: ExportTask) -> Written:
    """The table, all joints below each other."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    length, load, unit = UNITS[task.joints[0].servo.parameters.actuator.units]
    depends = any("position" in servo.parameters.law.budget_inputs for _, servo in task.joints)
    loads = (f"motor {load}", f"external {load}", "friction +", "friction -")
    place = (f"position [{length}]",) * depends
    writer.writerow(["joint", *place, f"velocity [{length}/s]", *(f"{name} [{unit}]" for name in loads)])
    limits = {} if task.model is None else joint_limits(task.model)
    if unknown := [joint for joint, _ in task.joints if task.model is not None and joint not in limits]:
        raise ConfigError(
            f"{task.model} has no movable joint {', '.join(unknown)}; valid: {', '.join(limits) or 'none'}"
        )
    assumed = []
    for joint, servo in task.joints:
        file = servo.parameters
        limit = limits.get(joint, JointLimit(0.0, 0.0))
        known = limit.velocity or file.actuator.datasheet.figures.get("no_load_speed", 0.0)
        largest = limit.effort or file.actuator.datasheet.figures.get("peak_torque", 0.0)
        fastest, most = known or FASTEST, largest or stall_torque(file.actuator, file.values)
        if not known or (not largest and file.actuator.control.kind == "torque"):
            assumed.append(f"{joint} ±{fastest:g} {length}/s, ±{most:g} {unit}")
        shape = np.linspace(-1.0, 1.0, SPEEDS)
        velocity = fastest * np.sign(shape) * np.abs(shape) ** 3
        position, velocity, motor = np.meshgrid(
            np.linspace(-np.pi, np.pi, PLACES) if depends else 0.0,
            velocity,
            np.linspace(-most, most, LOADS),
            indexing="ij",
        )
        positive, negative = friction_budget(file.law, file.values, motor, -motor, velocity, position)
        columns = [*(position,) * depends, velocity, motor, -motor, positive, negative]
        rows = np.stack(np.broadcast_arrays(*columns), -1).reshape(-1, len(columns))
        writer.writerows([joint, *(f"{number:.9g}" for number in row)] for row in rows.tolist())
    notes = ["the table covers only torques in balance: the external torque is the negative motor torque"]
    if assumed:
        notes.append(
            f"the limits of the joints are not known, so the table covers {'; '.join(assumed)}: beyond the recorded motion it is extrapolated; "
            "a URDF with limits of velocity and effort, named as `model`, gives a table within them"
        )
    return Written({task.output: text.getvalue()}, tuple(notes))
