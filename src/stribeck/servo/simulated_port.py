"""The serial port of emulated servos in simulated time: every wait moves the simulated clock and returns at once."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from stribeck.servo.port import Port
from stribeck.session.simulation import DISCARD, OPEN, READ, SLEEP, WRITE, Connection
from stribeck.session.timing import SimulatedClock


def port_named(name: str, baud_rate: int, clock: SimulatedClock | None = None) -> Port:
    """The port with a name: emulated servos in simulated time if the name is that of a socket, otherwise a serial port.

    :param clock: a clock to move with the simulation.
    :raises ServoError: if nothing listens to the socket.
    """
    if not Path(name).is_socket():
        return Port(name, baud_rate)
    simulation = _Simulation(name, clock)
    return Port(name, baud_rate, lambda _, rate: _SimulatedLine(simulation, rate), simulation)


class _Simulation(SimulatedClock):
    """A driver's connection to a simulation, and its clock: a wait moves the simulation.

    The clock may be ahead of the simulation, which follows with the next request.
    """

    def __init__(self, path: str, clock: SimulatedClock | None) -> None:
        super().__init__()
        self._path = path
        self._connection: Connection | None = None
        if clock is not None:
            clock.watchers.append(self.move_to)
            self.watchers.append(clock.move_to)
        self.sleep(0.0)

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` [s] pass in the simulation."""
        self.ask(SLEEP, seconds)

    def tell(self, kind: int, value: Any = None) -> None:
        """Send a request that is not answered."""
        self._connected.send(kind, self.now(), value)

    def ask(self, kind: int, value: Any = None) -> Any:
        """Send a request, and return its result.

        :raises OSError: from the emulated line.
        """
        self.tell(kind, value)
        answer = self._connected.receive()
        assert answer is not None  # noqa: S101 - it waits without a time-out
        now, result, problem = answer
        self.move_to(now)
        if problem is not None:
            raise OSError(*problem)
        return result

    def close(self) -> None:
        """Close the connection, until the next request."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = Connection.to(self._path)
        return self._connection


class _SimulatedLine:
    """The line of the emulated servos; answers that are known to arrive later are fetched with the first one."""

    low_latency = True

    def __init__(self, simulation: _Simulation, baud_rate: int) -> None:
        self._simulation = simulation
        self._answers: deque[tuple[float, bytes]] = deque()
        simulation.ask(OPEN, baud_rate)

    def write(self, data: bytes) -> None:
        self._simulation.tell(WRITE, data)

    def read(self, wait: float) -> bytes:
        clock = self._simulation
        if not self._answers:
            data, further = clock.ask(READ, wait)
            self._answers.extend(further)
            return bytes(data)
        due = self._answers[0][0]
        if due > clock.now() + wait:
            clock.move_to(clock.now() + wait)
            return b""
        clock.move_to(due)
        return self._arrived()

    def _arrived(self) -> bytes:
        data = b""
        while self._answers and self._answers[0][0] <= self._simulation.now():
            data += self._answers.popleft()[1]
        return data

    def discard(self) -> None:
        self._arrived()
        self._simulation.tell(DISCARD)

    def close(self) -> None:
        self._simulation.close()
