"""Emulated servos behind a pseudo-terminal, for any program that uses a serial port.

The physics follows the monotonic clock, with each packet and in between, and catches up in order if the process was
suspended. The baud rate is the one that the program sets on the terminal.
"""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.faults import Fault
from stribeck.emulator.line import TICK, EmulatedLine
from stribeck.emulator.terminal import PseudoTerminal
from stribeck.errors import ConfigError

CHUNK = 256
"""Bytes read from the terminal at once."""


class EmulatedBus(EmulatedLine):
    """Servos on one serial port, emulated in a thread of this process while the context is open.

    :param servos: with different IDs.
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
        super().__init__(servos, faults, seed)
        self._link = None if link is None else Path(link)
        self._port: PseudoTerminal | None = None
        self._actions: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._failure: BaseException | None = None

    def __enter__(self) -> EmulatedBus:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Open the port and start the emulation."""
        self._port = PseudoTerminal(self._link)
        self._wake_reader, self._wake_writer = os.pipe()
        self.begin(time.monotonic())
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="emulated servos", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the emulation and remove the port.

        :raises BaseException: the exception that ended the emulation early, if any.
        """
        if self._thread is None:
            return
        self._stopping = True
        os.write(self._wake_writer, b"x")
        self._thread.join()
        self._thread = None
        if self._port is not None:
            self._port.close()
            self._port = None
        os.close(self._wake_reader)
        os.close(self._wake_writer)
        if self._failure is not None:
            raise self._failure

    @property
    def path(self) -> str:
        """Path of the port: the link, or the terminal itself.

        :raises ConfigError: while the port is unplugged.
        """
        if self._link is not None:
            return str(self._link)
        if self._port is None:
            raise ConfigError("the emulated port is not plugged in")
        return self._port.name

    @property
    def alive(self) -> bool:
        """Whether the emulation runs."""
        return self._thread is not None and self._thread.is_alive()

    def _do(self, action: Callable[[], object]) -> None:
        """Execute an action in the emulation thread, and wait for it."""
        if self._thread is None or threading.current_thread() is self._thread:
            action()
            return
        done = threading.Event()
        problems: list[Exception] = []

        def act() -> None:
            try:
                action()
            except Exception as problem:  # raised again in the calling thread
                problems.append(problem)
            finally:
                done.set()

        self._actions.put(act)
        os.write(self._wake_writer, b"x")
        while not done.wait(0.1) and self.alive:
            continue
        if problems:
            raise problems[0]
        if not done.is_set():
            raise ConfigError("the emulation has ended; close() raises the reason")

    # Everything below runs in the emulation thread.

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._turn()
        except BaseException as problem:
            self._failure = problem

    def _turn(self) -> None:
        now = time.monotonic()
        wait = min(TICK, max(0.0, self.next_answer - now))
        listening = [self._wake_reader]
        busy = self.busy_until > now
        if busy:
            wait = min(wait, self.busy_until - now)
        elif self._port is not None:
            listening.append(self._port.master)
        ready = select.select(listening, [], [], wait)[0]
        now = time.monotonic()
        self.advance_to(now)
        if self._wake_reader in ready:
            os.read(self._wake_reader, 64)
            while not self._actions.empty():
                self._actions.get()()
        if self._port is not None and self._port.master in ready:
            try:
                data = os.read(self._port.master, CHUNK)
            except OSError:
                data = b""
            if data:
                self.receive(data, now, self._port.rate)
        elif not busy:
            self.drop_incomplete(now)
        for packet in self.answers_due(time.monotonic()):
            self._send(packet)

    def _send(self, packet: bytes) -> None:
        """Write to the terminal. Bytes that do not fit in its buffer are lost, as on a real line."""
        if self._port is None:
            return
        try:
            os.write(self._port.master, packet)
            self.counts["answered"] += 1
        except OSError:
            self.counts["overrun"] += 1

    def _unplug(self) -> None:
        if self._port is not None:
            self._port.close()
            self._port = None
            super()._unplug()

    def _plug(self) -> None:
        if self._port is None:
            self._port = PseudoTerminal(self._link)
