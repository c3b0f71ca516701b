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

from msgspec import field
from msgspec.structs import replace

from stribeck.files.robots import RobotConfig, per_joint
from stribeck.files.schema import NotNegative, Positive, Schema, convert

Capsule = tuple[float, float, float, float, float, float, Positive]


class ExcitationSection(Schema):
    """Inputs of the trajectory design other than the joint limits.

    :param coefficient_limit: bound of the coefficients :math:`|a|, |b|` [rad/s], one number for all joints or one for
        each; the velocity limits if left out.
    :param noise: standard deviation of the torques [N m], one number or one for each joint; the effort limits if left out.
    :param floor: height of the floor in the frame of the base [m]; no floor if left out.
    :param clearance: smallest distance of bodies from each other and from the floor [m].
    :param capsules: bodies by link, if the URDF has no collision geometry: both end points of a segment in the
        link's frame and the radius, ``[x, y, z, x, y, z, radius]`` [m].
    :param ignore: pairs of links that may touch.
    """

    coefficient_limit: Positive | tuple[Positive, ...] | None = None
    noise: Positive | tuple[Positive, ...] | None = None
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
    return replace(
        section,
        coefficient_limit=per_joint(section.coefficient_limit, joints, f"{where}: coefficient_limit"),
        noise=per_joint(section.noise, joints, f"{where}: noise"),
    )
