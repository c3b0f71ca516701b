"""What is known of a robot arm or a linear axis: one YAML file per machine, read strictly.

.. code-block:: yaml

    schema: 1
    name: tx40
    title: Staeubli TX40
    units: rotary                  # or linear
    urdf: tx40.urdf                # beside the data, beside this file, or in example-robot-data
    joints: [joint_1, joint_2]     # in the order of the data; all that move if left out
    limits: {position: [[-1, 1], [-2, 2]], velocity: 3, acceleration: 20, effort: [50, 10]}
    identification: …              # `stribeck identify-arm`
    excitation: …                  # `stribeck excite`
    calibration: …                 # `stribeck calibrate`

Each verb reads its own section; this module reads what they share.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sysconfig import get_path
from typing import Any, Literal

from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.io.files import shared_directory

SECTIONS = ("identification", "excitation", "calibration")
LIMITS = ("position", "velocity", "acceleration", "effort")


@dataclass(frozen=True)
class RobotConfig:
    """A machine as its file describes it.

    :param path: the file.
    :param name: short name.
    :param title: name for people.
    :param units: ``rotary`` (rad, N m) or ``linear`` (m, N).
    :param urdf: file name of the URDF, ``None`` if there is none.
    :param joints: names of the joints in the order of the data; empty for all that the URDF moves.
    :param limits: of :data:`LIMITS`, what is given; see :meth:`limit`.
    :param sections: what the verbs read, by their names.
    """

    path: Path
    name: str
    title: str
    units: Literal["rotary", "linear"]
    urdf: str | None
    joints: tuple[str, ...]
    limits: Mapping[str, Any]
    sections: Mapping[str, Mapping[str, Any]]

    def section(self, name: str) -> Mapping[str, Any]:
        """The section of a verb.

        :raises ConfigError: if there is none.
        """
        if name not in self.sections:
            raise ConfigError(f"{self.path} has no section {name!r}; it has {', '.join(self.sections)}")
        return self.sections[name]

    def limit(self, name: str, joints: int) -> tuple[float, ...] | None:
        """Velocity, acceleration or effort limit of each joint; one number in the file is for all.

        :raises ConfigError: for a list of another length, or numbers that are not positive.
        """
        if name not in self.limits:
            return None
        what = f"{self.path}: limits: {name}"
        found = numbers(self.limits[name], what, joints)
        if not all(number > 0.0 for number in found):
            raise ConfigError(f"{what}: must be positive, found {self.limits[name]}")
        return found

    def position_limits(self, joints: int) -> tuple[tuple[float, float], ...] | None:
        """``(lower, upper)`` of each joint, ``None`` if the file gives none.

        :raises ConfigError: unless there is one pair in ascending order for each joint.
        """
        if "position" not in self.limits:
            return None
        what, given = f"{self.path}: limits: position", self.limits["position"]
        if not isinstance(given, list) or len(given) != joints:
            raise ConfigError(f"{what}: expected {joints} pairs [lower, upper]")
        pairs = [numbers(pair, what, 2) for pair in given]
        if not all(lower < upper for lower, upper in pairs):
            raise ConfigError(f"{what}: lower limits must be below upper ones, found {given}")
        return tuple((lower, upper) for lower, upper in pairs)

    def find_urdf(self, beside: Sequence[Path]) -> Path | None:
        """The URDF: beside given files, beside this one, or in example-robot-data; ``None`` if the file names none.

        :param beside: data files.
        :raises ConfigError: if it is nowhere.
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
            f"{self.path}: no file {self.urdf} in {looked}, nor in example-robot-data: put it beside the data or "
            "beside the YAML, or pip install example-robot-data if it is one of its robots"
        )


def example_robots(name: str) -> list[Path]:
    """Files of that name among the robots of example-robot-data, as far as it is installed.

    :param name: file name, or a path that ends with it, as ``panda_description/urdf/panda.urdf``.
    """
    prefixes = [
        Path(folder) / "cmeel.prefix" for folder in dict.fromkeys((get_path("platlib"), get_path("purelib")))
    ]
    prefixes += [
        Path(sys.prefix),
        *(Path(folder) for folder in os.environ.get("AMENT_PREFIX_PATH", "").split(":")),
    ]
    roots = (prefix / "share" / "example-robot-data" / "robots" for prefix in prefixes)
    found = (path for root in roots if root.is_dir() for path in sorted(root.glob(f"**/{name}")))
    return list(dict.fromkeys(found))


def robot_names() -> list[str]:
    """The machines that come with the project."""
    return sorted(path.stem for path in (shared_directory("config") / "robots").glob("*.yaml"))


def read_robot(name: str) -> RobotConfig:
    """The machine called ``name``, or that of a YAML file.

    :raises ConfigError: for names that are not known, and files that are not valid.
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(name).expanduser()
    else:
        path = shared_directory("config") / "robots" / f"{name}.yaml"
        if not path.is_file():
            raise ConfigError(
                f"unknown robot {name!r}; valid: {', '.join(robot_names())}, or the path of a YAML file"
            )
    text = strict.read_text(path, ConfigError)
    data = strict.mapping(strict.parse_yaml(text, path, ConfigError), str(path), ConfigError)
    strict.check_keys(
        data,
        ("schema", "name"),
        ("title", "units", "urdf", "joints", "limits", *SECTIONS),
        str(path),
        ConfigError,
    )
    if data["schema"] != 1:
        raise ConfigError(f"{path}: schema {data['schema']!r} is not known; valid: 1")
    units = data.get("units", "rotary")
    if units not in ("rotary", "linear"):
        raise ConfigError(f"{path}: units must be rotary or linear, found {units!r}")
    joints = data.get("joints", [])
    if not isinstance(joints, list) or not all(isinstance(joint, str) for joint in joints):
        raise ConfigError(f"{path}: joints: expected a list of names, found {joints!r}")
    if len(set(joints)) < len(joints):
        raise ConfigError(f"{path}: joints: a name stands twice in {joints}")
    limits = strict.mapping(data.get("limits", {}), f"{path}: limits", ConfigError)
    strict.check_keys(limits, (), LIMITS, f"{path}: limits", ConfigError)
    short = strict.text(data["name"], f"{path}: name", ConfigError)
    return RobotConfig(
        path=path,
        name=short,
        title=strict.text(data.get("title", short), f"{path}: title", ConfigError),
        units=units,
        urdf=None if data.get("urdf") is None else strict.text(data["urdf"], f"{path}: urdf", ConfigError),
        joints=tuple(joints),
        limits=limits,
        sections={
            key: strict.mapping(data[key], f"{path}: {key}", ConfigError) for key in SECTIONS if key in data
        },
    )


def numbers(value: Any, what: str, length: int) -> tuple[float, ...]:
    """A list of so many numbers; one number stands for a list of equal ones.

    :raises ConfigError: for anything else.
    """
    if not isinstance(value, list):
        return (strict.number(value, what, ConfigError),) * length
    if len(value) != length:
        raise ConfigError(f"{what}: expected {length} numbers, found {len(value)}")
    return tuple(strict.number(item, what, ConfigError) for item in value)
