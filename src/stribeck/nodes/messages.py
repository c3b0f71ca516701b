"""Between ROS messages and numbers: commands, outputs, telemetry."""

from __future__ import annotations

import importlib.util
import math
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from trajectory_msgs.msg import JointTrajectory

from stribeck.core.compensator import Compensator
from stribeck.errors import ConfigError
from stribeck.io.cdr import BODY, JointStateReader, Stamp, header_stamp
from stribeck.nodes.goals import GoalSource

FloatArray = npt.NDArray[np.float64]

_STAMP = struct.Struct("=iI")

HAS_CONTROL_MSGS = importlib.util.find_spec("control_msgs") is not None
"""Whether telemetry goes out as DynamicJointState; without control_msgs it is a DiagnosticArray."""

SCALES = ("dry", "viscous", "offset")
"""What ``friction_scale`` says of a joint: shares of its identified friction [1], and a torque [N m]."""


def seconds(stamp: Any) -> float:
    """A stamp as a number [s]."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


def whole_number(data: bytes) -> int:
    """The number of a serialised std_msgs/Int64."""
    return int.from_bytes(data[BODY : BODY + 8], "little" if data[1] & 1 else "big", signed=True)


class CommandReader:
    """Hands a controller's commands, as they are on the wire, to a compensator.

    :param kind: ``array`` or ``joint_state``.
    """

    def __init__(self, kind: str) -> None:
        self.type = Float64MultiArray if kind == "array" else JointState
        self._joint_states = JointStateReader() if kind == "joint_state" else None

    def take(
        self, compensator: Compensator, data: bytes, arrival: float, now: float | None = None
    ) -> Stamp | None:
        """Hand a command over; its stamp, ``None`` for one without or with an empty one.

        :param now: the time by the clock of the stamps, where that is not the steady one [s].
        :raises ValueError: for bytes that are no such message.
        """
        if self._joint_states is None:
            numbers = deserialize_message(data, Float64MultiArray).data
            efforts = compensator.settings.mode == "sum"
            compensator.on_command(
                arrival, None, None, () if efforts else numbers, (), numbers if efforts else ()
            )
            return None
        found = self._joint_states.read(data)
        stamp = found.stamp if found.stamp.nanoseconds else None
        told = None if stamp is None else stamp.seconds
        compensator.on_command(arrival, told, found.names, *found.numbers, now)
        return stamp


class GoalReader:
    """Hands goals, as they are on the wire, to a compensator.

    :param kind: a key of :data:`~stribeck.nodes.goals.GOAL_TYPES`.
    :raises ConfigError: for a kind whose messages are not installed.
    """

    def __init__(self, kind: str, compensator: Compensator) -> None:
        self.type = _goal_type(kind)
        self.source = GoalSource(kind, compensator)
        self._joint_states = JointStateReader() if kind == "joint_state" else None
        self._stamped = kind != "array"

    def take(self, data: bytes, arrival: float, now: float | None = None) -> str | None:
        """Hand goals over; why they do not count, ``None`` if they do.

        :raises ValueError: for bytes that are no such message.
        """
        stamp = header_stamp(data).seconds if self._stamped else 0.0
        if self._joint_states is None:
            return self.source.take(deserialize_message(data, self.type), arrival, stamp or None, now)
        found = self._joint_states.read(data)
        return self.source.take_numbers(arrival, stamp or None, found.names, *found.numbers[:2], now)


def _goal_type(kind: str) -> Any:
    if kind != "controller_state":
        return {"joint_state": JointState, "array": Float64MultiArray, "joint_trajectory": JointTrajectory}[
            kind
        ]
    if not HAS_CONTROL_MSGS:
        raise ConfigError(
            "goal_type controller_state needs control_msgs, which is not installed: install "
            "ros-$ROS_DISTRO-control-msgs, or choose another goal_type"
        )
    from control_msgs.msg import JointTrajectoryControllerState

    return JointTrajectoryControllerState


class OutputMessage:
    """One serialised message that is filled again for every output.

    :param kind: ``array`` or ``joint_state``.
    :param mode: what the numbers are.
    """

    def __init__(self, kind: str, mode: str, names: Sequence[str]) -> None:
        self.type = Float64MultiArray if kind == "array" else JointState
        message = self.type()
        if kind == "joint_state":
            message.name = list(names)
        self._stamped = kind == "joint_state"
        field = "data" if kind == "array" else "position" if mode == "goal_offset" else "effort"
        self._form = _Form(message, field, len(names))

    def filled(self, values: FloatArray, stamp: Stamp) -> bytes:
        """The message with ``values``, and with ``stamp`` where it has a header."""
        return self._form.filled(values, stamp if self._stamped else None)


class ScaleMessage:
    """The serialised message of ``friction_scale``: a row of :data:`SCALES` for each joint.

    Labels of its dimensions: the joints' names, and those of the columns, with commas between.
    """

    def __init__(self, names: Sequence[str]) -> None:
        message, count = Float64MultiArray(), len(SCALES) * len(names)
        message.layout.dim = [
            MultiArrayDimension(label=",".join(names), size=len(names), stride=count),
            MultiArrayDimension(label=",".join(SCALES), size=len(SCALES), stride=len(SCALES)),
        ]
        self._form = _Form(message, "data", count)

    def filled(self, values: FloatArray) -> bytes:
        """The message with values (n, 3)."""
        return self._form.filled(np.ascontiguousarray(values))


class _Form:
    """A serialised message whose numbers are filled in anew."""

    def __init__(self, message: Any, field: str, count: int) -> None:
        numbers = array("d", (1e300 / (k + 3) for k in range(count)))
        setattr(message, field, numbers)
        self._data = bytearray(serialize_message(message))
        self._begin = self._data.index(numbers.tobytes())
        self._end = self._begin + 8 * count

    def filled(self, values: FloatArray, stamp: Stamp | None = None) -> bytes:
        self._data[self._begin : self._end] = values.tobytes()
        if stamp is not None:
            _STAMP.pack_into(self._data, BODY, *stamp)
        return bytes(self._data)


class Telemetry(NamedTuple):
    """What a servo says beside its motion."""

    joint: str
    values: Mapping[str, float]


class TelemetryTopic(NamedTuple):
    """Topic, message type, and how to read and write it."""

    name: str
    type: Any
    read: Callable[[Any], Iterator[Telemetry]]


def telemetry_topics() -> list[TelemetryTopic]:
    """Every topic that telemetry may come by here."""
    found = [TelemetryTopic("servo_status", DiagnosticArray, _from_diagnostics)]
    if HAS_CONTROL_MSGS:
        from control_msgs.msg import DynamicJointState

        found.append(TelemetryTopic("dynamic_joint_states", DynamicJointState, _from_dynamic))
    return found


def decoded(topic: TelemetryTopic, data: bytes) -> Iterator[Telemetry]:
    """Telemetry from a serialised message."""
    return topic.read(deserialize_message(data, topic.type))


def telemetry_message(stamp: Any, joints: Iterable[Telemetry]) -> Any:
    """Telemetry as a message of the type that this installation publishes."""
    if HAS_CONTROL_MSGS:
        from control_msgs.msg import DynamicJointState, InterfaceValue

        message = DynamicJointState()
        message.header.stamp = stamp
        for joint in joints:
            message.joint_names.append(joint.joint)
            message.interface_values.append(
                InterfaceValue(interface_names=list(joint.values), values=list(joint.values.values()))
            )
        return message
    message = DiagnosticArray()
    message.header.stamp = stamp
    message.status = [
        DiagnosticStatus(
            name=joint.joint,
            values=[KeyValue(key=key, value=repr(float(value))) for key, value in joint.values.items()],
        )
        for joint in joints
    ]
    return message


def _from_diagnostics(message: Any) -> Iterator[Telemetry]:
    for status in message.status:
        yield Telemetry(status.name, {pair.key: _number(pair.value) for pair in status.values})


def _from_dynamic(message: Any) -> Iterator[Telemetry]:
    for name, found in zip(message.joint_names, message.interface_values, strict=False):
        yield Telemetry(name, dict(zip(found.interface_names, found.values, strict=False)))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
