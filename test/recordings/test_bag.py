"""Recordings become bags and come back as they were, for us and for every other reader of bags."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.interfaces import QosDurability
from rosbags.typesys import Stores, get_typestore

from bags import raw_pwm
from helpers import (
    STS3250,
    XL330,
    assert_same_log,
    bam_recording,
    full_log,
    log_of,
    needs_sts3250,
    needs_xl330,
    refusal,
    write_json,
)
from stribeck.files.actuators import load_actuator
from stribeck.model.log import Log, Series
from stribeck.recordings.bags.bag import read_bag, write_bag
from stribeck.recordings.bam_json import read_bam_json
from stribeck.recordings.sources import fingerprint

STORAGES = ("mcap", "sqlite3")
TELEMETRY = {
    "pwm": "pwm",
    "voltage": "supply_voltage",
    "temperature": "temperature",
    "torque_enable": "torque_enable",
}


def round_trip(log: Log, folder: Path, storage: str = "mcap") -> Log:
    """The log after a bag."""
    write_bag(folder / "bag", [log], joint="knee", storage=storage)
    (found,) = read_bag(folder / "bag")
    return found


@pytest.mark.parametrize("storage", STORAGES)
def test_a_log_comes_back_from_a_bag_as_it_was(tmp_path, storage):
    """Values to the last bit, times to the nanosecond of a stamp, names and set-up unchanged."""
    log = full_log("a run, with spaces / slashes and ünïcode", trajectory="lift_and_drop")
    found = round_trip(log, tmp_path, storage)
    assert_same_log(found, log)
    assert fingerprint([found]) == fingerprint([log])


def test_a_log_without_telemetry_comes_back_without_it(tmp_path):
    """What the servo did not tell is not made up."""
    log = log_of(np.arange(0.0, 1.5, 0.04), np.pi)
    found = round_trip(log, tmp_path)
    assert_same_log(found, log)
    assert (found.pwm, found.supply_voltage, found.temperature) == (None, None, None)


def test_a_synthetic_recording_goes_from_json_to_a_bag_and_back(tmp_path):
    """The raw load integers come back exactly from the duty, wrap and all."""
    content = bam_recording()
    log = read_bam_json(write_json(tmp_path / "run.json", content))
    found = round_trip(log, tmp_path)
    assert_same_log(found, log)
    for key, name in (
        ("position", "position"),
        ("speed", "velocity"),
        ("goal_position", "goal"),
        ("temp", "temperature"),
    ):
        assert getattr(found, name).value.tolist() == [entry[key] for entry in content["entries"]]
    raw = raw_pwm(found.pwm.value, load_actuator("xl330").pwm_register)
    loads = [entry["load"] for entry in content["entries"]]
    assert max(loads) > 65000
    assert raw.tolist() == loads


@pytest.mark.slow
@needs_xl330
@pytest.mark.parametrize(("storage", "runs"), [("mcap", 12), ("sqlite3", 3)])
def test_real_xl330_recordings_go_from_json_to_a_bag_and_back(tmp_path, storage, runs):
    """So many runs in one bag: floats equal to the bit, times within 1 ns, raw load integers exactly."""
    paths = sorted(XL330.glob("*.json"))[:runs]
    logs = [read_bam_json(path, arm_mass=0.0) for path in paths]
    write_bag(tmp_path / "bag", logs, storage=storage)
    found = read_bag(tmp_path / "bag")
    register = load_actuator("xl330").pwm_register
    assert len(found) == len(paths) == runs
    for one, log, path in zip(found, logs, paths, strict=True):
        assert_same_log(one, log)
        entries = json.loads(path.read_text())["entries"]
        assert raw_pwm(one.pwm.value, register).tolist() == [entry["load"] for entry in entries]
        assert one.position.value.tolist() == [entry["position"] for entry in entries]
    assert fingerprint(found) == fingerprint(logs)


@needs_sts3250
def test_real_sts3250_recordings_go_from_json_to_a_bag_and_back(tmp_path):
    """A servo whose load is no PWM register: it is left out, the rest comes back."""
    for path in sorted(STS3250.glob("*.json")):
        log = read_bam_json(path, arm_mass=0.0)
        assert log.pwm is None
        (tmp_path / path.stem).mkdir()
        assert_same_log(round_trip(log, tmp_path / path.stem), log)


@pytest.mark.parametrize("time", [-1.5, 0.0, 1.7e9])
def test_runs_may_begin_before_zero_or_decades_after(tmp_path, time):
    """Stamps are seconds and nanoseconds, also of negative times and of the clock of the day."""
    log = full_log()
    moved = log_of(log.position.time + time, np.sin(log.position.time), name="moved")
    found = round_trip(moved, tmp_path)
    # Seconds since 1970 have no more than 2.4e-7 s of a float64's resolution to begin with.
    np.testing.assert_allclose(
        found.position.time, moved.position.time, rtol=0.0, atol=1e-9 if time < 1 else 2.4e-7
    )
    assert np.array_equal(found.position.value, moved.position.value)


def test_several_runs_lie_in_one_bag_one_after_the_other(tmp_path):
    """Runs whose times overlap are kept apart, in the order they were written."""
    logs = [full_log("c", seed=1), full_log("a", seed=2), full_log("b", seed=3, duration=2.0)]
    write_bag(tmp_path / "bag", logs)
    found = read_bag(tmp_path / "bag")
    assert [log.name for log in found] == ["c", "a", "b"]
    for one, log in zip(found, logs, strict=True):
        assert_same_log(one, log)


def test_the_lone_storage_file_is_read_as_well(tmp_path):
    """A .mcap without its folder is a bag too."""
    log = full_log()
    write_bag(tmp_path / "bag", [log])
    (lone,) = (tmp_path / "bag").glob("*.mcap")
    (found,) = read_bag(lone.rename(tmp_path / "lone.mcap"))
    assert_same_log(found, log)


def test_a_bag_that_exists_is_refused_and_left_alone(tmp_path):
    """Nothing is written over, be it a bag, a folder or a file."""
    path = tmp_path / "bag"
    write_bag(path, [full_log("old")])
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    refusal(lambda: write_bag(path, [full_log("new")]), path, "exists")
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    file = tmp_path / "file"
    file.write_text("mine")
    refusal(lambda: write_bag(file, [full_log("new")]), file, "exists")
    assert file.read_text() == "mine"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["bag", "file"]


def test_a_bag_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    """A folder that cannot be made: a clear error, no remains."""
    whole = full_log()
    (tmp_path / "file").write_text("")
    refusal(lambda: write_bag(tmp_path / "file" / "bag", [whole]), tmp_path / "file" / "bag")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_velocity_at_other_times_is_interpolated_and_an_effort_kept(tmp_path):
    """A message of joint states has one time; recordings of others may have one for each signal."""
    log = full_log(effort=np.linspace(-1.0, 1.0, len(full_log().position.time)))
    times = np.linspace(log.position.time[0], log.position.time[-1], 7)
    uneven = replace(log, velocity=Series(times, 2.0 * times, held=False))
    write_bag(tmp_path / "bag", [uneven])
    (found,) = read_bag(tmp_path / "bag")
    np.testing.assert_allclose(found.velocity.value, 2.0 * log.position.time, atol=1e-8)
    assert np.array_equal(found.effort.value, log.effort.value)


def test_folders_above_a_bag_are_made(tmp_path):
    """As for every file that is written."""
    write_bag(tmp_path / "new" / "deep" / "bag", [full_log()])
    assert len(read_bag(tmp_path / "new" / "deep" / "bag")) == 1


def test_the_bag_is_what_the_contract_says_read_with_mcap_ros2(tmp_path):
    """Foxglove's reader finds topics, types and values without knowing anything of us."""
    log = full_log("run 7")
    write_bag(tmp_path / "bag", [log], joint="knee")
    (file,) = (tmp_path / "bag").glob("*.mcap")
    found: dict[str, list] = {}
    types = {}
    with file.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
        for schema, channel, _, decoded in reader.iter_decoded_messages():
            found.setdefault(channel.topic, []).append(decoded)
            types[channel.topic] = schema.name
    assert types == {
        "/bench": "std_msgs/msg/String",
        "/joint_states": "sensor_msgs/msg/JointState",
        "/joint_commands": "sensor_msgs/msg/JointState",
        "/dynamic_joint_states": "control_msgs/msg/DynamicJointState",
    }
    states, commands = found["/joint_states"], found["/joint_commands"]
    assert [state.name for state in states] == [["knee"]] * len(log.position.time)
    assert [state.position[0] for state in states] == log.position.value.tolist()
    assert [state.velocity[0] for state in states] == log.velocity.value.tolist()
    assert all(np.isnan(state.effort[0]) for state in states)
    assert [command.position[0] for command in commands] == log.goal.value.tolist()
    assert all(len(command.velocity) == len(command.effort) == 0 for command in commands)
    stamps = [state.header.stamp.sec * 10**9 + state.header.stamp.nanosec for state in states]
    assert stamps == [round(time * 1e9) for time in log.position.time]
    for k, telemetry in enumerate(found["/dynamic_joint_states"]):
        (values,) = telemetry.interface_values
        told = dict(zip(values.interface_names, values.values, strict=True))
        assert told == {name: getattr(log, signal).value[k] for name, signal in TELEMETRY.items()}


