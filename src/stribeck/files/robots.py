"""Robot arms and linear axes: one YAML file per machine, with sections for the commands that need them.

.. code-block:: yaml

    schema: 1
    name: tx40
    title: Staeubli TX40
    units: rotary
    urdf: tx40.urdf
    joints: [joint_1, joint_2]
    limits: {position: [[-1, 1], [-2, 2]], velocity: 3, acceleration: 20, effort: [50, 10]}
    identification: …              # `stribeck identify arm`
    excitation: …                  # `stribeck design trajectory`
    calibration: …                 # `stribeck identify geometry`

This module reads the shared keys; each command reads its own section.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from sysconfig import get_path
from typing import Any, Literal

from stribeck.errors import ConfigError
from stribeck.files.commented_yaml import check_filled_in
from stribeck.files.folders import included_file
from stribeck.files.schema import Positive, Schema, read_yaml
from stribeck.model.actuator import JointUnits

SECTIONS = ("identification", "excitation", "calibration")

PerJoint = float | tuple[float, ...]
"""One number for all joints, or one for each joint."""


class RobotLimits(Schema):
    """Limits of the joints: one number for all, or a list with one for each.

    :param position: pairs ``[lower, upper]``, one for each joint [rad or m].
    :param velocity: [rad/s or m/s].
    :param acceleration: [rad/s² or m/s²].
    :param effort: [N m or N].
    """

    position: tuple[tuple[float, float], ...] | None = None
    velocity: Positive | tuple[Positive, ...] | None = None
    acceleration: Positive | tuple[Positive, ...] | None = None
    effort: Positive | tuple[Positive, ...] | None = None

    def __post_init__(self) -> None:
        if not all(lower < upper for lower, upper in self.position or ()):
            raise ValueError(f"position: lower limits must be below upper ones, found {self.position}")


@dataclass(frozen=True, kw_only=True)
class MachineFile:
    """The keys of a machine's file.

    :param schema: version of the format.
    :param name: short name.
    :param title: full name; the short name if left out.
    :param units: ``rotary`` (rad, N m) or ``linear`` (m, N).
    :param urdf: file name of the URDF, searched next to the data, next to this file, and in example-robot-data.
    :param joints: names of the joints in the order of the data; if empty, all movable joints of the URDF.
    :param limits: limits of the joints; those of the URDF if left out.
    :param identification: how recordings are read and what is identified (``stribeck identify arm``).
    :param excitation: inputs of the design of exciting trajectories (``stribeck design trajectory``).
    :param calibration: nominal geometry and measurements (``stribeck identify geometry``).
    """

    schema: Literal[1]
    name: str
    title: str = ""
    units: JointUnits = "rotary"
    urdf: str | None = None
    joints: tuple[str, ...] = ()
    limits: RobotLimits = field(default_factory=RobotLimits)
    identification: dict[str, Any] | None = None
    excitation: dict[str, Any] | None = None
    calibration: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if len(set(self.joints)) < len(self.joints):
            raise ValueError(f"joints: names must be different, found {list(self.joints)}")


@dataclass(frozen=True, kw_only=True)
class RobotConfig(MachineFile):
    """A machine's file and its path."""

    path: Path

    @property
    def sections(self) -> dict[str, Mapping[str, Any]]:
        """The sections that the file has, by name."""
        return {name: found for name in SECTIONS if (found := getattr(self, name)) is not None}

    def section(self, name: str) -> Mapping[str, Any]:
        """The section of a command.

        :raises ConfigError: if it is missing.
        """
        if name not in self.sections:
            raise ConfigError(
                f"{self.path} has no section {name!r}; it has {', '.join(self.sections) or 'none'}"
            )
        return self.sections[name]

    def limit(self, name: str, joints: int) -> tuple[float, ...] | None:
        """Velocity, acceleration or effort limit of each joint, ``None`` if the file gives none.

        :raises ConfigError: for a list of the wrong length.
        """
        return per_joint(getattr(self.limits, name), joints, f"{self.path}: limits: {name}")

    def position_limits(self, joints: int) -> tuple[tuple[float, float], ...] | None:
        """``(lower, upper)`` of each joint, ``None`` if the file gives none.

        :raises ConfigError: for the wrong number of pairs.
        """
        pairs = self.limits.position
        if pairs is not None and len(pairs) != joints:
            raise ConfigError(
                f"{self.path}: limits: position: expected {joints} pairs [lower, upper], found {len(pairs)}"
            )
        return pairs

    def of_joints(self, all_joints: Sequence[str], joints: Sequence[str]) -> RobotConfig:
        """The machine with some of its joints, and their limits.

        :param all_joints: names of the joints to which limits belong.
        """
        kept = [list(all_joints).index(joint) for joint in joints]
        limits = {
            name: tuple(value[k] for k in kept) if isinstance(value, tuple) else value
            for name in RobotLimits.__struct_fields__
            if (value := getattr(self.limits, name)) is not None
        }
        return replace(self, joints=tuple(joints), limits=RobotLimits(**limits))

    def find_urdf(self, beside: Sequence[Path]) -> Path | None:
        """Find the URDF ``beside`` data files, beside this file, or in example-robot-data; ``None`` if the file names none.

        :raises ConfigError: if it is not found.
        """
        if self.urdf is None:
            return None
        folders = [
            *dict.fromkeys(path if path.is_dir() else path.parent for path in beside),
            self.path.parent,
        ]
        places = [folder / self.urdf for folder in folders] + example_robots(self.urdf)
        for place in places:
            if place.is_file():
                return place
        looked = ", ".join(str(folder) for folder in folders)
        raise ConfigError(
            f"{self.path}: no file {self.urdf} in {looked}, nor in example-robot-data: put it beside the data "
            "or the YAML file, or run pip install example-robot-data if that package contains the robot"
        )


