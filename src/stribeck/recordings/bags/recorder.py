"""Streaming recorder of bags: every message is on disk within half a second.

rosbag2's recorder closes chunks by size only, so that a crash would lose many seconds of slow topics.

During recording a bag is a folder with its final name that holds one MCAP file; ``metadata.yaml`` is written last.
The recorder holds a lock (``flock``) on the file; :mod:`stribeck.recordings.bags.recovery` finishes bags of recorders that died.
:class:`RunWriter` records one bag per run in a thread of its own, so that the control loop never blocks.
"""

import contextlib
import fcntl
import os
import queue
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from stribeck.errors import ConfigError, OutputError, StribeckError
from stribeck.files.folders import write_atomically
from stribeck.recordings.bags.mcap import McapBag
from stribeck.recordings.bags.messages import RawMessage, Topic, warm_up

FLUSH_PERIOD: Final = 0.2
"""Period of closing and writing chunks [s]; together with the disk's latency below 0.5 s."""

MEMORY_LIMIT: Final = 64 << 20
"""Memory for messages while the disk does not respond [bytes], enough for minutes of slow topics."""

CLOSE_TIMEOUT: Final = 30.0
"""Time-out of closing [s]."""


class BagRecorder:
    """Records messages of given topics into a new bag, from any thread, at a few µs per message.

    :meth:`write` only appends to memory; a background thread writes to disk and syncs every
    :data:`FLUSH_PERIOD`, so that a slow or stalled disk never delays the caller.

    :param path: folder of the new bag; parent folders are created.
    :ivar counts: messages so far, by topic.
    :raises OutputError: if ``path`` exists, or cannot be written.
    :raises ConfigError: for a message type without a definition.
    """

    def __init__(self, path: Path, topics: Iterable[Topic]) -> None:
        self.path = Path(os.path.abspath(path))
        self._bag = McapBag(self.path.name, topics)
        self.counts: Mapping[str, int] = self._bag.counts
        self._lock = threading.Lock()  # guards all attributes below, and the bag
        self._writing = 0  # bytes being written to disk
        # Steady times [s] of arrival of the oldest message being written, and of the oldest in memory.
        self._writing_since: float | None = None
        self._waiting_since: float | None = None
        self._failure = ""
        self._told = False
        self._ending = threading.Event()
        self._file = _new_file(self.path)
        self._thread = threading.Thread(target=self._run, name="bag recorder", daemon=True)
        self._thread.start()

    @classmethod
    def numbered(cls, folder: Path, prefix: str, topics: Iterable[Topic]) -> Self:
        """Record into a new bag ``<prefix>_<number>`` of ``folder``, with a number above all existing ones."""
        if Path(prefix).name != prefix:
            raise ConfigError(f"bags cannot be named {prefix!r}: give a name without slashes")
        topics = tuple(topics)
        while True:
            path = next_path(folder, prefix)
            try:
                return cls(path, topics)
            except OutputError:
                if not path.exists():
                    raise  # otherwise another recorder has just taken this number

    @property
    def lag(self) -> float:
        """Age of the oldest message that is not yet on disk [s]: the time that a crash would lose now."""
        since = self._writing_since or self._waiting_since
        return 0.0 if since is None else time.monotonic() - since

    def write(self, topic: str, data: bytes | memoryview, log_time_ns: int) -> None:
        """Record a message, as CDR bytes.

        :param log_time_ns: arrival time [ns], for ordering; the time of a message is its header stamp.
        :raises OutputError: if the disk is full or gone, or messages waiting for it exceed the memory limit;
            this and all further messages are then not recorded.
        :raises ConfigError: for an unknown topic.
        """
        with self._lock:
            if self._ending.is_set():
                raise OutputError(f"{self.path} is closed, so nothing more can be recorded")
            if not self._failure and self._bag.pending + self._writing > MEMORY_LIMIT:
                self._failure = (
                    f"recording into {self.path} has stopped, because the disk has not responded for {self.lag:.1f} s, and {MEMORY_LIMIT / (1 << 20):.3g} MiB "
                    "are waiting to be written: record to a faster disk, or fewer topics"
                )
            if self._failure:
                self._told = True
                raise OutputError(self._failure)
            if self._waiting_since is None:
                self._waiting_since = time.monotonic()
            self._bag.add(topic, data, log_time_ns)

    def close(self) -> None:
        """Write the remaining messages, and finish the bag with its index and ``metadata.yaml``.

        :raises OutputError: if the disk is full, gone or does not respond; the part on disk can be
            recovered. A failure that :meth:`write` has already raised is not raised again.
        """
        if self._ending.is_set():
            return
        self._ending.set()
        self._thread.join(CLOSE_TIMEOUT)
        if self._thread.is_alive():
            raise OutputError(
                f"{self.path} cannot be finished, because the disk has not responded for {CLOSE_TIMEOUT:g} s; "
                "what is on the disk is recovered when the bag is read"
            )
        os.close(self._file)
        if self._failure and not self._told:
            self._told = True
            raise OutputError(self._failure)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An exception that is already propagating says more than a resulting failure to close.
        with contextlib.suppress(OutputError) if kind is not None else contextlib.nullcontext():
            self.close()

    def _run(self) -> None:
        """Body of the recorder's thread."""
        try:
            while not self._ending.wait(FLUSH_PERIOD):
                self._store()
            self._store()
            if not self._failure:  # after refused messages, an apparently complete bag would be misleading
                self._finish()
        except OSError as error:
            self._fail(error.strerror or type(error).__name__)
        except OutputError as error:
            self._fail(str(error))

    def _store(self) -> None:
        """Close the current chunk, and write and sync everything to disk."""
        with self._lock:
            self._bag.close_chunk()
            data = self._bag.take()
            self._writing = len(data)
            self._writing_since, self._waiting_since = self._waiting_since, None
        _append(self._file, data)
        with self._lock:
            self._writing, self._writing_since = 0, None

    def _finish(self) -> None:
        metadata = self._bag.finish()
        _append(self._file, self._bag.take())
        write_atomically(self.path / "metadata.yaml", metadata)
        _sync_folder(self.path)

    def _fail(self, reason: str) -> None:
        with self._lock:
            self._failure = self._failure or (
                f"recording into {self.path} has stopped: {reason}; what is on the disk is recovered when "
                "the bag is read"
            )


