"""Emulated servos on a pseudo-terminal, in real time as far as the machine allows.

*Emulated time* is that of a clock minus the pauses of this program. It never runs ahead of the clock by more than bytes take
on the wire, and it never jumps: whatever is received, answered or moves does so in the order of emulated time.

- A turn that is late by at most :data:`LATEST` is made good: physics is computed up to the clock, then packets are handled.
- Of a longer delay, because the machine was busy or the process suspended, the rest is a *pause*: the emulated servos stand
  still together with their watchdogs, and emulated time goes on from where it was. A Bus Watchdog therefore never expires
  because of the machine, unless it is set to less than :data:`LATEST`; a program that falls silent while the servos
  are paused is found out after the pause.

A half-duplex line carries one request at a time. A program that writes again before it has its answer has given it up: the
request is dropped, or its answer is not sent, as both would have collided on the wire. Requests that pile up during a pause
are therefore not answered one after another, each to the wrong question; the last one is, with the state at its emulated
time. Instructions without an answer, such as sync writes, are all executed, in order.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import struct
import tty
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.exchange import answer_expected
from stribeck.emulator.faults import Fault
from stribeck.emulator.line import TICK, EmulatedLine
from stribeck.emulator.protocol import is_packet, pieces_of
from stribeck.errors import ConfigError, OutputError
from stribeck.session.timing import SYSTEM_CLOCK, SteadyClock

LATEST = 0.02
"""Longest delay of a turn that is made good [s]: the smallest Bus Watchdog, 20 ms."""

BACKLOG = 1 << 16
"""Bytes that wait for a busy line before no more are read from the terminal."""

_TERMIOS2 = 0x802C542A, 44, 40
"""Linux: ioctl request for a terminal's settings, their size, offset of the output rate."""

READ_SIZE = 4096


def line_rate(terminal: int) -> int:
    """Baud rate set on a terminal [bit/s], 0 if unknown."""
    request, size, place = _TERMIOS2
    settings = bytearray(size)
    try:
        fcntl.ioctl(terminal, request, settings)
    except OSError:
        return 0
    return int(struct.unpack_from("I", settings, place)[0])


class PseudoTerminal:
    """A pseudo-terminal and a symbolic link to it.

    :param link: path of the symbolic link, ``None`` for none.
    :raises OutputError: if the link cannot be made.
    """

    def __init__(self, link: Path | None) -> None:
        self.master, self.terminal = os.openpty()
        tty.setraw(self.terminal)
        os.set_blocking(self.master, False)
        self.name = os.ttyname(self.terminal)
        self.link = link
        if link is not None:
            try:
                _place_link(link, self.name)
            except OutputError:
                self._close()
                raise

    @property
    def rate(self) -> int:
        """Baud rate set by a program [bit/s], 0 if unknown."""
        return line_rate(self.terminal)

    def wait(self, seconds: float, others: Sequence[int] = ()) -> list[int]:
        """Wait until a program has written or another descriptor is ready, at most for ``seconds`` [s].

        :returns: the other descriptors that are ready.
        """
        return [
            one for one in select.select([self.master, *others], [], [], seconds)[0] if one != self.master
        ]

    def read(self) -> bytes:
        """Everything that a program has written since the last call; does not wait."""
        pieces = []
        with contextlib.suppress(OSError):  # nothing more
            while piece := os.read(self.master, READ_SIZE):
                pieces.append(piece)
        return b"".join(pieces)

    @property
    def has_input(self) -> bool:
        """Whether a program has written something that has not been read."""
        return bool(select.select([self.master], [], [], 0.0)[0])

    def write(self, data: bytes) -> bool:
        """Write; return whether the program's buffer had room, as on a real line nothing waits."""
        try:
            return os.write(self.master, data) == len(data)
        except OSError:
            return False

    def _close(self) -> None:
        os.close(self.master)
        os.close(self.terminal)

    def close(self) -> None:
        """Close the terminal, and remove the link if it still points to it."""
        if self.link is not None and self.link.is_symlink() and os.readlink(self.link) == self.name:
            self.link.unlink()
        self._close()


def _place_link(link: Path, target: str) -> None:
    """Make ``link`` point to ``target``, replacing a link that is broken, or left by an emulator whose terminal has ended since.

    The number of a terminal that has ended is given to the next one that any program opens, which is younger than the link.
    """
    if link.exists() and not link.is_symlink():
        raise OutputError(f"{link} exists and is not a link: choose another path for the link")
    if link.exists() and os.readlink(link) != target and not _is_left_over(link, Path(target).parent):
        raise OutputError(
            f"{link} points to {os.readlink(link)}, which exists: another emulator may be running: choose another path for the link, or remove it"
        )
    beside = link.with_name(f".{link.name}.{os.getpid()}")
    try:
        beside.unlink(missing_ok=True)
        beside.symlink_to(target)
        beside.replace(link)
    except OSError as problem:
        raise OutputError(f"cannot create the link {link}: {problem.strerror}") from None


def _is_left_over(link: Path, terminals: Path) -> bool:
    """Whether a link points to a pseudo-terminal that was made after it."""
    return Path(os.readlink(link)).parent == terminals and link.stat().st_ctime_ns > link.lstat().st_mtime_ns


