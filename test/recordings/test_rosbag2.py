"""Inside a ROS installation rosbag2_py reads and writes the bags; a stand-in shows that we use it right.

The stand-in keeps the interface of ROS 2 Jazzy's rosbag2_py (names, keyword arguments, that a reader of
a damaged bag raises RuntimeError) and a format of its own, so that nothing else could have read it.
"""

import base64
import importlib.machinery
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from bags import one_run
from helpers import assert_same_log, full_log, refusal
from stribeck.recordings.bags.bag import read_bag, write_bag
from stribeck.recordings.bags.storage import RawMessage, Topic, contract_types, read_messages, write_messages

STORE = "stored.json"


class StorageOptions:
    """Where and how a bag lies."""

    def __init__(self, *, uri: str, storage_id: str = "") -> None:
        self.uri = Path(uri)
        self.storage_id = storage_id


class ConverterOptions:
    """How messages are serialised."""

    def __init__(
        self, *, input_serialization_format: str = "", output_serialization_format: str = ""
    ) -> None:
        self.formats = (input_serialization_format, output_serialization_format)


class TopicMetadata:
    """A topic of a bag."""

    def __init__(
        self, *, id: int, name: str, type: str, serialization_format: str, offered_qos_profiles=()
    ) -> None:
        self.id, self.name, self.type = id, name, type
        self.serialization_format = serialization_format
        self.offered_qos_profiles = list(offered_qos_profiles)


class SequentialWriter:
    """Writes one message after the other; what is written counts when the writer is closed."""

    def open(self, storage: StorageOptions, converter: ConverterOptions) -> None:
        assert storage.storage_id in ("mcap", "sqlite3")
        assert converter.formats == ("cdr", "cdr")
        storage.uri.mkdir()
        self.folder, self.storage_id = storage.uri, storage.storage_id
        self.topics: dict[str, str] = {}
        self.messages: list[tuple[str, str, int]] = []

    def create_topic(self, topic: TopicMetadata) -> None:
        assert topic.serialization_format == "cdr"
        assert topic.id == len(self.topics)
        self.topics[topic.name] = topic.type
        self.latched = [*getattr(self, "latched", []), *(topic.name for _ in topic.offered_qos_profiles)]

    def write(self, topic: str, data: bytes, time: int) -> None:
        assert topic in self.topics
        self.messages.append((topic, base64.b64encode(data).decode(), time))

    def close(self) -> None:
        content = {
            "storage": self.storage_id,
            "topics": self.topics,
            "messages": self.messages,
            "latched": self.latched,
        }
        (self.folder / STORE).write_text(json.dumps(content))
        (self.folder / "metadata.yaml").write_text("rosbag2_bagfile_information: {}\n")


class QoS:
    """A profile as rosbag2_py._storage has it."""

    def __init__(self, depth: int) -> None:
        self.settings = [depth]

    def reliable(self) -> "QoS":
        self.settings.append("reliable")
        return self

    def transient_local(self) -> "QoS":
        self.settings.append("transient_local")
        return self


class SequentialReader:
    """Reads one message after the other."""

    def open(self, storage: StorageOptions, converter: ConverterOptions) -> None:
        assert storage.storage_id == ""
        try:
            content = json.loads((storage.uri / STORE).read_text())
        except (OSError, ValueError):
            raise RuntimeError("No storage could be initialized from the inputs.") from None
        self.topics = content["topics"]
        self.messages = iter(content["messages"])
        self.next = next(self.messages, None)

    def get_all_topics_and_types(self) -> list[TopicMetadata]:
        return [
            TopicMetadata(id=k, name=name, type=kind, serialization_format="cdr")
            for k, (name, kind) in enumerate(self.topics.items())
        ]

    def has_next(self) -> bool:
        return self.next is not None

    def read_next(self) -> tuple[str, bytes, int]:
        topic, data, time = self.next
        self.next = next(self.messages, None)
        return topic, base64.b64decode(data), time


class DefiningReader(SequentialReader):
    """A reader of Jazzy, which also knows the definitions of the types."""

    def get_all_message_definitions(self) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(
                topic_type="robot_msgs/msg/Told",
                encoding="ros2msg",
                encoded_message_definition="float64 told\n",
                type_hash="",
            ),
            SimpleNamespace(
                topic_type="robot_msgs/msg/Other",
                encoding="ros2idl",
                encoded_message_definition="?",
                type_hash="",
            ),
        ]


