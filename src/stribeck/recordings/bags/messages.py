"""Messages of recorded bags: topics, types, and serialisation to CDR without ROS.

Stamps are integer nanoseconds; all other values are in SI units and joint coordinates, see :mod:`stribeck.recordings.bags.bag`.
"""

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

# Message types that ROS's core does not ship, as control_msgs 5 defines them.
_CONTROL_MESSAGES = {
    "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values\n",
    "control_msgs/msg/DynamicJointState": (
        "std_msgs/Header header\nstring[] joint_names\ncontrol_msgs/InterfaceValue[] interface_values\n"
    ),
}


class Topic(NamedTuple):
    """A topic of a bag; late subscribers also receive the last message of a ``latched`` topic."""

    name: str
    type: str
    latched: bool = False


class RawMessage(NamedTuple):
    """A serialised message of a bag.

    :param log_time: time of recording [ns], used only to order messages.
    :param data: CDR bytes.
    """

    topic: Topic
    log_time: int
    data: bytes


JOINT_STATES = Topic("/joint_states", "sensor_msgs/msg/JointState")
JOINT_COMMANDS = Topic("/joint_commands", "sensor_msgs/msg/JointState")
DYNAMIC_JOINT_STATES = Topic("/dynamic_joint_states", "control_msgs/msg/DynamicJointState")
SERVO_STATUS = Topic("/servo_status", "diagnostic_msgs/msg/DiagnosticArray")
BENCH = Topic("/bench", "std_msgs/msg/String", latched=True)


class Digest:
    """A digest of messages that does not depend on their order."""

    def __init__(self) -> None:
        self._total = 0

    def add(self, topic: str, log_time: int, data: bytes | memoryview) -> None:
        """Add a message."""
        digest = hashlib.blake2b(f"{topic} {log_time} ".encode(), digest_size=16)
        digest.update(data)
        self._total += int.from_bytes(digest.digest())

    def __str__(self) -> str:
        return f"{self._total % (1 << 128):032x}"


@cache
def contract_types() -> Typestore:
    """The message types of ROS 2 Jazzy and those of control_msgs that the bag contract needs."""
    return _new_typestore()


def types_with(definitions: Mapping[str, str]) -> Typestore:
    """A copy of :func:`contract_types` extended by new types, given as ros2msg texts by type name.

    Texts that cannot be parsed are left out, as those of service events, which hold the text of the service; so are types
    that contradict known ones.
    """
    unknown = {name: text for name, text in definitions.items() if name not in contract_types().types}
    if not unknown:
        return contract_types()
    store = _new_typestore()
    for name, text in unknown.items():
        with contextlib.suppress(TypesysError):
            store.register(get_types_from_msg(text, name))
    return store


def joint_state(
    stamp: int,
    names: Sequence[str],
    position: npt.ArrayLike,
    velocity: npt.ArrayLike = (),
    effort: npt.ArrayLike = (),
) -> bytes:
    """A sensor_msgs/JointState: positions [rad], velocities [rad/s] and efforts [N m] of joints, (n,).

    A measurement has all three, with NaN for an effort that is not measured; a command has a position and optionally a
    feed-forward effort.
    """
    return _serialised(
        JOINT_STATES.type,
        header=_header(stamp),
        name=list(names),
        position=np.asarray(position, dtype=np.float64),
        velocity=np.asarray(velocity, dtype=np.float64),
        effort=np.asarray(effort, dtype=np.float64),
    )


def dynamic_joint_state(stamp: int, telemetry: Mapping[str, Mapping[str, float]]) -> bytes:
    """A control_msgs/DynamicJointState: values by interface name (``pwm``, ``voltage`` …) by joint."""
    interface_value = contract_types().types["control_msgs/msg/InterfaceValue"]
    values = [
        interface_value(interface_names=list(found), values=np.array(list(found.values()), dtype=np.float64))
        for found in telemetry.values()
    ]
    return _serialised(
        DYNAMIC_JOINT_STATES.type,
        header=_header(stamp),
        joint_names=list(telemetry),
        interface_values=values,
    )


def diagnostic_array(stamp: int, telemetry: Mapping[str, Mapping[str, float]]) -> bytes:
    """The same as a diagnostic_msgs/DiagnosticArray, numbers by ``repr``, for systems without control_msgs."""
    types = contract_types().types
    pair, status = types["diagnostic_msgs/msg/KeyValue"], types["diagnostic_msgs/msg/DiagnosticStatus"]
    statuses = [
        status(
            level=0,
            name=joint,
            message="",
            hardware_id="",
            values=[pair(key=key, value=repr(float(value))) for key, value in found.items()],
        )
        for joint, found in telemetry.items()
    ]
    return _serialised(SERVO_STATUS.type, header=_header(stamp), status=statuses)


def text(data: str) -> bytes:
    """A std_msgs/String, used for ``/bench``."""
    return _serialised(BENCH.type, data=data)


@cache
def warm_up() -> None:
    """Create one message of each kind in advance: the first ones take 0.2 s, too long during a motion."""
    joint_state(0, ("",), (0.0,), (0.0,), (0.0,))
    dynamic_joint_state(0, {"": {"": 0.0}})
    diagnostic_array(0, {"": {"": 0.0}})
    text("")


def _new_typestore() -> Typestore:
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, definition in _CONTROL_MESSAGES.items():
        store.register(get_types_from_msg(definition, name))
    return store


def _header(stamp: int) -> Any:
    types = contract_types().types
    time = types["builtin_interfaces/msg/Time"](*divmod(stamp, 1_000_000_000))
    return types["std_msgs/msg/Header"](stamp=time, frame_id="")


def _serialised(kind: str, **fields: Any) -> bytes:
    store = contract_types()
    return bytes(store.serialize_cdr(store.types[kind](**fields), kind))
