"""The process of an :class:`~stribeck.emulator.emulator.EmulatedBus`: serves a line, and executes commands from a pipe."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from stribeck.emulator.served_line import ServedLine
from stribeck.errors import ConfigError, StribeckError
from stribeck.model.step import PlantState

COMMANDS = (
    *("push", "set_voltage", "set_temperature", "fail", "silence", "unplug", "plug", "add_fault"),
    *("path", "servo_state", "line_state"),
)


class EmulatedState(NamedTuple):
    """State of an emulated servo at a moment of emulated time.

    :param clock: emulated time [s].
    :param state: true position [rad], velocity [rad/s], and state of the firmware.
    :param torque_enabled: whether the motor is driven.
    :param first_torque: when torque was first on [s], ``None`` before.
    :param numbers: counts of the registers, by name.
    """

    clock: float
    state: PlantState
    torque_enabled: bool
    first_torque: float | None
    numbers: dict[str, int]


class ServedLineState(NamedTuple):
    """What has happened on the line.

    :param counts: of :class:`ServedLine`.
    :param delay: sum of all pauses [s].
    :param latest: longest delay of a turn [s].
    """

    counts: Counter[str]
    delay: float
    latest: float


class _Host(ServedLine):
    """A line that executes the commands of an :class:`EmulatedBus`."""

    def servo_state(self, place: int) -> EmulatedState:
        servo = self.servos[place]
        return EmulatedState(
            servo.clock, servo.state, servo.torque_enabled, servo.first_torque, dict(servo.memory.numbers)
        )

    def line_state(self) -> ServedLineState:
        return ServedLineState(self.counts, self.delay, self.latest)

    def execute(self, command: str, arguments: Sequence[Any]) -> tuple[Exception | None, Any]:
        """The exception that a command raised, and its result."""
        if command not in COMMANDS:
            return ConfigError(f"unknown command {command!r}"), None
        try:
            found = getattr(self, command)
            return None, found(*arguments) if callable(found) else found
        except StribeckError as problem:
            return problem, None


def serve(pipe: Connection) -> None:
    """Emulate the servos that come through a pipe until it is closed, or SIGTERM comes."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    servos, faults, link, seed = pipe.recv()
    host = _Host(servos, faults, link, seed)
    try:
        host.__enter__()
    except StribeckError as problem:
        pipe.send((problem, None))
        return
    try:
        pipe.send((None, None))
        while not ending:
            if pipe.fileno() in host.turn([pipe.fileno()]):
                pipe.send(host.execute(*pipe.recv()))
    finally:
        host.__exit__(None, None, None)
