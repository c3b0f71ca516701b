"""Tuning of joints from the settings or their models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stribeck.live.direction.motion import Tuning
from stribeck.live.friction import JointModel
from stribeck.model.arrays import Array


def initial_tuning(joints: Sequence[JointModel], common: Tuning | None, ratio: float | Array) -> Tuning:
    """Tuning of each joint in the coordinates of the parameter files.

    :param common: of all joints, in the robot's coordinates; by default each joint has its own.
    :param ratio: turns of the servo per turn of the joint.
    """
    if common is None:
        return Tuning.stacked([j.tuning or Tuning.of_resolution(j.actuator.resolution) for j in joints])
    ratios = {name: 1.0 if name == "overshoot_fraction" else ratio for name in vars(common)}
    n = len(joints)
    return Tuning(**{name: np.zeros(n) + ratios[name] * getattr(common, name) for name in ratios})