@pytest.fixture(params=[SequentialReader, DefiningReader], ids=["humble", "jazzy"])
def rosbag2(request, monkeypatch) -> ModuleType:
    """The stand-in as an importable module, with the reader of an older or a newer ROS."""
    module = ModuleType("rosbag2_py")
    module.__spec__ = importlib.machinery.ModuleSpec("rosbag2_py", None)
    for part in (StorageOptions, ConverterOptions, TopicMetadata, SequentialWriter):
        setattr(module, part.__name__, part)
    module.SequentialReader = request.param
    if request.param is DefiningReader:
        module._storage = SimpleNamespace(QoS=QoS)
    monkeypatch.setitem(sys.modules, "rosbag2_py", module)
    return module


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_logs_go_through_rosbag2_py_and_come_back_as_they_were(rosbag2, tmp_path, storage):
    """Several runs, bit for bit, in the storage that was asked for; nothing but the bag is left."""
    logs = [full_log("one", seed=1), full_log("two", seed=2)]
    write_bag(tmp_path / "bag", logs, storage=storage)
    stored = json.loads((tmp_path / "bag" / STORE).read_text())
    assert stored["storage"] == storage
    assert stored["topics"]["/dynamic_joint_states"] == "control_msgs/msg/DynamicJointState"
    found = read_bag(tmp_path / "bag")
    for one, log in zip(found, logs, strict=True):
        assert_same_log(one, log)
    assert [entry.name for entry in tmp_path.iterdir()] == ["bag"]


def test_both_libraries_are_given_the_same_messages(rosbag2, tmp_path, monkeypatch):
    """Topics, log times and CDR bytes of a bag do not depend on who writes it."""
    write_bag(tmp_path / "ros", [full_log()])
    through_ros = read_messages(tmp_path / "ros").messages
    monkeypatch.delitem(sys.modules, "rosbag2_py")
    write_bag(tmp_path / "plain", [full_log()])
    assert [message._replace(topic=message.topic.name) for message in through_ros] == [
        message._replace(topic=message.topic.name) for message in read_messages(tmp_path / "plain").messages
    ]


def test_a_bag_that_exists_is_refused_with_rosbag2_py_too(rosbag2, tmp_path):
    """Nothing is written over."""
    write_bag(tmp_path / "bag", [full_log("old")])
    before = (tmp_path / "bag" / STORE).read_bytes()
    refusal(lambda: write_bag(tmp_path / "bag", [full_log("new")]), tmp_path / "bag", "exists")
    assert (tmp_path / "bag" / STORE).read_bytes() == before


def test_a_bag_that_rosbag2_py_cannot_open_is_refused(rosbag2, tmp_path):
    """Its RuntimeError becomes an error of ours that names the bag."""
    write_bag(tmp_path / "bag", [full_log()])
    store = tmp_path / "bag" / STORE
    store.write_text(store.read_text()[:1000])
    refusal(lambda: read_bag(tmp_path / "bag"), tmp_path / "bag", "No storage")
    (tmp_path / "empty").mkdir()
    refusal(lambda: read_bag(tmp_path / "empty"), tmp_path / "empty")


def test_lone_storage_files_are_read_without_rosbag2_py(rosbag2, tmp_path):
    """rosbag2_py wants a folder with metadata; a lone file is read by the other library."""
    folder = one_run().write(tmp_path / "bag")
    (lone,) = folder.glob("*.mcap")
    (log,) = read_bag(lone)
    assert log.name == "first"


def test_types_that_only_the_bag_defines_are_taken_from_it(tmp_path, rosbag2):
    """A newer ROS hands the definitions out, an older one does not; the contract's own types always work."""
    told = Topic("/told", "robot_msgs/msg/Told")
    data = b"\x00\x01\x00\x00" + b"\x00" * 8
    write_messages(tmp_path / "bag", [told], [RawMessage(told, 5, data)])
    content = read_messages(tmp_path / "bag")
    assert content.messages == [RawMessage(told, 5, data)]
    known = "robot_msgs/msg/Told" in content.typestore.types
    assert known == hasattr(rosbag2.SequentialReader, "get_all_message_definitions")
    assert "robot_msgs/msg/Told" not in contract_types().types


def test_without_rosbag2_py_the_other_library_is_used(tmp_path):
    """On a machine without ROS the same calls write real MCAP."""
    write_bag(tmp_path / "bag", [full_log()])
    (file,) = (tmp_path / "bag").glob("*.mcap")
    assert file.read_bytes().startswith(b"\x89MCAP0\r\n")


def test_the_bench_is_latched_where_rosbag2_can_say_so(tmp_path, rosbag2):
    """A subscriber that comes late still learns which run it sees."""
    write_bag(tmp_path / "bag", [full_log()])
    latched = json.loads((tmp_path / "bag" / STORE).read_text())["latched"]
    assert latched == (["/bench"] if hasattr(rosbag2, "_storage") else [])
