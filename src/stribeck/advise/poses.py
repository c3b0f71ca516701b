"""The pose of a robot in which each joint bears most, and the inertia there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stribeck.identify.robot.standstill import holding_torque
from stribeck.identify.robot.tree import RobotTree

POSES = 400
"""Random poses within the limits that are compared."""

UNLIMITED = np.pi
"""Range of a joint without limits, to both sides [rad]."""


class Bearing(NamedTuple):
    """What a joint bears.

    :param load: torque of the weight on the joint in its worst pose [N m].
    :param inertia: about the joint there, without its rotor [kg m²].
    """

    load: float
    inertia: float


def worst_poses(tree: RobotTree, seed: int = 0) -> dict[str, Bearing]:
    """The largest load of each joint over random poses, and the inertia in that pose."""
    lower, upper = (np.clip(ends, -UNLIMITED, UNLIMITED) for ends in tree.range)
    rng, found = np.random.default_rng(seed), {name: Bearing(0.0, 0.0) for name in tree.names}
    for position in [np.clip(0.0, lower, upper), *rng.uniform(lower, upper, (POSES, len(lower)))]:
        torque = -holding_torque(tree, np.asarray(position))
        inertia = np.asarray(tree.data.M)[tree.diagonal]
        for k, name in enumerate(tree.names):
            known = found[name]
            if not known.inertia or abs(torque[k]) > abs(known.load) + 1e-6:
                found[name] = Bearing(float(torque[k]), float(inertia[k]))
    return found
