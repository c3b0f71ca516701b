"""Reader of URDF files: joints, links and inertials, without Pinocchio.

It reads `<joint>` with `<origin>`, `<axis>`, `<parent>`, `<child>`, `<mimic>`, and `<link>` with `<inertial>`, see
https://wiki.ros.org/urdf/XML; all other elements (meshes, transmissions, Gazebo) are ignored; :func:`joint_limits` reads `<limit>`.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError, check_valid
from stribeck.model.arrays import Array
from stribeck.rigid.payload import Payload
from stribeck.rigid.rigid_body import GRAVITY, RigidBodyModel
from stribeck.rigid.tree import BASE, KinematicTree, TreeJoint, pose_of, pseudo_inertia_of
from stribeck.strict import read_bytes

MOVABLE = ("revolute", "continuous", "prismatic")
KINDS = (*MOVABLE, "fixed")

ROUNDING = 1e-6
"""Tolerance of checks on principal moments of inertia, relative to the largest: numbers in files are rounded."""

NEGLIGIBLE = 1e-6
"""Negative principal moments of inertia down to minus this [kg m²] are only a warning: Tiago's antennas have them."""

INERTIA_ENTRIES = (
    ("ixx", 0, 0),
    ("ixy", 0, 1),
    ("ixz", 0, 2),
    ("iyy", 1, 1),
    ("iyz", 1, 2),
    ("izz", 2, 2),
)


@dataclass(frozen=True, eq=False)
class Urdf:
    """Content of a URDF.

    :param source: file or topic, for messages.
    :param tree: all joints, including fixed ones, parents before children; links are its frames.
    :param kinds: type of each joint in the file, by name.
    :param mimics: mimic joints, and the joint that each follows.
    :param doubts: one line for each inertial that is physically impossible but usable in computations.
    """

    source: str
    tree: KinematicTree
    kinds: Mapping[str, str]
    mimics: Mapping[str, str]
    doubts: tuple[str, ...]

    @property
    def movable(self) -> tuple[str, ...]:
        """Names of the revolute and prismatic joints, including mimic joints."""
        return tuple(name for name in self.tree.names if self.kinds[name] in MOVABLE)

    def with_payload(self, payload: Payload) -> Urdf:
        """The robot with a payload fixed to a link.

        :raises ConfigError: for a link that is not there, or does not move.
        """
        body, pose = self.tree.frames.get(payload.link, (BASE, None))
        if pose is None or body == BASE:
            moving = ", ".join(name for name, (index, _) in self.tree.frames.items() if index != BASE)
            raise ConfigError(
                f"{self.source}: no moving link {payload.link!r} for a payload; valid: {moving}"
            )
        added = pose @ payload.pseudo_inertia @ pose.T
        return replace(self, tree=self.tree.with_inertias(lambda i: added if i == body else np.zeros((4, 4))))

    def model(
        self,
        joints: Sequence[str] = (),
        gravity: npt.ArrayLike = GRAVITY,
        armature: npt.ArrayLike | None = None,
    ) -> RigidBodyModel:
        """The dynamics of joints in the given order; others are locked at 0.

        :param joints: joints that move; empty: all but mimic joints, in the order of the tree.
        :param gravity: acceleration of free fall in the frame of the root link (3,) [m/s²].
        :param armature: inertia of the rotors at the joints (n,); none if left out.
        :raises ConfigError: for unknown, fixed, mimic or repeated joints.
        """
        moving = self.movable
        if not moving:
            raise ConfigError(
                f"{self.source}: all joints are fixed; at least one must be {', '.join(MOVABLE)}"
            )
        check_valid(joints, moving, f"{self.source}: no movable joint")
        mimics = [name for name in joints if name in self.mimics]
        if mimics:
            raise ConfigError(
                f"{self.source}: joint {', '.join(mimics)} follows another one (mimic): remove it from the joints; it is then locked"
            )
        if len(set(joints)) < len(joints):
            raise ConfigError(f"{self.source}: the joints must be different, found {', '.join(joints)}")
        chosen = joints or [name for name in moving if name not in self.mimics]
        if not chosen:
            raise ConfigError(f"{self.source}: all joints follow others (mimic): at least one must be free")
        return RigidBodyModel(self.tree.reduced(moving).reduced(chosen), gravity, armature)


def read_urdf(path: Path) -> Urdf:
    """Read the robot of a URDF file.

    :raises ConfigError: for files that are not a URDF, and robots that are not a tree of bodies.
    """
    return _robot(robot_element(path), str(path))


def parse_urdf(text: str, source: str = "robot_description") -> Urdf:
    """Parse a URDF given as text, for example from the topic ``/robot_description``.

    :param source: its name in messages.
    :raises ConfigError: see :func:`read_urdf`.
    """
    return _robot(_parsed(text, source), source)


