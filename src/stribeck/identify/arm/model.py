r"""Rigid-body model of a robot arm, based on Pinocchio, and the regressor of its inertial parameters.

Joint torques are linear in the ten inertial parameters of each link, :math:`\tau = Y(q, \dot q, \ddot q)\,\pi` with
:math:`\pi_i = (m, m c_x, m c_y, m c_z, I_{xx}, I_{xy}, I_{yy}, I_{xz}, I_{yz}, I_{zz})`. The inertia is about the
origin of the joint frame (Atkeson, An, Hollerbach 1986).
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from stribeck.errors import ConfigError, check_valid
from stribeck.model.arrays import Array, Mask
from stribeck.rigid.urdf import movable_joints, parse_urdf, robot_element

INERTIAL_NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Inertial parameters of one link, in the order of the regressor [kg, kg m, kg m^2]."""

INERTIALS = len(INERTIAL_NAMES)


@dataclass(frozen=True)
class ArmModel:
    """A serial or tree-structured arm of joints with one degree of freedom.

    :param model: Pinocchio model; unused joints are locked.
    :param joints: names of the joints, in the order of all arrays.
    """

    model: Any
    joints: tuple[str, ...]
    path: Path

    def __len__(self) -> int:
        return len(self.joints)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the standard inertial parameters, ``m_<joint>`` and so on, (10 n,)."""
        return tuple(f"{name}_{joint}" for joint in self.joints for name in INERTIAL_NAMES)

    @property
    def inertials(self) -> Array:
        """Standard inertial parameters of the URDF, (10 n,)."""
        return np.concatenate([self.model.inertias[j].toDynamicParameters() for j in self._ids])

    @property
    def linear(self) -> Mask:
        """Which joints are prismatic, with positions in m and efforts in N, (n,)."""
        return np.array([self.model.joints[j].shortname().startswith("JointModelP") for j in self._ids])

    @property
    def effort_limits(self) -> Array:
        """Effort limits from the URDF [N m], (n,); zero if missing."""
        return np.array([float(self.model.effortLimit[self.model.idx_vs[j]]) for j in self._ids])

    @property
    def velocity_limits(self) -> Array:
        """Velocity limits from the URDF [rad/s], (n,); zero if missing."""
        return np.array([float(self.model.velocityLimit[self.model.idx_vs[j]]) for j in self._ids])

    @property
    def position_limits(self) -> tuple[Array, Array]:
        """Lower and upper position limits from the URDF [rad], (n,) each; ±inf for continuous joints."""
        lower, upper = np.full(len(self), -np.inf), np.full(len(self), np.inf)
        for k, j in enumerate(self._ids):
            if self.model.nqs[j] == 1:
                lower[k] = self.model.lowerPositionLimit[self.model.idx_qs[j]]
                upper[k] = self.model.upperPositionLimit[self.model.idx_qs[j]]
        return lower, upper

    @property
    def _ids(self) -> list[int]:
        return [self.model.getJointId(joint) for joint in self.joints]

    @property
    def _order(self) -> list[int]:
        """Index of each joint in Pinocchio's velocity vector."""
        return [self.model.idx_vs[j] for j in self._ids]

    def configuration(self, position: Array) -> Array:
        """Pinocchio configuration for joint positions, (n,) or (N, n)."""
        position = np.asarray(position, dtype=np.float64)
        q = np.zeros((*position.shape[:-1], self.model.nq))
        for k, j in enumerate(self._ids):
            at = self.model.idx_qs[j]
            if self.model.nqs[j] == 1:
                q[..., at] = position[..., k]
            else:  # continuous joint: cosine and sine
                q[..., at], q[..., at + 1] = np.cos(position[..., k]), np.sin(position[..., k])
        return q

    def tangent(self, rates: Array) -> Array:
        """Joint velocities or accelerations in Pinocchio's order, same shape."""
        rates = np.asarray(rates, dtype=np.float64)
        tangent = np.empty_like(rates)
        tangent[..., self._order] = rates
        return tangent

    def regressor(self, position: Array, velocity: Array, acceleration: Array) -> Array:
        r"""Regressor :math:`Y` of the standard inertial parameters, (N, n, 10 n).

        :param position, velocity, acceleration: joint states (N, n) [rad, rad/s, rad/s^2].
        """
        data = self.model.createData()
        q, v, a = self.configuration(position), self.tangent(velocity), self.tangent(acceleration)
        n = len(self)
        regressor = np.empty((len(q), n, INERTIALS * n))
        rows = self._order
        columns = np.concatenate([np.arange(INERTIALS) + INERTIALS * (j - 1) for j in self._ids])
        plain = rows == list(range(n)) and bool(np.all(columns == np.arange(INERTIALS * n)))
        for i in range(len(q)):
            one = pin.computeJointTorqueRegressor(self.model, data, q[i], v[i], a[i])
            regressor[i] = one if plain else one[rows][:, columns]
        return regressor

    def inverse_dynamics(
        self, position: Array, velocity: Array, acceleration: Array, inertials: Array | None = None
    ) -> Array:
        """Torques of the rigid arm by the recursive Newton-Euler algorithm, (N, n) [N m].

        :param position, velocity, acceleration: joint states (N, n).
        :param inertials: standard inertial parameters (10 n,); default: those of the URDF.
        """
        model = self.model if inertials is None else self.with_inertials(inertials).model
        data = model.createData()
        q, v, a = self.configuration(position), self.tangent(velocity), self.tangent(acceleration)
        torques = np.array([pin.rnea(model, data, *state) for state in zip(q, v, a, strict=True)])
        return torques.reshape(len(q), len(self))[:, self._order]

    def with_inertials(self, inertials: Array) -> ArmModel:
        """The arm with other standard inertial parameters, (10 n,)."""
        model = self.model.copy()
        for j, values in zip(self._ids, np.reshape(inertials, (-1, INERTIALS)), strict=True):
            model.inertias[j] = pin.Inertia.FromDynamicParameters(values)
        return ArmModel(model, self.joints, self.path)


