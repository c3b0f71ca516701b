"""Goals that a controller publishes in addition to efforts, for the node and for bag replay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stribeck.errors import ConfigError
from stribeck.files.goal_messages import desired_point, seconds
from stribeck.live.direction.sampled_goals import GoalPoint, SampledGoals
from stribeck.live.handover import Compensating
from stribeck.live.states.incoming import Numbers

GOAL_TYPES = {
    "joint_state": "sensor_msgs/msg/JointState",
    "array": "std_msgs/msg/Float64MultiArray",
    "joint_trajectory": "trajectory_msgs/msg/JointTrajectory",
    "controller_state": "control_msgs/msg/JointTrajectoryControllerState",
}
"""Message type of each kind of goal."""


def kind_of(message_type: str, where: str) -> str:
    """The kind of goals in messages of a type.

    :raises ConfigError: for an unsupported type.
    """
    for kind, type_name in GOAL_TYPES.items():
        if type_name == message_type:
            return kind
    raise ConfigError(f"{where} has type {message_type}; valid for goals: {', '.join(GOAL_TYPES.values())}")


class GoalSource:
    """Passes goals to a compensator as they arrive; trajectories are sampled at each state.

    :param kind: a key of :data:`GOAL_TYPES`.
    """

    def __init__(self, kind: str, compensator: Compensating) -> None:
        self.kind = kind
        self._compensator = compensator
        self._sampled = SampledGoals(compensator.names) if kind == "joint_trajectory" else None

    def take(self, message: Any, arrival: float, stamp: float | None, now: float | None = None) -> str | None:
        """Take in a message from rclpy or from a bag.

        :param stamp: header stamp [s]; ``None`` if missing or zero.
        :returns: why its goals are ignored; ``None`` if they are used.
        """
        if self._sampled is not None:
            return self._sampled.take(stamp, message.joint_names, [_point(p) for p in message.points])
        if self.kind == "array":
            return self.take_numbers(arrival, stamp, None, message.data, (), now)
        if self.kind == "joint_state":
            return self.take_numbers(arrival, stamp, message.name, message.position, message.velocity, now)
        point = desired_point(message)
        return self.take_numbers(arrival, stamp, message.joint_names, point.positions, point.velocities, now)

    def take_numbers(
        self,
        arrival: float,
        stamp: float | None,
        names: Sequence[str] | None,
        position: Numbers,
        velocity: Numbers,
        now: float | None = None,
    ) -> str | None:
        """Take in numeric goals; without ``names`` they are in the order of the joints."""
        missing = set() if names is None else set(self._compensator.names) - set(names)
        if missing:
            return f"goals without joint {', '.join(sorted(missing))}"
        self._compensator.on_goal(arrival, stamp, names, position, velocity, now)
        return None

    def before_state(
        self,
        arrival: float,
        stamp: float,
        names: Sequence[str],
        position: Numbers,
        now: float | None = None,
    ) -> None:
        """Sample a trajectory just before a state is passed to the compensator."""
        sampled = self._sampled
        if sampled is None or not sampled:
            return
        goal = sampled.at(stamp, dict(zip(names, position, strict=False)))
        # A state only sees goals with earlier stamps.
        just_before = math.nextafter(stamp, -math.inf)
        self._compensator.on_goal(arrival, just_before, None, goal.position, goal.velocity, now)


def _point(point: Any) -> GoalPoint:
    return GoalPoint(seconds(point.time_from_start), point.positions, point.velocities)
