"""The serial port of emulated servos in simulated time: every wait moves the simulated clock and returns at once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from stribeck.errors import ServoError
from stribeck.servo.port import Port
from stribeck.session.simulation import CLOSE, DISCARD, OPEN, READ, SLEEP, WRITE, Connection
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
    """A driver's connection to a simulation, and its clock: a wait moves the simulation."""

    def __init__(self, path: str, clock: SimulatedClock | None) -> None:
        super().__init__()
        self._connection = Connection.to(path)
        self._shared = clock
        self.sleep(0.0)

    def now(self) -> float:
        """Time [s]."""
        return self._now if self._shared is None else max(self._now, self._shared.now())

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` [s] pass in the simulation."""
        self.ask(SLEEP, seconds)

    def tell(self, *content: Any) -> None:
        """Send a request that is not answered."""
        self._connection.send(*content)

    def ask(self, *content: Any) -> Any:
        """Send a request, and return its result.

        :raises OSError: from the emulated line.
        """
        self._connection.send(*content)
        answer = self._connection.receive()
        assert answer is not None  # noqa: S101 - it waits without a time-out
        now, result, problem = answer
        self.move_to(now)
        if self._shared is not None:
            self._shared.move_to(now)
        if problem is not None:
            raise OSError(*problem)
        return result


class _SimulatedLine:
    low_latency = True

    def __init__(self, simulation: _Simulation, baud_rate: int) -> None:
        self._simulation = simulation
        simulation.ask(OPEN, baud_rate)

    def write(self, data: bytes) -> None:
        self._simulation.tell(WRITE, data)

    def read(self, wait: float) -> bytes:
        data: bytes = self._simulation.ask(READ, wait)
        return data

    def discard(self) -> None:
        self._simulation.ask(DISCARD)

    def close(self) -> None:
        with suppress(ServoError):  # the simulation may have ended
            self._simulation.ask(CLOSE)
