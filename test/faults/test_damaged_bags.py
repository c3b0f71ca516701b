"""Bags that are missing, cut off, damaged, or hold what is no run: one clear line each, nothing half read."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer

from bags import BENCH, STORE, Bag, dynamic_joint_state, joint_state, message, one_run
from helpers import full_log, refusal
from stribeck.errors import RecordingError
from stribeck.recordings.bags.bag import read_bag, write_bag

STORAGES = {"mcap": "mcap", "sqlite3": "db3"}


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A folder with a bag of each storage, of a few runs."""
    folder = tmp_path_factory.mktemp("bags")
    for storage in STORAGES:
        logs = [full_log(f"run {k}", seed=k, duration=1.5) for k in range(4)]
        write_bag(folder / storage, logs, storage=storage)
    return folder


def copied(written: Path, storage: str, target: Path) -> tuple[Path, Path]:
    """A copy of a bag to damage, and its storage file."""
    bag = target / "bag"
    shutil.copytree(written / storage, bag)
    (file,) = bag.glob(f"*.{STORAGES[storage]}")
    return bag, file


@pytest.mark.parametrize("storage", STORAGES)
def test_what_is_damaged_below_can_be_read_when_whole(written, storage):
    """The damage is what is refused, not the bag."""
    assert len(read_bag(written / storage)) == 4


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999])
def test_a_bag_cut_off_anywhere_is_refused(written, tmp_path, storage, share):
    """A full disk or a lost power supply: half a recording is not taken for a whole one."""
    bag, file = copied(written, storage, tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    refusal(lambda: read_bag(bag), bag)


@pytest.mark.parametrize("missing", [1, 2, 8, 9, 30, 100])
def test_an_mcap_that_lacks_its_last_bytes_is_refused(written, tmp_path, missing):
    """Within the footer and the magic bytes at the end, in its folder and alone."""
    bag, file = copied(written, "mcap", tmp_path)
    file.write_bytes(file.read_bytes()[:-missing])
    refusal(lambda: read_bag(bag), bag)
    lone = shutil.copy(file, tmp_path / "lone.mcap")
    refusal(lambda: read_bag(lone), lone)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_bag_whose_storage_file_is_gone_is_refused(written, tmp_path, storage):
    """metadata.yaml alone is no recording."""
    bag, file = copied(written, storage, tmp_path)
    file.unlink()
    refusal(lambda: read_bag(bag), bag)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    "text", ["", "rosbag2_bagfile_information:\n", "[", "rosbag2_bagfile_information: {version: 99}\n"]
)
def test_a_damaged_metadata_file_is_refused_or_not_needed(written, tmp_path, storage, text):
    """A single MCAP says everything itself; a database needs its metadata."""
    bag, _ = copied(written, storage, tmp_path)
    (bag / "metadata.yaml").write_text(text)
    if storage == "mcap":
        assert len(read_bag(bag)) == 4
    else:
        refusal(lambda: read_bag(bag), bag)


@pytest.mark.parametrize("suffix", ["mcap", "db3"])
@pytest.mark.parametrize(
    "content", [b"", b"not a bag", b"\x89MCAP0\r\n", b"SQLite format 3\x00", bytes(5000)]
)
def test_a_file_that_is_no_bag_is_refused(tmp_path, suffix, content):
    """Empty, text, or only the first bytes of one."""
    file = tmp_path / f"lone.{suffix}"
    file.write_bytes(content)
    refusal(lambda: read_bag(file), file)


def test_a_folder_that_is_no_bag_is_refused(tmp_path):
    """Empty, or not there at all."""
    refusal(lambda: read_bag(tmp_path), tmp_path)
    refusal(lambda: read_bag(tmp_path / "none"), tmp_path / "none")


def test_garbage_in_the_compressed_messages_of_an_mcap_is_refused(written, tmp_path):
    """Whatever the decompressor says of it; a third of the chunk is gone."""
    bag, file = copied(written, "mcap", tmp_path)
    content = bytearray(file.read_bytes())
    begin, end = len(content) // 10, len(content) * 4 // 10
    content[begin:end] = b"\xff" * (end - begin)
    file.write_bytes(content)
    refusal(lambda: read_bag(bag), bag)


def test_a_length_that_no_memory_holds_is_refused(written, tmp_path):
    """A damaged length of exabytes must not surface as an error of Python's."""
    bag, file = copied(written, "mcap", tmp_path)
    content = bytearray(file.read_bytes())
    content[9:17] = (1 << 62).to_bytes(8, "little")  # the length of the first record
    file.write_bytes(content)
    refusal(lambda: read_bag(bag), bag)