def example_robots(name: str) -> list[Path]:
    """Files of that name among the robots of example-robot-data, empty if it is not installed.

    :param name: file name, or the end of a path, for example ``panda_description/urdf/panda.urdf``.
    """
    prefixes = [
        Path(folder) / "cmeel.prefix" for folder in dict.fromkeys((get_path("platlib"), get_path("purelib")))
    ]
    prefixes += [
        Path(sys.prefix),
        *(Path(folder) for folder in os.environ.get("AMENT_PREFIX_PATH", "").split(":")),
    ]
    roots = (prefix / "share" / "example-robot-data" / "robots" for prefix in prefixes)
    paths = (path for root in roots if root.is_dir() for path in sorted(root.glob(f"**/{name}")))
    return list(dict.fromkeys(paths))


def read_robot(name: str) -> RobotConfig:
    """Read a machine by name, or from the path of a YAML file.

    :raises ConfigError: for unknown names and invalid files.
    """
    path = included_file("robots", "robot", name)
    return robot_of(read_yaml(path, MachineFile), path)


def robot_of(content: MachineFile, path: Path) -> RobotConfig:
    """A machine of the content of a file.

    :param path: of the file, for messages and for what lies beside it.
    :raises ConfigError: for values that have to be filled in.
    """
    check_filled_in({name: getattr(content, name) for name in SECTIONS}, path)
    keys = {field.name: getattr(content, field.name) for field in fields(content)}
    return RobotConfig(path=path, **{**keys, "title": content.title or content.name})


def per_joint(value: PerJoint | None, joints: int, where: str) -> tuple[float, ...] | None:
    """Expand a single number to one for each joint.

    :raises ConfigError: for a list of the wrong length.
    """
    if value is None:
        return None
    if not isinstance(value, tuple):
        return (value,) * joints
    if len(value) != joints:
        raise ConfigError(f"{where}: expected {joints} numbers, found {len(value)}")
    return value
