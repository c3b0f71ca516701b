"""Export as a table (CSV): friction over velocity and load, for lookup tables and plots.

Each row has the velocity, the motor torque, the external torque that balances it, and the friction budget against
motion in positive and in negative direction; where friction depends on the position, that comes first.
"""

from __future__ import annotations

import csv
import io

import numpy as np

from stribeck.exports.task import ExportTask, Written
from stribeck.live.friction import FASTEST, stall_torque
from stribeck.model.law import friction_budget

COLUMNS = {
    "rotary": (
        "velocity [rad/s]",
        "motor torque [N m]",
        "external torque [N m]",
        "friction + [N m]",
        "friction - [N m]",
    ),
    "linear": ("velocity [m/s]", "motor force [N]", "external force [N]", "friction + [N]", "friction - [N]"),
}

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
    units = task.joints[0].servo.parameters.actuator.units
    depends = any("position" in servo.parameters.law.inputs for _, servo in task.joints)
    place = (f"position [{'rad' if units == 'rotary' else 'm'}]",) * depends
    writer.writerow(["joint", *place, *COLUMNS[units]])
    for joint, servo in task.joints:
        file = servo.parameters
        fastest = file.actuator.datasheet.figures.get("no_load_speed", FASTEST)
        shape = np.linspace(-1.0, 1.0, SPEEDS)
        velocity = fastest * np.sign(shape) * np.abs(shape) ** 3
        most = stall_torque(file.actuator, file.values)
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
    return Written(
        {task.output: text.getvalue()},
        ("the table covers only torques in balance: the external torque is the negative motor torque",),
    )
