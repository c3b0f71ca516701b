r"""The bench trajectories: goal position and torque flag over time.

Source: Duclusaud et al., §V-A. All last 6 s and start at 0 rad, the pendulum hanging.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stribeck.errors import check_valid
from stribeck.model.arrays import Array

QUARTER_TURN = np.pi / 2


@dataclass(frozen=True)
class Trajectory:
    """A goal over time.

    :param name: key in recordings.
    :param duration: [s].
    :param goal: goal position [rad] at times (n,) [s], shifted by each joint's centre and multiplied by its scale.
    :param torque_until: time from which torque is off [s]; 0 for never on.
    :param joint_goals: instead of ``goal``, the goal of each joint by name, in the joint's own coordinates.
    """

    name: str
    title: str
    duration: float
    goal: Callable[[Array], Array]
    torque_until: float = np.inf
    joint_goals: Mapping[str, Callable[[Array], Array]] = field(default_factory=dict)

    def torque_enable(self, time: npt.ArrayLike) -> Array:
        """1 while torque is on, at times (n,) [s]."""
        return (np.asarray(time, dtype=np.float64) < self.torque_until).astype(np.float64)


def cubic(time: Array, t0: float, x0: float, t1: float, x1: float) -> Array:
    r"""Cubic from x0 at t0 to x1 at t1 with zero end velocities: :math:`x_0 + (x_1-x_0)(3u^2-2u^3)`.

    Before t0 and after t1 the end value holds.
    """
    u = np.clip((time - t0) / (t1 - t0), 0.0, 1.0)
    return np.asarray(x0 + (x1 - x0) * u * u * (3.0 - 2.0 * u))


def _sin_sin(time: Array) -> Array:
    return QUARTER_TURN * np.sin(time) + 0.5 * np.sin(5.0 * time) * np.sin(2.0 * time)


def _up_and_down(time: Array) -> Array:
    rising = cubic(time, 0.0, 0.0, 3.0, QUARTER_TURN)
    return np.where(time < 3.0, rising, cubic(time, 3.0, QUARTER_TURN, 6.0, 0.8 * QUARTER_TURN))


def _steps(time: Array) -> Array:
    starts = np.array([0.0, 1.0, 2.5, 4.0, 5.0])
    goals = np.array([0.0, 0.75, 1.55, 0.75, 0.0])
    return goals[np.clip(np.searchsorted(starts, time, side="right") - 1, 0, None)]


TRAJECTORIES: dict[str, Trajectory] = {
    trajectory.name: trajectory
    for trajectory in (
        Trajectory("sin_time_square", "accelerated oscillations", 6.0, lambda time: np.sin(time**2)),
        Trajectory("sin_sin", "slow oscillation with smaller sub-oscillations", 6.0, _sin_sin),
        Trajectory("up_and_down", "raise and lower slowly", 6.0, _up_and_down),
        Trajectory(
            "lift_and_drop",
            "lift, then drop with torque off",
            6.0,
            lambda time: cubic(time, 0.0, 0.0, 2.0, -QUARTER_TURN),
            torque_until=2.0,
        ),
        Trajectory("steps", "steps with holds", 6.0, _steps),
        Trajectory("half_sine", "half a sine", 6.0, lambda time: QUARTER_TURN * np.sin(0.5 * time)),
        Trajectory("nothing", "torque off throughout", 6.0, np.zeros_like, torque_until=0.0),
    )
}


def _breakaway(time: Array) -> Array:
    """Slow triangles about each of :data:`PLACES`, with a glide from one to the next."""
    time = np.asarray(time, dtype=np.float64)
    height = TRIANGLE * RAMP / 4.0
    period = GLIDE + TRIANGLE
    place = np.clip(time // period, 0, len(PLACES) - 1).astype(int)
    at = time - place * period
    before = np.concatenate([[0.0], PLACES[:-1]])
    level = before[place] + (PLACES[place] - before[place]) * cubic(at, 0.0, 0.0, GLIDE, 1.0)
    quarter = np.clip((at - GLIDE) / (TRIANGLE / 4.0), 0.0, 4.0)
    return np.asarray(level + height * np.interp(quarter, [0.0, 1.0, 3.0, 4.0], [0.0, 1.0, -1.0, 0.0]))


PLACES = np.array([0.25, 0.5, 0.8, 1.1, 1.4])
"""Positions of the trajectory ``breakaway``: as many loads of a pendulum [rad]."""

RAMP, TRIANGLE, GLIDE = 0.06, 14.0, 1.5
"""Speed of its goal [rad/s], duration of its triangles and of the ways between them [s]."""

BREAKAWAY = Trajectory(
    "breakaway",
    "slow triangles about several positions, for drive/backdrive diagrams",
    len(PLACES) * (GLIDE + TRIANGLE),
    _breakaway,
)
"""A trajectory beside those of the paper, for :mod:`stribeck.evaluate.measured_diagram`."""


def trajectory_named(name: str) -> Trajectory:
    """The trajectory called ``name``.

    :raises ConfigError: for an unknown name.
    """
    every = {**TRAJECTORIES, BREAKAWAY.name: BREAKAWAY}
    check_valid(name, every, "unknown trajectory")
    return every[name]
