"""Export of the identified arm as a URDF: the nominal file with identified inertials."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from stribeck.identify.arm.inertia import about_com
from stribeck.identify.arm.model import INERTIALS
from stribeck.model.arrays import Array
from stribeck.rigid.urdf import INERTIA_ENTRIES


def urdf_with_inertials(path: Path, joints: tuple[str, ...], inertials: Array) -> str:
    """Text of a URDF with the inertials of the moving bodies replaced.

    A joint moves its child link and all links fixed to it, and torques depend only on the sum of their inertials. The
    child link gets the whole inertial, and the links fixed to it get none.

    :param inertials: standard inertial parameters (n, 10), in the joint frames.
    """
    tree = ElementTree.parse(path)  # noqa: S314 - expat expands no external entities; the file was loaded before
    root = tree.getroot()
    links = {link.get("name"): link for link in root.findall("link")}
    children = {joint.get("name"): _name_of(joint, "child") for joint in root.findall("joint")}
    for joint, values in zip(joints, inertials.reshape(-1, INERTIALS), strict=True):
        for name in _fixed_to(root, children[joint], joints):
            for element in links[name].findall("inertial"):
                links[name].remove(element)
        links[children[joint]].append(_inertial(values))
    ElementTree.indent(tree)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _name_of(joint: ElementTree.Element, role: str) -> str | None:
    element = joint.find(role)
    return None if element is None else element.get("link")


def _fixed_to(root: ElementTree.Element, link: str | None, moving: tuple[str, ...]) -> list[str | None]:
    """A link and all links connected to it by fixed or locked joints."""
    links, todo = [], [link]
    while todo:
        here = todo.pop()
        links.append(here)
        todo += [
            _name_of(joint, "child")
            for joint in root.findall("joint")
            if _name_of(joint, "parent") == here and joint.get("name") not in moving
        ]
    return links


def _inertial(values: Array) -> ElementTree.Element:
    mass, com, inertia = about_com(values)
    element = ElementTree.Element("inertial")
    ElementTree.SubElement(element, "origin", xyz=" ".join(map(repr, com.tolist())), rpy="0 0 0")
    ElementTree.SubElement(element, "mass", value=repr(float(mass)))
    entries = {name: repr(float(inertia[row, column])) for name, row, column in INERTIA_ENTRIES}
    ElementTree.SubElement(element, "inertia", entries)
    return element
