"""Export to the servo drive of Isaac Lab and Newton: ``BamActuatorCfg`` as Python, and the same numbers as YAML.

``import-params`` reads the YAML back. The drive runs with Newton's MJWarp solver and ``use_newton_actuators=True`` alone
(:mod:`stribeck.exports.bam_drive`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import yaml

from stribeck.errors import ConfigError
from stribeck.exports.bam_drive import BamDrive, delay_of, drive_of
from stribeck.exports.bam_drive import drive_motion as stepped
from stribeck.exports.task import ExportTask, JointServo, Written, identifier, ramp_notes, title_of
from stribeck.files.schema import Positive, Schema

__all__ = ["stepped", "write"]

SETTINGS = BamDrive.__struct_fields__[2:]
"""Fields of ``BamActuatorCfg`` beside the motor and the joint."""


class IsaacLabBamFile(Schema):
    """Drives of joints.

    :param schema: version of the format.
    :param timestep: physics step in which delays are counted [s].
    :param drives: by joint.
    """

    schema: Literal[1]
    timestep: Positive
    drives: dict[str, BamDrive]


def write(task: ExportTask) -> Written:
    """The Python module and the YAML file.

    :raises ConfigError: for an output that is neither, and for servos that the drive lacks.
    """
    if task.output.suffix not in (".py", ".yaml"):
        raise ConfigError(
            f"isaaclab-bam writes a .py and a .yaml file: name one of them, found {task.output}"
        )
    drives = {one.joint: drive_of(one, task.timestep) for one in task.joints}
    python, data = task.output.with_suffix(".py"), task.output.with_suffix(".yaml")
    files: dict[Path, str | bytes] = {python: _module(task, drives), data: _data(task, drives)}
    return Written({task.output: files[task.output], **files}, drive_notes(task))


def fields(joint: JointServo, timestep: float | None) -> dict[str, float]:
    """Numbers of the drive of one joint that environments may have of their own, by the name that the drive has for them."""
    drive = drive_of(joint, timestep)
    numbers = {name: value for name, value in motor_fields(drive).items() if name != "model"}
    return {**numbers, "max_effort": drive.actuator_effort_limit, "armature": drive.armature}


def drive_notes(task: ExportTask) -> tuple[str, ...]:
    """Remarks on what the drive leaves to others."""
    delays = [
        note
        for joint, servo in task.joints
        for note in delay_of(servo.parameters, task.timestep).notes(joint)
    ]
    drive = "the drive works only with Newton's MJWarp solver and use_newton_actuators=True; it cannot switch torque off"
    return (drive, *delays, *ramp_notes(task))


def motor_fields(drive: BamDrive) -> dict[str, Any]:
    """Fields of ``BamMotorCfg`` in order; those of laws that the drive does not use are left out."""
    motor = drive.motor
    unused = {"m1": ("stribeck", "alpha", "load", "quad"), "m2": ("load", "quad"), "m5": ("quad",)}
    words = unused.get(motor.model, ())
    return {
        name: getattr(motor, name)
        for name in motor.__struct_fields__
        if not any(word in name for word in words)
    }


def _data(task: ExportTask, drives: dict[str, BamDrive]) -> str:
    content = {
        joint: {
            "servo": drive.servo,
            "motor": motor_fields(drive),
            **{name: getattr(drive, name) for name in SETTINGS},
        }
        for joint, drive in drives.items()
    }
    step = delay_of(task.joints[0].servo.parameters, task.timestep).timestep
    return yaml.safe_dump({"schema": 1, "timestep": step, "drives": content}, sort_keys=False)


def _module(task: ExportTask, drives: dict[str, BamDrive]) -> str:
    lines = [
        '"""Servo drives of identified joints for Isaac Lab with Newton."""',
        "",
        *_imports(task),
        "",
        "ACTUATORS = {",
    ]
    for one in task.joints:
        drive = drives[one.joint]
        lines += [f"    # {title_of(one)}", f'    "{identifier(one.joint)}": BamActuatorCfg(']
        lines += [f"        joint_names_expr=[{re.escape(one.joint)!r}],", "        motor=BamMotorCfg("]
        lines += [f"            {name}={value!r}," for name, value in motor_fields(drive).items()]
        lines += ["        ),"]
        lines += [f"        {name}={getattr(drive, name)!r}," for name in SETTINGS]
        lines += ["    ),"]
    text = "\n".join([*lines, "}", ""])
    return text if task.table is None else text + _event(task, task.table)


def _imports(task: ExportTask) -> list[str]:
    own = "from isaaclab.actuators import BamActuatorCfg, BamMotorCfg"
    if task.table is None:
        return [own]
    return [
        "import re",
        "from pathlib import Path",
        "",
        "import numpy as np",
        "import torch",
        own,
        "from isaaclab.actuators.newton import write_group_parameter",
        "from isaaclab.managers import SceneEntityCfg",
    ]


_EVENT = '''\

JOINTS = {joints!r}
"""Name of each joint, by group."""

COEFFICIENTS = {coefficients!r}
"""What the drives take from the table."""


def draw_servos(env, env_ids, asset_cfg=SceneEntityCfg("robot")):
    """Give each environment one of the drawn sets; for a startup event.

    Damping of joints (viscous friction) is not changed: the table has it as "friction_viscous".
    """
    asset = env.scene[asset_cfg.name]
    ids = torch.arange(env.num_envs, device=env.device)
    ids = ids if env_ids is None else ids[env_ids]
    with np.load(Path(__file__).resolve().with_name({table!r})) as table:
        drawn = {{name: torch.as_tensor(table[name], dtype=torch.float32, device=env.device) for name in table}}
    rows = torch.randint(len(next(iter(drawn.values()))), (len(ids),), device=env.device)
    for group, joint in JOINTS.items():
        for name in COEFFICIENTS:
            values = drawn[f"{{joint}}/{{name}}"][rows][:, None]
            write_group_parameter(asset.actuators, group, "drive", name, values=values, env_ids=ids)
        armature = drawn[f"{{joint}}/armature"][rows][:, None]
        joints, _ = asset.find_joints([re.escape(joint)])
        asset.write_joint_armature_to_sim_index(armature=armature, joint_ids=joints, env_ids=ids)
'''

JOINT_PROPERTIES = ("armature", "friction_viscous")
"""What joints have, not their drives."""

FIRMWARE = ("error_gain", "max_pwm")
"""Numbers of a drive that are not identified."""


def _event(task: ExportTask, table: Path) -> str:
    """The event with which environments get the drawn sets."""
    names = dict.fromkeys(name for one in task.joints for name in fields(one, task.timestep))
    return _EVENT.format(
        joints={identifier(one.joint): one.joint for one in task.joints},
        coefficients=tuple(name for name in names if name not in (*JOINT_PROPERTIES, *FIRMWARE)),
        table=table.name,
    )
