"""What real rosbag2 (Jazzy) puts into bags, and its own resources hold, that made ours unreadable or empty."""

import os
import shutil
import sqlite3

import pytest
import yaml
from mcap.reader import make_reader
from mcap.writer import Writer

from helpers import assert_same_log, full_log, refusal
from stribeck.recordings.bags.bag import read_bag, write_bag
from stribeck.recordings.bags.recovery import is_being_recorded, unfinished_file
from stribeck.recordings.bags.storage import read_messages

SERVICE = "MSG: std_srvs/srv/SetBool_Event\nbool data\n---\nbool success\nstring message\n"
"""The text that rosbag2 gives the type of a service's events."""


def altered(folder, statement, *values):
    """Run SQL on the storage of a bag."""
    (file,) = folder.glob("*.db3")
    with sqlite3.connect(file) as base:
        base.execute(statement, values)
    base.close()


@pytest.mark.parametrize("encoding", ["ros2msg", "ros2idl", "unknown", ""])
def test_events_of_services_do_not_make_a_bag_unreadable(tmp_path, encoding):
    """What happened: "not a readable bag (damaged or cut off?)". What must happen: all other topics are read."""
    write_bag(tmp_path / "bag", [full_log()])
    (file,) = (tmp_path / "bag").glob("*.mcap")
    lone = tmp_path / "lone.mcap"
    with file.open("rb") as source, lone.open("wb") as target:
        writer, channels = Writer(target), {}
        writer.start(profile="ros2", library="rosbag2")
        schema = writer.register_schema("std_srvs/srv/SetBool_Event", encoding, SERVICE.encode())
        events = writer.register_channel("/servo/enable/_service_event", "cdr", schema)
        for kind, channel, message in make_reader(source).iter_messages():
            if channel.id not in channels:
                copied = writer.register_schema(kind.name, kind.encoding, kind.data)
                channels[channel.id] = writer.register_channel(channel.topic, "cdr", copied, channel.metadata)
            for number in (channels[channel.id], events):
                writer.add_message(number, message.log_time, message.data, message.log_time)
        writer.finish()
    (log,) = read_bag(lone)
    assert_same_log(log, full_log())


@pytest.mark.parametrize("encoding", ["", "unknown"])
def test_types_without_a_definition_do_not_make_a_bag_unreadable(tmp_path, encoding):
    """What happened: KeyError in sqlite3 bags with a type that the recording machine did not define."""
    write_bag(tmp_path / "bag", [full_log()], storage="sqlite3")
    altered(tmp_path / "bag", "UPDATE message_definitions SET encoding = ?", encoding)
    (log,) = read_bag(tmp_path / "bag")
    assert_same_log(log, full_log())


def test_topics_whose_qos_differs_between_metadata_and_storage_are_read(tmp_path):
    """What happened: they were left out without a word, as all of `ros2 bag convert` and of the first releases."""
    write_bag(tmp_path / "bag", [full_log()], storage="sqlite3")
    altered(tmp_path / "bag", "UPDATE topics SET offered_qos_profiles = ''")
    (log,) = read_bag(tmp_path / "bag")
    assert_same_log(log, full_log())


def test_other_serialisations_are_refused_by_name(tmp_path):
    """What happened: numbers of a lone file were decoded from whatever bytes there were."""
    write_bag(tmp_path / "bag", [full_log()], storage="sqlite3")
    altered(tmp_path / "bag", "UPDATE topics SET serialization_format = 'protobuf'")
    (file,) = (tmp_path / "bag").glob("*.db3")
    for path in (tmp_path / "bag", file):
        refusal(lambda path=path: read_bag(path), path, "protobuf", "cdr")


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_missing_part_of_a_split_bag_is_named(tmp_path, storage):
    """A lone MCAP file was read as if it were all."""
    write_bag(tmp_path / "bag", [full_log()], storage=storage)
    (file,) = (path for path in (tmp_path / "bag").iterdir() if path.suffix != ".yaml")
    metadata = tmp_path / "bag" / "metadata.yaml"
    text = metadata.read_text()
    metadata.write_text(text.replace(f"- {file.name}\n", f"- {file.name}\n  - bag_1{file.suffix}\n", 1))
    refusal(lambda: read_bag(tmp_path / "bag"), tmp_path / "bag", f"bag_1{file.suffix}", "missing")