def load_arm(path: Path, joints: Sequence[str] = (), held: Mapping[str, float] | None = None) -> ArmModel:
    """Load an arm from a URDF.

    :param joints: joints that move, in the order of the data; others are locked. Empty: all but mimic joints.
    :param held: positions of locked joints [rad or m]; 0 if left out.
    :raises ConfigError: for an invalid URDF, joints that do not exist or do not move, mimic joints, and links without
        inertia.
    """
    moving, mimics = movable_joints(robot_element(path))
    if not moving:
        raise ConfigError(
            f"{path}: all joints are fixed; at least one must be revolute, continuous or prismatic"
        )
    check_valid(joints, moving, f"{path}: no movable joint")
    chosen = tuple(joints) or tuple(name for name in moving if name not in mimics)
    following = [name for name in chosen if name in mimics]
    if following:
        raise ConfigError(
            f"{path}: joint {', '.join(following)} follows another one (mimic): remove it from `joints`; it is then locked in its neutral position"
        )
    model = _build(path, chosen, held or {})
    if not joints:
        chosen = tuple(model.names)[1:]
    arm = ArmModel(model, chosen, path)
    crossed = [joint for joint, low, high in zip(chosen, *arm.position_limits, strict=True) if low > high]
    if crossed:
        raise ConfigError(
            f"{path}: the lower limit of {', '.join(crossed)} is above the upper one: swap them"
        )
    empty = [joint for joint, mass in zip(chosen, arm.inertials[::INERTIALS], strict=True) if not mass > 0.0]
    if empty:
        raise ConfigError(
            f"{path}: the links moved by {', '.join(empty)} have no mass: give them an <inertial> element"
        )
    return arm


def locked_urdf(path: Path, joints: Sequence[str], held: Mapping[str, float] | None = None) -> str:
    """Text of a URDF in which all joints but the given ones are fixed, and missing limits are zero.

    :param held: positions of fixed joints [rad or m]; 0 if left out.

    Pinocchio's own reduction of a model fails if a locked joint has the name of a link, its parser if limits are missing.
    """
    root = robot_element(path)
    for joint in root.findall("joint"):
        name = joint.get("name", "")
        if name not in joints:
            if at := (held or {}).get(name, 0.0):
                _move(joint, at)
            joint.set("type", "fixed")
            for mimic in joint.findall("mimic"):
                joint.remove(mimic)
        elif joint.get("type") != "continuous":
            limit = joint.find("limit")
            limit = ElementTree.SubElement(joint, "limit") if limit is None else limit
            limit.attrib = {"effort": "0", "velocity": "0"} | limit.attrib
    return ElementTree.tostring(root, encoding="unicode")


def _move(joint: ElementTree.Element, at: float) -> None:
    r"""Put a joint's child where it is at a position of the joint: :math:`T = T_0\,T_{joint}(q)`."""
    origin, axis = joint.find("origin"), joint.find("axis")
    origin = ElementTree.SubElement(joint, "origin") if origin is None else origin
    words = "1 0 0" if axis is None else axis.get("xyz", "1 0 0")
    along = np.array(words.split(), dtype=np.float64)
    along /= np.linalg.norm(along)
    xyz, rpy = (np.array(origin.get(key, "0 0 0").split(), dtype=np.float64) for key in ("xyz", "rpy"))
    turned = pin.rpy.rpyToMatrix(rpy)
    if joint.get("type") == "prismatic":
        xyz = xyz + turned @ along * at
    else:
        rpy = pin.rpy.matrixToRpy(turned @ pin.exp3(along * at))
    origin.set("xyz", " ".join(map(repr, xyz.tolist())))
    origin.set("rpy", " ".join(map(repr, rpy.tolist())))


def _build(path: Path, joints: Sequence[str], held: Mapping[str, float]) -> Any:
    text = locked_urdf(path, joints, held)
    parse_urdf(text, str(path))  # names what is wrong; Pinocchio prints it, or leaves the link out
    try:
        return pin.buildModelFromXML(text)
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"{path}: Pinocchio cannot read this URDF: {error}") from None
