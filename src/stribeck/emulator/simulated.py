"""Emulated servos that keep simulated time, for drivers and nodes in other processes.

The server owns the clock. A driver moves it by waiting for its servos, nodes move it together in lock-step
(:mod:`stribeck.emulator.lockstep`), and the servos follow it. Everything is answered as fast as the machine allows; whether
that is faster or slower than real time has no influence on what happens.
"""

from __future__ import annotations

import errno
import math
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
from stribeck.emulator.line import TICK, EmulatedLine
from stribeck.emulator.lockstep import Lockstep, Order
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
from stribeck.session.timing import SimulatedClock

PATIENCE = 10.0
"""Time without any message after which the awaited nodes are named [s]; nothing else happens then."""


class SimulatedBus(EmulatedLine):
    """Servos on one line, whose physics follows a simulated clock.

    :param seed: of random faults.
    :ivar clock: servos and line advance whenever it is moved.
    :ivar generation: number of times that the port was unplugged.
    :raises ConfigError: for incompatible servos or faults.
    """

    def __init__(
        self,
        servos: Sequence[EmulatedServo],
        faults: Iterable[Fault] = (),
        seed: int = 0,
    ) -> None:
        faults = tuple(faults)
        super().__init__(servos, faults, seed)
        self.clock = SimulatedClock()
        self._has_faults = any(fault.kind != "push" for fault in faults)
        self.plugged, self.generation = True, 0
        self._waiting: list[tuple[bytes, int]] = []
        self.begin(self.clock.now())
        self.clock.watchers.append(self._follow)

    @property
    def next_event(self) -> float:
        """When the next bytes arrive at the program or at the servos [s]; infinity without any."""
        return min(self.next_answer, self.busy_until) if self._waiting else self.next_answer

    def write(self, data: bytes, rate: int) -> None:
        """Take bytes of a program; they wait while the line is busy.

        :param rate: baud rate [bit/s].
        """
        self._waiting.append((data, rate))
        self._follow(self.clock.now())

    def further_answers(self) -> list[tuple[float, bytes]]:
        """Answers that are on their way, and when they arrive [s]; none of a bus with faults, which may stop them."""
        answers = []
        while not self._has_faults and (due := self.next_answer) < math.inf:
            answers.append((due, b"".join(self.answers_due(due))))
            self.counts["answered"] += 1
        return answers

    def _follow(self, now: float) -> None:
        while self._waiting and self.busy_until <= now:
            data, rate = self._waiting.pop(0)
            self.advance_to(self.busy_until)
            self.receive(data, self.busy_until, rate)
        self.advance_to(now)
        if self.busy_until <= now:
            self.drop_incomplete(now)

    def add_fault(self, fault: Fault) -> None:
        """Add a fault; its schedule counts from the start of the bus."""
        self._has_faults = True
        super().add_fault(fault)

    def unplug(self) -> None:
        """Remove the port; the servos stay powered."""
        super().unplug()
        self.plugged = False
        self.generation += 1
        self._waiting.clear()

    def plug(self) -> None:
        """Restore the port under the same name."""
        self.plugged = True


class SimulatedLine:
    """The line of a :class:`SimulatedBus` as a program sees it (:class:`stribeck.servo.port.Line`).

    :param rate: baud rate [bit/s].
    :raises OSError: while the port is unplugged; all methods raise it once the port was unplugged.
    """

    low_latency = False

    def __init__(self, bus: SimulatedBus, rate: int) -> None:
        self._bus, self._rate, self._generation = bus, rate, bus.generation
        if not bus.plugged:
            raise OSError(errno.ENOENT, "no such device")

    def _check(self) -> None:
        if self._bus.generation != self._generation:
            raise OSError(errno.EIO, "unplugged")

    def write(self, data: bytes) -> None:
        """Write bytes."""
        self._check()
        self._bus.write(data, self._rate)

    def read(self, wait: float) -> bytes:
        """Move the clock until bytes arrive, by at most ``wait`` [s]; return those that have arrived."""
        bus, clock = self._bus, self._bus.clock
        deadline = clock.now() + wait
        while True:
            self._check()
            if data := b"".join(bus.answers_due(clock.now())):
                bus.counts["answered"] += 1
                return data
            if clock.now() >= deadline:
                return b""
            clock.move_to(min(deadline, bus.next_event, clock.now() + TICK))

    def discard(self) -> None:
        """Discard the bytes that have arrived."""
        self._check()
        self._bus.answers_due(self._bus.clock.now())

    def close(self) -> None:
        """Close the line; the servos keep their state."""


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
    """A socket that listens at a path, in place of one of a server that has died."""
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
