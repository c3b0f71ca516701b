"""What links of robots are like: the table behind the empirical prior, from URDFs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.identify.arm.inertia import about_com
from stribeck.identify.arm.model import INERTIALS, ArmModel
from stribeck.identify.posterior.knowledge import LinkTable, reach_of, total_mass
from stribeck.identify.posterior.network import link_frames

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Robot:
    """One robot of a table.

    :param title: its name in words.
    :param file: its URDF, below ``share/example-robot-data/robots``.
    :param joints: the six that move; others are locked.
    """

    title: str
    file: str
    joints: tuple[str, ...]


WIDEST = 0.25
"""A link whose radius of gyration is above this share of the reach is none: its inertia is left out of the table."""


_UR = tuple(
    f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
)

ROBOTS = (
    Robot("Universal Robots UR3", "ur_description/urdf/ur3_robot.urdf", _UR),
    Robot("Universal Robots UR5", "ur_description/urdf/ur5_robot.urdf", _UR),
    Robot("Universal Robots UR10", "ur_description/urdf/ur10_robot.urdf", _UR),
    Robot(
        "Kinova Jaco 2 (j2s6s200)",
        "kinova_description/robots/kinova.urdf",
        tuple(f"j2s6s200_joint_{k}" for k in range(1, 7)),
    ),
    Robot("Unitree Z1", "z1_description/urdf/z1.urdf", tuple(f"joint{k}" for k in range(1, 7))),
    Robot(
        "UFACTORY xArm 7, joint 3 locked",
        "xarm_description/urdf/xarm7.urdf",
        tuple(f"joint{k}" for k in (1, 2, 4, 5, 6, 7)),
    ),
    Robot(
        "Franka Emika Panda, joint 3 locked",
        "panda_description/urdf/panda.urdf",
        tuple(f"panda_joint{k}" for k in (1, 2, 4, 5, 6, 7)),
    ),
)
"""Six-axis arms, or seven-axis ones with the redundant joint locked, of example-robot-data."""


def table_of(arms: Sequence[ArmModel]) -> LinkTable:
    """Means and standard deviations over robots, each scaled to a total mass of 1 kg and a reach of 1 m.

    Reiners et al. 2025 scale masses alone, by total mass, for robots of one size. Here lengths are scaled by the reach, and
    inertias by both. The total mass is that of the URDF, base included.
    """
    mass, radius, diagonal, off = (np.full((len(arms), 6, *more), np.nan) for more in ((), (), (3,), (3,)))
    for k, arm in enumerate(arms):
        m, com, inertia = about_com(arm.inertials.reshape(-1, INERTIALS))
        frames = link_frames(arm)
        turned = np.einsum("nji,njk,nkl->nil", frames, inertia, frames)
        total, reach = total_mass(arm), reach_of(arm)
        mass[k], radius[k] = m / total, np.linalg.norm(com, axis=1) / reach
        diagonal[k] = np.diagonal(turned, axis1=1, axis2=2) / (total * reach**2)
        off[k] = turned[:, (0, 0, 1), (1, 2, 2)] / (total * reach**2)
        wide = np.sqrt(np.trace(inertia, axis1=1, axis2=2) / (2.0 * m)) > WIDEST * reach
        diagonal[k, wide] = off[k, wide] = np.nan
    return LinkTable(
        _mean_and_deviation(mass),
        _mean_and_deviation(radius),
        np.sqrt(np.nanmean(diagonal**2, axis=(0, 2))),
        np.sqrt(np.nanmean(off**2, axis=(0, 2))),
        1.0,
        1.0,
    )


def as_yaml(table: LinkTable, robots: Sequence[Robot]) -> Mapping[str, object]:
    """The content of a table's file, to five digits."""

    def digits(value: float) -> float:
        return float(f"{value:.5g}")

    links = [
        {
            "mass": [digits(v) for v in table.mass[k]],
            "radius": [digits(v) for v in table.radius[k]],
            "diagonal": digits(table.diagonal[k]),
            "off": digits(table.off[k]),
        }
        for k in range(len(table.mass))
    ]
    return {
        "robots": [robot.title for robot in robots],
        "total_mass": 1.0,
        "reach": 1.0,
        "links": links,
    }


def _mean_and_deviation(values: Array) -> Array:
    return np.stack([values.mean(axis=0), values.std(axis=0, ddof=1)], axis=-1)
