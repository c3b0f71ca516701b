"""The rigid bodies of a robot: inertia and torques along a motion, from URDF or MJCF, by MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import mujoco
import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.strict import read_text

Array = npt.NDArray[np.float64]

DECORATION = ("visual", "collision", "transmission", "gazebo")
"""Elements of a URDF that are not needed, and whose meshes may be missing."""


class Load(NamedTuple):
    r"""What a joint carries along a motion, without its own drive.

    :param inertia: :math:`M_{jj}(q)` (T, J) [kg m²].
    :param torque: external torque without gravity :math:`-\sum_{i \ne j} M_{ji}\ddot q_i - (C\dot q)_j` (T, J) [N m].
    :param gravity: torque for a gravitational acceleration of 1 m/s² along each axis of the base (T, J, 3) [N m s²/m].
    """

    inertia: Array
    torque: Array
    gravity: Array


@dataclass(frozen=True, eq=False)
class RobotTree:
    """A robot with a fixed or hung base, whose floating base is removed.

    :param model: compiled; without friction, damping, armature, contacts, limits and actuators.
    :param names: of the joints that move, in the order of the model.
    :param hung: whether the model had a floating base, whose attitude is then unknown.
    :param limits: largest motor torque of each joint [N m], infinite where the model has none (J,).
    """

    path: Path
    model: Any
    names: tuple[str, ...]
    limits: Array
    hung: bool = False

    @cached_property
    def data(self) -> Any:
        """The state on which the torques are computed."""
        return mujoco.MjData(self.model)

    @cached_property
    def range(self) -> tuple[Array, Array]:
        """Lowest and highest positions [rad], infinite where the model has none."""
        limited = self.model.jnt_limited.astype(bool)
        lower, upper = self.model.jnt_range.T
        return np.where(limited, lower, -np.inf), np.where(limited, upper, np.inf)

    @cached_property
    def diagonal(self) -> npt.NDArray[np.intp]:
        """Where the diagonal of the sparse inertia matrix is."""
        return np.asarray(self.model.M_rowadr + self.model.M_rownnz - 1)

    def external(self, data: Any, acceleration: Array) -> Array:
        r"""External torque :math:`\tau_{e,j} = -\sum_{i \ne j} M_{ji}\ddot q_i - h_j(q, \dot q)` (J,) [N m].

        It holds what gravity and the motion of the other joints ask of joint j, not the inertia of its own motion, as on a
        pendulum, of which gravity alone is external.

        :param data: state with the inertia matrix and ``qfrc_bias``, which is h.
        :param acceleration: :math:`\ddot q` (J,) [rad/s²].
        """
        whole = np.empty(len(acceleration))
        mujoco.mj_mulM(self.model, data, whole, acceleration)
        return np.asarray(data.M[self.diagonal] * acceleration - whole - data.qfrc_bias)

    def loads(self, position: Array, velocity: Array, acceleration: Array) -> Load:
        """Inertias and torques along a motion (T, J), by recursive Newton-Euler."""
        model, data, count = self.model, self.data, len(self.names)
        inertia, torque = np.empty((2, *position.shape))
        gravity = np.empty((*position.shape, 3))
        result, diagonal = np.empty(count), self.diagonal
        model.opt.gravity[:] = 0.0
        for k in range(len(position)):
            data.qpos[:], data.qvel[:], data.qacc[:] = position[k], velocity[k], acceleration[k]
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_crb(model, data)
            mujoco.mj_comVel(model, data)
            mujoco.mj_rne(model, data, 0, data.qfrc_bias)
            inertia[k] = data.M[diagonal]
            torque[k] = self.external(data, acceleration[k])
            data.qvel[:] = 0.0
            mujoco.mj_comVel(model, data)
            for axis in range(3):
                model.opt.gravity[:] = 0.0
                model.opt.gravity[axis] = 1.0
                mujoco.mj_rne(model, data, 0, result)
                gravity[k, :, axis] = -result
            model.opt.gravity[:] = 0.0
        return Load(inertia, torque, gravity)


def load_tree(path: Path) -> RobotTree:
    """Read a robot from a URDF or MJCF file; meshes may be missing.

    :raises ConfigError: if the file cannot be read, or has no joint that turns.
    """
    try:
        root = ElementTree.fromstring(read_text(path, ConfigError))  # noqa: S314 - a file of the user
    except ElementTree.ParseError as error:
        raise ConfigError(f"{path} is not XML: {error}; give a URDF or MJCF file") from None
    if root.tag not in ("robot", "mujoco"):
        raise ConfigError(f"{path}: the root element is {root.tag}, expected robot (URDF) or mujoco (MJCF)")
    hung = any(joint.tag == "freejoint" or joint.get("type") in ("free", "floating") for joint in root.iter())
    (_strip_urdf if root.tag == "robot" else strip_mjcf)(root)
    try:
        model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
    except ValueError as error:
        raise ConfigError(f"{path}: MuJoCo cannot read the model: {error}") from None
    for kind, name in zip(model.jnt_type, _joint_names(model), strict=True):
        if kind not in (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)):
            raise ConfigError(
                f"{path}: joint {name} is neither revolute nor prismatic: replace it by joints of these types"
            )
    if model.njnt == 0:
        raise ConfigError(f"{path} has no movable joint: at least one is needed")
    limits = _torque_limits(model)
    for values in (model.dof_damping, model.dof_frictionloss, model.dof_armature, model.jnt_stiffness):
        values[:] = 0.0
    flags = mujoco.mjtDisableBit
    for flag in (flags.mjDSBL_CONTACT, flags.mjDSBL_LIMIT, flags.mjDSBL_ACTUATION):
        model.opt.disableflags |= flag
    # The solver reads the friction of islands from copies, which do not follow a friction that changes within a step.
    model.opt.disableflags |= getattr(flags, "mjDSBL_ISLAND", 0)
    return RobotTree(path, model, _joint_names(model), limits, hung)


def gravity_vector(tilt: Sequence[float] | Array) -> Array:
    """Gravitational acceleration in the base [m/s²], from its x and y components."""
    x, y = np.asarray(tilt, dtype=float)
    return np.array([x, y, -np.sqrt(STANDARD_GRAVITY**2 - x * x - y * y)])


def _joint_names(model: Any) -> tuple[str, ...]:
    return tuple(model.joint(index).name for index in range(model.njnt))


def _strip_urdf(root: ElementTree.Element) -> None:
    """Remove decoration; keep bodies as they are."""
    for parent in root.iter():
        for child in [item for item in parent if item.tag in DECORATION]:
            parent.remove(child)
    extension = root.find("mujoco")
    if extension is None:
        extension = ElementTree.SubElement(root, "mujoco")
    for compiler in extension.findall("compiler"):
        extension.remove(compiler)
    ElementTree.SubElement(extension, "compiler", {"fusestatic": "true", "discardvisual": "true"})


def strip_mjcf(root: ElementTree.Element) -> None:
    """Remove meshes, floating base, actuators and what refers to them."""
    for tag in ("asset", "sensor", "keyframe", "contact", "equality", "tendon", "visual"):
        for element in root.findall(tag):
            root.remove(element)
    for parent in root.iter():
        for child in list(parent):
            drawn = (child.tag == "geom" and "mesh" in (child.get("type"), child.tag)) or child.get("mesh")
            if child.tag == "freejoint" or (child.tag == "joint" and child.get("type") == "free") or drawn:
                parent.remove(child)
            for reference in ("material", "hfield"):
                child.attrib.pop(reference, None)


def _torque_limits(model: Any) -> Array:
    """Largest torques [N m]: of a URDF's ``effort``, or the force range, else the control range of a motor, in MJCF."""
    limits = np.full(model.nv, np.inf)
    limited = model.jnt_actfrclimited.astype(bool)
    limits[limited] = model.jnt_actfrcrange[limited, 1]
    for index in np.flatnonzero(model.actuator_trntype == int(mujoco.mjtTrn.mjTRN_JOINT)):
        motor = model.actuator_biastype[index] == int(mujoco.mjtBias.mjBIAS_NONE)
        bound = np.inf
        if model.actuator_forcelimited[index]:
            bound = model.actuator_forcerange[index, 1]
        elif motor and model.actuator_ctrllimited[index]:
            bound = model.actuator_ctrlrange[index, 1] * model.actuator_gainprm[index, 0]
        joint = model.actuator_trnid[index, 0]
        limits[joint] = min(limits[joint], abs(bound * model.actuator_gear[index, 0]))
    return limits
