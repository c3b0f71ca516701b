"""Connections to a simulation that keeps simulated time: messages on a Unix socket, and the messages that there are.

``stribeck emulate --simulated`` is the server (:mod:`stribeck.emulator.simulated`). Its clients are drivers, for the bytes of
their serial line (:mod:`stribeck.servo.port`), and nodes that run in lock-step (:mod:`stribeck.nodes.lockstep`).
Every message is a MessagePack array whose first item is one of the kinds below. What a node in lock-step does at certain times
are timers, and threads that run one at a time.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stribeck.errors import ServoError

LARGEST = 1 << 18
"""Size of the largest message [bytes]."""

# Requests of a driver, each with its time [s] and a value. Those from OPEN on are answered by [now, result, system error].
WRITE, DISCARD, OPEN, READ, SLEEP = range(5)

# Messages of a node: JOIN once, with a REPORT of what it has, then a REPORT for each order, and others when something has changed.
JOIN, REPORT = 6, 7

# Orders to a node.
TURN, MATCH, CALL, SERVE, REST = range(10, 15)


class Entities(NamedTuple):
    """What a node has on topics and services; all names are resolved.

    :param publishes: number of publishers and depth of what late subscriptions receive (0: nothing), by topic.
    :param subscribes: number of subscriptions and 1 if they are latched, by topic.
    :param serves: services.
    """

    publishes: Mapping[str, tuple[int, int]] = {}
    subscribes: Mapping[str, tuple[int, int]] = {}
    serves: tuple[str, ...] = ()


class Report(NamedTuple):
    """What a node did in its turn.

    :param order: number of the order that it answers, or of the last one answered.
    :param now: its time, which a driver in it may have moved [s].
    :param due: when it wants to act again [s]; infinite for never.
    :param sent: number of messages published since the last report, by topic.
    :param calls: number of services that it wants to call.
    :param entities: as they are now; ``None`` if they have not changed.
    """

    order: int
    now: float
    due: float
    sent: Mapping[str, int] = {}
    calls: int = 0
    entities: Entities | None = None


class Connection:
    """One end of a connection, of either side.

    :param socket: connected, of type SOCK_SEQPACKET.
    """

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._encoder, self._decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder()

    @classmethod
    def to(cls, path: Path | str) -> Connection:
        """Connect to the server at a path.

        :raises ServoError: if there is none.
        """
        connected = unix_socket()
        try:
            with short_name(Path(path)) as name:
                connected.connect(name)
        except OSError as problem:
            connected.close()
            raise ServoError(
                f"no simulation at {path} ({problem.strerror}): start `stribeck emulate --simulated` first"
            ) from None
        return cls(connected)

    def fileno(self) -> int:
        """File descriptor, for select."""
        return self._socket.fileno()

    @property
    def waiting(self) -> bool:
        """Whether a message is waiting, or the other side has ended."""
        return bool(select.select([self._socket], [], [], 0.0)[0])

    def send(self, *content: Any) -> None:
        """Send a message.

        :raises ServoError: if the other side has ended.
        """
        try:
            self._socket.send(self._encoder.encode(content))
        except OSError:
            raise _ended() from None

    def receive(self, timeout: float | None = None) -> list[Any] | None:
        """The next message; ``None`` if none arrives within ``timeout`` [s].

        :raises ServoError: if the other side has ended.
        """
        if timeout is not None and not select.select([self._socket], [], [], timeout)[0]:
            return None
        try:
            data = self._socket.recv(LARGEST)
        except OSError:
            data = b""
        if not data:
            raise _ended()
        return self._decoder.decode(data)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def unix_socket() -> socket.socket:
    """A socket that keeps the boundaries of messages."""
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A name of a file that is short enough for a socket, which takes 107 characters."""
    folder = os.open(path.parent, os.O_PATH)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _ended() -> ServoError:
    return ServoError(
        "the simulation has ended: start `stribeck emulate --simulated` again, then this program"
    )


class TurnTimer:
    """A periodic timer in simulated time; the first call comes after a period."""

    def __init__(self, period: float, callback: Callable[[], None], due: float) -> None:
        self.period, self.callback, self.due = period, callback, due
        self.over = False

    def cancel(self) -> None:
        """Do not call again."""
        self.over = True

    def act(self, now: float) -> None:
        """Call, and plan the next call."""
        self.due = max(self.due + self.period, now)
        self.callback()


class TurnThread(threading.Thread):
    """A thread that runs only while the turn of its node waits for it, until it sleeps on the node's clock."""

    def __init__(self, target: Callable[[], None], name: str, due: float) -> None:
        super().__init__(name=name, daemon=True)
        self._work, self.due = target, due
        self.over = self.free = False
        self._resumed, self._paused = threading.Semaphore(0), threading.Semaphore(0)

    def run(self) -> None:
        """Work when it is resumed for the first time."""
        self._resumed.acquire()
        try:
            self._work()
        finally:
            self.over = True
            self._paused.release()

    def act(self, now: float) -> None:
        """Let it run until it sleeps or ends."""
        self._resumed.release()
        self._paused.acquire()

    def pause_until(self, due: float) -> None:
        """Called by the thread itself: sleep."""
        self.due = due
        self._paused.release()
        self._resumed.acquire()

    def join(self, timeout: float | None = None) -> None:
        """Let it run freely, without waiting for its clock, until it ends."""
        self.free = True
        self._resumed.release()
        super().join(timeout)
