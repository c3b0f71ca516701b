"""The serial port of a bus: dynamixel_sdk's port handler with reads that wait instead of spin.

The library polls the port in a loop and gives a lost packet 34 ms (two latency timers of 16 ms). Here a
read sleeps until bytes come, and gives up when none have come for :attr:`Port.patience` longer than they
need on the wire. All times are on the steady clock.
"""

from __future__ import annotations

import os
import select
import termios
import time
from collections.abc import Sequence

import serial
from dynamixel_sdk import PortHandler

from stribeck.errors import ServoError

BITS_PER_BYTE = 10
"""Start bit, eight bits, stop bit."""

SLOW_PATIENCE = 0.03
"""Patience [s] while nothing moves: more than a USB adapter without low latency takes."""

QUIET = 5e-4
"""How long [s] to wait for more once as many bytes have come as were expected: a few frames of USB 2."""

WRITE_TIMEOUT = 0.05
"""After this [s] a port that takes no data is taken for lost."""

_READ_SIZE = 4096


class PortLostError(ServoError):
    """The serial port is gone: unplugged, or its driver returns errors."""


class Port(PortHandler):  # type: ignore[misc]
    """A serial port as dynamixel_sdk wants it.

    :ivar low_latency: whether the driver accepted the low-latency setting (a USB adapter otherwise holds
        bytes back for up to 16 ms; a pseudo-terminal has no such setting, and needs none).
    :ivar patience: how long an answer may be late [s], beside its time on the wire.
    :ivar sent_at: when the last packet was handed to the driver [s].
    :ivar sent: bytes of the last packet.
    :ivar received_at: when the last bytes came [s].
    :ivar received: bytes that came since the last packet was sent.
    """

    def __init__(self, name: str, baud_rate: int) -> None:
        super().__init__(name)
        self.is_open = False
        self.baudrate = baud_rate
        self.low_latency = False
        self.patience = SLOW_PATIENCE
        self.sent_at = 0.0
        self.sent = 0
        self.received_at = 0.0
        self.received = 0
        self._expected: int | None = None
        self._deadline = 0.0
        self._latest = 0.0
        self._buffer = bytearray()

    def wire_time(self, size: int) -> float:
        """Time that ``size`` bytes need on the wire [s]."""
        return size * BITS_PER_BYTE / float(self.baudrate)

    # What dynamixel_sdk calls.

    @property
    def is_using(self) -> bool:
        """The library's lock, which is always open: one thread uses a port, and Ctrl-C in the middle of a read
        must not leave it shut, or the packets that switch torque off would be dropped without a word.
        """
        return False

    @is_using.setter
    def is_using(self, value: bool) -> None:
        """Nothing."""

    def getCFlagBaud(self, baudrate: int) -> int:
        """Any rate: the servos' tables say which exist, the driver says which it can do."""
        return baudrate

    def setupPort(self, cflag_baud: int) -> bool:
        """Open the port.

        :raises ServoError: if that is not possible.
        """
        if self.is_open:
            self.closePort()
        try:
            self.ser = serial.Serial(self.port_name, self.baudrate, timeout=0, exclusive=True)
        except (serial.SerialException, OSError, ValueError, termios.error) as problem:
            raise ServoError(
                f"cannot open {self.port_name} at {self.baudrate} bit/s: {_reason(problem)}. "
                "Is the adapter plugged in, are you allowed to use it (group dialout), is no other program on it?"
            ) from problem
        self.is_open = True
        self.tx_time_per_byte = 1000.0 * self.wire_time(1)
        self.low_latency = set_low_latency(self.ser)
        self.clearPort()
        return True

    def closePort(self) -> None:
        """Close the port; nothing happens if it is closed."""
        if self.ser is not None:
            self.ser.close()
        self.is_open = False

    def clearPort(self) -> None:
        """Throw away what has come and was not read."""
        self._buffer.clear()
        try:
            self.ser.reset_input_buffer()
        except (serial.SerialException, OSError, termios.error) as problem:
            raise self._lost(problem) from problem

    def writePort(self, packet: Sequence[int]) -> int:
        """Send a packet.

        :raises PortLostError: if the port is gone.
        """
        self.sent_at = time.monotonic()
        self.sent = len(packet)
        self.received = 0
        self._expected = None
        waiting = bytes(packet)
        patient = True
        try:
            descriptor = self.ser.fileno()
            while waiting:
                try:
                    waiting = waiting[os.write(descriptor, waiting) :]
                except BlockingIOError:
                    if not patient:
                        raise self._lost("it takes no data") from None
                    # Once more after the wait: this process may have been the one that slept.
                    patient = bool(select.select([], [descriptor], [], WRITE_TIMEOUT)[1])
        except (serial.SerialException, OSError, ValueError, TypeError) as problem:
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
        now = time.monotonic()
        self._expected = packet_length
        wire = self.wire_time(self.sent + packet_length)
        self._deadline = now + wire + self.patience
        self._latest = now + wire + 4.0 * self.patience

    def setPacketTimeoutMillis(self, msec: float) -> None:
        """Expect an answer of any length for so many milliseconds."""
        self._expected = None
        self._deadline = self._latest = time.monotonic() + 1e-3 * msec

    def isPacketTimeout(self) -> bool:
        """Whether the answer is late; what has come and was not read yet is not."""
        now = time.monotonic()
        return now >= self._latest or (not self._buffer and now >= self._deadline)

    # What our own code asks beside.

    def expect_more(self, size: int) -> None:
        """A packet of ``size`` bytes came that was not for us: ours is still to come."""
        if self._expected is not None:
            self._expected += size
            self._deadline = min(self._latest, time.monotonic() + self.wire_time(size) + self.patience)

    def push_back(self, data: Sequence[int]) -> None:
        """Put bytes back in front of those that were not read yet."""
        self._buffer[:0] = bytes(data)

    def settle(self, quiet: float) -> None:
        """Throw away what comes until nothing has come for ``quiet`` [s], ten times that at most."""
        self.setPacketTimeoutMillis(1e4 * quiet)
        while not self.isPacketTimeout():
            before = self.received
            self._deadline = min(self._latest, time.monotonic() + quiet)
            self._fill()
            self._buffer.clear()
            if self.received == before:
                return

    @property
    def all_came(self) -> bool:
        """Whether as many bytes came as were expected, and all have been read."""
        return not self._buffer and self._expected is not None and self.received >= self._expected

    def _fill(self) -> None:
        # Also when it is late: this process may have been the one that slept.
        wait = max(0.0, self._deadline - time.monotonic())
        try:
            descriptor = self.ser.fileno()
            if not select.select([descriptor], [], [], wait)[0]:
                return
            data = os.read(descriptor, _READ_SIZE)
        except (serial.SerialException, OSError, ValueError, TypeError) as problem:
            raise self._lost(problem) from problem
        if not data:
            raise self._lost("it is ready to be read and has nothing to say")
        self._buffer += data
        self.received += len(data)
        self.received_at = time.monotonic()
        if self._expected is not None:
            missing = self._expected - self.received
            wait = QUIET if missing <= 0 else self.wire_time(missing) + self.patience
            self._deadline = min(self._latest, self.received_at + wait)

    def _lost(self, problem: object) -> PortLostError:
        return PortLostError(
            f"port {self.port_name} is lost ({_reason(problem)}): plug the adapter in again, then start again or clear the fault"
        )


def set_low_latency(port: serial.Serial) -> bool:
    """Ask the driver to hand bytes on at once; drivers that cannot are left alone."""
    try:
        port.set_low_latency_mode(True)
    except (ValueError, OSError, AttributeError, NotImplementedError, termios.error):
        return False
    return True


def _reason(problem: object) -> str:
    """An error of the system in words; pyserial wraps them in numbers and brackets."""
    cause = problem.__context__ if isinstance(problem, BaseException) else None
    for found in (problem, cause):
        if isinstance(found, BaseException) and found.args and isinstance(found.args[0], int):
            return os.strerror(found.args[0])
    return str(problem)
