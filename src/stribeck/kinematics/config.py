"""The section ``calibration`` of a robot's YAML file, read strictly.

.. code-block:: yaml

    calibration:
      data:
        joints: {file: measured_joints.txt, unit: deg}     # or a list of units, one for each joint
        markers: {SMR_1: {file: measured_SMR_1.txt, unit: mm}}
        pose: {file: measured_pose.txt, unit: mm, lever: 100}   # or with markers: x y z qx qy qz qw
        base: {file: measured_base_1.txt, unit: mm}        # a reflector that does not move; may be left out
      nominal: {dh: [[theta, d, a, alpha], …], convention: standard, lengths: mm, angles: deg}   # or urdf: true
      gravity: [0, 0, -1]
      fits: [nominal, offsets, full]
      extra: [gain, compliance, eccentricity, bending]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.io.robot_config import RobotConfig, numbers
from stribeck.kinematics.calibration import FITS
from stribeck.kinematics.chain import SerialChain, dh_chain
from stribeck.kinematics.model import DOWN, EXTRA

ANGLES = {"rad": 1.0, "deg": math.pi / 180.0}
LENGTHS = {"m": 1.0, "mm": 1e-3}
CONVENTIONS: tuple[Literal["standard", "modified"], ...] = ("standard", "modified")


@dataclass(frozen=True)
class Role:
    """What a file holds.

    :param pattern: of its name.
    :param units: of its columns, or one unit for all.
    :param lever: distance [m] of the points that stand for a full pose; ``None`` for anything else.
    """

    pattern: str
    units: tuple[str, ...]
    lever: float | None = None

    def scales(self, columns: int) -> tuple[float, ...]:
        """Factors to SI of so many columns."""
        units = self.units * columns if len(self.units) == 1 else self.units
        return tuple({**ANGLES, **LENGTHS}[unit] for unit in units)


@dataclass(frozen=True)
class CalibrationConfig:
    """How to calibrate an arm.

    :param path: the YAML file.
    :param joints: file of joint positions.
    :param markers: files of points on the tool, by name.
    :param pose: file of full poses of the tool.
    :param base: file of a point that does not move.
    :param nominal: the section on the nominal geometry.
    :param gravity: its direction in the frame of the base.
    :param fits: of :data:`stribeck.kinematics.calibration.FITS`.
    :param extra: of :data:`stribeck.kinematics.model.EXTRA`.
    """

    path: Path
    joints: Role
    markers: Mapping[str, Role]
    pose: Role | None
    base: Role | None
    nominal: Mapping[str, Any]
    gravity: tuple[float, float, float]
    fits: tuple[str, ...]
    extra: tuple[str, ...]


def read_calibration(robot: RobotConfig) -> CalibrationConfig:
    """Read the section.

    :raises ConfigError: for unknown or missing keys, and values that are not valid.
    """
    section, what = robot.section("calibration"), f"{robot.path}: calibration"
    strict.check_keys(section, ("data", "nominal"), ("gravity", "fits", "extra"), what, ConfigError)
    data = strict.mapping(section["data"], f"{what}: data", ConfigError)
    strict.check_keys(data, ("joints",), ("markers", "pose", "base"), f"{what}: data", ConfigError)
    markers = strict.mapping(data.get("markers", {}), f"{what}: markers", ConfigError)
    if not markers and "pose" not in data:
        raise ConfigError(f"{what}: data: name markers or a pose, otherwise nothing is measured")
    gravity = numbers(section.get("gravity", list(DOWN)), f"{what}: gravity", 3)
    if not any(gravity):
        raise ConfigError(f"{what}: gravity needs a direction, found {list(gravity)}")
    return CalibrationConfig(
        path=robot.path,
        joints=_role(data["joints"], f"{what}: joints", tuple({**ANGLES, **LENGTHS})),
        markers={name: _role(role, f"{what}: {name}", tuple(LENGTHS)) for name, role in markers.items()},
        pose=_role(data["pose"], f"{what}: pose", tuple(LENGTHS), lever=True) if "pose" in data else None,
        base=_role(data["base"], f"{what}: base", tuple(LENGTHS)) if "base" in data else None,
        nominal=strict.mapping(section["nominal"], f"{what}: nominal", ConfigError),
        gravity=(gravity[0], gravity[1], gravity[2]),
        fits=_words(section.get("fits", list(FITS)), f"{what}: fits", tuple(FITS)),
        extra=_words(section.get("extra", list(EXTRA)), f"{what}: extra", EXTRA),
    )


def _role(value: Any, what: str, units: Sequence[str], lever: bool = False) -> Role:
    found = strict.mapping(value, what, ConfigError)
    strict.check_keys(found, ("file", "unit", *(("lever",) if lever else ())), (), what, ConfigError)
    given = found["unit"] if isinstance(found["unit"], list) else [found["unit"]]
    for unit in given:
        if unit not in units:
            raise ConfigError(f"{what}: unit {unit!r} is not known; valid: {', '.join(units)}")
    length = None
    if lever:
        length = strict.number(found["lever"], f"{what}: lever", ConfigError) * LENGTHS[given[0]]
        if length <= 0.0:
            raise ConfigError(f"{what}: lever must be positive, found {found['lever']}")
    return Role(strict.text(found["file"], f"{what}: file", ConfigError), tuple(given), length)


def _words(value: Any, what: str, valid: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or any(word not in valid for word in value):
        raise ConfigError(f"{what}: expected a list of {', '.join(valid)}, found {value!r}")
    return tuple(word for word in valid if word in value)


def nominal_chain(robot: RobotConfig, config: CalibrationConfig, beside: Sequence[Path]) -> SerialChain:
    """The nominal geometry, from the table in the YAML or from the URDF.

    :param beside: data files; the URDF may lie beside them.
    :raises ConfigError: for a geometry that is not valid.
    """
    nominal, what = config.nominal, f"{config.path}: calibration: nominal"
    if nominal.get("urdf"):
        strict.check_keys(nominal, ("urdf",), (), what, ConfigError)
        from stribeck.kinematics.urdf import read_urdf_chain  # Pinocchio only where a URDF is read

        path = robot.find_urdf(beside)
        if path is None:
            raise ConfigError(f"{what}: urdf is true, but the file names no urdf")
        return read_urdf_chain(path, robot.joints)
    return _table(robot, nominal, what)


def _table(robot: RobotConfig, nominal: Mapping[str, Any], what: str) -> SerialChain:
    """The chain of a Denavit-Hartenberg table."""
    strict.check_keys(nominal, ("dh", "lengths", "angles"), ("convention", "urdf"), what, ConfigError)
    rows = nominal["dh"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        raise ConfigError(f"{what}: dh: expected rows [theta, d, a, alpha]")
    names = robot.joints or tuple(f"joint_{j + 1}" for j in range(len(rows)))
    if len(names) != len(rows):
        raise ConfigError(f"{what}: dh has {len(rows)} rows for {len(names)} joints; one row each is needed")
    length = _unit(nominal["lengths"], LENGTHS, f"{what}: lengths")
    angle = _unit(nominal["angles"], ANGLES, f"{what}: angles")
    convention = nominal.get("convention", "standard")
    if convention not in CONVENTIONS:
        raise ConfigError(f"{what}: convention {convention!r} is not known; valid: {', '.join(CONVENTIONS)}")
    table = []
    for j, row in enumerate(rows):
        theta, d, a, alpha = numbers(row, f"{what}: dh row {j + 1}", 4)
        table.append((angle * theta, length * d, length * a, angle * alpha))
    return dh_chain(table, names, convention)


def _unit(value: Any, valid: Mapping[str, float], what: str) -> float:
    if value not in valid:
        raise ConfigError(f"{what}: unit {value!r} is not known; valid: {', '.join(valid)}")
    return valid[value]
