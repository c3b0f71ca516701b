"""Export to mjlab with the BAM program: its ``BamActuatorCfg`` as Python, and a BAM file for each joint.

The program computes friction of M6 in mjlab as :mod:`stribeck.exports.bam_drive` says, and limits the motor torque to that at
rest; control law, largest duty and goal ramp are those of the servo that the file names. Source: Rhoban/bam, ``bam/mjlab.py``
(1b5a1ce).
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from stribeck.errors import ConfigError
from stribeck.exports import bam
from stribeck.exports.bam_drive import delay_of, drive_motion, voltage_control
from stribeck.exports.task import ExportTask, JointServo, Written, identifier, title_of

stepped = partial(drive_motion, limit=1.0)


def write(task: ExportTask) -> Written:
    """The Python module and the files of the joints.

    :raises ConfigError: for an output that is no Python module, and servos that the program lacks.
    """
    if task.output.suffix != ".py":
        raise ConfigError(f"mjlab writes a Python module: name a .py file, found {task.output}")
    lines = [
        '"""Servos of identified joints for mjlab; needs the BAM program (better-actuator-models)."""',
        "",
        "from pathlib import Path",
        "",
        "from bam.mjlab import BamActuatorCfg",
        "",
        "_FOLDER = Path(__file__).resolve().parent",
        "",
        "ACTUATORS = (",
    ]
    files: dict[Path, str | bytes] = {task.output: ""}
    notes = [
        "add bam.mjlab.bam_init as a startup event: it gives each environment its own friction parameters"
    ]
    for one in task.joints:
        path = task.output.with_name(f"{task.output.stem}_{identifier(one.joint)}.json")
        files[path] = _file(one, path)
        delay = delay_of(one.servo.parameters, task.timestep)
        notes += delay.notes(one.joint)
        lines += _entry(one, path, delay.steps)
    files[task.output] = "\n".join([*lines, ")", ""])
    return Written(files, tuple(notes))


def _entry(one: JointServo, path: Path, delay: int) -> list[str]:
    lags = [f"        delay_min_lag={delay},", f"        delay_max_lag={delay},"] if delay else []
    return [
        f"    # {title_of(one)}",
        "    BamActuatorCfg(",
        f"        target_names_expr=({re.escape(one.joint)!r},),",
        f'        json_path=str(_FOLDER / "{path.name}"),',
        f"        kp_fw={float(one.servo.kp)!r},",
        f"        vin={float(one.servo.voltage)!r},",
        *lags,
        "    ),",
    ]


def _file(one: JointServo, path: Path) -> str | bytes:
    voltage_control(one)
    name = one.servo.parameters.actuator.name
    if name not in bam.SERVOS:
        raise ConfigError(
            f"the BAM program does not know the servo {name!r} of joint {one.joint!r} (it knows {', '.join(bam.SERVOS)}): choose the format isaaclab-bam"
        )
    return bam.write(ExportTask((one,), path)).files[path]