def robot_element(path: Path) -> ElementTree.Element:
    """The element ``<robot>`` of a URDF file.

    :raises ConfigError: for files that cannot be read, are not XML, declare entities, or are not a URDF.
    """
    return _parsed(read_bytes(path, ConfigError), str(path))


def movable_joints(root: ElementTree.Element) -> tuple[list[str], list[str]]:
    """Names of the movable joints of an element ``<robot>``, and of the mimic joints among them."""
    movable = [joint for joint in root.findall("joint") if joint.get("type") in MOVABLE]
    mimics = [joint.get("name", "") for joint in movable if joint.find("mimic") is not None]
    return [joint.get("name", "") for joint in movable], mimics


class JointLimit(NamedTuple):
    """Limits of a joint; 0 where the file states none.

    :param velocity: [rad/s], of prismatic joints [m/s].
    :param effort: [N m], of prismatic joints [N].
    """

    velocity: float
    effort: float


def joint_limits(path: Path) -> dict[str, JointLimit]:
    """Limits of velocity and effort of the movable joints, by name.

    :raises ConfigError: for a file that is no URDF, and for limits that are no finite numbers of at least 0.
    """
    found = {}
    for joint in robot_element(path).iter("joint"):
        name, limit = joint.get("name", ""), joint.find("limit")
        if joint.get("type") not in MOVABLE:
            continue
        values = []
        for key in JointLimit._fields:
            text = "0" if limit is None else limit.get(key, "0")
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not (math.isfinite(value) and value >= 0.0):
                raise ConfigError(
                    f"{path}: joint {name!r}: the limit of {key} must be a finite number of at least 0, found {text!r}"
                )
            values.append(value)
        found[name] = JointLimit(*values)
    return found