def next_path(folder: Path, prefix: str) -> Path:
    """A path ``<prefix>_<number>`` in ``folder``, with a number above all existing ones, also of unfinished bags."""
    numbered = re.compile(re.escape(prefix) + r"_(\d+)(_recovered.*)?", re.DOTALL)
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    numbers = [int(found.group(1)) for name in names if (found := numbered.fullmatch(name))]
    return folder / f"{prefix}_{max(numbers, default=0) + 1:03d}"


def _new_file(path: Path) -> int:
    """An open, empty MCAP file in a new folder, locked before it gets its final name."""
    try:
        if os.path.lexists(path):
            raise OutputError(f"{path} already exists; choose another name or move it")
        path.mkdir(parents=True)
    except OSError as error:
        raise OutputError(f"cannot record into {path}: {error.strerror}") from error
    hidden, file = path / f".{path.name}.mcap", -1
    try:
        file = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(hidden, path / f"{path.name}.mcap")
        _sync_folder(path)
        _sync_folder(path.parent)
    except OSError as error:
        if file >= 0:
            os.close(file)
        shutil.rmtree(path, ignore_errors=True)
        raise OutputError(f"cannot record into {path}: {error.strerror}") from error
    return file


def _append(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
    if data:
        os.fdatasync(file)


def _sync_folder(path: Path) -> None:
    """Sync the names in a folder to disk, if the file system can."""
    with contextlib.suppress(OSError):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


T = TypeVar("T")


class RunWriter(Generic[T]):
    """Records items of runs into bags, in a background thread.

    :param messages: converts the items of :meth:`add` to messages; called in the background thread.
    :ivar bags: finished bags so far.
    :ivar failure: why recording has stopped; empty while it works.
    """

    def __init__(self, topics: Sequence[Topic], messages: Callable[[T], Iterable[RawMessage]]) -> None:
        warm_up()
        self._topics = tuple(topics)
        self._messages = messages
        self.bags: list[Path] = []
        self.failure = ""
        self._bag: BagRecorder | None = None
        self._recording = False
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="run writer", daemon=True)
        self._thread.start()

    def start(self, path: Path, messages: Iterable[RawMessage]) -> None:
        """Start a run in a new bag that begins with ``messages``."""
        self._queue.put(partial(self._begin, path, tuple(messages)))
        self._recording = True

    def add(self, item: T) -> None:
        """Record an item, if a run is active."""
        if self._recording:
            self._queue.put(lambda: self._write(self._messages(item)))

    def end(self, messages: Iterable[RawMessage] = ()) -> None:
        """End the run with ``messages``; its bag is finished in the background."""
        if self._recording:
            self._recording = False
            self._queue.put(partial(self._finish, tuple(messages)))

    def close(self) -> None:
        """End the run, and wait until its bag is finished."""
        self.end()
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (action := self._queue.get()) is not None:
            if self.failure:
                continue
            try:
                action()
            except StribeckError as error:
                self.failure = str(error)
                if self._bag is not None:
                    self._give_up(self._bag)

    def _begin(self, path: Path, messages: Sequence[RawMessage]) -> None:
        self._bag = BagRecorder(path, self._topics)
        self._write(messages)

    def _write(self, messages: Iterable[RawMessage]) -> None:
        if self._bag is not None:
            for message in messages:
                self._bag.write(message.topic.name, message.data, message.log_time)

    def _finish(self, messages: Sequence[RawMessage]) -> None:
        self._write(messages)
        bag, self._bag = self._bag, None
        if bag is not None:
            bag.close()
            self.bags.append(bag.path)

    def _give_up(self, bag: BagRecorder) -> None:
        """Close a bag that can no longer be written; the part on disk can be recovered."""
        self._bag = None
        try:
            bag.close()
        except StribeckError as error:
            if str(error) != self.failure:
                self.failure += f"; {error}"
