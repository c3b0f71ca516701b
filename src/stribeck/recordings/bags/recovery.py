"""Recovery of bags that a killed recorder or a power cut left unfinished, up to the last complete chunk.

An unfinished bag is a folder without ``metadata.yaml`` that holds one MCAP file of the same name, without
an index or written by our recorder. It is never changed. When it is first read, a finished copy
``<name>_recovered`` is made next to it, which stores a digest of the original file.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Final

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, Header, Schema
from mcap.stream_reader import get_chunk_data_stream

from stribeck.errors import RecordingError, StribeckError
from stribeck.files.folders import write_atomically
from stribeck.recordings.bags.mcap import MAGIC, McapBag, custom_value
from stribeck.recordings.bags.messages import RawMessage, Topic, contract_types

ORIGINAL_KEY = "stribeck_original"
"""Key in the metadata of a finished copy: digest of the unfinished file."""

Note = Callable[[str], None]
"""Receives one line of text for the user."""

STILL_WRITTEN: Final = 10.0
"""Without locks, a file that changed within this time counts as being recorded [s]."""

_HEADER = struct.Struct("<BQ")
_MESSAGE = struct.Struct("<HIQQ")
_FOOTER_START = b"\x02\x14\x00\x00\x00\x00\x00\x00\x00"
_ENDING = 37
"""Length of footer and closing magic [bytes]."""


class CutOffError(RecordingError):
    """A bag was cut off before it held any usable data."""


class BeingRecordedError(RecordingError):
    """A bag is still being recorded."""


@dataclass
class Salvage:
    """The readable part of an unfinished bag.

    :param definitions: texts of message types (ros2msg), by name.
    :param damaged: number of skipped chunks with a wrong checksum or invalid records.
    """

    topics: dict[int, Topic] = field(default_factory=dict)
    messages: list[RawMessage] = field(default_factory=list)
    definitions: dict[str, str] = field(default_factory=dict)
    damaged: int = 0

    @property
    def seconds(self) -> float:
        """Time between the first message and the last [s]."""
        times = [message.log_time for message in self.messages]
        return (max(times) - min(times)) * 1e-9 if times else 0.0


def unfinished_file(path: Path) -> Path | None:
    """The MCAP file of an unfinished bag; ``path`` is its folder, or the file itself."""
    folder = path.resolve()
    if path.suffix == ".mcap" and path.is_file():
        folder = folder.parent
    elif not path.is_dir():
        return None
    if (folder / "metadata.yaml").exists():
        return None
    files = [file for file in folder.glob("*.mcap") if not file.name.startswith(".") and file.is_file()]
    if len(files) != 1 or files[0].stem not in (folder.name, f"{folder.name}_0"):
        return None
    (file,) = files
    return None if _has_index(file) and not _is_ours(file) else file


def is_recovered(bag: Path) -> bool:
    """Whether a bag is the recovered copy of an unfinished one."""
    return custom_value(bag, ORIGINAL_KEY) is not None


def original_digest(path: Path) -> str | None:
    """Digest that identifies an unfinished bag and its recovered copies; ``None`` for other bags."""
    file = unfinished_file(path)
    return custom_value(path, ORIGINAL_KEY) if file is None else _digest(file.read_bytes())


def is_being_recorded(file: Path) -> bool:
    """Whether the recorder of an unfinished bag is running, judged by its lock, by who writes the file, else by its age.

    rosbag2 takes no lock and writes full chunks only: a bag of slow topics may not grow for half a minute.
    """
    with file.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return _is_fresh(file)
    return not _is_ours(file) and (_is_fresh(file) or _is_written(file))


def recover(file: Path, note: Note) -> Path | Salvage:
    """Return the recovered copy of an unfinished bag, and make it if there is none yet.

    If it cannot be written (read-only folder, full disk), the readable part is returned.

    :param note: receives one line on what was done.
    :raises BeingRecordedError: for a bag that is still being recorded.
    :raises CutOffError: for a bag without any message.
    """
    folder = file.parent
    if is_being_recorded(file):
        raise BeingRecordedError(f"{folder} is still being recorded: wait until the recording has ended")
    content = file.read_bytes()
    digest = _digest(content)
    around = (path for path in sorted(folder.parent.iterdir()) if path.is_dir())
    copy = next((path for path in around if custom_value(path, ORIGINAL_KEY) == digest), None)
    if copy is not None:
        note(f"{folder} was cut off; its repaired copy {copy.name} is read instead")
        return copy
    salvage = salvaged(content)
    if not salvage.messages:
        raise CutOffError(f"{folder} was cut off before any message was written: nothing can be recovered")
    what = f"{folder} was cut off, because its recorder was killed, or power or disk failed"
    what += f"; {len(salvage.messages)} messages of {salvage.seconds:.1f} s were recovered"
    what += f", without {salvage.damaged} damaged parts" if salvage.damaged else ""
    try:
        copy = _finished_copy(folder, digest, salvage)
    except (OSError, StribeckError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        note(f"{what}; they are read directly, because no repaired copy can be written: {reason}")
        return salvage
    note(f"{what}; they are in the repaired copy {copy.name}")
    return copy


def salvaged(content: bytes) -> Salvage:
    """Read all complete records of an MCAP file that was cut off or damaged."""
    salvage = Salvage()
    schemas: dict[int, str] = {}
    if not content.startswith(MAGIC):
        return salvage
    chunked = False
    for opcode, payload in _records(memoryview(content)[len(MAGIC) :]):
        if opcode in (Opcode.DATA_END, Opcode.FOOTER):
            break  # only an index follows
        # In a chunked file, records outside chunks are the result of a damaged length.
        chunked = chunked or opcode == Opcode.CHUNK
        try:
            records = _chunk_records(payload) if opcode == Opcode.CHUNK else [(opcode, payload)]
            if opcode == Opcode.CHUNK or not chunked:
                for inner, data in records:
                    _take_record(salvage, schemas, inner, data)
        except Exception:  # decompressors and parsers raise arbitrary errors for damaged bytes
            salvage.damaged += 1
    return salvage


def _records(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Complete records, up to the first that is cut off or invalid (zeros left by a file system, for example)."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        opcode, length = _HEADER.unpack_from(data, offset)
        offset += _HEADER.size
        if opcode == 0 or length > len(data) - offset:
            return
        yield opcode, data[offset : offset + length]
        offset += length


def _chunk_records(payload: memoryview) -> list[tuple[int, memoryview]]:
    """The records of a chunk, whose checksum is verified if there is one."""
    chunk = Chunk.read(ReadDataStream(BytesIO(payload)))
    stream, length = get_chunk_data_stream(chunk, validate_crc=True)
    data = stream.read(length)
    if len(data) != chunk.uncompressed_size:
        raise ValueError("the size of a chunk differs from that in its header")
    return list(_records(memoryview(data)))


def _take_record(found: Salvage, schemas: dict[int, str], opcode: int, data: memoryview) -> None:
    if opcode == Opcode.SCHEMA:
        schema = Schema.read(ReadDataStream(BytesIO(data)))
        schemas[schema.id] = schema.name
        if schema.encoding == "ros2msg":
            found.definitions[schema.name] = schema.data.decode()
    elif opcode == Opcode.CHANNEL:
        channel = Channel.read(ReadDataStream(BytesIO(data)))
        latched = "transient_local" in channel.metadata.get("offered_qos_profiles", "")
        found.topics[channel.id] = Topic(channel.topic, schemas[channel.schema_id], latched)
    elif opcode == Opcode.MESSAGE:
        channel_id, _, log_time, _ = _MESSAGE.unpack_from(data)
        found.messages.append(RawMessage(found.topics[channel_id], log_time, bytes(data[_MESSAGE.size :])))


def _finished_copy(folder: Path, digest: str, salvage: Salvage) -> Path:
    """Write the copy under a temporary name and rename it, so that it is never seen incomplete."""
    contract = contract_types()
    custom_definitions = {
        name: text
        for name, text in salvage.definitions.items()
        if name not in contract.types or text != contract.generate_msgdef(name, ros_version=2)[0]
    }
    copy = _free_name(folder, digest)
    if copy.exists():
        return copy  # another reader has made it in the meantime
    beside = Path(tempfile.mkdtemp(prefix=f".{copy.name}.", dir=folder.parent))
    try:
        bag = McapBag(
            copy.name,
            salvage.topics.values(),
            definitions=custom_definitions,
            custom={ORIGINAL_KEY: f"x{digest}"},
        )
        for message in salvage.messages:
            bag.add(message.topic.name, message.data, message.log_time)
        metadata = bag.finish()
        unfinished = beside / copy.name
        write_atomically(unfinished / f"{copy.name}.mcap", bag.take())
        write_atomically(unfinished / "metadata.yaml", metadata)
        try:
            os.rename(unfinished, copy)
        except OSError:
            if custom_value(copy, ORIGINAL_KEY) != digest:  # otherwise another reader was faster
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return copy


def _free_name(folder: Path, digest: str) -> Path:
    """A name for the copy that is free, or taken by an identical copy."""
    number, copy = 1, folder.with_name(f"{folder.name}_recovered")
    while copy.exists() and custom_value(copy, ORIGINAL_KEY) != digest:
        number += 1
        copy = folder.with_name(f"{folder.name}_recovered_{number}")
    return copy


def _has_index(file: Path) -> bool:
    with file.open("rb") as opened, contextlib.suppress(OSError):
        opened.seek(-_ENDING, os.SEEK_END)
        ending = opened.read()
        return ending.startswith(_FOOTER_START) and ending.endswith(MAGIC)
    return False


def _is_ours(file: Path) -> bool:
    """Whether our recorder wrote the file, judged by its header; true if the header is damaged."""
    with file.open("rb") as opened:
        start = memoryview(opened.read(len(MAGIC) + 200))
    for opcode, payload in _records(start[len(MAGIC) :]):
        if opcode == Opcode.HEADER:
            with contextlib.suppress(ValueError, struct.error, McapError):
                library = Header.read(ReadDataStream(BytesIO(payload))).library
                return library.startswith("stribeck") or not library or not library.isprintable()
        break
    return True


def _is_written(file: Path) -> bool:
    """Whether a process of this machine and user has the file open for writing, by Linux' /proc."""
    name = str(file.resolve())
    return any(_writes(process, name) for process in Path("/proc").glob("[0-9]*"))


def _writes(process: Path, name: str) -> bool:
    """Whether a process has a file open for writing; it may end, and files may be closed, at any moment."""
    with contextlib.suppress(OSError):
        for number in os.listdir(process / "fd"):
            with contextlib.suppress(OSError, ValueError):
                if os.readlink(process / "fd" / number) == name:
                    described = (process / "fdinfo" / number).read_text()
                    if int(described.split("flags:", 1)[1].split()[0], 8) & (os.O_WRONLY | os.O_RDWR):
                        return True
    return False


def _is_fresh(file: Path) -> bool:
    return time.time() - file.stat().st_mtime < STILL_WRITTEN


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