class _WithoutDoctype(ElementTree.TreeBuilder):
    """Rejects a DOCTYPE before its entities, which can expand without bound."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError("the file contains a DOCTYPE, which is not needed: remove it")


def _parsed(content: str | bytes, source: str) -> ElementTree.Element:
    parser = ElementTree.XMLParser(target=_WithoutDoctype())  # noqa: S314 - without DOCTYPE there are no entities
    try:
        parser.feed(content)
        root: ElementTree.Element = parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as problem:
        raise ConfigError(f"{source} is not a URDF: {problem}") from None
    if root.tag != "robot":
        raise ConfigError(f"{source} is not a URDF: its root is <{root.tag}>, expected <robot>")
    if any("xacro" in element.tag for element in root.iter() if isinstance(element.tag, str)):
        raise ConfigError(f"{source} is a xacro file: expand it first with `xacro {source} > robot.urdf`")
    return root


def _robot(root: ElementTree.Element, source: str) -> Urdf:
    doubts: list[str] = []
    bodies = {
        name: _pseudo_inertia(link, f"{source}: link {name}", doubts)
        for name, link in _named(root, "link", source).items()
    }
    if not bodies:
        raise ConfigError(f"{source} contains no <link>: a robot needs links and joints")
    joints = _named(root, "joint", source)
    ends = {name: _ends(joint, f"{source}: joint {name}", bodies) for name, joint in joints.items()}
    order = _ordered(ends, list(bodies), source)
    index = {ends[name][1]: k for k, name in enumerate(order)}
    kinds = {name: _kind(joints[name], f"{source}: joint {name}") for name in order}
    tree_joints = []
    for name in order:
        what, kind = f"{source}: joint {name}", kinds[name]
        parent, child = ends[name]
        axis = np.zeros(3) if kind == "fixed" else _axis(joints[name], what)
        tree_joints.append(
            TreeJoint(
                name,
                "revolute" if kind == "continuous" else kind,
                index.get(parent, BASE),
                _origin(joints[name], what),
                axis,
                bodies[child],
            )
        )
    frames = {link: (index.get(link, BASE), np.eye(4)) for link in bodies}
    # A joint's frame is that of its child link, and can be referred to once the joint is fixed or locked.
    frames = {name: (k, np.eye(4)) for k, name in enumerate(order)} | frames
    mimics = {
        name: mimic.get("joint", "")
        for name in order
        if kinds[name] in MOVABLE and (mimic := joints[name].find("mimic")) is not None
    }
    return Urdf(source, KinematicTree(tuple(tree_joints), frames), kinds, mimics, tuple(doubts))


def _named(root: ElementTree.Element, tag: str, source: str) -> dict[str, ElementTree.Element]:
    elements: dict[str, ElementTree.Element] = {}
    for element in root.findall(tag):
        name = element.get("name", "")
        if not name:
            raise ConfigError(f"{source}: a <{tag}> has no name: give it one")
        if name in elements:
            raise ConfigError(f"{source}: {tag} {name} occurs twice: give each a different name")
        elements[name] = element
    return elements


def _kind(joint: ElementTree.Element, what: str) -> str:
    kind = joint.get("type", "")
    if kind in ("floating", "planar"):
        raise ConfigError(
            f"{what} is {kind}, which is not supported; valid: {', '.join(KINDS)}. If the base stands still, make the joint fixed"
        )
    check_valid(kind, KINDS, f"{what}: unknown type")
    return kind


def _ends(joint: ElementTree.Element, what: str, links: Mapping[str, Any]) -> tuple[str, str]:
    ends = []
    for role in ("parent", "child"):
        element = joint.find(role)
        link = "" if element is None else element.get("link", "")
        if link not in links:
            problem = f"unknown {role} link {link!r}" if link else f"no {role} link"
            raise ConfigError(f"{what}: {problem}; expected one of the {len(links)} links of the file")
        ends.append(link)
    return ends[0], ends[1]


def _ordered(ends: Mapping[str, tuple[str, str]], links: list[str], source: str) -> list[str]:
    """Joints from the root outwards, depth first."""
    above: dict[str, str] = {}
    below: dict[str, list[str]] = {link: [] for link in links}
    for name, (parent, child) in ends.items():
        if child in above:
            raise ConfigError(
                f"{source}: link {child} has two parent joints, {above[child]} and {name}, but a tree allows only one: remove a joint of the loop"
            )
        above[child] = name
        below[parent].append(name)
    roots = [link for link in links if link not in above]
    if len(roots) > 1:
        shown = ", ".join(roots[:5]) + (", …" if len(roots) > 5 else "")
        raise ConfigError(
            f"{source}: {len(roots)} links have no parent joint ({shown}), but only the root may have none: connect the others"
        )
    order: list[str] = []
    todo = [name for root in roots for name in reversed(below[root])]
    while todo:
        name = todo.pop()
        order.append(name)
        todo += reversed(below[ends[name][1]])
    if len(order) < len(ends):
        left = next(name for name in ends if name not in set(order))
        raise ConfigError(
            f"{source}: joint {left} is part of a loop, but the joints must form a tree: remove a joint of the loop"
        )
    return order


def _numbers(text: str, what: str, count: int, unit: str) -> Array:
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.array([math.nan])
    if len(values) != count or not np.all(np.isfinite(values)):
        expected = "a finite number" if count == 1 else f"{count} finite numbers"
        raise ConfigError(f"{what}: expected {expected}{unit}, found {text[:60]!r}")
    return values


def _origin(element: ElementTree.Element, what: str) -> Array:
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    xyz = _numbers(origin.get("xyz", "0 0 0"), f"{what}: origin xyz", 3, " [m]")
    return pose_of(xyz, _numbers(origin.get("rpy", "0 0 0"), f"{what}: origin rpy", 3, " [rad]"))


def _axis(joint: ElementTree.Element, what: str) -> Array:
    element = joint.find("axis")
    axis = _numbers("1 0 0" if element is None else element.get("xyz", "1 0 0"), f"{what}: axis", 3, "")
    length = float(np.linalg.norm(axis))
    if not length > 0.0:
        raise ConfigError(f"{what}: the axis is zero: give a direction such as 0 0 1")
    return axis / length


def _pseudo_inertia(link: ElementTree.Element, what: str, doubts: list[str]) -> Array:
    """Pseudo-inertia (4, 4) of a link in its frame; zero without ``<inertial>``."""
    inertial = link.find("inertial")
    if inertial is None:
        return np.zeros((4, 4))
    mass = _value(inertial.find("mass"), "value", f"{what}: mass", " [kg]")
    if mass < 0.0:
        raise ConfigError(f"{what}: the mass must not be negative, found {mass:g} kg")
    about, element = np.zeros((3, 3)), inertial.find("inertia")
    for name, row, column in INERTIA_ENTRIES:
        about[row, column] = about[column, row] = _value(
            element, name, f"{what}: inertia {name}", " [kg m^2]"
        )
    moments = np.linalg.eigvalsh(about)
    rounding = ROUNDING * float(np.abs(moments).max())
    shown = ", ".join(f"{moment:.3g}" for moment in moments)
    if moments[0] < -max(rounding, NEGLIGIBLE):
        raise ConfigError(
            f"{what}: principal moments of inertia must not be negative, found {shown} kg m^2: check the signs and the products of inertia"
        )
    if moments[0] < -rounding or moments[2] - moments[0] - moments[1] > rounding:
        doubts.append(
            f"{what}: principal moments of inertia {shown} kg m^2 are impossible: none may be negative, or larger than the sum of the other two"
        )
    pose = _origin(inertial, f"{what}: inertial")
    return np.asarray(pose @ pseudo_inertia_of(mass, np.zeros(3), about) @ pose.T)


def _value(element: ElementTree.Element | None, name: str, what: str, unit: str) -> float:
    if element is None or name not in element.attrib:
        raise ConfigError(f"{what} is missing: an <inertial> needs a mass and all six entries of inertia")
    return float(_numbers(element.attrib[name], what, 1, unit)[0])
