"""Goals of joints in messages of trajectory controllers.

A state of a ``joint_trajectory_controller`` holds the goal that it interpolated (``reference``, formerly ``desired``). A
``trajectory_msgs/JointTrajectory`` holds points; between them the goal moves linearly, from where it was, and a later message
replaces what is left of an earlier one. A ``std_msgs/Float64MultiArray`` of a ``forward_command_controller`` holds goals without
time and names: its time is the log time, its joints are given, or are those of the joint states in their order.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

CONTROLLER_STATE = "control_msgs/msg/JointTrajectoryControllerState"
TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
FORWARD_COMMAND = "std_msgs/msg/Float64MultiArray"

SPACING = 0.01
"""Distance of goals between the points of a trajectory [s]."""

GoalRow = tuple[float, dict[str, float]]


def controller_goals(state: Any) -> GoalRow:
    """Time [s] and goals by joint of a JointTrajectoryControllerState."""
    wanted = desired_point(state)
    return seconds(state.header.stamp), dict(zip(state.joint_names, wanted.positions, strict=False))


def forward_goals(
    topics: Mapping[str, Sequence[tuple[float, Sequence[float]]]], joints: Sequence[str]
) -> list[GoalRow]:
    """Times [s] and goals by joint from arrays by topic with their log times [s], in the order of ``joints``.

    Only topics called ``…/commands`` or with "position" in their names count, and arrays as long as ``joints``. Of several,
    none is taken unless one alone has "position" in its name: the others may hold velocities or efforts.
    """
    fitting = [
        name
        for name, rows in topics.items()
        if (name.endswith("/commands") or "position" in name)
        and all(len(values) == len(joints) for _, values in rows)
    ]
    chosen = fitting if len(fitting) == 1 else [name for name in fitting if "position" in name]
    if len(chosen) != 1:
        return []
    return [(time, dict(zip(joints, values, strict=True))) for time, values in topics[chosen[0]]]


def trajectory_goals(messages: Sequence[tuple[float, Any]]) -> Iterator[GoalRow]:
    """Times [s] and goals by joint of trajectories with their log times [s], in the order of time."""
    started = sorted(
        ((seconds(message.header.stamp) or log_time, message) for log_time, message in messages),
        key=lambda pair: pair[0],
    )
    goal: dict[str, float] = {}
    for index, (start, message) in enumerate(started):
        end = started[index + 1][0] if index + 1 < len(started) else np.inf
        names, points = list(message.joint_names), list(message.points)
        if not points:
            continue
        times = [start + seconds(point.time_from_start) for point in points]
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


def seconds(stamp: Any) -> float:
    """A time stamp or duration of a decoded message [s]."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


def desired_point(message: Any) -> Any:
    """The desired state of a controller: ``reference``, called ``desired`` in older versions."""
    if hasattr(message, "reference") and (
        len(message.reference.positions) or not hasattr(message, "desired")
    ):
        return message.reference
    return message.desired