def damaged_run(**changes) -> Bag:
    """A run of 30 samples, of which sample 10 differs."""
    bag = Bag()
    bag.bench(0.0)
    for k in range(30):
        values = {"time": k / 20, "position": 0.1 * k, "velocity": 0.0, "goal": 0.0, "flag": 1.0, "pwm": 0.0}
        values |= changes if k == 10 else {}
        time = values["time"]
        bag.add(
            k / 20, "/joint_states", joint_state(time, ["shoulder"], values["position"], values["velocity"])
        )
        bag.add(k / 20, "/joint_commands", joint_state(time, ["shoulder"], values["goal"]))
        told = {"torque_enable": values["flag"], "pwm": values["pwm"]}
        bag.add(k / 20, "/dynamic_joint_states", dynamic_joint_state(time, "shoulder", **told))
    return bag


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"position": np.nan}, ["not finite", "nan"]),
        ({"position": np.inf}, ["not finite", "inf"]),
        ({"velocity": -np.inf}, ["not finite", "-inf"]),
        ({"goal": np.nan}, ["not finite", "nan"]),
        ({"flag": 0.5}, ["torque_enable", "0 and 1"]),
        ({"time": 0.45}, ["time does not increase", "sample 9", "sample 10"]),
        ({"time": 0.2}, ["time does not increase", "sample 9", "sample 10"]),
    ],
)
def test_samples_that_make_no_run_are_refused(tmp_path, changes, parts):
    """One bad sample of one signal; the message names the bag, the run, and where it is."""
    assert len(read_bag(damaged_run().write(tmp_path / "good"))) == 1
    path = damaged_run(**changes).write(tmp_path / "bag")
    refusal(lambda: read_bag(path), path, "'first'", *parts)


def test_a_run_shorter_than_a_second_is_refused(tmp_path):
    """The message says how long it lasts, and how long it has to."""
    bag = Bag()
    bag.run(0.0, 1.0)
    path = bag.write(tmp_path / "bag")
    refusal(lambda: read_bag(path), path, "'first'", "0.950 s", "1 s")


def test_one_run_that_is_none_spoils_the_bag(tmp_path):
    """Nothing is left out silently."""
    bag = one_run()
    bag.run(2.0, 2.5, "second")
    path = bag.write(tmp_path / "bag")
    refusal(lambda: read_bag(path), path, "'second'", "0.450 s")


def test_a_bag_of_one_message_is_refused(tmp_path):
    """A recorder that was stopped at once."""
    bag = Bag()
    bag.bench(0.0)
    path = bag.write(tmp_path / "bench")
    refusal(lambda: read_bag(path), path)
    bag.samples(0.0, 0.05)
    path = bag.write(tmp_path / "one")
    refusal(lambda: read_bag(path), path)


def test_messages_that_cannot_be_decoded_are_refused(tmp_path):
    """Bytes that are no message of the type that the bag claims."""
    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        bench = writer.add_connection("/bench", "std_msgs/msg/String", typestore=STORE)
        text = message("std_msgs/String", data=json.dumps(BENCH))
        writer.write(bench, 0, STORE.serialize_cdr(text, "std_msgs/msg/String"))
        for topic, kind in (
            ("/joint_states", "sensor_msgs/msg/JointState"),
            ("/joint_commands", "sensor_msgs/msg/JointState"),
            ("/dynamic_joint_states", "control_msgs/msg/DynamicJointState"),
        ):
            connection = writer.add_connection(topic, kind, typestore=STORE)
            writer.write(connection, 1, b"\x00\x01\x00\x00\xff\xff\xff")
    refusal(lambda: read_bag(tmp_path / "bag"), tmp_path / "bag", "decoded")


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("storage", STORAGES)
def test_damaged_bytes_never_read_back_as_other_numbers(written, tmp_path, storage):
    """Eight bytes of garbage anywhere: the bag is refused, or what is read is what was written."""
    expected = [log.position.value.tobytes() for log in read_bag(written / storage)]
    bag, file = copied(written, storage, tmp_path)
    whole = file.read_bytes()
    refused_bags = 0
    for start in range(100, len(whole) - 8, len(whole) // 40):
        file.write_bytes(whole[:start] + b"\x5a\xa5\x5a\xa5\x00\xff\x13\x37" + whole[start + 8 :])
        try:
            found = [log.position.value.tobytes() for log in read_bag(bag)]
        except RecordingError:
            refused_bags += 1
        else:
            assert found == expected, start
    assert refused_bags > 5
