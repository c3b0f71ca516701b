"""The serial port of a servo bus: dynamixel_sdk's port handler with blocking reads instead of polling.

The library polls the port in a loop and waits 34 ms for a lost packet (two latency timers of 16 ms). Here a
read blocks until bytes arrive, and times out :attr:`Port.patience` after the end of their wire time. All
times are on the steady clock. A port that is a socket is that of emulated servos in simulated time: every wait moves the
simulated clock and returns at once.
"""

import os
import select
import termios
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import serial
from dynamixel_sdk import PortHandler

from stribeck.errors import ServoError
from stribeck.session.simulation import DISCARD, OPEN, READ, SLEEP, WRITE, Connection
from stribeck.session.timing import SYSTEM_CLOCK, SimulatedClock, SteadyClock

BITS_PER_BYTE = 10
"""Start bit, eight bits, stop bit."""

SLOW_PATIENCE = 0.03
"""Patience while nothing moves [s], sufficient for a USB adapter without the low-latency setting."""

QUIET = 5e-4
"""Waiting time for more bytes after the expected number has arrived [s]: a few USB 2 frames."""

WRITE_TIMEOUT = 0.05
"""Time without accepting data after which a port is considered lost [s]."""

READ_SIZE = 4096

ECHO_TIME = 1.0
"""Time for which a written packet is recognised if the adapter sends it back [s]."""

LINE_ERRORS = (OSError, termios.error, ValueError, TypeError)
"""Exceptions of an unplugged or closed line; those of pyserial are OSErrors."""


class PortLostError(ServoError):
    """The serial port was unplugged, or its driver returns errors."""


class NoAnswerError(ServoError):
    """A servo did not answer, however often it was asked, or later than the bus assumes: a fault of timing."""


class Line(Protocol):
    """Byte stream to and from servos. Every method may raise one of :data:`LINE_ERRORS`."""

    low_latency: bool
    """Whether the driver accepted the low-latency setting."""

    def write(self, data: bytes) -> None:
        """Write bytes."""

    def read(self, wait: float) -> bytes:
        """Return bytes as soon as any arrive, or none after ``wait`` [s]."""

    def discard(self) -> None:
        """Discard received bytes that have not been read."""

    def close(self) -> None:
        """Close the line."""


class _SerialLine:
    def __init__(self, name: str, baud_rate: int) -> None:
        self._serial = serial.Serial(name, baud_rate, timeout=0, exclusive=True)
        self.low_latency = set_low_latency(self._serial)

    def write(self, data: bytes) -> None:
        descriptor, patient = self._serial.fileno(), True
        while data:
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:
                if not patient:
                    raise OSError("it accepts no data") from None
                # Try once more after the wait, because this process may have been suspended.
                patient = bool(select.select([], [descriptor], [], WRITE_TIMEOUT)[1])

    def read(self, wait: float) -> bytes:
        descriptor = self._serial.fileno()
        if not select.select([descriptor], [], [], wait)[0]:
            return b""
        data = os.read(descriptor, READ_SIZE)
        if not data:
            raise OSError("the port is readable but contains no data")
        return data

    def discard(self) -> None:
        self._serial.reset_input_buffer()

    def close(self) -> None:
        self._serial.close()


