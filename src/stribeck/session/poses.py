"""Poses to visit one after the other, with a rest at each: for the calibration of an arm's geometry.

All joints move together from pose to pose, at rest at both ends (a cubic), within the speed and acceleration of the file.

.. code-block:: yaml

    schema: 1
    joints: [joint_1, joint_2]
    poses: [[0.1, -0.5], [0.4, 0.2]]
    speed: 0.5
    acceleration: 1.0
    rest: 1.5
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from stribeck.files.schema import Positive
from stribeck.model.arrays import Array
from stribeck.model.trajectories import Trajectory
from stribeck.session.motion import Glide
from stribeck.session.motion_file import MotionFile, check_rows

REST = 1.5
"""Usual rest at a pose [s]: vibrations die away, and the tracker measures."""

SPEED, ACCELERATION = 0.5, 1.0
"""Usual speed [rad/s] and acceleration [rad/s²] between poses."""

Free = Callable[[Array, Array], bool]
"""Whether the straight way from one position (n,) to another is free."""


class PosesFile(MotionFile):
    """The keys of a file of poses.

    :param schema: version of the format.
    :param joints: names of the joints.
    :param poses: positions of all joints, in the order of the visit [rad or m].
    :param speed: largest speed between poses [rad/s or m/s].
    :param acceleration: largest acceleration between poses [rad/s² or m/s²].
    :param rest: at each pose [s].
    """

    schema: Literal[1]
    joints: tuple[str, ...]
    poses: tuple[tuple[float, ...], ...]
    speed: Positive = SPEED
    acceleration: Positive = ACCELERATION
    rest: Positive = REST

    def __post_init__(self) -> None:
        if not self.poses:
            raise ValueError("poses: expected at least one")
        check_rows("poses", "row", self.poses, self.joints)

    def glides(self) -> list[Glide]:
        """The motions between poses; the first begins at the first pose."""
        poses = np.array(self.poses)
        limits = np.full(len(self.joints), self.speed), np.full(len(self.joints), self.acceleration)
        return [Glide.within(first, then, *limits) for first, then in pairwise(poses)]

    def to_play(self, name: str) -> Trajectory:
        """The trajectory that `stribeck record` and the excitation node play."""
        glides = self.glides()
        starts = np.cumsum([self.rest, *(glide.duration + self.rest for glide in glides)])
        goals = {joint: _goal(self.poses[0][j], glides, starts, j) for j, joint in enumerate(self.joints)}
        return Trajectory(name, "poses with rests", float(starts[-1]), np.zeros_like, joint_goals=goals)


def _goal(first: float, glides: Sequence[Glide], starts: Array, joint: int) -> Callable[[Array], Array]:
    """Position of a joint at times (N,) [s]."""
    begins = starts[:-1]
    durations = np.array([max(glide.duration, 1e-9) for glide in glides])
    ends = np.array([glide.end[joint] for glide in glides])
    froms = np.array([glide.start[joint] for glide in glides])

    def goal(time: Array) -> Array:
        at = np.asarray(time, dtype=np.float64)
        if not len(begins):
            return np.full_like(at, first)
        k = np.clip(np.searchsorted(begins, at, side="right") - 1, 0, len(begins) - 1)
        u = np.clip((at - begins[k]) / durations[k], 0.0, 1.0)
        return np.asarray(froms[k] + (ends[k] - froms[k]) * u * u * (3.0 - 2.0 * u))

    return goal


def in_order(poses: Sequence[Array], free: Free | None = None) -> tuple[list[int], list[int]]:
    """The order of a visit that goes to the nearest pose that can be reached, and the poses that cannot.

    :param poses: positions (n,); the visit begins at the first.
    :param free: by default every way is.
    :returns: indices in order, and those that no way leads to from where the visit is.
    """
    if not len(poses):
        return [], []
    order, left = [0], list(range(1, len(poses)))
    while left:
        near = sorted(left, key=lambda k: float(np.max(np.abs(poses[k] - poses[order[-1]]))))
        following = next((k for k in near if free is None or free(poses[order[-1]], poses[k])), None)
        if following is None:
            break
        order.append(following)
        left.remove(following)
    return order, left
