"""Between ROS messages and numbers: commands, outputs, telemetry."""

from __future__ import annotations

import importlib.util
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from stribeck.core.compensator import Compensator

FloatArray = npt.NDArray[np.float64]

HAS_CONTROL_MSGS = importlib.util.find_spec("control_msgs") is not None
"""Whether telemetry goes out as DynamicJointState; without control_msgs it is a DiagnosticArray."""


def seconds(stamp: Any) -> float:
    """A stamp as a number [s]."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


def stamp_of(message: Any) -> float | None:
    """The header stamp [s], ``None`` for messages without one or with an empty one."""
    stamp = message.header.stamp
    return seconds(stamp) if stamp.sec or stamp.nanosec else None


def take_command(compensator: Compensator, message: Any, arrival: float) -> None:
    """Hand a controller's command to a compensator, of either type."""
    if isinstance(message, JointState):
        compensator.on_command(
            arrival, stamp_of(message), message.name, message.position, message.velocity, message.effort
        )
        return
    efforts = compensator.settings.mode == "sum"
    data = message.data
    compensator.on_command(arrival, None, None, () if efforts else data, (), data if efforts else ())


class OutputMessage:
    """One message object that is filled again for every output.

    :param kind: ``array`` or ``joint_state``.
    :param mode: what the numbers are.
    """

    def __init__(self, kind: str, mode: str, names: Sequence[str]) -> None:
        self.type = Float64MultiArray if kind == "array" else JointState
        self._message = self.type()
        self._field = "data"
        if kind == "joint_state":
            self._field = "position" if mode == "goal_offset" else "effort"
            self._message.name = list(names)

    def filled(self, values: FloatArray, stamp: Any) -> Any:
        """The message with ``values``; ``stamp`` where it has a header."""
        setattr(self._message, self._field, array("d", values.tobytes()))
        if self._field != "data":
            self._message.header.stamp = stamp
        return self._message


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
