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
from std_msgs.msg import Float64MultiArray

from stribeck.core.compensator import Compensator
from stribeck.io.cdr import BODY, JointStateReader, Stamp

FloatArray = npt.NDArray[np.float64]

_STAMP = struct.Struct("=iI")

HAS_CONTROL_MSGS = importlib.util.find_spec("control_msgs") is not None
"""Whether telemetry goes out as DynamicJointState; without control_msgs it is a DiagnosticArray."""


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

    def take(self, compensator: Compensator, data: bytes, arrival: float) -> Stamp | None:
        """Hand a command over; its stamp, ``None`` for one without or with an empty one.

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
        compensator.on_command(arrival, None if stamp is None else stamp.seconds, found.names, *found.numbers)
        return stamp


class OutputMessage:
    """One serialised message that is filled again for every output.

    :param kind: ``array`` or ``joint_state``.
    :param mode: what the numbers are.
    """

    def __init__(self, kind: str, mode: str, names: Sequence[str]) -> None:
        self.type = Float64MultiArray if kind == "array" else JointState
        message, numbers = self.type(), array("d", (1e300 / (k + 3) for k in range(len(names))))
        if kind == "joint_state":
            message.name = list(names)
        self._stamped = kind == "joint_state"
        field = "data" if kind == "array" else "position" if mode == "goal_offset" else "effort"
        setattr(message, field, numbers)
        self._data = bytearray(serialize_message(message))
        self._begin = self._data.index(numbers.tobytes())
        self._end = self._begin + 8 * len(names)

    def filled(self, values: FloatArray, stamp: Stamp) -> bytes:
        """The message with ``values``, and with ``stamp`` where it has a header."""
        self._data[self._begin : self._end] = values.tobytes()
        if self._stamped:
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
