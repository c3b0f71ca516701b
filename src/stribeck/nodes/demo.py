"""Nodes of ``stribeck demo``: a controller with gravity compensation, and a client of excitation nodes."""

from __future__ import annotations

import contextlib
import threading
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState

from stribeck.errors import ServoError
from stribeck.files.cdr import JointStateReader
from stribeck.live.friction import FrictionModel, JointModel
from stribeck.model.arrays import Array
from stribeck.model.bench import Pendulum, gravity_torque
from stribeck.nodes.lockstep import LockstepNode
from stribeck.nodes.qos import latched
from stribeck.nodes.statuses import outcome_of

DEPTH = 50

N = TypeVar("N", bound=Node)


class Trace(NamedTuple):
    """Measurements while following a goal: times (n,) [s], goals (n,) and positions (n, J) [rad]."""

    time: Array
    goal: Array
    position: Array


class DirectGoals:
    """Goals that go to the servo node without a compensation node: with gravity alone, and with naive friction for comparison.

    The naive compensator adds friction times the sign of the difference between two positions.

    :param joints: their models.
    :param naive: name of the joint with the naive compensator.
    :param gain: of the naive compensator.
    :param kp: firmware gain of each joint.
    :param supply: supply voltage [V].
    """

    def __init__(
        self, joints: Sequence[JointModel], naive: str, gain: float, kp: Sequence[float], supply: float
    ) -> None:
        self.names = [joint.name for joint in joints]
        self._model = FrictionModel(joints)
        self._gain = np.array([gain * (name == naive) for name in self.names])
        self._kp, self._supply = np.array(kp), np.full(len(joints), supply)
        self._last: tuple[float, Array] | None = None

    def goals(self, goal: float, time: float, position: Array, gravity: Array) -> Array:
        """Goals of the joints [rad].

        :param goal: of all joints, without offsets [rad].
        :param time: of the positions [s].
        :param gravity: torque that carries the load at each joint [N m].
        """
        velocity = np.zeros(len(position))
        if self._last is not None and time > self._last[0]:
            velocity = (position - self._last[1]) / (time - self._last[0])
        self._last = (time, position)
        friction = np.zeros(len(position))
        for _ in range(3):
            friction = self._model.feed_forward(
                self._gain, np.sign(velocity), velocity, gravity, -gravity, friction, position=position
            )
        return goal + self._model.offsets(friction + gravity, self._kp, self._supply)


class DemoMotion(NamedTuple):
    """A motion of all joints: its name, goal position [rad] at a time [s] since its start, and duration [s]."""

    name: str
    goal: Callable[[float], float]
    duration: float


class DemoController(LockstepNode, Node):
    """Sends the same goal with gravity torque to every joint whenever a state arrives, in lock-step.

    Goals with feed-forward effort are published on ``controller_command`` for the compensation nodes; those of joints
    without compensation node go directly to the servo node.

    :param joints: joint names.
    :param pendulum: the load, for gravity compensation.
    :param q_offset: mounting offset of the pendulum [rad].
    :param direct: the joints without compensation node.
    :param motions: one after the other.
    :param socket: of the emulated servos.
    :ivar traces: what was measured, by name of the motion, when it is complete.
    :ivar failure: what ended the motions early.
    """

    def __init__(
        self,
        joints: Sequence[str],
        pendulum: Pendulum,
        q_offset: float,
        direct: DirectGoals,
        motions: Sequence[DemoMotion],
        socket: Path,
    ) -> None:
        super().__init__("demo_controller")
        self.join_lockstep(str(socket), self._fail)
        self.joints = tuple(joints)
        self._pendulum, self._q_offset, self._direct = pendulum, q_offset, direct
        self._position = np.zeros(len(joints))
        self._commands = self.create_publisher(JointState, "controller_command", DEPTH)
        self._goals = self.create_publisher(JointState, "joint_goals", DEPTH)
        self.create_subscription(JointState, "joint_states", self._on_state, DEPTH, raw=True)
        self._reader = JointStateReader()
        self._command = JointState(name=list(joints))
        self._direct_goals = JointState(name=direct.names)
        self._directly = [self.joints.index(name) for name in direct.names]
        self._motions = deque(motions)
        self._motion = self._motions.popleft()
        self._start: float | None = None
        self._rows: list[tuple[float, float, Array]] = []
        self.traces: dict[str, Trace] = {}
        self.failure: Exception | None = None

    def _fail(self, error: Exception) -> None:
        self.failure = self.failure or error

    def has_measured(self, name: str) -> bool:
        """Whether the trace of a motion is complete.

        :raises Exception: what ended the motions early.
        """
        if self.failure is not None:
            raise self.failure
        return name in self.traces

    def _on_state(self, data: bytes) -> None:
        message = self._reader.read(data)
        stamp = message.stamp.seconds
        self._start = stamp if self._start is None else self._start
        time, motion = stamp - self._start, self._motion
        goal = motion.goal(min(time, motion.duration))
        places = [self.joints.index(name) for name in message.names]
        self._position[places] = message.numbers[0]
        gravity = -gravity_torque(self._pendulum, self._position, np.float64(self._q_offset))
        command = self._command
        command.header.stamp.sec, command.header.stamp.nanosec = message.stamp
        command.position = [goal] * len(self.joints)
        command.effort = array("d", gravity.tobytes())
        self._commands.publish(command)
        k = self._directly
        goals = self._direct.goals(goal, stamp, self._position[k], gravity[k])
        self._direct_goals.position = array("d", goals.tobytes())
        self._goals.publish(self._direct_goals)
        if motion.name not in self.traces:
            self._rows.append((time, goal, self._position.copy()))
            if time >= motion.duration:
                self._next()

    def _next(self) -> None:
        """Keep the trace of a motion, and begin the next one with the next state."""
        times, goals, positions = zip(*self._rows, strict=True)
        self.traces[self._motion.name] = Trace(np.array(times), np.array(goals), np.array(positions))
        if self._motions:
            self._motion, self._start, self._rows = self._motions.popleft(), None, []


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
        if isinstance(self.node, LockstepNode) and self.node.turns is not None:
            with contextlib.suppress(ServoError):  # the simulation has ended, which is seen where it runs
                self.node.turns.spin(self._executor, self._ending.is_set)
            return
        while not self._ending.is_set():
            self._executor.spin_once(timeout_sec=0.1)


class SessionWatcher(Node):
    """Collects progress and results of excitation nodes by namespace."""

    def __init__(self, namespaces: Sequence[str]) -> None:
        super().__init__("demo_watcher")
        self.progress: dict[str, dict[str, str]] = {}
        self.result: dict[str, dict[str, Any]] = {}
        for space in namespaces:
            place = f"/{space}/excitation"
            self.create_subscription(
                DiagnosticStatus, f"{place}/progress", partial(self._progressed, space), latched()
            )
            self.create_subscription(
                DiagnosticStatus, f"{place}/result", partial(self._ended, space), latched()
            )

    def _progressed(self, space: str, message: DiagnosticStatus) -> None:
        self.progress[space] = {one.key: one.value for one in message.values}

    def _ended(self, space: str, message: DiagnosticStatus) -> None:
        self.result[space] = outcome_of(message)
