"""Reading and writing of rosbag2 bags (MCAP or sqlite3) as serialised messages.

Uses rosbag2_py in a ROS installation, else the ``rosbags`` library; the bags are the same. Messages are CDR
bytes; their types are read from the bag if it holds them.

Bags may be packed with Zstandard or LZ4: either whole storage files, which then have a further suffix, or the bytes of every
message. A serialised message begins with a zero byte, so packed ones are recognised by the first bytes of their format.
"""

import importlib.util
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from lz4 import frame as lz4  # type: ignore[import-untyped]
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, ReaderError, StoragePlugin, Writer
from rosbags.typesys.store import Typestore

from stribeck import strict
from stribeck.errors import OutputError, RecordingError
from stribeck.recordings.bags.mcap import DIGEST_KEY, JAZZY_BAG_VERSION, custom_value
from stribeck.recordings.bags.messages import Digest, RawMessage, Topic, contract_types, types_with
from stribeck.recordings.bags.recovery import (
    BeingRecordedError,
    CutOffError,
    Note,
    is_recovered,
    recover,
    salvaged,
    unfinished_file,
)
from stribeck.strict import check_regular

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STORAGES = (".mcap", ".db3")
SUFFIXES = (".zstd", ".zst", ".lz4")

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_LZ4_MAGIC = b"\x04\x22\x4d\x18"


def is_packed(path: Path) -> bool:
    """Whether a file is a compressed storage file, by its suffixes."""
    return path.suffix in SUFFIXES and Path(path.stem).suffix in STORAGES


def unpacked(data: bytes) -> bytes:
    """The bytes, decompressed if they begin as a frame of Zstandard or LZ4."""
    if data[:4] == _ZSTD_MAGIC:
        return bytes(zstd.decompress(data))
    if data[:4] == _LZ4_MAGIC:
        return bytes(lz4.decompress(data))
    return data


@contextmanager
def storage_files(path: Path) -> Iterator[list[Path]]:
    """The storage files of a bag, or the file itself; packed ones are unpacked into a temporary folder."""
    found = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [file for file in found if file.suffix in STORAGES or is_packed(file)]
    with tempfile.TemporaryDirectory() as folder:
        for k, file in enumerate(files):
            if is_packed(file):
                files[k] = Path(folder) / file.stem
                files[k].write_bytes(unpacked(file.read_bytes()))
        yield files


Storage = Literal["mcap", "sqlite3"]

CDR = "cdr"
"""The only serialisation that is read."""

LARGEST_BAG = 16 << 30
"""Size of the largest storage file that is read [bytes]."""


def is_bag(path: Path) -> bool:
    """Whether ``path`` is a bag: a folder with metadata.yaml, an unfinished bag, or a storage file, also compressed."""
    is_storage_file = path.suffix in STORAGES or is_packed(path)
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

    An unfinished bag is recovered as a copy next to it, see :mod:`stribeck.recordings.bags.recovery`.

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
        usual = _read_with_rosbag2_py if _has_rosbag2_py() and path.is_dir() else _read_files
        read = _read_packed if _is_packed(path) else usual
        definitions: dict[str, str] = {}
        messages = list(read(path, definitions))
        # Compressed chunks have no checksum, so damaged bytes may decompress to wrong numbers.
        if (expected := custom_value(path, DIGEST_KEY)) is not None and expected != _digest(messages):
            raise RecordingError("its messages differ from those that were written")
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
        return (
            f"{folder} is not a bag, but contains {len(bags)}: name one of them, for example {bags[0].parent}"
        )
    files = [file.name for file in (*folder.glob("*.mcap"), *folder.glob("*.db3"))]
    if len(files) == 1:
        return f"{folder} has no metadata.yaml: name the file in it, {folder / files[0]}"
    if files:
        return f"{folder} has no metadata.yaml: create it for the {len(files)} files with `ros2 bag reindex {folder}`"
    return f"{folder} is not a bag: it has no metadata.yaml"


def write_messages(
    path: Path, topics: Iterable[Topic], messages: Iterable[RawMessage], storage: Storage = "mcap"
) -> None:
    """Write a new bag under a temporary name, then rename it to ``path``.

    :raises OutputError: if ``path`` exists or cannot be written.
    """
    if path.exists():
        raise OutputError(f"{path} already exists; choose another name or move it")
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


def _digest(messages: Iterable[RawMessage]) -> str:
    digest = Digest()
    for message in messages:
        digest.add(message.topic.name, message.log_time, message.data)
    return str(digest)