def test_the_write_ahead_log_of_a_killed_recorder_is_read(tmp_path):
    """What happened: `--storage-preset-profile resilient`, killed, lost all that was not yet in the main file."""
    write_bag(tmp_path / "bag", [full_log()], storage="sqlite3")
    (file,) = (tmp_path / "bag").glob("*.db3")
    wanted = read_messages(file).messages
    base = sqlite3.connect(file)
    base.execute("PRAGMA journal_mode=WAL")
    with base:
        base.execute(
            "INSERT INTO messages (topic_id, timestamp, data) SELECT topic_id, timestamp + 1, data FROM messages"
        )
    for left in (tmp_path / "bag").glob("*.db3*"):
        shutil.copy(left, tmp_path)
    base.close()
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.db3*")}
    assert len(read_messages(tmp_path / file.name).messages) == 2 * len(wanted)
    assert before == {path.name: path.read_bytes() for path in tmp_path.glob("*.db3*")}


def test_a_slow_bag_is_not_taken_for_a_killed_one(tmp_path):
    """What happened: 10 s after the last full chunk a bag was recovered while `ros2 bag record` still wrote it."""
    write_bag(tmp_path / "bag", [full_log()])
    (tmp_path / "bag" / "metadata.yaml").unlink()
    file = tmp_path / "bag" / "bag_0.mcap"
    with file.open("wb") as target:
        writer = Writer(target)
        writer.start(profile="ros2", library="libmcap 1.3.0")
        channel = writer.register_channel("/told", "cdr", writer.register_schema("a_msgs/msg/Told", "", b""))
        writer.add_message(channel, 1, bytes(8), 1)
        target.flush()
        (tmp_path / "bag" / "bag.mcap").unlink()
        os.utime(file, (1e9, 1e9))
        assert unfinished_file(tmp_path / "bag") == file
        assert is_being_recorded(file)
    with file.open("rb"):
        assert not is_being_recorded(file), "who only reads it does not record it"


def test_parts_of_a_killed_split_recording_name_the_remedy(tmp_path):
    """What happened: "is no bag", without a word on what to do."""
    write_bag(tmp_path / "bag", [full_log()])
    (tmp_path / "bag" / "metadata.yaml").unlink()
    shutil.copy(tmp_path / "bag" / "bag.mcap", tmp_path / "bag" / "bag_1.mcap")
    refusal(lambda: read_bag(tmp_path / "bag"), tmp_path / "bag", "ros2 bag reindex")


@pytest.mark.parametrize("promised", [80, 81])
def test_a_killed_bag_is_read_after_reindexing(tmp_path, promised):
    """What happened: refused, as its file lacks the ending. What must happen: read if all that the metadata count is there."""
    write_bag(tmp_path / "bag", [full_log()])
    metadata, file = tmp_path / "bag" / "metadata.yaml", tmp_path / "bag" / "bag.mcap"
    content = file.read_bytes()
    file.write_bytes(
        content[: content.rindex(b"\x0f\x04\x00\x00\x00\x00\x00\x00\x00")]
    )  # up to the record DataEnd
    told = yaml.safe_load(metadata.read_text())
    told["rosbag2_bagfile_information"] |= {"files": [], "message_count": promised}
    metadata.write_text(yaml.safe_dump(told))
    if promised == 80:
        (log,) = read_bag(tmp_path / "bag")
        assert_same_log(log, full_log())
    else:
        refusal(lambda: read_bag(tmp_path / "bag"), tmp_path / "bag", "cut off")
