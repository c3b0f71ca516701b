"""Conversion between ROS messages and numbers: commands, goals, outputs and telemetry."""

from __future__ import annotations

import importlib.util
import struct
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from stribeck.errors import ConfigError
from stribeck.files.cdr import BODY, JointStateReader, Stamp, header_stamp
from stribeck.live.controller_goals import GoalSource
from stribeck.live.handover import Compensating
from stribeck.live.setup import CompensatedJoint
from stribeck.live.telemetry import RateLimiter
from stribeck.model.arrays import Array
from stribeck.recordings.bags.messages import DYNAMIC_JOINT_STATES, SERVO_STATUS, Topic
from stribeck.recordings.signals.sources import float_or_nan
from stribeck.session.directive import Plan

_STAMP = struct.Struct("=iI")

HAS_CONTROL_MSGS = importlib.util.find_spec("control_msgs") is not None
"""Whether telemetry is published as DynamicJointState; without control_msgs it is a DiagnosticArray."""

SCALES = ("dry", "viscous", "offset")
"""Columns of ``friction_scale``: two fractions of the identified friction [1] and a torque [N m]."""


def whole_number(data: bytes) -> int:
    """The number of a serialised std_msgs/Int64."""
    return int.from_bytes(data[BODY : BODY + 8], "little" if data[1] & 1 else "big", signed=True)


class CommandReader:
    """Passes a controller's serialised commands to a compensator.

    :param kind: ``array`` or ``joint_state``.
    """

    def __init__(self, kind: str) -> None:
        self.type = Float64MultiArray if kind == "array" else JointState
        self._joint_states = JointStateReader() if kind == "joint_state" else None

    def take(
        self, compensator: Compensating, data: bytes, arrival: float, now: float | None = None
    ) -> Stamp | None:
        """Pass a command on and return its stamp; ``None`` if it has none or a zero stamp.

        :param now: time on the clock of the stamps [s], if that is not the steady clock.
        :raises ValueError: for bytes that are not such a message.
        """
        if self._joint_states is None:
            numbers = deserialize_message(data, Float64MultiArray).data
            efforts = compensator.settings.mode == "sum"
            compensator.on_command(
                arrival, None, None, () if efforts else numbers, (), numbers if efforts else ()
            )
            return None
        command = self._joint_states.read(data)
        stamp = command.stamp if command.stamp.nanoseconds else None
        compensator.on_command(
            arrival, None if stamp is None else stamp.seconds, command.names, *command.numbers, now
        )
        return stamp


class GoalReader:
    """Passes serialised goals to a compensator.

    :param kind: a key of :data:`~stribeck.live.controller_goals.GOAL_TYPES`.
    :raises ConfigError: if the messages of this kind are not installed.
    """

    def __init__(self, kind: str, compensator: Compensating) -> None:
        self.type = _goal_type(kind)
        self.source = GoalSource(kind, compensator)
        self._joint_states = JointStateReader() if kind == "joint_state" else None
        self._stamped = kind != "array"

    def take(self, data: bytes, arrival: float, now: float | None = None) -> str | None:
        """Pass goals on; returns why they are ignored, or ``None`` if they are used.

        :raises ValueError: for bytes that are not such a message.
        """
        stamp = header_stamp(data).seconds if self._stamped else 0.0
        if self._joint_states is None:
            return self.source.take(deserialize_message(data, self.type), arrival, stamp or None, now)
        goal = self._joint_states.read(data)
        return self.source.take_numbers(arrival, stamp or None, goal.names, *goal.numbers[:2], now)


def _goal_type(kind: str) -> Any:
    if kind != "controller_state":
        kinds = {"joint_state": JointState, "array": Float64MultiArray, "joint_trajectory": JointTrajectory}
        return kinds[kind]
    if not HAS_CONTROL_MSGS:
        raise ConfigError(
            "goal_type controller_state needs control_msgs, which is not installed: install "
            "ros-$ROS_DISTRO-control-msgs, or choose another goal_type"
        )
    from control_msgs.msg import JointTrajectoryControllerState

    return JointTrajectoryControllerState


class _Template:
    """A serialised message whose array of numbers can be overwritten."""

    def __init__(self, message: Any, field: str, count: int) -> None:
        self.type = type(message)
        self._stamped = hasattr(message, "header")
        numbers = array("d", (1e300 / (k + 3) for k in range(count)))
        setattr(message, field, numbers)
        self._data = bytearray(serialize_message(message))
        self._begin = self._data.index(numbers.tobytes())
        self._end = self._begin + 8 * count

    def filled(self, values: Array, stamp: Stamp | None = None) -> bytes:
        """The message with ``values``, and with ``stamp`` if it has a header."""
        self._data[self._begin : self._end] = values.tobytes()
        if stamp is not None and self._stamped:
            _STAMP.pack_into(self._data, BODY, *stamp)
        return bytes(self._data)


