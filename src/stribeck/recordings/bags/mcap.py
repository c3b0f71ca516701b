"""Incremental writer of bags with one MCAP file: chunks as they fill, then the index and ``metadata.yaml``.

Chunks are not compressed: ``@mcap/core`` reads them without further packages, only a checksum is computed while a robot
moves, and a minute of four topics at 200 Hz takes 9 MB. Every chunk has a checksum for recovery after a crash.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

import yaml
from mcap.writer import CompressionType, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

import stribeck
from stribeck.errors import ConfigError
from stribeck.recordings.bags.messages import Digest, Topic, contract_types

JAZZY_BAG_VERSION: Final = 9

DIGEST_KEY = "stribeck_digest"
"""Key of the digest of all messages in a bag's metadata."""

CHUNK_SIZE: Final = 32 * 1024
"""A chunk is closed when it exceeds this size [bytes], and whenever it is written to disk."""

MAGIC: Final = b"\x89MCAP0\r\n"
"""First and last bytes of an MCAP file."""

LIBRARY: Final = f"stribeck {stribeck.__version__}"
"""Name of the writing library, stored in the files."""

_FOREVER = {"sec": 9223372036, "nsec": 854775807}
_LATCHED_QOS = {
    "history": "keep_last",
    "depth": 1,
    "reliability": "reliable",
    "durability": "transient_local",
    "deadline": _FOREVER,
    "lifespan": _FOREVER,
    "liveliness": "automatic",
    "liveliness_lease_duration": _FOREVER,
    "avoid_ros_namespace_conventions": False,
}


class Definition(NamedTuple):
    """Definition of a message type in a bag: its text (ros2msg), including nested types, and its hash."""

    text: str
    hash: str


class McapBag:
    """A bag built in memory, whose bytes are taken out in pieces.

    :param name: name of the bag, which is that of its folder and of its file without suffix.
    :param definitions: texts of message types (ros2msg) that :func:`contract_types` does not know.
    :param custom: further entries of ``custom_data`` in the metadata.
    :raises ConfigError: for a message type without a definition.
    """

    def __init__(
        self,
        name: str,
        topics: Iterable[Topic],
        *,
        definitions: Mapping[str, str] | None = None,
        custom: Mapping[str, str] | None = None,
    ) -> None:
        self.topics = {topic.name: topic for topic in topics}
        self.counts = dict.fromkeys(self.topics, 0)
        self.messages = 0
        self._file_name = f"{name}.mcap"
        self._custom = dict(custom or {})
        self._definitions = {
            topic.type: _definition(topic.type, definitions or {}) for topic in self.topics.values()
        }
        self._first, self._last = 0, 0
        self._digest = Digest()
        self._made = _Bytes()
        self._writer: Any = Writer(  # the library is not fully typed
            cast(IO[bytes], self._made), chunk_size=CHUNK_SIZE, compression=CompressionType.NONE
        )
        self._writer.start(profile="ros2", library=LIBRARY)
        self._channels = self._registered()

    @property
    def pending(self) -> int:
        """Bytes that :meth:`take` would return."""
        return len(self._made.data)

    def add(self, topic: str, data: bytes | memoryview, log_time: int) -> None:
        """Append a message.

        :param data: CDR bytes.
        :param log_time: time of recording [ns].
        :raises ConfigError: for an unknown topic, or an invalid time.
        """
        channel = self._channels.get(topic)
        if channel is None:
            raise ConfigError(
                f"{topic} is not a topic of this bag; valid: {', '.join(self.topics) or 'none'}"
            )
        if not 0 <= log_time < 1 << 63:
            raise ConfigError(f"{topic}: a log time of {log_time} ns is outside the range of a bag")
        count = self.counts[topic]
        self._writer.add_message(channel, log_time, data, log_time, count & 0xFFFFFFFF)
        self._digest.add(topic, log_time, data)
        self._first = min(self._first, log_time) if self.messages else log_time
        self._last = max(self._last, log_time)
        self.counts[topic] = count + 1
        self.messages += 1

    def close_chunk(self) -> None:
        """Close the current chunk, if it has messages, so that all bytes so far are readable."""
        self._writer.flush()

    def take(self) -> bytes:
        """The bytes since the last call, to be appended to the file."""
        return self._made.take()

    def finish(self) -> str:
        """End the file with its index, which :meth:`take` then returns, and return the text of ``metadata.yaml``."""
        information = self._information()
        self._writer.add_metadata("rosbag2", {"serialized_metadata": _dump(information)})
        self._writer.finish()
        return _dump({"rosbag2_bagfile_information": information})

    def _registered(self) -> dict[str, int]:
        schemas = {
            kind: self._writer.register_schema(kind, "ros2msg", definition.text.encode())
            for kind, definition in self._definitions.items()
        }
        return {
            topic.name: self._writer.register_channel(
                topic.name,
                "cdr",
                schemas[topic.type],
                {
                    "offered_qos_profiles": _dump(_qos(topic)).strip(),
                    "topic_type_hash": self._definitions[topic.type].hash,
                },
            )
            for topic in self.topics.values()
        }

    def _information(self) -> dict[str, Any]:
        """Content of ``metadata.yaml``, in version 9 of rosbag2's format."""
        span = {
            "duration": {"nanoseconds": self._last - self._first},
            "starting_time": {"nanoseconds_since_epoch": self._first},
            "message_count": self.messages,
        }
        topics = [
            {
                "topic_metadata": {
                    "name": topic.name,
                    "type": topic.type,
                    "serialization_format": "cdr",
                    "offered_qos_profiles": _qos(topic),
                    "type_description_hash": self._definitions[topic.type].hash,
                },
                "message_count": self.counts[topic.name],
            }
            for topic in self.topics.values()
        ]
        return {
            "version": JAZZY_BAG_VERSION,
            "storage_identifier": "mcap",
            "relative_file_paths": [self._file_name],
            **span,
            "topics_with_message_count": topics,
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": self._file_name, **span}],
            "custom_data": {DIGEST_KEY: f"x{self._digest}", **self._custom},
            "ros_distro": os.environ.get("ROS_DISTRO", "jazzy"),
        }


