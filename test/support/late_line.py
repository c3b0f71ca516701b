"""Emulated servos on a terminal, served by a program that gets the processor late, on virtual time."""

from collections.abc import Callable, Sequence
from typing import Any

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.served_line import ServedLine
from stribeck.servo.port import Port
from virtual_time import VirtualClock

CAPACITY = 20_000
"""Bytes that the buffer of a pseudo-terminal holds."""

GRAIN = 2e-4
"""Step of virtual time while a program waits [s]."""


class FineClock(VirtualClock):
    """A virtual clock that moves on in small steps, so that what happens meanwhile happens in time."""

    def move_to(self, time: float) -> None:
        while self.now() < time:
            super().move_to(min(time, self.now() + GRAIN))


class LateTerminal:
    """The two buffers of a pseudo-terminal."""

    name, rate = "late", 1_000_000

    def __init__(self) -> None:
        self.input, self.output = bytearray(), bytearray()
        self.fullest = 0

    def wait(self, seconds: float, others: Sequence[int]) -> list[int]:
        return []

    def read(self) -> bytes:
        data = bytes(self.input)
        self.input.clear()
        return data

    @property
    def has_input(self) -> bool:
        return bool(self.input)

    def write(self, data: bytes) -> bool:
        self.output += data
        return True

    def close(self) -> None:
        pass


class LateLine(ServedLine):
    """A served line whose turns happen when the machine lets them.

    :param between: the time from each turn to the next [s].
    """

    clock: FineClock

    def __init__(
        self, servos: Sequence[EmulatedServo], between: Callable[[], float] = lambda: 0.0, **options: Any
    ) -> None:
        super().__init__(servos, clock=FineClock(), **options)
        self.terminal = LateTerminal()
        self.between, self.runs_at = between, 0.0

    def _open_port(self) -> Any:
        return self.terminal

    def __enter__(self) -> "LateLine":
        super().__enter__()
        self.clock.watchers.append(self._live)
        return self

    def _live(self, now: float) -> None:
        if now >= self.runs_at:
            self.turn()
            self.runs_at = now + self.between()

    def suspend(self, seconds: float) -> None:
        """No turn for a time [s]."""
        self.runs_at = self.clock.now() + seconds

    def port(self, baud_rate: int) -> Port:
        """The port as the driver opens it."""
        return Port("late", baud_rate, lambda name, rate: Program(self), self.clock)


class Program:
    """The terminal as another program has it."""

    low_latency = False

    def __init__(self, line: LateLine) -> None:
        self._line = line

    def write(self, data: bytes) -> None:
        terminal = self._line.terminal
        if len(terminal.input) + len(data) > CAPACITY:
            raise OSError("it accepts no data")
        terminal.input += data
        terminal.fullest = max(terminal.fullest, len(terminal.input))

    def read(self, wait: float) -> bytes:
        line = self._line
        end = line.clock.now() + wait
        while True:
            if line.terminal.output:
                data = bytes(line.terminal.output)
                line.terminal.output.clear()
                return data
            if line.clock.now() >= end:
                return b""
            line.clock.move_to(min(end, line.clock.now() + GRAIN))

    def discard(self) -> None:
        self._line.terminal.output.clear()

    def close(self) -> None:
        pass
