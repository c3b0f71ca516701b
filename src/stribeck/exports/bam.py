"""Export to the flat JSON of the BAM program: motor, armature and all six laws; read back by ``import-params``.

The program knows no terms beyond its laws, no effects, and only the servos of :data:`SERVOS`.
"""

from __future__ import annotations

import json

from stribeck.errors import ConfigError
from stribeck.exports.task import ExportTask, Written

SERVOS = ("mx64", "mx106", "xl320", "xl330", "erob80_100", "erob80_50", "sts3215", "unitree_go1")
"""Servos whose control law the program knows."""


def write(task: ExportTask) -> Written:
    """The parameters of one servo.

    :raises ConfigError: for several joints, which the format has no names for.
    """
    if len(task.joints) != 1:
        names = ", ".join(joint for joint, _ in task.joints)
        raise ConfigError(
            f"a BAM file describes one servo, found {len(task.joints)} ({names}): write a file for each"
        )
    file = task.joints[0].servo.parameters
    values = {name: float(value) for name, value in file.values.items()}
    content = {**values, "model": file.law.name, "actuator": file.actuator.name}
    notes = ["the BAM program's own step of 5 ms adds an error of a few mrad: use a shorter step there"]
    if file.actuator.name not in SERVOS:
        notes.append(
            f"the BAM program does not know the servo {file.actuator.name!r} (it knows {', '.join(SERVOS)}): add its control law to the program"
        )
    return Written({task.output: json.dumps(content, indent=1, allow_nan=False) + "\n"}, tuple(notes))