def custom_value(bag: Path, key: str) -> str | None:
    """A hexadecimal entry ``key: x…`` of the custom data of a bag folder, without the ``x``."""
    metadata = bag / "metadata.yaml"
    if not metadata.is_file():
        return None
    text = metadata.read_text(encoding="utf-8", errors="replace")
    match = re.search(rf"{key}:[ \t]*['\"]?x([0-9a-f]+)", text)
    return None if match is None else match.group(1)


class _Bytes:
    """Output stream for the MCAP library, whose bytes can be taken out."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._taken = 0

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)

    def tell(self) -> int:
        return self._taken + len(self.data)

    def flush(self) -> None:
        """Do nothing, because nothing is buffered."""

    def take(self) -> bytes:
        taken = bytes(self.data)
        self._taken += len(taken)
        self.data.clear()
        return taken


def _definition(kind: str, given: Mapping[str, str]) -> Definition:
    contract = contract_types()
    if kind not in given and kind not in contract.types:
        raise ConfigError(
            f"the definition of the message type {kind} is not known: give its text, or do not record the topic"
        )
    try:
        store = contract
        if kind in given:  # its definitions override ours of the same name
            store = get_typestore(Stores.EMPTY)
            store.register({**contract.fielddefs, **get_types_from_msg(given[kind], kind)})
        return Definition(store.generate_msgdef(kind, ros_version=2)[0], store.hash_rihs01(kind))
    except Exception as error:  # the parser raises arbitrary errors for invalid definitions
        raise ConfigError(f"the definition of the message type {kind} cannot be read: {error}") from error


def _qos(topic: Topic) -> list[dict[str, Any]]:
    return [_LATCHED_QOS] if topic.latched else []


def _dump(content: Any) -> str:
    return yaml.dump(content, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=1 << 20)


class _PlainDumper(yaml.SafeDumper):
    """Writes repeated values in full, because readers of bags may not support YAML anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
