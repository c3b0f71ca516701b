"""Goals from trajectory messages, evaluated at the times of states.

Between two points with velocities the goal is a cubic, else a straight line. After the last point its position holds, at
rest, until another trajectory arrives. Before the first point a joint moves there from its last goal, or from its
position. A new trajectory replaces the previous one from its start time on. Arrays are (n,), one number per joint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stribeck.model.arrays import Array


class GoalPoint(NamedTuple):
    """A point of a trajectory: time since its start [s], positions [rad], velocities [rad/s] or none."""

    time: float
    position: Sequence[float]
    velocity: Sequence[float] = ()


class Goal(NamedTuple):
    """Goal positions [rad] and velocities [rad/s] of joints, (n,) each, NaN without a goal."""

    position: Array
    velocity: Array


class _Trajectory(NamedTuple):
    """Points (m,) of joints (m, n), NaN where not given; ``start`` is ``None`` until the first state."""

    start: float | None
    times: Array
    positions: Array
    velocities: Array


class SampledGoals:
    """Goals of n joints from trajectories; ``names`` gives the order of all arrays."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._nothing: Array = np.full(len(names), np.nan)
        self._now: _Trajectory | None = None
        self._begun = False
        self._before: _Trajectory | None = None

    def __bool__(self) -> bool:
        return self._now is not None

    def take(self, stamp: float | None, names: Sequence[str], points: Sequence[GoalPoint]) -> str | None:
        """Store a trajectory, which replaces the last one from its start on; without points, the goals end.

        :param stamp: its start on the clock of the states; ``None``: the next state.
        :returns: why it was rejected, ``None`` if it was accepted.
        """
        if not points:
            self._now = self._before = None
            return None
        if not set(names) & set(self._names):
            return f"no joint of the trajectory is compensated; it has: {', '.join(names)}"
        problem = _problem(names, points)
        if problem is not None:
            return problem
        count = len(self._names)
        times = np.array([point.time for point in points], dtype=np.float64)
        positions, velocities = np.full((2, len(points), count), np.nan)
        for place, name in enumerate(names):
            if name in self._names:
                column = self._names.index(name)
                positions[:, column] = [point.position[place] for point in points]
                velocities[:, column] = [p.velocity[place] if len(p.velocity) else math.nan for p in points]
        self._before = self._now if self._begun else self._before
        self._now, self._begun = _Trajectory(stamp, times, positions, velocities), False
        return None

    def at(self, stamp: float, measured: Mapping[str, float]) -> Goal:
        """The goals at the stamp of a state.

        :param measured: positions of joints by name, from which joints without a previous goal start [rad].
        """
        if self._now is None:
            return Goal(self._nothing, self._nothing)
        if not self._begun and (self._now.start is None or stamp >= self._now.start):
            self._now, self._begun = self._set_out(self._now, stamp, measured), True
        if self._begun and self._now.start is not None and stamp >= self._now.start:
            return _sample(self._now, stamp)
        return Goal(self._nothing, self._nothing) if self._before is None else _sample(self._before, stamp)

    def _set_out(self, new: _Trajectory, stamp: float, measured: Mapping[str, float]) -> _Trajectory:
        """A trajectory with a point at its start, added if missing, and with the previous goals of all other joints."""
        start = stamp if new.start is None else new.start
        where, rate = _sample(self._before, start) if self._before is not None else (self._nothing,) * 2
        elsewhere = np.isnan(new.positions[0])
        positions = np.where(elsewhere, where, new.positions)
        velocities = np.where(elsewhere, 0.0, new.velocities)
        if new.times[0] <= 0.0:
            return _Trajectory(start, new.times, positions, velocities)
        measured_position = np.array([measured.get(name, math.nan) for name in self._names])
        unknown = np.isnan(where)
        first = np.where(unknown & ~elsewhere, measured_position, where)
        rate = np.where(unknown | elsewhere, 0.0, rate)
        return _Trajectory(
            start,
            np.concatenate([[0.0], new.times]),
            np.concatenate([first[None], positions]),
            np.concatenate([rate[None], velocities]),
        )


def _problem(names: Sequence[str], points: Sequence[GoalPoint]) -> str | None:
    if len(set(names)) != len(names):
        return "a trajectory names a joint twice"
    last = -math.inf
    for number, point in enumerate(points, 1):
        what = f"point {number} of a trajectory"
        if len(point.position) != len(names):
            return f"{what} has {len(point.position)} positions for {len(names)} joints"
        if len(point.velocity) not in (0, len(names)):
            return f"{what} has {len(point.velocity)} velocities for {len(names)} joints"
        if not all(map(math.isfinite, (point.time, *point.position, *point.velocity))):
            return f"{what} has a number that is not finite"
        if not point.time > last:
            return f"{what} is not later than the one before"
        last = point.time
    return None


def _sample(trajectory: _Trajectory, stamp: float) -> Goal:
    """Positions and velocities at a time; at rest after the last point."""
    times, positions, velocities = trajectory.times, trajectory.positions, trajectory.velocities
    time = stamp - (trajectory.start or 0.0)
    k = int(np.searchsorted(times, time, side="right"))
    still = np.zeros(positions.shape[1])
    if k == 0 or k == len(times):
        return Goal(positions[max(k - 1, 0)], still)
    span, share = times[k] - times[k - 1], (time - times[k - 1]) / (times[k] - times[k - 1])
    a, b = positions[k - 1], positions[k]
    slope = (b - a) / span
    va, vb = velocities[k - 1], velocities[k]
    has_velocity = np.isfinite(va) & np.isfinite(vb)
    bend_a, bend_b = np.where(has_velocity, va - slope, 0.0), np.where(has_velocity, vb - slope, 0.0)
    left = 1.0 - share
    # Cubic Hermite polynomial, as a straight line plus the bend due to the end velocities.
    at = a + share * (b - a) + span * share * left * (left * bend_a - share * bend_b)
    rate = slope + left * (1.0 - 3.0 * share) * bend_a + share * (3.0 * share - 2.0) * bend_b
    return Goal(at, rate)
