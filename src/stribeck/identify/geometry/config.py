"""The section ``calibration`` of a robot's YAML file.

.. code-block:: yaml

    calibration:
      data:
        joints: {file: measured_joints.txt, unit: deg}     # or a list of units, one for each joint
        markers: {SMR_1: {file: measured_SMR_1.txt, unit: mm}}
        pose: {file: measured_pose.txt, unit: mm, lever: 100}   # or with markers: x y z qx qy qz qw
        base: {file: measured_base_1.txt, unit: mm}        # a reflector that does not move; optional
      # in bags, with /joint_states: markers: {SMR_1: {topic: /smr_1}}, pose: {topic: /tf, frame: tool}
      nominal: {dh: [[theta, d, a, alpha], …], convention: standard, lengths: mm, angles: deg}   # or urdf: true
      gravity: [0, 0, -1]
      fits: [nominal, offsets, full]
      extra: [gain, compliance, eccentricity, bending]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from stribeck.errors import ConfigError
from stribeck.files.robots import RobotConfig
from stribeck.files.schema import Name, Positive, Schema, convert
from stribeck.identify.geometry.calibration import FITS, Fit
from stribeck.identify.geometry.chain import SerialChain, dh_chain
from stribeck.identify.geometry.model import DOWN, EXTRA, ExtraGroup

AngleUnit = Literal["rad", "deg"]
LengthUnit = Literal["m", "mm"]
UNITS = {"rad": 1.0, "deg": math.pi / 180.0, "m": 1.0, "mm": 1e-3}
"""Factors to SI."""


class JointsFile(Schema):
    """A file of joint positions, one row per pose."""

    file: Annotated[str, Meta(min_length=1, description="name, or a pattern with * and ?")] = "joints.txt"
    unit: Annotated[
        AngleUnit | LengthUnit | tuple[AngleUnit | LengthUnit, ...],
        Meta(description="one unit for all joints, or one for each"),
    ] = "rad"

    def units(self, joints: int) -> tuple[str, ...]:
        """The unit of each joint.

        :raises ConfigError: for a list whose length is not ``joints``.
        """
        units = (self.unit,) * joints if isinstance(self.unit, str) else self.unit
        if len(units) != joints:
            raise ConfigError(
                f"calibration: data: joints: found {len(units)} units for {joints} joints: give one for all, or one for each"
            )
        return units


class PointsFile(Schema):
    """A file of points x, y, z, one row per pose.

    :param file: name, or a pattern with * and ?.
    :param unit: of its lengths.
    :param topic: of a bag, with points, poses or transforms in metres.
    :param frame: child frame of the transforms of that topic; empty: all of them.
    """

    file: Name = "none"
    unit: LengthUnit = "m"
    topic: str = ""
    frame: str = ""

    def __post_init__(self) -> None:
        if self.file == "none" and not self.topic:
            raise ValueError("the name of a file, or the topic of a bag, is needed")


class PoseFile(PointsFile):
    """A file of full poses x y z qx qy qz qw; quaternions have no unit."""

    lever: Annotated[
        Positive | None,
        Meta(description="distance from the origin of the points that represent the pose; by default 0.1 m"),
    ] = None

    @property
    def distance(self) -> float:
        """The lever [m]."""
        return 0.1 if self.lever is None else self.lever * UNITS[self.unit]


class MeasuredFiles(Schema):
    """The files that contain the measured quantities."""

    joints: JointsFile = JointsFile()
    markers: Annotated[dict[str, PointsFile], Meta(description="points on the tool")] = msgspec.field(
        default_factory=dict
    )
    pose: Annotated[PoseFile | None, Meta(description="poses of the tool")] = None
    base: Annotated[PointsFile | None, Meta(description="a point that does not move")] = None

    def __post_init__(self) -> None:
        if not self.markers and self.pose is None:
            raise ValueError("markers or a pose are needed, otherwise nothing is measured")


class NominalSection(Schema):
    """The nominal geometry: a Denavit-Hartenberg table, or the URDF.

    :param urdf: whether the URDF of the robot gives the geometry.
    :param lengths: unit of d and a.
    :param angles: unit of theta and alpha.
    :param convention: of the Denavit-Hartenberg parameters.
    """

    urdf: bool = False
    dh: Annotated[
        tuple[tuple[float, float, float, float], ...], Meta(description="rows [theta, d, a, alpha]")
    ] = ()
    lengths: LengthUnit | None = None
    angles: AngleUnit | None = None
    convention: Literal["standard", "modified"] = "standard"

    def __post_init__(self) -> None:
        if self.urdf and (self.dh or self.lengths or self.angles):
            raise ValueError("give either urdf: true, or dh with lengths and angles")
        if not self.urdf and not (self.dh and self.lengths and self.angles):
            raise ValueError("without urdf: true, all of dh, lengths and angles are needed")


class CalibrationConfig(Schema):
    """How to calibrate an arm.

    :param fits: sets of free parameters, from the simplest.
    """

    data: MeasuredFiles
    nominal: NominalSection
    gravity: Annotated[
        tuple[float, float, float],
        Meta(description="direction of gravity in the frame of the base; its length does not matter"),
    ] = DOWN
    fits: tuple[Fit, ...] = tuple(FITS)
    extra: Annotated[
        tuple[ExtraGroup, ...],
        Meta(description="groups in addition to the geometry that cross-validation may add"),
    ] = EXTRA

    def __post_init__(self) -> None:
        if not any(self.gravity):
            raise ValueError(f"gravity must not be zero, found {list(self.gravity)}")


def read_calibration(robot: RobotConfig) -> CalibrationConfig:
    """Read the section from a robot's file.

    :raises ConfigError: for unknown or missing keys, and invalid values.
    """
    return convert(robot.section("calibration"), CalibrationConfig, f"{robot.path}: calibration")


def nominal_chain(robot: RobotConfig, config: CalibrationConfig, beside: Sequence[Path]) -> SerialChain:
    """The nominal geometry, from the table in the YAML file or from the URDF.

    :param beside: data files, whose folders are searched for the URDF.
    :raises ConfigError: for an invalid geometry.
    """
    nominal, place = config.nominal, f"{robot.path}: calibration: nominal"
    if nominal.urdf:
        from stribeck.identify.geometry.urdf import read_urdf_chain

        path = robot.find_urdf(beside)
        if path is None:
            raise ConfigError(f"{place}: urdf is true, but the robot's file names no urdf: add it")
        return read_urdf_chain(path, robot.joints)
    names = robot.joints or tuple(f"joint_{j + 1}" for j in range(len(nominal.dh)))
    if len(names) != len(nominal.dh):
        raise ConfigError(
            f"{place}: dh has {len(nominal.dh)} rows for {len(names)} joints: give one row for each joint"
        )
    length, angle = UNITS[nominal.lengths or "m"], UNITS[nominal.angles or "rad"]
    table = [(angle * theta, length * d, length * a, angle * alpha) for theta, d, a, alpha in nominal.dh]
    return dh_chain(table, names, nominal.convention)
