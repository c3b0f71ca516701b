"""Emulated servos on virtual time: the real driver and the real protocol, without terminals and threads."""

import errno
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from driving import BAUD, expected
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.faults import Fault
from stribeck.emulator.line import TICK, EmulatedLine
from stribeck.servo.bus import Bus
from stribeck.servo.config import DriverConfig
from stribeck.servo.driver import Driver
from stribeck.servo.port import Port
from virtual_time import VirtualClock

NAME = "virtual"


class VirtualBus(EmulatedLine):
    """Servos on a line whose time is a virtual clock; used as a context like the real emulated bus."""

    path = NAME

    def __init__(
        self,
        servos: Sequence[EmulatedServo],
        faults: Iterable[Fault] = (),
        seed: int = 0,
        clock: VirtualClock | None = None,
    ) -> None:
        super().__init__(servos, faults, seed)
        self.clock = clock or VirtualClock()
        self.begin(self.clock.now())
        self.clock.watchers.append(self.live)
        self.plugged = True
        self.generation = 0
        self.waiting: list[tuple[bytes, int]] = []
        """Bytes and rates of what was written while the line was busy."""

    def __enter__(self) -> "VirtualBus":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def port(self, baud_rate: int) -> Port:
        """A port on this line, on its clock."""
        return Port(NAME, baud_rate, lambda name, rate: VirtualLine(self, rate), self.clock)

    def bus(self, *models: str, mode: str = "position", baud: int = BAUD) -> Bus:
        """A bus of servos of :func:`driving.emulated` on this line, not yet connected."""
        return Bus(self.port(baud), expected(*models, mode=mode))

    def driver(self, config: DriverConfig) -> Driver:
        """A driver on this line."""
        return Driver(config, self.port(config.baud_rate))

    def live(self, now: float) -> None:
        """What happens by a time."""
        while self.waiting and self.busy_until <= now:
            data, rate = self.waiting.pop(0)
            self.advance_to(self.busy_until)
            self.receive(data, self.busy_until, rate)
        self.advance_to(now)
        if self.busy_until <= now:
            self.drop_incomplete(now)

    def wait_for(self, condition: Callable[[], Any], what: str, timeout: float = 5.0) -> None:
        """Let time go on until something is so.

        :raises AssertionError: if it is not so in time.
        """
        until = self.clock.now() + timeout
        while not condition():
            assert self.clock.now() < until, f"{what}: not within {timeout} s"
            self.clock.sleep(0.001)

    def _unplug(self) -> None:
        super()._unplug()
        self.plugged = False
        self.generation += 1
        self.waiting.clear()

    def _plug(self) -> None:
        self.plugged = True


class VirtualLine:
    """The line as a driver sees it."""

    low_latency = False

    def __init__(self, bus: VirtualBus, rate: int) -> None:
        self._bus, self._rate, self._generation = bus, rate, bus.generation
        if not bus.plugged:
            raise OSError(errno.ENOENT, "no such device")

    def _check(self) -> None:
        if self._bus.generation != self._generation:
            raise OSError(errno.EIO, "unplugged")

    def write(self, data: bytes) -> None:
        self._check()
        self._bus.waiting.append((data, self._rate))
        self._bus.live(self._bus.clock.now())

    def read(self, wait: float) -> bytes:
        bus, clock = self._bus, self._bus.clock
        deadline = clock.now() + wait
        while True:
            self._check()
            if data := b"".join(bus.answers_due(clock.now())):
                bus.counts["answered"] += 1
                return data
            if clock.now() >= deadline:
                return b""
            queued = bus.busy_until if bus.waiting else deadline
            clock.move_to(min(deadline, bus.next_answer, queued, clock.now() + TICK))

    def discard(self) -> None:
        self._check()
        self._bus.answers_due(self._bus.clock.now())

    def close(self) -> None:
        pass
