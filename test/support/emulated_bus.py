"""Emulated servos on a pseudo-terminal, in a process of their own, which a test commands through a pipe.

The process ends when the pipe is closed, so it does not outlive the test.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.faults import Fault
from stribeck.emulator.line import EmulatedLine
from stribeck.emulator.served_line import ServedLine
from stribeck.errors import ConfigError, StribeckError
from stribeck.model.step import PlantState
from stribeck.processes import ChildProcess, exit_reason

ANSWER_TIME = 10.0
"""Longest wait for the process [s]; it answers within milliseconds, unless it is suspended."""

START_TIME = 60.0
"""Longest wait for its start [s], which imports Python modules."""

END_TIME = 2.0
"""Time for the process to remove the port and exit before it is killed [s]."""


CHILD = "import sys; sys.path.insert(0, sys.argv[1].rpartition('/')[0]); import emulated_bus; emulated_bus.main(int(sys.argv[2]))"
"""Program of the process; what goes through the pipe is of the imported module, not of the main one."""

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


def main(descriptor: int) -> None:
    """The process, with its pipe at a file descriptor. Ctrl-C is for the test, which closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, ConnectionError):
        serve(Connection(descriptor))


class ServoHandle:
    """A servo of an :class:`EmulatedBus`; each attribute asks the process."""

    def __init__(self, bus: EmulatedBus, place: int) -> None:
        self._bus, self._place = bus, place

    def _ask(self) -> EmulatedState:
        found: EmulatedState = self._bus._call("servo_state", self._place)
        return found

    @property
    def clock(self) -> float:
        """Emulated time [s]."""
        return self._ask().clock

    @property
    def state(self) -> PlantState:
        """The true state."""
        return self._ask().state

    @property
    def torque_enabled(self) -> bool:
        """Whether the motor is driven."""
        return self._ask().torque_enabled

    @property
    def first_torque(self) -> float | None:
        """When torque was first on [s], ``None`` before."""
        return self._ask().first_torque

    @property
    def numbers(self) -> dict[str, int]:
        """Counts of the registers, by name."""
        return self._ask().numbers


class EmulatedBus:
    """Servos on one serial port, emulated by a process of their own while the context is open.

    :param servos: with different IDs, as they were made: the process begins with copies.
    :param link: path of a symbolic link to the terminal.
    :param seed: of random faults.
    :raises ConfigError: for incompatible servos or faults.
    :raises OutputError: at the start, if the link cannot be made.

    ``with EmulatedBus([EmulatedServo()]) as bus:`` opens a port at ``bus.path``. Methods may be called from any
    thread; their effects take place at the time of the call.
    """

    def __init__(
        self,
        servos: Sequence[EmulatedServo],
        faults: Iterable[Fault] = (),
        link: Path | str | None = None,
        seed: int = 0,
    ) -> None:
        self._setup = (tuple(servos), tuple(faults), None if link is None else Path(link), seed)
        line = EmulatedLine(*self._setup[:2], seed)  # refuses what does not fit together
        self._ids = [servo.id for servo in line.servos]
        self.servos = tuple(ServoHandle(self, place) for place in range(len(servos)))
        self._lock = threading.Lock()
        self._process: ChildProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> EmulatedBus:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the process and wait for the port."""
        ours, its = socket.socketpair()
        with its:
            self._pipe = Connection(ours.detach())
            command = [sys.executable, "-c", CHILD, __file__, str(its.fileno())]
            self._process = ChildProcess(command, inherited=[its.fileno()])
        try:
            self._exchange(self._setup, START_TIME)
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        """End the process; it removes the port.

        :raises StribeckError: if the process had ended before.
        """
        ended = None if self.alive or self._process is None else self._end_reason()
        self._end()
        if ended is not None:
            raise StribeckError(ended)

    @property
    def path(self) -> str:
        """Path of the port: the link, or the terminal itself.

        :raises ConfigError: while the port is unplugged.
        """
        return str(self._call("path"))

    @property
    def pid(self) -> int | None:
        """ID of the process, ``None`` while there is none."""
        return None if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def line(self) -> ServedLineState:
        """What has happened on the line."""
        found: ServedLineState = self._call("line_state")
        return found

    @property
    def counts(self) -> Counter[str]:
        """Numbers of packets and of pauses, see :class:`~stribeck.emulator.served_line.ServedLine`."""
        return self.line.counts

    def servo(self, servo_id: int) -> ServoHandle:
        """The servo with an ID at the start.

        :raises ConfigError: if there is none.
        """
        if servo_id not in self._ids:
            raise ConfigError(f"no servo with ID {servo_id} on this bus; valid: {self._ids}")
        return self.servos[self._ids.index(servo_id)]

    # External influences, as those of EmulatedLine.

    def push(self, servo_id: int, torque: float, duration: float) -> None:
        """Apply an external torque [N m] to a shaft for a time [s]."""
        self._call("push", servo_id, torque, duration)

    def set_voltage(self, voltage: float) -> None:
        """Change the open-circuit supply voltage [V]."""
        self._call("set_voltage", voltage)

    def set_temperature(self, temperature: float) -> None:
        """Change the temperature of all servos [°C]."""
        self._call("set_temperature", temperature)

    def fail(self, servo_id: int, error: str) -> None:
        """Raise a hardware error, by its name in the model's ``error_bits``."""
        self._call("fail", servo_id, error)

    def silence(self, duration: float) -> None:
        """Discard all bytes on the line for a time [s]."""
        self._call("silence", duration)

    def unplug(self) -> None:
        """Remove the port; the servos stay powered."""
        self._call("unplug")

    def plug(self) -> None:
        """Restore the port under the same name."""
        self._call("plug")

    def add_fault(self, fault: Fault) -> None:
        """Add a fault; its schedule counts from the start of the bus.

        :raises ConfigError: for a fault that affects no servo of this bus.
        """
        self._call("add_fault", fault)

    def _call(self, command: str, *arguments: Any) -> Any:
        """Let the process execute a command, and return the result."""
        return self._exchange((command, arguments), ANSWER_TIME)

    def _exchange(self, message: Any, patience: float) -> Any:
        """Send a message to the process and wait for the answer.

        :raises StribeckError: that the process raised, or if it has ended or does not answer.
        """
        with self._lock:
            if self._pipe is None:
                raise ConfigError("the emulator is not running: start it first")
            try:
                self._pipe.send(message)
                if not self._pipe.poll(patience):
                    raise StribeckError(f"the emulated servos have not answered for {patience:g} s")
                problem, result = self._pipe.recv()
            except (EOFError, OSError):
                raise StribeckError(self._end_reason()) from None
        if problem is not None:
            raise problem
        return result

    def _end_reason(self) -> str:
        assert self._process is not None
        lines = self._process.read_lines()
        return f"the process of the emulated servos {exit_reason(self._process.poll())}: {' | '.join(lines[-3:])}"

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._process is not None:
            self._process.close(END_TIME)
            self._process = None
