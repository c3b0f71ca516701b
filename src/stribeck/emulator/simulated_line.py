"""Emulated servos on a line in simulated time: whoever waits for bytes moves the clock."""

from __future__ import annotations

import errno
import math
from collections.abc import Iterable, Sequence

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.faults import Fault
from stribeck.emulator.line import TICK, EmulatedLine
from stribeck.session.timing import SimulatedClock


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
