"""Export to ROS 2: parameters of the compensation node and of the controller of ros2_control for identified joints.

The node (``config/compensation.yaml``, section ``/**``) reads the parameter files themselves; the controller
(``controllers/``, section ``friction_compensation``) gets the values, and with a URDF the inertia and weight of what each joint moves, from which
it learns the present friction and bears the robot. Both hold every law. ``max_torque`` is the torque of
the motor at the given supply, or the datasheet's where that is lower, times :data:`SHARE`.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from stribeck.errors import ConfigError
from stribeck.exports.affine import affine
from stribeck.exports.task import ExportTask, JointServo, Written
from stribeck.model.joint import Servo
from stribeck.rigid.tree import BASE, TreeJoint
from stribeck.rigid.urdf import read_urdf

SHARE = 0.5
"""Largest feed-forward torque as a share of the motor's torque, as the node's own default."""


_MOTOR = ("kt", "R", "current_limit", "torque_saturation")


def write(task: ExportTask) -> Written:
    """The YAML file."""
    joints: dict[str, object] = {"joints": [servo.joint for servo in task.joints]}
    for servo, source in zip(task.joints, task.sources, strict=True):
        by_torque = servo.joint in task.by_torque
        joints[servo.joint] = {
            "parameter_file": str(source.resolve()),
            "max_torque": SHARE * _limit(servo),
            **_position_control(servo.servo, by_torque),
        }
    servos = {servo.joint: servo for servo in task.joints}
    links = {name: {} for name in servos} if task.model is None else _links(task.model, list(servos))
    controller = {
        "type": "stribeck_controllers/FrictionCompensationController",
        "joints": list(links),
        "friction": {
            name: _friction(servos[name], name in task.by_torque) | link for name, link in links.items()
        },
    }
    sections = {"/**": joints, "friction_compensation": controller}
    text = yaml.safe_dump(
        {name: {"ros__parameters": parameters} for name, parameters in sections.items()}, sort_keys=False
    )
    note = (
        "set output_mode and effort_meaning for your controller; all other parameters have the defaults of config/compensation.yaml, and of "
        "controllers/src/friction_compensation_controller_parameters.yaml"
    )
    return Written({task.output: text}, (note,))


def _links(urdf: Path, names: list[str]) -> dict[str, dict[str, object]]:
    """What each joint moves, with all others locked at 0: placement, axis and inertia as the controller takes them.

    In the given order, except that a joint comes after the one that carries it, as the controller requires.
    """
    waiting, carried = list(read_urdf(urdf).model(names).tree.joints), list[TreeJoint]()
    while waiting:
        before = {BASE, *(names.index(joint.name) for joint in carried)}
        carried.append(waiting.pop([joint.parent in before for joint in waiting].index(True)))
    return {
        joint.name: {
            "link_parent": "" if joint.parent == BASE else names[joint.parent],
            "link_slides": joint.kind == "prismatic",
            "link_placement": joint.placement.ravel().tolist(),
            "link_axis": joint.axis.tolist(),
            "link_inertia": joint.pseudo_inertia.ravel().tolist(),
        }
        for joint in carried
    }


def _position_control(servo: Servo, by_torque: bool) -> dict[str, float]:
    """Gain and supply of a servo's own position control, nothing for a joint whose commands are torques."""
    return {} if by_torque else {"p_gain": float(servo.kp), "supply_voltage": float(servo.voltage)}


def _friction(joint: JointServo, by_torque: bool) -> dict[str, object]:
    """Law, servo and limits of a joint, as the controller of ros2_control takes them."""
    servo, file = joint.servo, joint.servo.parameters
    control, law, values = file.actuator.control, file.law, file.values
    found: dict[str, object] = {
        "law": law.name,
        **({"asymmetric": True} if "asymmetric" in law.optional_terms else {}),
        **{name: float(values[name]) for name in law.parameter_names},
        "max_torque": SHARE * _limit(joint),
        "resolution": float(file.actuator.resolution),
        "armature": float(values["armature"]),
        "servo": control.kind,
        "control_gain": float(control.gain * values.get("ratio", 1.0)),
        "control_damping": float(getattr(control, "damping", 0.0)),
        "output_max": float(control.output_max),
        **_position_control(servo, by_torque),
        **{name: float(values[name]) for name in _MOTOR if name in values},
    }
    if getattr(control, "inductance", None) is not None:
        raise ConfigError(
            f"the controller does not support the inductance of a drive/coast bridge, found joint {joint.joint!r} with {file.actuator.name}: "
            "use the compensation node, or remove inductance and pwm_period from the actuator of the file"
        )
    if getattr(control, "bridge", "brake") == "coast":
        found["coasts"] = True
    if file.temperature is not None:
        found["temperature"] = float(file.temperature)
    return found


def _limit(servo: JointServo) -> float:
    stated = servo.servo.parameters.actuator.datasheet_torque
    force = affine(servo.servo).force
    return float(force if stated is None else min(force, stated))
