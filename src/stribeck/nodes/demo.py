"""Nodes of ``stribeck demo``: a controller with gravity compensation, and a client of excitation nodes."""

from __future__ import annotations

import json
import math
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from stribeck.core.arrays import Array
from stribeck.core.bench import Pendulum, gravity_torque
from stribeck.core.compensation import FrictionModel, JointModel
from stribeck.io.goal_messages import seconds
from stribeck.nodes.qos import best_effort, latched

DEPTH = 50
CALM_GAP = 0.05
"""Longest gap between messages of a steady stream [s]."""

N = TypeVar("N", bound=Node)


class Trace(NamedTuple):
    """Measurements while following a goal: times (n,) [s], goals (n,) and positions (n, J) [rad]."""

    time: Array
    goal: Array
    position: Array


class NaiveCompensator:
    """A naive compensator for comparison: friction times the sign of the difference between two positions."""

    def __init__(self, joint: JointModel, gain: float, kp: float, supply: float) -> None:
        self.name = joint.name
        self._model, self._gain = FrictionModel([joint]), gain
        self._kp, self._supply = np.array([kp]), np.array([supply])
        self._last: tuple[float, float] | None = None

    def goal(self, goal: float, time: float, position: float, gravity: float) -> float:
        """Goal for the servo [rad]."""
        velocity = 0.0
        if self._last is not None and time > self._last[0]:
            velocity = (position - self._last[1]) / (time - self._last[0])
        self._last = (time, position)
        load = np.array([gravity])
        direction, speed = np.array([np.sign(velocity)]), np.array([velocity])
        friction = np.zeros(1)
        for _ in range(3):
            friction = self._model.feed_forward(self._gain, direction, speed, load, -load, friction)
        return goal + float(self._model.offsets(friction + load, self._kp, self._supply)[0])


class StreamMonitor:
    """Measures how long messages have been arriving steadily."""

    def __init__(self) -> None:
        self._seen, self._since = -math.inf, math.inf

    def arrived(self) -> None:
        """Register another message."""
        now = time.monotonic()
        if now - self._seen > CALM_GAP:
            self._since = now
        self._seen = now

    def steady_for(self, duration: float) -> bool:
        """Whether messages have arrived steadily for ``duration`` [s], which they do not during discovery."""
        return time.monotonic() - self._since > duration


class DemoController(Node):
    """After :meth:`begin`, sends the same goal with gravity torque to every joint whenever a state arrives.

    Goals with feed-forward effort are published on ``controller_command`` for the compensation nodes; the goal of the
    naive compensator goes directly to the servo node.

    :param joints: joint names.
    :param pendulum: the load, for gravity compensation.
    :param q_offset: mounting offset of the pendulum [rad].
    :param naive: name of the joint with the naive compensator.
    """

    def __init__(
        self, joints: Sequence[str], pendulum: Pendulum, q_offset: float, naive: NaiveCompensator
    ) -> None:
        super().__init__("demo_controller")
        self.joints = tuple(joints)
        self._pendulum, self._q_offset, self._naive = pendulum, q_offset, naive
        self._position = np.zeros(len(joints))
        self.seen: set[str] = set()
        self._stream = StreamMonitor()
        self._begun = False
        self._commands = self.create_publisher(JointState, "controller_command", DEPTH)
        self._goals = self.create_publisher(JointState, "joint_goals", DEPTH)
        self.create_subscription(JointState, "joint_states", self._on_state, best_effort(DEPTH))
        self._command = JointState(name=list(joints))
        self._naive_goal = JointState(name=[naive.name])
        self._lock = threading.Lock()
        self._goal: Callable[[float], float] = lambda time: 0.0
        self._start: float | None = None
        self._rows: list[tuple[float, float, Array]] = []
        self._duration = 0.0
        self._done = threading.Event()

    def heard_by(self, listeners: int) -> bool:
        """Whether so many nodes subscribe to the commands."""
        return bool(self._commands.get_subscription_count() >= listeners)

    def calm(self, duration: float) -> bool:
        """Whether states have arrived steadily for ``duration`` [s]."""
        return self._stream.steady_for(duration)

    def begin(self) -> None:
        """Start sending commands; the servo node switches torque on, and off again when they stop."""
        self._begun = True

    def follow(self, goal: Callable[[float], float], duration: float) -> Trace:
        """Follow a goal for a duration [s], measured by the stamps of the states; blocks."""
        with self._lock:
            self._goal, self._duration, self._start, self._rows = goal, duration, None, []
            self._done.clear()
        if not self._done.wait(timeout=duration + 10.0):
            raise TimeoutError("joint states stopped")
        with self._lock:
            rows = self._rows
        times, goals, positions = zip(*rows, strict=True)
        return Trace(np.array(times), np.array(goals), np.array(positions))

    def _on_state(self, message: JointState) -> None:
        stamp = seconds(message.header.stamp)
        with self._lock:
            self._start = stamp if self._start is None else self._start
            time = stamp - self._start
            goal = self._goal(min(time, self._duration))
        places = [self.joints.index(name) for name in message.name if name in self.joints]
        self._position[places] = message.position
        self.seen.update(message.name)
        self._stream.arrived()
        if not self._begun:
            return
        gravity = -gravity_torque(self._pendulum, self._position, np.float64(self._q_offset))
        command = self._command
        command.header.stamp = message.header.stamp
        command.position = [goal] * len(self.joints)
        command.effort = array("d", gravity.tobytes())
        self._commands.publish(command)
        k = self.joints.index(self._naive.name)
        self._naive_goal.position = [
            self._naive.goal(goal, stamp, float(self._position[k]), float(gravity[k]))
        ]
        self._goals.publish(self._naive_goal)
        with self._lock:
            if not self._done.is_set():
                self._rows.append((time, goal, self._position.copy()))
                if time >= self._duration:
                    self._done.set()


class Spinner(Generic[N]):
    """Spins a node in a thread while the context lasts."""

    def __init__(self, node: N) -> None:
        self.node = node
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)

    def __enter__(self) -> Spinner[N]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._executor.wake()
        self._thread.join()
        self._executor.shutdown()
        self.node.destroy_node()

    def _spin(self) -> None:
        while not self._ending.is_set():
            self._executor.spin_once(timeout_sec=0.1)


class SessionWatcher(Node):
    """Starts the sessions of excitation nodes; collects progress and results by namespace."""

    def __init__(self, namespaces: Sequence[str]) -> None:
        super().__init__("demo_watcher")
        self.progress: dict[str, dict[str, Any]] = {}
        self.result: dict[str, dict[str, Any]] = {}
        self._streams = {space: StreamMonitor() for space in namespaces}
        self._start = {
            space: self.create_client(Trigger, f"/{space}/excitation/start") for space in namespaces
        }
        for space in namespaces:
            self.create_subscription(
                JointState,
                f"/{space}/joint_states",
                lambda _, space=space: self._streams[space].arrived(),
                best_effort(DEPTH),
            )
            for topic, store in (("progress", self.progress), ("result", self.result)):
                self.create_subscription(
                    String,
                    f"/{space}/excitation/{topic}",
                    lambda message, store=store, space=space: store.update({space: json.loads(message.data)}),
                    latched(),
                )

    def calm(self, duration: float) -> bool:
        """Whether all joint states have arrived steadily for ``duration`` [s] and all sessions can be started."""
        flowing = all(stream.steady_for(duration) for stream in self._streams.values())
        return flowing and all(client.service_is_ready() for client in self._start.values())

    def start(self) -> None:
        """Start all sessions."""
        for client in self._start.values():
            client.call_async(Trigger.Request())
