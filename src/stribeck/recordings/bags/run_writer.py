"""Background writer of runs: one bag per run, written in a separate thread so that the control loop never blocks."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from stribeck.errors import StribeckError
from stribeck.recordings.bags.messages import RawMessage, Topic, warm_up
from stribeck.recordings.bags.recorder import BagRecorder

T = TypeVar("T")


@dataclass(frozen=True)
class _Start:
    """Start of a run: path of its bag, and its first messages."""

    path: Path
    messages: tuple[RawMessage, ...]


@dataclass(frozen=True)
class _End:
    """End of a run, with its last messages."""

    messages: tuple[RawMessage, ...]


@dataclass(frozen=True)
class _Item(Generic[T]):
    value: T


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
        self._queue: queue.SimpleQueue[_Start | _End | _Item[T] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="run writer", daemon=True)
        self._thread.start()

    def start(self, path: Path, messages: Iterable[RawMessage]) -> None:
        """Start a run in a new bag that begins with ``messages``."""
        self._queue.put(_Start(path, tuple(messages)))
        self._recording = True

    def add(self, item: T) -> None:
        """Record an item, if a run is active."""
        if self._recording:
            self._queue.put(_Item(item))

    def end(self, messages: Iterable[RawMessage] = ()) -> None:
        """End the run with ``messages``; its bag is finished in the background."""
        if self._recording:
            self._recording = False
            self._queue.put(_End(tuple(messages)))

    def close(self) -> None:
        """End the run, and wait until its bag is finished."""
        self.end()
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            if self.failure:
                continue
            try:
                self._take(item)
            except StribeckError as error:
                self.failure = str(error)
                if self._bag is not None:
                    self._give_up(self._bag)

    def _take(self, item: _Start | _End | _Item[T]) -> None:
        match item:
            case _Start(path, messages):
                self._bag = BagRecorder(path, self._topics)
                self._write(messages)
            case _End(messages):
                self._write(messages)
                self._finish()
            case _Item(value):
                self._write(self._messages(value))

    def _write(self, messages: Iterable[RawMessage]) -> None:
        if self._bag is not None:
            for message in messages:
                self._bag.write(message.topic.name, message.data, message.log_time)

    def _finish(self) -> None:
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
