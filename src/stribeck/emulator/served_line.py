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

import math
import select
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.exchange import answer_expected
from stribeck.emulator.faults import Fault
from stribeck.emulator.line import TICK, EmulatedLine
from stribeck.emulator.protocol import is_packet, pieces_of
from stribeck.emulator.terminal import PseudoTerminal
from stribeck.errors import ConfigError
from stribeck.session.timing import SYSTEM_CLOCK, SteadyClock

LATEST = 0.02
"""Longest delay of a turn that is made good [s]: the smallest Bus Watchdog, 20 ms."""

BACKLOG = 1 << 16
"""Bytes that wait for a busy line before no more are read from the terminal."""


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
            self._line_free = now
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
                self._line_free = now
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