class Port(PortHandler):  # type: ignore[misc]
    """A serial port with the interface that dynamixel_sdk expects.

    :param name: device.
    :param baud_rate: [bit/s].
    :param open_line: opens the line by name and baud rate.
    :param clock: the clock for all timeouts.
    :ivar low_latency: whether the driver accepted the low-latency setting. Without it, a USB adapter delays
        bytes by up to 16 ms; a pseudo-terminal has no such setting and needs none.
    :ivar patience: longest accepted delay of an answer beyond its wire time [s].
    :ivar sent_at: when the last packet was written [s].
    :ivar sent: size of the last packet [bytes].
    :ivar sent_until: when everything written has passed the wire [s].
    :ivar received_at: when the last bytes arrived [s].
    :ivar received: number of bytes received since the last packet was sent.
    """

    def __init__(
        self,
        name: str,
        baud_rate: int,
        open_line: Callable[[str, int], Line] = _SerialLine,
        clock: SteadyClock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(name)
        self.clock = clock
        self.is_open = False
        self.baudrate = baud_rate
        self.low_latency = False
        self.patience = SLOW_PATIENCE
        self.sent_at = self.received_at = self.sent_until = 0.0
        self.sent = self.received = 0
        self._open_line = open_line
        self._line: Line | None = None
        self._expected: int | None = None
        self._deadline = self._latest = 0.0
        self._buffer = bytearray()
        self._written: deque[tuple[float, bytes]] = deque()

    def wire_time(self, size: int) -> float:
        """Wire time of ``size`` bytes [s]."""
        return size * BITS_PER_BYTE / float(self.baudrate)

    # Called by dynamixel_sdk.

    @property
    def is_using(self) -> bool:
        """The library's lock, never taken: only one thread uses a port, and a port left locked by Ctrl-C would
        silently drop the packets that switch torque off.
        """
        return False

    @is_using.setter
    def is_using(self, value: bool) -> None:
        """Accept and ignore the value; the lock is never taken."""

    def openPort(self) -> bool:
        """Open the port.

        :raises ServoError: if it cannot be opened.
        """
        self.closePort()
        try:
            self._line = self._open_line(self.port_name, self.baudrate)
        except LINE_ERRORS as problem:
            raise ServoError(
                f"cannot open {self.port_name} at {self.baudrate} bit/s: {_reason(problem)}. Check that the adapter is plugged in, that you may use it (group "
                "dialout), and that no other program uses it"
            ) from problem
        self.is_open = True
        self.tx_time_per_byte = 1000.0 * self.wire_time(1)
        self.low_latency = self._line.low_latency
        self.clearPort()
        return True

    def closePort(self) -> None:
        """Close the port if it is open."""
        if self._line is not None:
            self._line.close()
        self._line, self.is_open = None, False

    def clearPort(self) -> None:
        """Discard received bytes that have not been read."""
        self._buffer.clear()
        try:
            self._opened.discard()
        except LINE_ERRORS as problem:
            raise self._lost(problem) from problem

    def writePort(self, packet: Sequence[int]) -> int:
        """Send a packet.

        :raises PortLostError: if the port is gone.
        """
        data = bytes(packet)
        self.sent_at = self.clock.now()
        self.sent, self.received, self._expected = len(packet), 0, None
        self.sent_until = max(self.sent_until, self.sent_at) + self.wire_time(len(packet))
        self._written.append((self.sent_at, data))
        while self._written[0][0] < self.sent_at - ECHO_TIME:
            self._written.popleft()
        try:
            self._opened.write(data)
        except LINE_ERRORS as problem:
            raise self._lost(problem) from problem
        return len(packet)

    def readPort(self, length: int) -> bytes:
        """Read up to ``length`` bytes; empty only after the timeout.

        :raises PortLostError: if the port is gone.
        """
        if length <= 0:
            return b""
        if not self._buffer:
            self._fill()
        taken = bytes(self._buffer[:length])
        del self._buffer[:length]
        return taken

    def setPacketTimeout(self, packet_length: int) -> None:
        """Start the timeout of an answer of ``packet_length`` bytes."""
        now = self.clock.now()
        self._expected = packet_length
        wire = self.wire_time(self.sent + packet_length)
        self._deadline = now + wire + self.patience
        self._latest = now + wire + 4.0 * self.patience

    def setPacketTimeoutMillis(self, msec: float) -> None:
        """Start a timeout of ``msec`` [ms] for an answer of any length."""
        self._expected = None
        self._deadline = self._latest = self.clock.now() + 1e-3 * msec

    def isPacketTimeout(self) -> bool:
        """Whether the timeout has expired; unread bytes extend it up to a limit."""
        now = self.clock.now()
        return now >= self._latest or (not self._buffer and now >= self._deadline)

    # Called by :mod:`stribeck.servo.link`.

    def received_bytes(self) -> bytes:
        """Bytes that have not been read; waits for some, empty only after the timeout.

        :raises PortLostError: if the port is gone.
        """
        if not self._buffer:
            self._fill()
        return bytes(self._buffer)

    def expect_more(self, size: int) -> None:
        """Extend the timeout by ``size`` bytes, because a packet of that size arrived from another servo."""
        if self._expected is not None:
            self._expected += size
            self._deadline = min(self._latest, self.clock.now() + self.wire_time(size) + self.patience)

    def is_echo(self, packet: bytes) -> bool:
        """Whether a received packet is one that was sent: adapters of half-duplex lines may return everything."""
        return any(packet == written for _, written in self._written)

    def push_back(self, data: Sequence[int]) -> None:
        """Put bytes back in front of the unread ones."""
        self._buffer[:0] = bytes(data)

    def settle(self, quiet: float) -> None:
        """Discard input until none has arrived for ``quiet`` [s], for at most ten times as long."""
        self.setPacketTimeoutMillis(1e4 * quiet)
        while not self.isPacketTimeout():
            before = self.received
            self._deadline = min(self._latest, self.clock.now() + quiet)
            self._fill()
            self._buffer.clear()
            if self.received == before:
                return

    @property
    def all_came(self) -> bool:
        """Whether all expected bytes have arrived and been read."""
        return not self._buffer and self._expected is not None and self.received >= self._expected

    @property
    def _opened(self) -> Line:
        if self._line is None:
            raise OSError("it is closed")
        return self._line

    def _fill(self) -> None:
        # Read even after the timeout, because this process may have been suspended.
        wait = max(0.0, self._deadline - self.clock.now())
        try:
            data = self._opened.read(wait)
        except LINE_ERRORS as problem:
            raise self._lost(problem) from problem
        if not data:
            return
        self._buffer += data
        self.received += len(data)
        self.received_at = self.clock.now()
        if self._expected is not None:
            missing = self._expected - self.received
            wait = QUIET if missing <= 0 else self.wire_time(missing) + self.patience
            self._deadline = min(self._latest, self.received_at + wait)

    def _lost(self, problem: object) -> PortLostError:
        return PortLostError(
            f"port {self.port_name} is lost ({_reason(problem)}): plug in the adapter, then start again or clear the fault"
        )


def set_low_latency(port: serial.Serial) -> bool:
    """Set the driver to low latency if it has that setting; return whether it was accepted."""
    try:
        port.set_low_latency_mode(True)
    except (ValueError, OSError, AttributeError, NotImplementedError, termios.error):
        return False
    return True


def _reason(problem: object) -> str:
    """Text of a system error without the numbers and brackets that pyserial adds."""
    errors = [problem]
    if isinstance(problem, BaseException) and not problem.__suppress_context__:
        errors.append(problem.__context__)
    for error in errors:
        if isinstance(error, BaseException) and error.args and isinstance(error.args[0], int):
            return os.strerror(error.args[0])
    return str(problem)


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
