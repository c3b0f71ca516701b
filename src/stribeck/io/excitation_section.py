"""The section ``excitation:`` of a robot's YAML, read strictly.

.. code-block:: yaml

    excitation:
      coefficient_limit: 3.0        # rad/s, bound of the coefficients |a|, |b|; the velocity limits if left out
      noise: [1.0, 0.5]             # N m, standard deviation of the torques; the effort limits if left out
      floor: 0.0                    # m, height in the base's frame; none if left out
      clearance: 0.01               # m, least distance of bodies from each other and from the floor
      capsules:                     # bodies, where the URDF has no collision geometry: both ends of a segment in
        link_2: [[0, 0, 0.1, 0.2, 0, 0.1, 0.06]]    # the link's frame and the radius, m
      ignore: [[link_4, link_6]]    # links that need not keep apart
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.io.robot_config import RobotConfig, numbers

KEYS = ("coefficient_limit", "noise", "floor", "clearance", "capsules", "ignore")

CLEARANCE = 0.01
"""Least distance where the file gives none [m]."""


@dataclass(frozen=True)
class ExcitationSection:
    """What the design of a trajectory needs beside the limits; see the module for meanings and units."""

    coefficient_limit: tuple[float, ...] | None = None
    noise: tuple[float, ...] | None = None
    floor: float | None = None
    clearance: float = CLEARANCE
    capsules: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    ignore: tuple[tuple[str, str], ...] = ()


def excitation_section(config: RobotConfig, joints: int) -> ExcitationSection:
    """The section of a robot's file; all defaults if it has none.

    :param joints: how many joints move.
    :raises ConfigError: for what is not valid.
    """
    what, data = f"{config.path}: excitation", config.sections.get("excitation", {})
    strict.check_keys(data, (), KEYS, what, ConfigError)
    clearance = strict.number(data.get("clearance", CLEARANCE), f"{what}: clearance", ConfigError)
    if clearance < 0.0:
        raise ConfigError(f"{what}: clearance must not be negative, found {clearance:g}")
    floor = data.get("floor")
    return ExcitationSection(
        coefficient_limit=_positive(data, "coefficient_limit", joints, what),
        noise=_positive(data, "noise", joints, what),
        floor=None if floor is None else strict.number(floor, f"{what}: floor", ConfigError),
        clearance=clearance,
        capsules=_capsules(data.get("capsules", {}), f"{what}: capsules"),
        ignore=_pairs(data.get("ignore", []), f"{what}: ignore"),
    )


def _positive(data: Mapping[str, Any], key: str, joints: int, what: str) -> tuple[float, ...] | None:
    if key not in data:
        return None
    found = numbers(data[key], f"{what}: {key}", joints)
    if not all(number > 0.0 for number in found):
        raise ConfigError(f"{what}: {key}: must be positive, found {data[key]}")
    return found


def _capsules(value: Any, what: str) -> dict[str, tuple[tuple[float, ...], ...]]:
    found = {}
    for link, rows in strict.mapping(value, what, ConfigError).items():
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise ConfigError(f"{what}: {link}: expected a list of [x, y, z, x, y, z, radius]")
        found[link] = tuple(numbers(row, f"{what}: {link}", 7) for row in rows)
        if not all(row[6] > 0.0 for row in found[link]):
            raise ConfigError(f"{what}: {link}: a radius must be positive")
    return found


def _pairs(value: Any, what: str) -> tuple[tuple[str, str], ...]:
    good = isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(link, str) for link in pair)
        for pair in value
    )
    if not good:
        raise ConfigError(f"{what}: expected pairs [link, link], found {value!r}")
    return tuple((first, second) for first, second in value)