class ServedLine(EmulatedLine):
    """Servos on one serial port; :meth:`turn`, called again and again while the context is open, serves it.

    :param servos: with different IDs.
    :param link: path of a symbolic link to the terminal.
    :param seed: of random faults.
    :param clock: what emulated time follows.
    :ivar delay: sum of all pauses, by which emulated time lags behind the clock [s].
    :ivar latest: longest delay of a turn [s].
    :ivar counts: beside those of the line: ``pauses``, requests dropped (``given_up``), answers dropped because the program
        had written again (``collided``) or did not read (``overrun``).
    :raises ConfigError: for incompatible servos or faults.
    :raises OutputError: on entering the context, if the link cannot be made.
    """

    def __init__(
        self,
        servos: Sequence[EmulatedServo],
        faults: Iterable[Fault] = (),
        link: Path | str | None = None,
        seed: int = 0,
        clock: SteadyClock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(servos, faults, seed)
        self.clock = clock
        self.delay = self.latest = 0.0
        self._link = None if link is None else Path(link)
        self._port: PseudoTerminal | None = None
        self._backlog: deque[bytes] = deque()
        self._was_late = self._paused = False
        self._answers_late_until = -math.inf

    def __enter__(self) -> ServedLine:
        for servo in self.servos:
            servo.warm_up()
        self._port = self._open_port()
        self.delay = 0.0
        self.begin(self.clock.now())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._port is not None:
            self._port.close()
            self._port = None

    def _open_port(self) -> PseudoTerminal:
        return PseudoTerminal(self._link)

    @property
    def path(self) -> str:
        """Path of the port: the link, or the terminal itself.

        :raises ConfigError: while the port is unplugged.
        """
        if self._link is not None:
            return str(self._link)
        if self._port is None:
            raise ConfigError("the emulated port is disconnected by an injected fault")
        return self._port.name

    @property
    def emulated_time(self) -> float:
        """Emulated time now [s]."""
        return self.clock.now() - self.delay

    def turn(self, others: Sequence[int] = ()) -> list[int]:
        """Wait for the next event, at most for :data:`TICK`, and bring everything up to date.

        :param others: further descriptors to wait for.
        :returns: those of them that are ready.
        """
        ready = self._wait(others)
        now = self._catch_up()
        self._read(now)
        self._hand_over(now)
        self._send(self.emulated_time)
        return ready

    def _wait(self, others: Sequence[int]) -> list[int]:
        now = self.emulated_time
        until = min(self.next_answer, now + TICK)
        if self._backlog:
            until = min(until, self.busy_until)
        seconds = max(0.0, until - now)
        if self._port is None or self._is_full:
            return select.select(others, [], [], seconds)[0]
        return self._port.wait(seconds, others)

    @property
    def _is_full(self) -> bool:
        return sum(map(len, self._backlog)) > BACKLOG

    def _catch_up(self) -> float:
        """Compute the physics up to now; what is too much for that becomes a pause. Returns the emulated time."""
        now = self.emulated_time
        late = now - self._clock
        self.latest = max(self.latest, late)
        self._was_late, self._paused = late > TICK, late > LATEST
        if self._paused:
            self.delay += late - LATEST
            self.counts["pauses"] += 1
            now = self._clock + LATEST
        self.advance_to(now)
        return now

    def _read(self, now: float) -> None:
        """Read all that the program has written, and drop the requests and answers that it has given up."""
        data = self._port.read() if self._port is not None and not self._is_full else b""
        if not data:
            if not self._backlog and self.busy_until <= now:
                self.drop_incomplete(now)
            return
        if now < self._answers_late_until:  # the program did not wait for the end of answers that are late
            self.counts["collided"] += len(self.answers_due(self.busy_until))
            self.busy_until = now
        self.counts["collided"] += len(self.answers_due(now))
        *earlier, last = [*self._backlog, *pieces_of(data)]
        self._backlog = deque()
        for piece in earlier:
            if answer_expected(self.servos, piece):
                self.counts["given_up"] += 1
                self._backlog = deque(
                    filter(is_packet, self._backlog)
                )  # without what was meant to wake the servo
            else:
                self._backlog.append(piece)
        self._backlog.append(last)

    def _hand_over(self, now: float) -> None:
        """Put waiting bytes on the line, as far as it is free. What came during a pause was on the wire meanwhile."""
        while self._backlog and self._port is not None and self.busy_until < now + TICK:
            self.receive(self._backlog.popleft(), now, self._port.rate)
            if self._paused and self._backlog:
                self.busy_until = now
            if self._was_late:
                self._answers_late_until = self.busy_until

    def _send(self, now: float) -> None:
        """Write the answers that are due. Those that do not fit in the program's buffer are lost, as on a real line."""
        due = self.answers_due(now)
        if self._port is None or not due:
            return
        if self._port.has_input:
            self.counts["collided"] += len(due)
            return
        for packet in due:
            self.counts["answered" if self._port.write(packet) else "overrun"] += 1

    def unplug(self) -> None:
        """Remove the port; the servos stay powered."""
        if self._port is not None:
            self._port.close()
            self._port = None
            self._backlog.clear()
            super().unplug()

    def plug(self) -> None:
        """Restore the port under the same name."""
        if self._port is None:
            self._port = self._open_port()