class OutputMessage(_Template):
    """A message with one number per joint.

    :param kind: ``array`` or ``joint_state``.
    :param mode: output mode, which determines the meaning of the numbers.
    """

    def __init__(self, kind: str, mode: str, names: Sequence[str]) -> None:
        message = Float64MultiArray() if kind == "array" else JointState(name=list(names))
        field = "data" if kind == "array" else "position" if mode == "goal_offset" else "effort"
        super().__init__(message, field, len(names))


class ScaleMessage(_Template):
    """The messages of ``friction_scale`` and ``external_torque``: values (n, m), one row per joint.

    The labels of its dimensions are the names of the joints and of the columns, separated by commas.
    """

    def __init__(self, names: Sequence[str], columns: Sequence[str] = SCALES) -> None:
        message, count = Float64MultiArray(), len(columns) * len(names)
        message.layout.dim = [
            MultiArrayDimension(label=",".join(names), size=len(names), stride=count),
            MultiArrayDimension(label=",".join(columns), size=len(columns), stride=len(columns)),
        ]
        super().__init__(message, "data", count)


class TelemetryTopic(NamedTuple):
    """Topic, message type, and a reader that yields joint names with values by interface name."""

    topic: Topic
    type: Any
    read: Callable[[Any], Iterator[tuple[str, Mapping[str, float]]]]

    @property
    def name(self) -> str:
        """Name to subscribe to, and to publish on."""
        return self.topic.name.lstrip("/")


def telemetry_topics() -> list[TelemetryTopic]:
    """All telemetry topics that this installation can receive; it publishes on the last one."""
    topics = [TelemetryTopic(SERVO_STATUS, DiagnosticArray, _from_diagnostics)]
    if HAS_CONTROL_MSGS:
        from control_msgs.msg import DynamicJointState

        topics.append(TelemetryTopic(DYNAMIC_JOINT_STATES, DynamicJointState, _from_dynamic))
    return topics


def decode_telemetry(topic: TelemetryTopic, data: bytes) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Joint names and values from a serialised message."""
    return topic.read(deserialize_message(data, topic.type))


class TelemetryReader:
    """Reads telemetry of compensated joints from a topic at a limited rate."""

    def __init__(self, topic: TelemetryTopic, joints: Sequence[CompensatedJoint]) -> None:
        self.topic = topic
        self._limiter = RateLimiter()
        self._joints = {joint.model.name: joint for joint in joints}

    def read(self, data: bytes) -> Iterator[tuple[CompensatedJoint, Mapping[str, float], float]]:
        """Joints with their values by interface name and the stamp [s]; empty between two readings."""
        stamp = header_stamp(data)
        if self._limiter.passes(stamp):
            for name, values in decode_telemetry(self.topic, data):
                if name in self._joints:
                    yield self._joints[name], values, stamp.seconds


def _from_diagnostics(message: Any) -> Iterator[tuple[str, Mapping[str, float]]]:
    for status in message.status:
        yield status.name, {pair.key: float_or_nan(pair.value) for pair in status.values}


def _from_dynamic(message: Any) -> Iterator[tuple[str, Mapping[str, float]]]:
    for name, values in zip(message.joint_names, message.interface_values, strict=False):
        yield name, dict(zip(values.interface_names, values.values, strict=False))


def set_stamp(header: Any, time: int) -> None:
    """Set the time stamp of a std_msgs/Header [ns]."""
    header.stamp.sec, header.stamp.nanosec = divmod(time, 1_000_000_000)


def trajectory_message(names: Sequence[str], plan: Plan) -> JointTrajectory:
    """Convert a plan to a trajectory_msgs/JointTrajectory without a time stamp."""
    message = JointTrajectory(joint_names=list(names))
    message.points = [
        JointTrajectoryPoint(
            positions=position.tolist(), velocities=velocity.tolist(), time_from_start=_duration(float(t))
        )
        for t, position, velocity in zip(plan.time, plan.position, plan.velocity, strict=True)
    ]
    return message


def _duration(time: float) -> Duration:
    sec, nanosec = divmod(round(time * 1e9), 1_000_000_000)
    return Duration(sec=sec, nanosec=nanosec)
