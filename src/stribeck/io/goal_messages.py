"""Goals of joints in messages of trajectory controllers.

A state of a ``joint_trajectory_controller`` holds the goal that it interpolated (``reference``, formerly ``desired``). A
``trajectory_msgs/JointTrajectory`` holds points; between them the goal moves linearly, from where it was, and a later message
replaces what is left of an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

CONTROLLER_STATE = "control_msgs/msg/JointTrajectoryControllerState"
TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"

SPACING = 0.01
"""Distance of goals between the points of a trajectory [s]."""

GoalRow = tuple[float, dict[str, float]]


def controller_goals(state: Any) -> GoalRow:
    """Time [s] and goals by joint of a JointTrajectoryControllerState."""
    wanted = getattr(state, "reference", None) or state.desired
    return _seconds(state.header.stamp), dict(zip(state.joint_names, wanted.positions, strict=False))


def trajectory_goals(messages: Sequence[tuple[float, Any]]) -> Iterator[GoalRow]:
    """Times [s] and goals by joint of trajectories with their log times [s], in the order of time."""
    started = sorted(
        ((_seconds(message.header.stamp) or log_time, message) for log_time, message in messages),
        key=lambda pair: pair[0],
    )
    goal: dict[str, float] = {}
    for index, (start, message) in enumerate(started):
        end = started[index + 1][0] if index + 1 < len(started) else np.inf
        names, points = list(message.joint_names), list(message.points)
        if not points:
            continue
        times = [start + _seconds(point.time_from_start) for point in points]
        values = [list(point.positions) for point in points]
        if all(name in goal for name in names) and times[0] > start:
            times, values = [start, *times], [[goal[name] for name in names], *values]
        for time in _instants(times):
            if time >= end:
                break
            here = [float(np.interp(time, times, column)) for column in zip(*values, strict=True)]
            goal |= dict(zip(names, here, strict=True))
            yield time, dict(goal)


def _instants(times: Sequence[float]) -> Iterator[float]:
    """The times of the points, and between distant ones further times."""
    for begin, end in pairwise(times):
        yield from np.linspace(
            begin, end, max(int(np.ceil((end - begin) / SPACING)), 1), endpoint=False
        ).tolist()
    yield times[-1]


def _seconds(stamp: Any) -> float:
    return float(stamp.sec + 1e-9 * stamp.nanosec)
