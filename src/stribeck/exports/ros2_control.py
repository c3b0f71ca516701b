"""Export to ROS 2: the parameter file of the compensation node (``config/compensation.yaml``) for identified joints.

The node reads the parameter files themselves, so that it holds every law. ``max_torque`` is the torque of the motor at the
given supply, or the datasheet's where that is lower, times :data:`SHARE`.
"""

from __future__ import annotations

import yaml

from stribeck.exports.affine import affine
from stribeck.exports.task import ExportTask, JointServo, Written

SHARE = 0.5
"""Largest feed-forward torque as a share of the motor's torque, as the node's own default."""


def write(task: ExportTask) -> Written:
    """The YAML file."""
    joints: dict[str, object] = {"joints": [servo.joint for servo in task.joints]}
    for servo, source in zip(task.joints, task.sources, strict=True):
        joints[servo.joint] = {
            "parameter_file": str(source.resolve()),
            "max_torque": SHARE * _limit(servo),
            "p_gain": float(servo.servo.kp),
            "supply_voltage": float(servo.servo.voltage),
        }
    text = yaml.safe_dump({"/**": {"ros__parameters": joints}}, sort_keys=False)
    note = "set output_mode and effort_meaning for your controller; all else has the defaults of config/compensation.yaml"
    return Written({task.output: text}, (note,))


def _limit(servo: JointServo) -> float:
    stated = servo.servo.parameters.actuator.datasheet_torque
    force = affine(servo.servo).force
    return float(force if stated is None else min(force, stated))
