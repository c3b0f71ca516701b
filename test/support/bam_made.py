"""Servos with the laws of the paper, and the servo drive of Isaac Lab that an export makes of them."""

from pathlib import Path

import yaml

from helpers import published
from stribeck.exports.projection import plain
from stribeck.exports.registry import FORMATS
from stribeck.exports.task import ExportTask, JointServo
from stribeck.files.actuators import load_actuator
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import law_named

DRIVE = FORMATS["isaaclab-bam"]

STS = {"kt": 1.9, "R": 3.2, "armature": 0.028, "q_offset": 0.01} | {
    name: value
    for name, value in published("xl330", "m6").items()
    if "friction" in name or "stribeck" in name or name == "alpha"
}
"""An STS3250 with friction of an XL330, ten times as large where it is a torque."""
STS |= {name: 10.0 * STS[name] for name in ("friction_base", "friction_stribeck", "friction_viscous")}
STS |= {"load_friction_base": 0.12, "load_friction_stribeck": 0.08}


def servo_of(law: str, name: str = "xl330", **more: float) -> Drive:
    """A servo with one law of the paper."""
    effects = [
        effect
        for effect, key in {"current-limit": "current_limit", "delay": "command_delay"}.items()
        if key in more
    ]
    known = published("xl330", law) if name == "xl330" else STS
    kept = {"kt", "R", "armature", "q_offset", *law_named(law).parameter_names}
    values = {key: value for key, value in known.items() if key in kept}
    return Drive(load_actuator(name).with_effects(effects), law_named(law), {**values, **more})


def written(folder: Path, file: Drive, kp: float = 400.0, volts: float = 7.4, **more) -> dict:
    """The drive of the YAML file of an export."""
    servo = JointServo("elbow", Servo(plain(file, DRIVE), kp, supply_voltage=volts))
    task = ExportTask((servo,), folder / "out.yaml", **more)
    for path, content in DRIVE.write(task).files.items():
        path.write_text(content)
    return yaml.safe_load((folder / "out.yaml").read_text())["drives"]["elbow"]