def _has_rosbag2_py() -> bool:
    return importlib.util.find_spec("rosbag2_py") is not None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _storage_files(path: Path) -> tuple[list[Path], int | None]:
    """Storage files of a bag by its metadata, or the file itself, and the number of messages of a reindexed bag (without ``files``)."""
    if not path.is_dir():
        return [path], None
    present = [file for file in path.iterdir() if file.suffix in STORAGES]
    metadata = path / "metadata.yaml"
    try:
        told = strict.parse_yaml(strict.read_text(metadata, RecordingError), metadata, RecordingError)
        told = told["rosbag2_bagfile_information"]
        files = [path / PurePath(name).name for name in told["relative_file_paths"]]
        promised = None if told.get("files") else told.get("message_count")
    except (AttributeError, KeyError, TypeError, RecordingError):
        if len(present) == 1 and present[0].suffix == ".mcap":
            return present, None
        raise ValueError("metadata.yaml does not name its storage files") from None
    missing = [file.name for file in files if not file.is_file()]
    if missing and len(files) == len(present) == 1:
        return present, promised  # renamed
    if missing:
        raise ValueError(f"metadata.yaml names {', '.join(missing)}, which is missing")
    return files, promised


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
            for message in _read_files(file, definitions):
                yield message._replace(data=unpacked(message.data))


def _read_files(path: Path, definitions: dict[str, str]) -> Iterator[RawMessage]:
    """Read the storage files of a bag one by one.

    Read as a folder, the rosbags library silently leaves out topics whose QoS profiles differ between metadata and file.
    """
    files, promised = _storage_files(path)
    unfinished: list[ReaderError] = []
    count = 0
    for file in files:
        for message in (
            _read_sqlite(file, definitions)
            if file.suffix == ".db3"
            else _read_mcap(file, definitions, unfinished)
        ):
            count += 1
            yield message
    if unfinished and count != promised:
        raise unfinished[0]


def _read_mcap(
    path: Path, definitions: dict[str, str], unfinished: list[ReaderError]
) -> Iterator[RawMessage]:
    """Read an MCAP file.

    :param unfinished: receives the error of a file without an ending. A killed recorder leaves such; after `ros2 bag
        reindex` the metadata promise what is in it.
    """
    reader = Reader(path)
    try:
        reader.open()
    except (KeyError, ReaderError) as error:
        # KeyError: a type in an encoding that the library does not know, as rosbag2's "unknown" for services.
        salvage = salvaged(path.read_bytes())
        if salvage.damaged or not salvage.topics:
            raise
        if isinstance(error, ReaderError):
            unfinished.append(error)
        definitions.update(salvage.definitions)
        yield from salvage.messages
        return
    with closing(reader):
        topics = {}
        for connection in reader.connections:
            if connection.msgdef.format.name == "MSG":
                definitions[connection.msgtype] = connection.msgdef.data
            _check_format(connection.topic, getattr(connection.ext, "serialization_format", CDR))
            topics[connection.id] = Topic(connection.topic, connection.msgtype)
        for connection, log_time, data in reader.messages(reader.connections):
            yield RawMessage(topics[connection.id], log_time, bytes(data))


@contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    """An sqlite3 file that is not changed; a copy with the write-ahead log that a killed recorder has left."""
    log = path.with_name(f"{path.name}-wal")
    with ExitStack() as stack:
        given, mode = path.absolute(), "immutable=1"
        if log.is_file() and log.stat().st_size:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            given, mode = folder / path.name, "mode=rw"
            shutil.copy(path, folder)
            shutil.copy(log, folder)
        yield stack.enter_context(closing(sqlite3.connect(f"file:{quote(str(given))}?{mode}", uri=True)))


def _read_sqlite(path: Path, definitions: dict[str, str]) -> Iterator[RawMessage]:
    """Read a file of rosbag2's sqlite3 storage, of any version."""
    with _database(path) as base:
        tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables >= {"messages", "topics"}:
            raise ValueError("it has no tables of topics and messages")
        if "message_definitions" in tables:
            known = "SELECT topic_type, encoded_message_definition FROM message_definitions WHERE encoding = 'ros2msg'"
            definitions.update(base.execute(known))
        topics = {}
        for number, name, kind, serialised in base.execute(
            "SELECT id, name, type, serialization_format FROM topics"
        ):
            _check_format(name, serialised)
            topics[number] = Topic(name, kind)
        for number, log_time, data in base.execute(
            "SELECT topic_id, timestamp, data FROM messages ORDER BY id"
        ):
            if not isinstance(data, bytes) or not isinstance(log_time, int):
                raise ValueError("a message must be bytes with an integer time")
            yield RawMessage(topics[number], log_time, data)


def _check_format(topic: str, found: str) -> None:
    if found != CDR:
        raise ValueError(f"messages on {topic} are serialised as {found!r}; valid: {CDR!r}")


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
                serialization_format=CDR,
                offered_qos_profiles=latched if topic.latched else [],
            )
        )
    for message in messages:
        writer.write(message.topic.name, message.data, message.log_time)
    writer.close()


def _cdr(rosbag2_py: Any) -> Any:
    return rosbag2_py.ConverterOptions(input_serialization_format=CDR, output_serialization_format=CDR)
