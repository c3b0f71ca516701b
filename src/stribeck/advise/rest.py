"""What a joint shows at rest, before anything is identified: advice from goals and positions alone, and the pose in which it bears most.

A gain that is k times as high leaves :math:`1/k` of the dead band and of the sag. The gain that hunts and slow motion do not show at rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stribeck.advise.advice import left_by_offsets
from stribeck.identify.robot.standstill import Standstill, holding_torque
from stribeck.identify.robot.tree import RobotTree

UNSEEN = (
    "recordings at rest show neither the gain at which the joint hunts nor the slowest smooth speed: "
    "identify the robot from motions, and give its file of drives to `advise`"
)


@dataclass(frozen=True)
class RestAdvice:
    """Advice for one joint.

    :param standstill: its stops.
    :param load: torque of the weight in the pose in which it bears most [N m].
    :param tolerance: wanted largest error at rest [rad].
    :param kp: gain in the recordings, ``None`` if it is not known.
    """

    standstill: Standstill
    load: float
    tolerance: float
    kp: float | None = None

    @property
    def sag(self) -> float:
        """Error by the largest load [rad]."""
        return self.standstill.compliance * abs(self.load)

    @property
    def error(self) -> float:
        """Largest error at rest, after the offset is calibrated [rad]."""
        return self.standstill.half + self.sag

    @property
    def with_offsets(self) -> float:
        """The same with offset goals [rad]."""
        return left_by_offsets(self.standstill.half, self.sag)

    @property
    def factor(self) -> float:
        """Sufficient gain as a multiple of that of the recordings."""
        return self.error / self.tolerance

    @property
    def text(self) -> str:
        """The advice in one sentence."""
        now, then = f"{1e3 * self.error:.3g}", f"{1e3 * self.with_offsets:.3g}"
        if self.factor <= 1.0:
            return f"no change needed: the error at rest is at most {now} mrad"
        raised = f"raise the gain to {self.factor:.2g} times that of the recordings"
        if self.kp is not None:
            raised = f"raise the gain from {self.kp:.3g} to {self.factor * self.kp:.3g}"
        return f"{raised} if it does not hunt at that gain, or send offset goals: either reduces the error at rest from {now} to {then} mrad"


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
