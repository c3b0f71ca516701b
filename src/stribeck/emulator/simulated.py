"""Emulated servos that keep simulated time, for drivers and nodes in other processes.

The server owns the clock. A driver moves it by waiting for its servos, nodes move it together in lock-step
(:mod:`stribeck.emulator.lockstep`), and the servos follow it. Everything is answered as fast as the machine allows; whether
that is faster or slower than real time has no influence on what happens.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.faults import Fault
from stribeck.emulator.lockstep import Lockstep, Order
from stribeck.emulator.simulated_line import SimulatedBus, SimulatedLine
from stribeck.errors import OutputError, ServoError
from stribeck.session.simulation import (
    JOIN,
    OPEN,
    READ,
    REPORT,
    SLEEP,
    WRITE,
    Connection,
    Entities,
    Report,
    short_name,
    unix_socket,
)

PATIENCE = 10.0
"""Time without any message after which the awaited nodes are named [s]; nothing else happens then."""


class SimulationServer:
    """Serves one bus of emulated servos, and its time, on a Unix socket.

    :param path: of the socket.
    :param nodes: fully qualified names of nodes without which time does not begin.
    :param seed: of random faults.
    :param say: receives lines for the user.
    :raises ConfigError: for incompatible servos or faults.
    :raises OutputError: if the socket cannot be made.
    """

    def __init__(
        self,
        path: Path,
        servos: Sequence[EmulatedServo],
        faults: Iterable[Fault] = (),
        nodes: Iterable[str] = (),
        seed: int = 0,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.path = path
        self.bus = SimulatedBus(servos, faults, seed)
        self.lockstep = Lockstep(nodes, self.bus.clock)
        self._say = say
        self._names: dict[Connection, str] = {}
        self._lines: dict[Connection, SimulatedLine] = {}
        self._connections: dict[int, Connection] = {}
        self._listener = _listening(path)
        self._poll = select.poll()
        self._poll.register(self._listener, select.POLLIN)

    def __enter__(self) -> SimulationServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            connection.close()
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def serve(self, ended: Callable[[], bool]) -> None:
        """Serve until ``ended`` returns true, which is looked at several times a second."""
        quiet = 0.0
        while not ended():
            ready = self._poll.poll(200)
            quiet = 0.0 if ready else quiet + 0.2
            if PATIENCE <= quiet < PATIENCE + 0.2 and (awaited := self.lockstep.awaited):
                self._say(f"simulated time waits until these nodes connect: {', '.join(awaited)}")
            # What a driver wrote in the turn of its node comes before the report that ends the turn, on another connection.
            reports = [
                descriptor for descriptor, _ in ready if self._connections.get(descriptor) in self._names
            ]
            others = [descriptor for descriptor, _ in ready if descriptor not in reports]
            for descriptor in others or reports:
                if descriptor == self._listener.fileno():
                    self._accept()
                else:
                    self._take(self._connections[descriptor])

    def _accept(self) -> None:
        connection = Connection(self._listener.accept()[0])
        self._connections[connection.fileno()] = connection
        self._poll.register(connection, select.POLLIN)

    def _take(self, connection: Connection) -> None:
        """Take one message of a client."""
        try:
            message = connection.receive()
            assert message is not None  # noqa: S101 - it waits without a time-out
        except ServoError:
            self._drop(connection)
            return
        kind, *content = message
        if kind == JOIN:
            self._names[connection] = content[0]
            self._send(self.lockstep.join(content[0]))
        elif kind == REPORT:
            report = Report(*content)
            if report.entities is not None:
                report = report._replace(entities=Entities(*report.entities))
            self._send(self.lockstep.report(self._names[connection], report))
        else:
            self._answer(connection, kind, *content)

    def _answer(self, connection: Connection, kind: int, now: float, value: Any) -> None:
        """Serve the line of a driver."""
        result, problem = None, None
        self.bus.clock.move_to(now)
        try:
            result = self._do(connection, kind, value)
        except OSError as error:
            problem = (error.errno, error.strerror)
        if kind >= OPEN:
            with suppress(ServoError):
                connection.send(self.bus.clock.now(), result, problem)

    def _do(self, connection: Connection, kind: int, value: Any) -> Any:
        if kind == SLEEP:
            self.bus.clock.sleep(value)
            return None
        if kind == OPEN:
            self._lines[connection] = SimulatedLine(self.bus, value)
            return None
        line = self._lines.get(connection)
        if line is None:
            raise OSError(errno.EBADF, "not open")
        if kind == READ:
            return line.read(value), self.bus.further_answers()
        return line.write(value) if kind == WRITE else line.discard()

    def _send(self, orders: Iterable[tuple[str, Order]]) -> None:
        connections = {name: connection for connection, name in self._names.items()}
        for name, order in orders:
            with suppress(ServoError):  # its end is noticed when it is read from
                connections[name].send(*order)

    def _drop(self, connection: Connection) -> None:
        self._poll.unregister(connection)
        del self._connections[connection.fileno()]
        connection.close()
        self._lines.pop(connection, None)
        name = self._names.pop(connection, None)
        if name is not None:
            self._send(self.lockstep.leave(name))


def _listening(path: Path) -> socket.socket:
    """A socket that listens at a path, in place of one of a server that has died.

    :raises OutputError: if the path is in use, or the socket cannot be made.
    """
    if path.exists():
        try:
            Connection.to(path).close()
        except ServoError:
            in_use = not path.is_socket()
        else:
            in_use = True
        if in_use:
            raise OutputError(f"{path} is in use; choose another path for the link, or remove it")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    listener = unix_socket()
    try:
        with short_name(beside) as name:
            listener.bind(name)
        listener.listen(64)
        beside.rename(path)  # whoever sees the socket can connect to it
    except OSError as problem:
        listener.close()
        raise OutputError(f"cannot create the socket {path}: {problem.strerror or problem}") from None
    return listener
