"""The serial port of a servo bus: dynamixel_sdk's port handler with reads that wait instead of polling.

The library polls the port in a loop and waits 34 ms for a lost packet (two latency timers of 16 ms). Here a
read sleeps until bytes arrive, and gives up when none have arrived for :attr:`Port.patience` longer than they
need on the wire. All times are on the steady clock.
"""

from __future__ import annotations

import os
import select
import termios
from collections.abc import Callable, Sequence
from typing import Protocol

import serial
from dynamixel_sdk import PortHandler

from stribeck.errors import ServoError
from stribeck.session.timing import SYSTEM_CLOCK, SteadyClock

BITS_PER_BYTE = 10
"""Start bit, eight bits, stop bit."""

SLOW_PATIENCE = 0.03
"""Patience while nothing moves [s]: more than a USB adapter without the low-latency setting needs."""

QUIET = 5e-4
"""How long to wait for more bytes once the expected number has arrived [s]: a few frames of USB 2."""

WRITE_TIMEOUT = 0.05
"""A port that accepts no data for this long [s] is considered lost."""

READ_SIZE = 4096

LINE_ERRORS = (OSError, termios.error, ValueError, TypeError)
"""What a line raises when it is unplugged or closed; exceptions of pyserial are OSErrors."""


class PortLostError(ServoError):
    """The serial port is gone: unplugged, or its driver returns errors."""


class Line(Protocol):
    """Bytes to and from servos. Every method may raise one of :data:`LINE_ERRORS`."""

    low_latency: bool
    """Whether the driver accepted the low-latency setting."""

    def write(self, data: bytes) -> None:
        """Hand bytes to the driver."""

    def read(self, wait: float) -> bytes:
        """Bytes that arrive within ``wait`` [s], as soon as there are any; empty if there are none."""

    def discard(self) -> None:
        """Drop bytes that have arrived and were not read."""

    def close(self) -> None:
        """Close the line."""


class _SerialLine:
    """A serial port of this machine."""

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
                # Try once more after the wait: it may have been this process that was suspended.
                patient = bool(select.select([], [descriptor], [], WRITE_TIMEOUT)[1])

    def read(self, wait: float) -> bytes:
        descriptor = self._serial.fileno()
        if not select.select([descriptor], [], [], wait)[0]:
            return b""
        data = os.read(descriptor, READ_SIZE)
        if not data:
            raise OSError("it is ready to be read but has no data")
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
    :param clock: the clock of all time-outs.
    :ivar low_latency: whether the driver accepted the low-latency setting. A USB adapter otherwise holds
        bytes back for up to 16 ms; a pseudo-terminal has no such setting and needs none.
    :ivar patience: how much later than its time on the wire an answer may arrive [s].
    :ivar sent_at: when the last packet was handed to the driver [s].
    :ivar sent: size of the last packet [bytes].
    :ivar received_at: when the last bytes arrived [s].
    :ivar received: bytes that arrived since the last packet was sent.
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
        self.sent_at = self.received_at = 0.0
        self.sent = self.received = 0
        self._open_line = open_line
        self._line: Line | None = None
        self._expected: int | None = None
        self._deadline = self._latest = 0.0
        self._buffer = bytearray()

    def wire_time(self, size: int) -> float:
        """Time that ``size`` bytes need on the wire [s]."""
        return size * BITS_PER_BYTE / float(self.baudrate)

    # Called by dynamixel_sdk.

    @property
    def is_using(self) -> bool:
        """The library's lock, always released: only one thread uses a port, and Ctrl-C during a read must not
        leave it locked, because the packets that switch torque off would then be dropped silently.
        """
        return False

    @is_using.setter
    def is_using(self, value: bool) -> None:
        """Ignored."""

    def openPort(self) -> bool:
        """Open the port.

        :raises ServoError: if that is not possible.
        """
        self.closePort()
        try:
            self._line = self._open_line(self.port_name, self.baudrate)
        except LINE_ERRORS as problem:
            raise ServoError(
                f"cannot open {self.port_name} at {self.baudrate} bit/s: {_reason(problem)}. "
                "Is the adapter plugged in, may you use it (group dialout), does another program use it?"
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
        """Drop bytes that have arrived and were not read."""
        self._buffer.clear()
        try:
            self._opened.discard()
        except LINE_ERRORS as problem:
            raise self._lost(problem) from problem

    def writePort(self, packet: Sequence[int]) -> int:
        """Send a packet.

        :raises PortLostError: if the port is gone.
        """
        self.sent_at = self.clock.now()
        self.sent, self.received, self._expected = len(packet), 0, None
        try:
            self._opened.write(bytes(packet))
        except LINE_ERRORS as problem:
            raise self._lost(problem) from problem
        return len(packet)

    def readPort(self, length: int) -> bytes:
        """Up to ``length`` bytes; none only if the answer is late.

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
        """Expect an answer of so many bytes from now on."""
        now = self.clock.now()
        self._expected = packet_length
        wire = self.wire_time(self.sent + packet_length)
        self._deadline = now + wire + self.patience
        self._latest = now + wire + 4.0 * self.patience

    def setPacketTimeoutMillis(self, msec: float) -> None:
        """Expect an answer of any length for so many milliseconds."""
        self._expected = None
        self._deadline = self._latest = self.clock.now() + 1e-3 * msec

    def isPacketTimeout(self) -> bool:
        """Whether the answer is late; bytes that have arrived and were not read yet are not."""
        now = self.clock.now()
        return now >= self._latest or (not self._buffer and now >= self._deadline)

    # Called by our own code.

    def expect_more(self, size: int) -> None:
        """Wait for ``size`` more bytes, because a packet of that size arrived from another servo."""
        if self._expected is not None:
            self._expected += size
            self._deadline = min(self._latest, self.clock.now() + self.wire_time(size) + self.patience)

    def push_back(self, data: Sequence[int]) -> None:
        """Put bytes back in front of those that were not read yet."""
        self._buffer[:0] = bytes(data)

    def settle(self, quiet: float) -> None:
        """Drop everything that arrives until nothing has arrived for ``quiet`` [s], ten times that at most."""
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
        # Read even if it is late: it may have been this process that was suspended.
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
            f"port {self.port_name} is lost ({_reason(problem)}): plug the adapter in again, then start again or clear the fault"
        )


def set_low_latency(port: serial.Serial) -> bool:
    """Ask the driver to pass bytes on at once; drivers without that setting are left alone."""
    try:
        port.set_low_latency_mode(True)
    except (ValueError, OSError, AttributeError, NotImplementedError, termios.error):
        return False
    return True


def _reason(problem: object) -> str:
    """The text of a system error, which pyserial wraps in numbers and brackets."""
    errors = [problem]
    if isinstance(problem, BaseException) and not problem.__suppress_context__:
        errors.append(problem.__context__)
    for error in errors:
        if isinstance(error, BaseException) and error.args and isinstance(error.args[0], int):
            return os.strerror(error.args[0])
    return str(problem)
