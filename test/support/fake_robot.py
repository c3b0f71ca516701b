"""A robot whose joints follow a controller of ros2_control, or what looks like one from outside."""

import itertools
import math
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from ros_graph import Graph
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from stribeck.files.goal_messages import seconds

PERIOD = 0.01
NEARER = 0.4
"""Share of the way to the goal that a joint goes in a period."""


def reference_of(message: JointTrajectory, start: np.ndarray, now: float) -> np.ndarray:
    """What a joint_trajectory_controller makes of a trajectory at a time [s].

    :param start: where it is as the trajectory begins, for one whose first point comes later, as the real one does.
    """
    times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
    points = np.array([p.positions for p in message.points])
    if times[0] > 0.0:
        times, points = [0.0, *times], np.vstack([start, points])
    at = now - seconds(message.header.stamp)
    return np.array([np.interp(at, times, column) for column in points.T])


class FakeRobot:
    """Joints that follow their goals, and say where they are. Use as a context manager.

    :ivar goals: what came for a forward_command_controller.
    :ivar trajectories: what came for a joint_trajectory_controller.
    :ivar reference: stamps and goals that the joints followed.
    :ivar silent: set to say nothing any more.
    """

    def __init__(self, graph: Graph, names: Sequence[str], controller: str, start: float = 0.3) -> None:
        self.names = list(names)
        self.goals: list[np.ndarray] = []
        self.trajectories: list[JointTrajectory] = []
        self.reference: list[tuple[float, np.ndarray]] = []
        self.silent = threading.Event()
        self.position = np.full(len(self.names), start)
        self._goal = self.position.copy()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._node = Node("robot", context=graph.context)
        self._executor = SingleThreadedExecutor(context=graph.context)
        self._executor.add_node(self._node)
        self._states = self._node.create_publisher(JointState, "joint_states", 50)
        self._server: Any = None
        self._executing: list[tuple[JointTrajectory, float, Future]] = []
        self.refuses = False
        self.gives_up = False
        if controller == "forward":
            self._listen(Float64MultiArray, "forward_position_controller/commands", self._on_goals)
        elif controller == "trajectory":
            self._listen(JointTrajectory, "joint_trajectory_controller/joint_trajectory", self._on_trajectory)
        elif controller == "trajectory_action":
            self._serve()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._spin, self._move)]

    def __enter__(self) -> "FakeRobot":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._executor.wake()
        for thread in self._threads:
            thread.join()
        if self._server is not None:
            self._server.destroy()
        self._executor.shutdown()
        self._node.destroy_node()

    def _listen(self, kind: Any, topic: str, take: Any) -> None:
        self._node.create_subscription(kind, topic, take, 50)

    def _spin(self) -> None:
        while not self._ended.is_set():
            self._executor.spin_once(timeout_sec=0.05)

    def _move(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            due += PERIOD
            stamp = self._node.get_clock().now()
            with self._lock:
                goal = self._wanted(1e-9 * stamp.nanoseconds)
                before = self.position
                self.position = before + NEARER * (goal - before)
                self.reference.append((1e-9 * stamp.nanoseconds, goal))
            self._finish_goals()
            if not self.silent.is_set():
                message = JointState(name=self.names, position=self.position.tolist())
                message.velocity = ((self.position - before) / PERIOD).tolist()
                message.header.stamp = stamp.to_msg()
                self._states.publish(message)

    def _wanted(self, now: float) -> np.ndarray:
        """Goals now: the last ones, or those of the trajectory in hand."""
        return reference_of(self.trajectories[-1], self._goal, now) if self.trajectories else self._goal

    # The controllers.

    def _on_goals(self, message: Float64MultiArray) -> None:
        with self._lock:
            self._goal = np.array(message.data)
            self.goals.append(self._goal)

    def _on_trajectory(self, message: JointTrajectory, info: Any) -> None:
        self._follow(message, 1e-9 * info["source_timestamp"])

    def _follow(self, message: JointTrajectory, sent: float) -> None:
        check(message, self.names, sent)
        now = 1e-9 * self._node.get_clock().now().nanoseconds
        with self._lock:
            self._goal = self._wanted(now)
            self.trajectories.append(message)

    def _finish_goals(self) -> None:
        """End the goals of the action that are over: reached, replaced, or given up."""
        now = 1e-9 * self._node.get_clock().now().nanoseconds
        with self._lock:
            waiting, self._executing = self._executing, []
            for message, until, end in waiting:
                if self.gives_up:
                    end.set_result((-4, "path tolerance violated"))
                elif self.trajectories[-1] is not message or now >= until:
                    end.set_result((0, ""))
                else:
                    self._executing.append((message, until, end))

    def _serve(self) -> None:
        from control_msgs.action import FollowJointTrajectory
        from rclpy.action import ActionServer, CancelResponse, GoalResponse

        def answer(_: Any) -> Any:
            return GoalResponse.REJECT if self.refuses else GoalResponse.ACCEPT

        async def execute(handle: Any) -> Any:
            message = handle.request.trajectory
            self._follow(message, seconds(message.header.stamp))
            last = message.points[-1].time_from_start
            until = seconds(message.header.stamp) + last.sec + 1e-9 * last.nanosec
            end: Future = Future(executor=self._executor)
            with self._lock:
                self._executing.append((message, until, end))
            result = FollowJointTrajectory.Result()
            result.error_code, result.error_string = await end
            if result.error_code or self.trajectories[-1] is not message:
                handle.abort()
            else:
                handle.succeed()
            return result

        self._server = ActionServer(
            self._node,
            FollowJointTrajectory,
            "joint_trajectory_controller/follow_joint_trajectory",
            execute,
            goal_callback=answer,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )


def check(message: JointTrajectory, names: Sequence[str], sent: float) -> None:
    """What a joint_trajectory_controller insists on; times are judged by when it was sent, not by how late it arrives."""
    assert list(message.joint_names) == list(names)
    times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
    assert all(b > a for a, b in itertools.pairwise(times)), "times rise"
    assert seconds(message.header.stamp) + times[-1] > sent, "the trajectory is not over"
    assert not any(message.points[-1].velocities), "it ends at rest"
    assert all(math.isfinite(q) for point in message.points for q in point.positions)
