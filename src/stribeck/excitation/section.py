"""The section ``excitation:`` of a robot's YAML file: inputs of the trajectory design other than the joint limits.

.. code-block:: yaml

    excitation:
      coefficient_limit: 3.0
      noise: [1.0, 0.5]
      floor: 0.0
      clearance: 0.01
      capsules:
        link_2: [[0, 0, 0.1, 0.2, 0, 0.1, 0.06]]
      ignore: [[link_4, link_6]]
"""

from __future__ import annotations

import numpy as np
from msgspec import field
from msgspec.structs import replace

from stribeck.errors import ConfigError
from stribeck.files.robots import RobotConfig, per_joint
from stribeck.files.schema import NotNegative, Positive, Schema, convert

Capsule = tuple[float, float, float, float, float, float, Positive]


class ExcitationSection(Schema):
    """Inputs of the trajectory design other than the joint limits.

    :param coefficient_limit: bound of the coefficients :math:`|a|, |b|` [rad/s], one number for all joints or one for
        each; the velocity limits if left out.
    :param noise: standard deviation of the torques [N m], one number or one for each joint; the effort limits if left out.
    :param noise_covariance: covariance of the torques [N² m²], rows and columns in the order of the joints, in place of ``noise``:
        ``noise_covariance`` of a fit in ``--json`` of ``stribeck identify arm``.
    :param floor: height of the floor in the frame of the base [m]; no floor if left out.
    :param clearance: smallest distance of bodies from each other and from the floor [m].
    :param capsules: bodies by link, if the URDF has no collision geometry: both end points of a segment in the
        link's frame and the radius, ``[x, y, z, x, y, z, radius]`` [m].
    :param ignore: pairs of links that may touch.
    """

    coefficient_limit: Positive | tuple[Positive, ...] | None = None
    noise: Positive | tuple[Positive, ...] | None = None
    noise_covariance: tuple[tuple[float, ...], ...] | None = None
    floor: float | None = None
    clearance: NotNegative = 0.01
    capsules: dict[str, tuple[Capsule, ...]] = field(default_factory=dict)
    ignore: tuple[tuple[str, str], ...] = ()


def excitation_section(config: RobotConfig, joints: int) -> ExcitationSection:
    """The section of a robot's file, expanded to one number per joint; all defaults if it is missing.

    :raises ConfigError: for an invalid section.
    """
    where = f"{config.path}: excitation"
    section = convert(dict(config.sections.get("excitation", {})), ExcitationSection, where)
    if section.noise_covariance is not None:
        _check_covariance(section, joints, where)
    return replace(
        section,
        coefficient_limit=per_joint(section.coefficient_limit, joints, f"{where}: coefficient_limit"),
        noise=per_joint(section.noise, joints, f"{where}: noise"),
    )


def _check_covariance(section: ExcitationSection, joints: int, where: str) -> None:
    """Refuse a matrix that is no covariance of these joints, and one beside ``noise``."""
    if section.noise is not None:
        raise ConfigError(f"{where}: noise and noise_covariance exclude each other: give one")
    rows = section.noise_covariance or ()
    if len(rows) != joints or any(len(row) != joints for row in rows):
        raise ConfigError(f"{where}: noise_covariance: expected {joints} rows of {joints} numbers")
    matrix = np.array(rows)
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=0.0) or np.min(np.linalg.eigvalsh(matrix)) <= 0.0:
        raise ConfigError(f"{where}: noise_covariance must be symmetric and positive definite")
