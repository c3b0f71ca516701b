"""Export to robot descriptions: URDF, SDF, and URDF for Drake. Only friction and limits of the joints change.

URDF and SDF have viscous friction (``damping``) and Coulomb friction (``friction``), and limits of effort and velocity;
Drake's URDF has the rotor's inertia, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from stribeck.errors import ConfigError
from stribeck.exports.affine import affine
from stribeck.exports.task import ExportTask, JointServo, Written
from stribeck.exports.xml_text import XmlNode, XmlText

KINDS = {"rotary": ("revolute", "continuous"), "linear": ("prismatic",)}

DRAKE = "http://drake.mit.edu"
"""Namespace of Drake's elements."""

NOTES = {
    "urdf": "Gazebo and MuJoCo read damping and friction; Drake reads only damping; robot_state_publisher and MoveIt read neither",
    "sdf": "Gazebo reads damping and friction; its default physics engine uses friction as a limit of torque in each step",
    "drake": "Drake reads damping and rotor inertia; it has no Coulomb friction in joints, and warns about the attribute",
}


def _written(
    task: ExportTask, *, root: str, change: Callable[[XmlText, XmlNode, JointServo], None], name: str
) -> Written:
    text = XmlText(task.robot(name))
    if text.root.tag != root:
        raise ConfigError(f"{task.model}: its root is <{text.root.tag}>, expected <{root}>")
    if name == "drake" and "xmlns:drake" not in text.root.attributes:
        text.set_attributes(text.root, {"xmlns:drake": DRAKE})
    for servo in task.joints:
        change(text, _joint(text, servo), servo)
    return Written({task.output: text.text()}, (NOTES[name], *(_motor_note(servo) for servo in task.joints)))


def _motor_note(servo: JointServo) -> str:
    """The motor that the friction was fitted with, which the file has no place for beyond limits."""
    p = servo.servo.parameters.values
    values = ", ".join(f"{name} {p[name]:.4g}" for name in ("kt", "R", "ratio", "armature") if name in p)
    return f"{servo.joint}: friction was identified together with a motor with {values} (SI units); its largest torque and speed are the limits of the joint"


def _joint(text: XmlText, servo: JointServo) -> XmlNode:
    """The joint with the servo's name.

    :raises ConfigError: if it is missing, there twice, or of another kind than the servo.
    """
    joints = [
        node for node in text.root.all("joint") if "name" in node.attributes and "type" in node.attributes
    ]
    found = [node for node in joints if node.attributes["name"] == servo.joint]
    if len(found) != 1:
        names = ", ".join(node.attributes["name"] for node in joints if node.attributes["type"] != "fixed")
        what = f"{len(found)} joints" if found else "no joint"
        raise ConfigError(
            f"{text.path} has {what} named {servo.joint!r}; it has: {names or 'none that moves'}"
        )
    actuator = servo.servo.parameters.actuator
    kind = found[0].attributes["type"]
    if kind not in KINDS[actuator.units]:
        raise ConfigError(
            f"{text.path}: joint {servo.joint!r} is {kind}, but {actuator.name} is {actuator.units} and needs a {' or '.join(KINDS[actuator.units])} joint"
        )
    return found[0]


def _friction(servo: JointServo) -> dict[str, str]:
    p = servo.servo.parameters.values
    return {"damping": repr(float(p["friction_viscous"])), "friction": repr(float(p["friction_base"]))}


def _limits(servo: JointServo) -> dict[str, str]:
    motor = affine(servo.servo)
    limits = {"effort": repr(motor.force)}
    return limits if motor.speed is None else limits | {"velocity": repr(float(motor.speed))}


def _change_urdf(text: XmlText, joint: XmlNode, servo: JointServo) -> None:
    limit = joint.child("limit")
    if limit is None and joint.attributes["type"] != "continuous":
        raise ConfigError(
            f"{text.path}: joint {servo.joint!r} has no <limit>, which a {joint.attributes['type']} joint needs: add one "
            "with lower and upper"
        )
    for tag, node, values in (
        ("dynamics", joint.child("dynamics"), _friction(servo)),
        ("limit", limit, _limits(servo)),
    ):
        if node is None:
            listed = " ".join(f'{key}="{value}"' for key, value in values.items())
            text.add_child(joint, f"<{tag} {listed}/>")
        else:
            text.set_attributes(node, values)


def _change_drake(text: XmlText, joint: XmlNode, servo: JointServo) -> None:
    _change_urdf(text, joint, servo)
    inertia = repr(float(servo.servo.parameters.values["armature"]))
    drake = f'<drake:gear_ratio value="1"/><drake:rotor_inertia value="{inertia}"/>'
    for transmission in text.root.all("transmission"):
        driven, actuator = transmission.child("joint"), transmission.child("actuator")
        if driven is None or actuator is None or driven.attributes.get("name") != servo.joint:
            continue
        rotor, gear = actuator.child("drake:rotor_inertia"), actuator.child("drake:gear_ratio")
        if rotor is None and gear is None:
            text.add_child(actuator, drake)
            return
        for node, value in ((rotor, inertia), (gear, "1")):  # the inertia is that at the output shaft
            if node is not None:
                text.set_attributes(node, {"value": value})
        return
    text.add_child(
        text.root,
        f'<transmission name="{servo.joint}_servo" type="SimpleTransmission"><type>transmission_interface/SimpleTransmission'
        f'</type><joint name="{servo.joint}"/><actuator name="{servo.joint}_servo">{drake}</actuator></transmission>',
    )


def _change_sdf(text: XmlText, joint: XmlNode, servo: JointServo) -> None:
    axis = joint.child("axis")
    if axis is None:
        raise ConfigError(
            f"{text.path}: joint {servo.joint!r} has no <axis>, to which friction could be added: add one"
        )
    for tag, values in (("dynamics", _friction(servo)), ("limit", _limits(servo))):
        node, missing = axis.child(tag), ""
        for key, value in values.items():
            if node is not None and (child := node.child(key)) is not None:
                text.set_text(child, value)
            else:
                missing += f"<{key}>{value}</{key}>"
        if node is None:
            text.add_child(axis, f"<{tag}>{missing}</{tag}>")
        elif missing:
            text.add_child(node, missing)


write_urdf = partial(_written, root="robot", change=_change_urdf, name="urdf")
write_drake = partial(_written, root="robot", change=_change_drake, name="drake")
write_sdf = partial(_written, root="sdf", change=_change_sdf, name="sdf")
