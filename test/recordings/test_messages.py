"""The contract's messages made without ROS."""

import math
from pathlib import Path

import numpy as np
import pytest

from bags import STORE
from recordings_made import begin, end
from stribeck.recordings.bags import messages
from stribeck.recordings.bags.bag import decode, read_bag
from stribeck.recordings.bags.messages import (
    BENCH,
    JOINT_COMMANDS,
    JOINT_STATES,
    SERVO_STATUS,
    Digest,
    RawMessage,
    contract_types,
)
from stribeck.recordings.bags.recorder import BagRecorder

STAMP = 12_000_000_345
TOLD = {"a": {"pwm": 0.1, "voltage": 5.0}, "b": {"temperature": math.nan}}


def decoded(data: bytes, kind: str):
    """A message as the library of other authors decodes it."""
    return STORE.deserialize_cdr(data, kind)


def test_a_joint_state_holds_what_was_given():
    """Stamp to the nanosecond, names and numbers bit for bit; what was not given is empty."""
    effort = [math.nan, -0.25]
    data = messages.joint_state(STAMP, ["a", "b"], [0.1, np.float32(2)], (1.0, -1.0), effort)
    found = decoded(data, JOINT_STATES.type)
    assert (found.header.stamp.sec, found.header.stamp.nanosec) == (12, 345)
    assert found.name == ["a", "b"]
    np.testing.assert_array_equal(found.position, [0.1, 2.0])
    np.testing.assert_array_equal(found.velocity, [1.0, -1.0])
    np.testing.assert_array_equal(found.effort, effort)
    command = decoded(messages.joint_state(STAMP, ["a"], [0.1]), JOINT_COMMANDS.type)
    assert len(command.velocity) == len(command.effort) == 0


def test_telemetry_holds_interfaces_by_joint():
    """control_msgs/DynamicJointState."""
    found = decoded(messages.dynamic_joint_state(STAMP, TOLD), "control_msgs/msg/DynamicJointState")
    assert found.joint_names == ["a", "b"]
    assert found.interface_values[0].interface_names == ["pwm", "voltage"]
    np.testing.assert_array_equal(found.interface_values[0].values, [0.1, 5.0])
    np.testing.assert_array_equal(found.interface_values[1].values, [math.nan])


def test_telemetry_as_diagnostics_says_the_same():
    """Numbers by repr, so that no bit is lost."""
    found = decoded(messages.diagnostic_array(STAMP, TOLD), SERVO_STATUS.type)
    pairs = {status.name: {pair.key: float(pair.value) for pair in status.values} for status in found.status}
    assert pairs["a"] == TOLD["a"]
    assert math.isnan(pairs["b"]["temperature"])


def test_a_bag_with_telemetry_as_diagnostics_is_a_recording(tmp_path):
    """Where control_msgs is not installed, /servo_status says what the fit needs."""
    with BagRecorder(tmp_path / "bag", (BENCH, JOINT_STATES, JOINT_COMMANDS, SERVO_STATUS)) as recorder:
        recorder.write(*begin(0))
        for k in range(300):
            time = k * 5_000_000
            told = {"shoulder": {"torque_enable": 1.0, "voltage": 5.0 + k / 1000}}
            recorder.write(
                JOINT_STATES.name, messages.joint_state(time, ["shoulder"], [k / 100], [2.0]), time
            )
            recorder.write(JOINT_COMMANDS.name, messages.joint_state(time, ["shoulder"], [k / 90]), time)
            recorder.write(SERVO_STATUS.name, messages.diagnostic_array(time, told), time)
        recorder.write(*end(300 * 5_000_000))
    (log,) = read_bag(tmp_path / "bag")
    assert len(log.position.time) == 300
    assert log.supply_voltage is not None
    assert log.supply_voltage.value[-1] == 5.0 + 299 / 1000


@pytest.mark.parametrize("change", [("/b", 1, b"x"), ("/a", 2, b"x"), ("/a", 1, b"y")])
def test_a_digest_tells_messages_apart_but_not_their_order(change):
    """Topic, time and bytes count."""
    one, other, changed = Digest(), Digest(), Digest()
    for message in (("/a", 1, b"x"), ("/c", 3, b"z")):
        one.add(*message)
    for message in (("/c", 3, b"z"), ("/a", 1, memoryview(b"x"))):
        other.add(*message)
    for message in (change, ("/c", 3, b"z")):
        changed.add(*message)
    assert str(one) == str(other) != str(changed)


@pytest.mark.parametrize("surplus", [0, 4, 8])
def test_messages_with_room_for_empty_sequences_at_their_end(surplus):
    """ROS sends up to 8 bytes too many where sequences are empty; they mean nothing."""
    data = messages.joint_state(1, ["hinge"], [0.5]) + bytes(range(surplus))
    found = decode(Path("bag"), RawMessage(JOINT_COMMANDS, 0, data), contract_types())
    assert list(found.position) == [0.5]
    assert len(found.effort) == 0