@pytest.mark.parametrize("storage", STORAGES)
def test_the_bag_is_what_the_contract_says_read_with_rosbags(tmp_path, storage):
    """AnyReader finds the same, and /bench is latched so that late subscribers get it."""
    log = full_log("run 7")
    write_bag(tmp_path / "bag", [log], joint="knee", storage=storage)
    with AnyReader([tmp_path / "bag"], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
        latched = {
            connection.topic: [qos.durability for qos in connection.ext.offered_qos_profiles]
            for connection in reader.connections
        }
        found: dict[str, list] = {}
        times = []
        for connection, time, data in reader.messages():
            found.setdefault(connection.topic, []).append(reader.deserialize(data, connection.msgtype))
            times.append(time)
    assert latched["/bench"] == [QosDurability.TRANSIENT_LOCAL]
    assert QosDurability.TRANSIENT_LOCAL not in latched["/joint_states"]
    assert times == sorted(times)
    assert [state.position[0] for state in found["/joint_states"]] == log.position.value.tolist()
    begin, end = (json.loads(text.data) for text in found["/bench"])
    assert end == {"run_id": "run 7", "event": "end"}
    assert begin.pop("software").startswith("stribeck ")
    assert begin == {
        "run_id": "run 7",
        "joint": "knee",
        "actuator": "xl330",
        "trajectory": "sin_sin",
        "mass": 0.5,
        "length": 0.1,
        "arm_mass": 0.05,
        "supply_voltage": 5.0,
        "kp": 200.0,
        "ki": 0.0,
        "kd": 0.0,
    }


def test_values_are_stored_as_doubles_not_as_text(tmp_path):
    """A subnormal, a negative zero and a third come back bit by bit."""
    values = np.array([5e-324, -0.0, 1 / 3, np.nextafter(1.0, 2.0), -1.7e300] + [0.0] * 30)
    found = round_trip(log_of(0.05 * np.arange(35), values), tmp_path)
    assert [struct.pack("<d", value) for value in found.position.value] == [
        struct.pack("<d", v) for v in values
    ]
