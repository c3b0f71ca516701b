r"""Points of a motion at equal times, as a planner or a path of the end point gives them, as goals of a session.

Between points a cubic goes through both of them, with the slopes :math:`m_k = (q_{k+1} - q_{k-1})/2T` at the points (one-sided at both
ends), so that velocities are continuous:

.. math::

    q(t_k + uT) = q_k + u^2(3 - 2u)(q_{k+1} - q_k) + T u(1-u)\,\bigl((1-u)\,m_k - u\,m_{k+1}\bigr), \qquad 0 \le u \le 1

The motion may start and end with a velocity; sessions slow down beyond the end.

.. code-block:: yaml

    schema: 1
    joints: [shoulder, elbow]
    period: 0.02
    positions: [[0.1, 0.5], [0.102, 0.503]]

Source: Catmull, Rom 1974, "A class of local interpolating splines".
"""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from stribeck.files.schema import Positive
from stribeck.model.arrays import Array
from stribeck.model.trajectories import Trajectory
from stribeck.session.motion_file import MotionFile, check_rows


class MotionPointsFile(MotionFile):
    """The keys of a file of points.

    :param schema: version of the format.
    :param joints: names of the joints.
    :param period: time from one point to the next [s].
    :param positions: of all joints, a list for each point [rad or m].
    """

    schema: Literal[1]
    joints: tuple[str, ...]
    period: Positive
    positions: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if len(self.positions) < 2:
            raise ValueError(f"positions: expected at least two points, found {len(self.positions)}")
        check_rows("positions", "point", self.positions, self.joints)
        for number, point in enumerate(self.positions):
            if not all(map(math.isfinite, point)):
                raise ValueError(f"positions: point {number} is not finite: {list(point)}")

    def to_play(self, name: str) -> Trajectory:
        """The trajectory that `stribeck record` and the excitation node play."""
        columns = np.array(self.positions).T
        goals = {
            joint: _through(column, self.period) for joint, column in zip(self.joints, columns, strict=True)
        }
        duration = self.period * (len(self.positions) - 1)
        return Trajectory(
            name, "points of a motion at equal times", duration, np.zeros_like, joint_goals=goals
        )


def _through(points: Array, period: float) -> Callable[[Array], Array]:
    """Position at times (N,) [s] on the way through points (K,)."""
    rise = np.gradient(points)  # per period; one-sided at both ends

    def goal(time: Array) -> Array:
        at = np.clip(np.asarray(time, dtype=np.float64) / period, 0.0, len(points) - 1.0)
        k = np.minimum(at.astype(np.int64), len(points) - 2)
        u = at - k
        first, last = points[k], points[k + 1]
        straight = first + u * u * (3.0 - 2.0 * u) * (last - first)
        return np.asarray(straight + u * (1.0 - u) * ((1.0 - u) * rise[k] - u * rise[k + 1]))

    return goal
