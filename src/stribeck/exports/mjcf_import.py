"""Reader of servos in MJCF files: of models, and of the files to include that ``export --to mjcf`` writes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import mujoco

from stribeck.errors import ConfigError
from stribeck.exports.import_task import ImportTask, torque_controlled, torque_driven, voltage_controlled
from stribeck.identify.robot.tree import strip_mjcf
from stribeck.model.joint import Drive
from stribeck.strict import read_bytes


def import_joint(task: ImportTask) -> Drive:
    """Armature, friction and actuator of one joint.

    :raises ConfigError: for files that MuJoCo cannot read, joints that are missing or without a servo, and actuators other
        than motors, position controllers and ``<dcmotor>`` with a position controller.
    """
    model = _model(task.path)
    joints = {
        model.joint(int(model.actuator_trnid[k, 0])).name: k
        for k in range(len(model.actuator_trntype))
        if int(model.actuator_trntype[k]) == int(mujoco.mjtTrn.mjTRN_JOINT)
    }
    name = task.one_of(joints)
    k, dof = joints[name], int(model.joint(name).dofadr[0])
    values = {
        "armature": float(model.dof_armature[dof]),
        "friction_base": float(model.dof_frictionloss[dof]),
        "friction_viscous": float(model.dof_damping[dof]),
    }
    gain, bias = model.actuator_gainprm[k], model.actuator_biasprm[k]
    limited, force = bool(model.actuator_forcelimited[k]), float(model.actuator_forcerange[k, 1])
    if int(model.actuator_gaintype[k]) == int(getattr(mujoco.mjtGain, "mjGAIN_DCMOTOR", -1)):
        if limited:
            values["current_limit"] = force / float(gain[1])
        return voltage_controlled(
            task, float(gain[1]), float(gain[0]), float(gain[4]), float(gain[7]), values
        )
    if float(gain[0]) == 1.0 and not bias[:3].any() and limited:
        return torque_driven(task, force, values)
    if float(gain[0]) != -float(bias[1]) or not gain[0] or not limited:
        raise ConfigError(
            f"{task.path}: joint {name!r} needs a position actuator, or a motor with gain 1 and a force range: add one, or export the file again"
        )
    return torque_controlled(task, float(gain[0]), -float(bias[2]), force, values)


def _model(path: Path) -> mujoco.MjModel:
    """The model; a file to include gets a body for each of its joints."""
    text = read_bytes(path, ConfigError).decode(errors="replace")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314  # a file that MuJoCo also reads
        if root.find("worldbody") is not None or root.find("include") is not None:
            try:
                return mujoco.MjModel.from_xml_path(str(path))
            except ValueError:
                return _without_meshes(root)
        bodies = "".join(
            f'<body><joint name="{node.get("joint")}" class="{node.get("class")}"/><geom size="0.1"/></body>'
            for node in root.iterfind("actuator/*")
        )
        xml = f'<mujoco><include file="servo.xml"/><worldbody>{bodies}</worldbody></mujoco>'
        return mujoco.MjSpec.from_string(xml, include={"servo.xml": text.encode()}).compile()
    except (ValueError, ElementTree.ParseError, mujoco.FatalError) as problem:
        raise ConfigError(f"{path}: {problem}") from None


def _without_meshes(root: ElementTree.Element) -> mujoco.MjModel:
    """The model without meshes, whose files may be missing; masses that came from them do not matter here."""
    strip_mjcf(root)
    ElementTree.SubElement(root, "compiler", boundmass="1e-6", boundinertia="1e-9")
    return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
