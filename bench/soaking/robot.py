"""A robot of seven joints with a controller of efforts, both at 1 kHz, that hears every answer and keeps account of them."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import Int64

from soaking.figures import percentile
from stribeck.files.cdr import JointStateReader
from stribeck.nodes.base import ServiceNode
from stribeck.nodes.qos import latched

RATE = 1000
JOINTS = [f"joint_{k}" for k in range(7)]
EFFORT = 0.05
"""What the controller asks for, of every joint [N m]."""

DEPTH = 50
PATIENCE = 1.0
"""An answer that takes longer is lost [s]."""

PAUSE = 0.03
"""A pause of a process that can overflow its queue, DEPTH periods long [s]."""

BUS = "soak_bus"
"""Namespace of the servo node, apart from the robot's topics."""


class Robot(ServiceNode[Any]):
    """The robot. Threads: its loop, the executor, and the hot loop that hears the answers.

    :ivar friction: largest friction torque in each of the last 50 answers since the last fault began [N m].
    :ivar last_friction: that in the last answer, which a receiver would still apply [N m].
    :ivar servo_messages: the last states of the servos, as bytes.
    :ivar said: by node, level and words of its last diagnostics, and their figures.
    """

    def __init__(self) -> None:
        super().__init__("soak_robot")
        self.states = self.create_publisher(JointState, "joint_states", DEPTH)
        self.commands = self.create_publisher(JointState, "controller_command", DEPTH)
        self.goals = self.create_publisher(JointState, f"/{BUS}/joint_goals", 10)
        self.feeding = self.commanding = self.moving = True
        self.spoiled: dict[str, Any] = {}
        self.friction: deque[float] = deque(maxlen=50)
        self.last_friction = 0.0
        self.said: dict[str, tuple[int, str, dict[str, str]]] = {}
        self.sent = self.answered = self.twice = self.late = 0
        self.servo_states = self.servo_pauses = 0
        self.servo_messages: deque[bytes] = deque(maxlen=2000)
        self._pending: dict[int, float] = {}
        self._lost: list[float] = []
        self._windows: list[list[float]] = []
        self._trips: list[float] = []
        self._pauses: list[list[float]] = []
        self._trip_times: deque[float] = deque(maxlen=20_000)
        self._reader, self._lock = JointStateReader(), threading.Lock()
        answers = self.hot_subscription(JointState, "compensated_command", self._on_answer, DEPTH)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self.create_subscription(Int64, "compensation_revoked", self._on_revoked, latched())
        self.create_subscription(JointState, f"/{BUS}/joint_states", self._on_servo, DEPTH, raw=True)
        self.serve_fast(answers)
        self._executor_of_mine = SingleThreadedExecutor()
        self._executor_of_mine.add_node(self)
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._spin, self._play)]

    def begin(self) -> None:
        """Start its threads."""
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """End them."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self.stop_serving()
        self.destroy_node()

    def _deactivate(self) -> None:
        pass

    def _release(self) -> None:
        pass

    # -- what it does

    def _spin(self) -> None:
        while not self._ended.is_set():
            self._executor_of_mine.spin_once(timeout_sec=0.05)

    def _play(self) -> None:
        message, phase = JointState(name=JOINTS), np.arange(len(JOINTS))
        command = JointState(name=JOINTS, effort=[EFFORT] * len(JOINTS))
        begin = due = time.monotonic()
        count = 0
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            now = time.monotonic()
            if now - due > 0.01:  # this process stood still: it does not make up for it
                self.late += 1
                if now - due > PAUSE:
                    with self._lock:
                        self._pauses.append([due - 0.05, now + 0.05])
                due = now
            due += 1.0 / RATE
            count += 1
            t = now - begin
            position = (0.5 * np.sin(2.0 * t + phase)).tolist()
            velocity = np.cos(2.0 * t + phase).tolist()
            stamp = time.time_ns()
            seconds, nanoseconds = divmod(stamp, 10**9)
            if self.commanding:
                command.position, command.velocity = position, velocity
                command.header.stamp.sec, command.header.stamp.nanosec = seconds, nanoseconds
                with self._lock:
                    self._pending[stamp] = time.monotonic()
                    self.sent += 1
                self.commands.publish(command)
            if self.feeding:
                message.position, message.velocity, message.effort = position, velocity, [0.0] * len(JOINTS)
                message.header.stamp.sec, message.header.stamp.nanosec = seconds, nanoseconds + 1
                message.header.stamp.nanosec = min(message.header.stamp.nanosec, 10**9 - 1)
                for key, value in self.spoiled.items():
                    setattr(message, key, value)
                self.states.publish(message)
                message.name = JOINTS
            if self.moving and count % 20 == 0:
                swing = math.sin(2.0 * t)
                self.goals.publish(JointState(name=["j1", "j2"], position=[0.8 * swing, -0.5 * swing]))
            if count % 100 == 0:
                self._give_up()

    def _give_up(self) -> None:
        """Give lost answers up."""
        limit = time.monotonic() - PATIENCE
        with self._lock:
            for stamp, at in list(self._pending.items()):
                if at > limit:
                    break
                del self._pending[stamp]
                self._lost.append(at)

    # -- what it hears

    def _on_answer(self, data: bytes) -> None:
        arrived = time.monotonic()
        state = self._reader.read(data)
        with self._lock:
            at = self._pending.pop(state.stamp.nanoseconds, None)
            self.last_friction = float(np.abs(state.numbers[2] - EFFORT).max())
            self.friction.append(self.last_friction)
            if at is None:
                self.twice += 1
            else:
                self.answered += 1
                self._trip_times.append(1e3 * (arrived - at))

    def _on_servo(self, data: bytes) -> None:
        self.servo_states += 1
        self.servo_messages.append(data)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            figures = {pair.key: pair.value for pair in status.values}
            self.said[status.name.rpartition("/")[2]] = (ord(status.level), status.message, figures)

    def _on_revoked(self, message: Int64) -> None:
        self._trips.append(time.monotonic())

    # -- its accounts

    def fault_begins(self) -> None:
        """From now on answers may be lost."""
        with self._lock:
            self._windows.append([time.monotonic(), math.inf])
            self.friction.clear()

    def fault_ends(self) -> None:
        """No longer."""
        with self._lock:
            self._windows[-1][1] = time.monotonic()

    def machine_paused(self, begin: float, end: float) -> None:
        """A process that takes part did not run although it could have [s]."""
        with self._lock:
            self._pauses.append([begin, end])

    def latency(self) -> tuple[float, float]:
        """Median and 99th percentile of the answers since the last call [ms]."""
        with self._lock:
            times = list(self._trip_times)
            self._trip_times.clear()
        return percentile(times, 50), percentile(times, 99)

    def count_from_now(self) -> None:
        """Forget what came before everything was up."""
        with self._lock:
            self.sent = self.answered = self.twice = self.late = 0
            for kept in (self._lost, self._windows, self._trips, self._pauses, self._pending):
                kept.clear()

    def counts(self) -> dict[str, int]:
        """What came of the commands; lost ones are accounted for by a fault, by the guard's taking over, or by a pause of a
        process that overflowed its queue.
        """
        with self._lock:
            faults, others = self._explanations()
            found = [[_within(at, windows) for at in self._lost] for windows in (faults, others)]
            in_faults, explained = np.array(found, dtype=bool)
            return {
                "sent": self.sent,
                "answered": self.answered,
                "lost in a fault": int(in_faults.sum()),
                "lost in a pause of the machine": int((explained & ~in_faults).sum()),
                "unaccounted": int((~explained & ~in_faults).sum()),
                "answers without a command": self.twice,
                "guard took over": len(self._trips),
                "pauses of this process": self.late,
                "states of the servos": self.servo_states,
                "servos stopped by a pause": self.servo_pauses,
            }

    def _explanations(self) -> tuple[list[list[float]], list[list[float]]]:
        """Spans of time in which commands may be lost: faults; the guard's taking over and pauses [s]."""
        faults = [[begin - 0.1, end + 0.5] for begin, end in self._windows]
        return faults, [*([at - PATIENCE, at + PATIENCE] for at in self._trips), *self._pauses]

    def unaccounted(self) -> list[str]:
        """Of each command that was lost without a reason: how long after the last possible reason, and before the next."""
        with self._lock:
            faults, others = self._explanations()
            spans = faults + others
            lost = [at for at in self._lost if not _within(at, spans)]
            return [
                f"lost {min((at - end for _, end in spans if end < at), default=math.inf):.2f} s after a fault or pause, "
                f"{min((begin - at for begin, _ in spans if begin > at), default=math.inf):.2f} s before the next"
                for at in lost
            ]


def _within(at: float, windows: list[list[float]]) -> bool:
    return any(begin <= at <= end for begin, end in windows)
