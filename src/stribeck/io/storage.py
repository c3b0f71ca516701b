"""Reading and writing of rosbag2 bags (MCAP or sqlite3) as serialised messages.

Uses rosbag2_py in a ROS installation, else the ``rosbags`` library; the bags are the same. Messages are CDR
bytes; their types are read from the bag if it holds them.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer
from rosbags.typesys.store import Typestore

from stribeck.errors import OutputError, RecordingError
from stribeck.io.compression import STORAGES as STORAGE_SUFFIXES
from stribeck.io.compression import is_packed, storage_files, unpacked
from stribeck.io.mcap_bag import DIGEST_KEY, JAZZY_BAG_VERSION, custom_value
from stribeck.io.messages import Digest, RawMessage, Topic, contract_types, types_with
from stribeck.io.recovery import BeingRecordedError, CutOffError, Note, is_recovered, recover, unfinished_file
from stribeck.io.strict import check_regular

Storage = Literal["mcap", "sqlite3"]
STORAGES: tuple[Storage, ...] = get_args(Storage)

LARGEST_BAG = 16 << 30
"""Size of the largest storage file that is read [bytes]."""


def is_bag(path: Path) -> bool:
    """Whether ``path`` is a bag: a folder with metadata.yaml, an unfinished bag, or a storage file, also compressed."""
    is_storage_file = path.suffix in STORAGE_SUFFIXES or is_packed(path)
    return is_storage_file or (path / "metadata.yaml").is_file() or unfinished_file(path) is not None


class BagContent(NamedTuple):
    """Messages of a bag by log time, their types, and whether it was cut off, so that its last run is incomplete."""

    messages: list[RawMessage]
    typestore: Typestore
    cut_off: bool = False


class _NoBagError(RecordingError):
    """A folder that is not a bag."""


def read_messages(path: Path, note: Note | None = None) -> BagContent:
    """Read all messages of a bag. Types that only the bag defines are taken from it.

    An unfinished bag is recovered as a copy next to it, see :mod:`stribeck.io.recovery`.

    :param note: receives one line if the bag was unfinished.
    :raises RecordingError: for a bag that is missing, damaged, or still being recorded.
    """
    if not path.exists():
        raise RecordingError(f"{path}: no such file or folder")
    for file in path.glob("*") if path.is_dir() else (path,):
        check_regular(file, RecordingError, LARGEST_BAG)
    try:
        unfinished = unfinished_file(path)
        if unfinished is not None:
            recovered = recover(unfinished, note or (lambda _: None))
            if not isinstance(recovered, Path):
                messages = sorted(recovered.messages, key=lambda message: message.log_time)
                return BagContent(messages, types_with(recovered.definitions), cut_off=True)
            path = recovered
        if path.is_dir() and not (path / "metadata.yaml").exists():
            raise _NoBagError(_why_no_bag(path))
        usual = _read_with_rosbag2_py if _has_rosbag2_py() and path.is_dir() else _read_with_rosbags
        read = _read_packed if _is_packed(path) else usual
        definitions: dict[str, str] = {}
        messages = list(read(path, definitions))
        _check_digest(path, messages)
        messages.sort(key=lambda message: message.log_time)
        return BagContent(messages, types_with(definitions), is_recovered(path))
    except (CutOffError, BeingRecordedError, _NoBagError):
        raise
    except Exception as error:
        # The readers do not validate: a damaged file may cause any error of theirs, of the database or of the
        # decompressor, or a MemoryError from a damaged length.
        reason = _line(error) or type(error).__name__
        raise RecordingError(f"{path} is not a readable bag (damaged or cut off?): {reason}") from error


def _why_no_bag(folder: Path) -> str:
    if bags := sorted(folder.glob("*/metadata.yaml")):
        return f"{folder} is no bag but holds {len(bags)}: name one, such as {bags[0].parent}"
    files = [file.name for file in (*folder.glob("*.mcap"), *folder.glob("*.db3"))]
    if len(files) == 1:
        return f"{folder} has no metadata.yaml: name its file, {folder / files[0]}"
    return f"{folder} is no bag: it has no metadata.yaml"


def write_messages(
    path: Path, topics: Iterable[Topic], messages: Iterable[RawMessage], storage: Storage = "mcap"
) -> None:
    """Write a new bag under a temporary name, then rename it to ``path``.

    :raises OutputError: if ``path`` exists or cannot be written.
    """
    if path.exists():
        raise OutputError(f"{path} exists already; choose another name or move it away")
    write = _write_with_rosbag2_py if _has_rosbag2_py() else _write_with_rosbags
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The bag's file takes the name of its folder, so the folder has its final name from the start.
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as beside:
            unfinished = Path(beside) / path.name
            write(unfinished, list(topics), messages, storage)
            shutil.move(unfinished, path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or _line(error)}") from error


def _check_digest(path: Path, messages: Iterable[RawMessage]) -> None:
    """Compare messages with the digest in the metadata, if there is one.

    Compressed chunks have no checksum, so damaged bytes may decompress to wrong numbers.
    """
    expected = custom_value(path, DIGEST_KEY)
    if expected is not None and expected != _digest(messages):
        raise RecordingError("its messages are not those that were written")


def _digest(messages: Iterable[RawMessage]) -> str:
    digest = Digest()
    for message in messages:
        digest.add(message.topic.name, message.log_time, message.data)
    return str(digest)


def _has_rosbag2_py() -> bool:
    return importlib.util.find_spec("rosbag2_py") is not None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _storage_file(path: Path) -> Path:
    """The only storage file of a bag folder, which reads faster than the folder; else the folder."""
    files = sorted(path.glob("*.mcap"))
    return files[0] if len(files) == 1 and (path / "metadata.yaml").is_file() else path


def _is_packed(path: Path) -> bool:
    """Whether files or messages of a bag are compressed; that of chunks inside an MCAP file does not count."""
    if not path.is_dir():
        return True  # without metadata the messages have to tell
    metadata = (path / "metadata.yaml").read_text(encoding="utf-8", errors="replace")
    mode = re.search(r"compression_mode:[ \t]*['\"]?(\w*)", metadata)
    return mode is not None and mode.group(1).lower() not in ("", "none", "storage")


def _read_packed(path: Path, definitions: dict[str, str]) -> Iterator[RawMessage]:
    with storage_files(path) as files:
        for file in files:
            for message in _read_with_rosbags(file, definitions):
                yield message._replace(data=unpacked(message.data))


def _read_with_rosbags(path: Path, definitions: dict[str, str]) -> Iterator[RawMessage]:
    with Reader(_storage_file(path)) as reader:
        topics = {}
        for connection in reader.connections:
            if connection.msgdef.format.name == "MSG":
                definitions[connection.msgtype] = connection.msgdef.data
            topics[connection.id] = Topic(connection.topic, connection.msgtype)
        for connection, log_time, data in reader.messages(reader.connections):
            yield RawMessage(topics[connection.id], log_time, bytes(data))


def _latched_qos() -> list[Qos]:
    never = QosTime(9223372036, 854775807)
    return [
        Qos(
            QosHistory.KEEP_LAST,
            1,
            QosReliability.RELIABLE,
            QosDurability.TRANSIENT_LOCAL,
            never,
            never,
            QosLiveliness.AUTOMATIC,
            never,
            False,
        )
    ]


def _write_with_rosbags(
    path: Path, topics: list[Topic], messages: Iterable[RawMessage], storage: Storage
) -> None:
    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    writer = Writer(path, version=JAZZY_BAG_VERSION, storage_plugin=plugin)
    if storage == "mcap":
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        connections = {
            topic.name: writer.add_connection(
                topic.name,
                topic.type,
                typestore=contract_types(),
                offered_qos_profiles=_latched_qos() if topic.latched else (),
            )
            for topic in topics
        }
        written = list(messages)
        for message in written:
            writer.write(connections[message.topic.name], message.log_time, message.data)
        writer.set_custom_data(DIGEST_KEY, f"x{_digest(written)}")


def _read_with_rosbag2_py(path: Path, definitions: dict[str, str]) -> Iterator[RawMessage]:
    import rosbag2_py

    reader = rosbag2_py.SequentialReader()
    reader.open(rosbag2_py.StorageOptions(uri=str(path), storage_id=""), _cdr(rosbag2_py))
    listing: Callable[[], list[Any]] | None = getattr(reader, "get_all_message_definitions", None)
    for found in listing() if listing else []:
        if found.encoding == "ros2msg":
            definitions[found.topic_type] = found.encoded_message_definition
    topics = {found.name: Topic(found.name, found.type) for found in reader.get_all_topics_and_types()}
    while reader.has_next():
        name, data, log_time = reader.read_next()
        yield RawMessage(topics[name], log_time, data)


def _write_with_rosbag2_py(
    path: Path, topics: list[Topic], messages: Iterable[RawMessage], storage: Storage
) -> None:
    import rosbag2_py

    writer = rosbag2_py.SequentialWriter()
    writer.open(rosbag2_py.StorageOptions(uri=str(path), storage_id=storage), _cdr(rosbag2_py))
    # Jazzy does not re-export the profile that TopicMetadata expects; older releases have none.
    profile = getattr(getattr(rosbag2_py, "_storage", None), "QoS", None)
    latched = [] if profile is None else [profile(1).reliable().transient_local()]
    for number, topic in enumerate(topics):
        writer.create_topic(
            rosbag2_py.TopicMetadata(
                id=number,
                name=topic.name,
                type=topic.type,
                serialization_format="cdr",
                offered_qos_profiles=latched if topic.latched else [],
            )
        )
    for message in messages:
        writer.write(message.topic.name, message.data, message.log_time)
    writer.close()


def _cdr(rosbag2_py: Any) -> Any:
    return rosbag2_py.ConverterOptions(input_serialization_format="cdr", output_serialization_format="cdr")
