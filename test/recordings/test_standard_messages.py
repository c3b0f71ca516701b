"""Recordings of other machines as the messages that a node would have heard."""

import numpy as np
import pytest

from bags import Bag, joint_state, multi_array
from stribeck.errors import RecordingError
from stribeck.recordings.bags.messages import DYNAMIC_JOINT_STATES, JOINT_COMMANDS, JOINT_STATES
from stribeck.recordings.bags.signals import decode
from stribeck.recordings.bags.standard_messages import as_standard_messages
from stribeck.recordings.signals.sources import load_signals

TEXT = """
position: {topic: /arm, names: name, values: position, unit: deg}
velocity: {topic: /arm, names: name, values: velocity, unit: deg/s}
goal: {topic: /goals, values: data, order: [b, a], unit: deg, sign: -1}
torque_enable: {constant: 1}
supply_voltage: {topic: /volts, values: data, order: [a], unit: mV}
"""


def heard(path, folder, joints=(), text=TEXT):
    """The messages by topic, in the order of their stamps."""
    (folder / "signals.yaml").write_text(text)
    bag = as_standard_messages(path, load_signals(folder / "signals.yaml"), joints)
    found = {}
    for message in bag.messages:
        found.setdefault(message.topic, []).append(decode(path, message, bag.typestore))
    return found


def foreign(folder):
    """Two joints in one message, a third from another publisher without velocity, goals at a tenth of the rate."""
    bag = Bag()
    for k in range(50):
        time = k / 50
        bag.add(time, "/arm", joint_state(time, ["a", "b"], [90.0, float(k)], [1.0, 2.0]))
        bag.add(time + 0.002, "/arm", joint_state(time + 0.002, ["gripper"], 5.0))
        if k % 10 == 0:
            bag.add(time, "/goals", multi_array([float(k), 10.0]))
            bag.add(time, "/volts", multi_array([5000.0]))
    return bag.write(folder / "bag")


def test_states_commands_and_telemetry_are_in_si_units(tmp_path):
    """Joints that were sampled together share messages; a signal that is missing is an empty field."""
    found = heard(foreign(tmp_path), tmp_path)
    arm = [message for message in found[JOINT_STATES] if message.name == ["a", "b"]]
    np.testing.assert_allclose(arm[7].position, [np.pi / 2, np.deg2rad(7.0)])
    np.testing.assert_allclose(arm[7].velocity, np.deg2rad([1.0, 2.0]))
    assert len(arm[7].effort) == 0
    gripper = [message for message in found[JOINT_STATES] if message.name == ["gripper"]]
    assert (len(arm), len(gripper), len(gripper[0].velocity)) == (50, 50, 0)
    goals = {message.name[0]: message.position[0] for message in found[JOINT_COMMANDS][-2:]}
    assert goals == {"a": pytest.approx(-np.deg2rad(10.0)), "b": pytest.approx(-np.deg2rad(40.0))}
    assert found[DYNAMIC_JOINT_STATES][0].interface_values[0].values[0] == 5.0


def test_joints_may_be_chosen(tmp_path):
    """Those that are not there are answered with those that are."""
    path = foreign(tmp_path)
    assert {tuple(message.name) for message in heard(path, tmp_path, ("b",))[JOINT_STATES]} == {("b",)}
    with pytest.raises(RecordingError, match="no joint c on /arm; found: a, b, gripper"):
        heard(path, tmp_path, ("c",))


def test_tables_are_heard_as_well(tmp_path):
    """Columns by joint."""
    (tmp_path / "run.csv").write_text("t,qa,qb\n0,1,2\n0.1,3,4\n")
    text = (
        "time: {column: t}\nposition: {column: 'q{joint}'}\ngoal: {column: g}\ntorque_enable: {constant: 1}\n"
    )
    found = heard(tmp_path / "run.csv", tmp_path, ("a", "b"), text)
    assert [message.position.tolist() for message in found[JOINT_STATES]] == [[1.0, 2.0], [3.0, 4.0]]
    assert JOINT_COMMANDS not in found
