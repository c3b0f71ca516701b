"""Emulated servos behind a pseudo-terminal: any program that speaks to a serial port can speak to them.

A packet is heard when its last bit would have arrived at the line's rate (that which the program set on
the terminal); an answer comes after the servo's return delay and its own time on the wire. Time never
stands: the physics follows the monotonic clock at each packet and in between, and where the process was
late it catches up in order.
"""

from __future__ import annotations

import heapq
import os
import queue
import select
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.exchange import StatusPacket, answers
from stribeck.emulator.faults import HARDWARE_ERRORS, Fault, Faults, damaged
from stribeck.emulator.protocol import BROADCAST, Packet, PacketParser, encode_status
from stribeck.emulator.terminal import PseudoTerminal
from stribeck.errors import ConfigError

TICK = 0.005
"""The physics never stands longer than this [s]."""

GAP = 0.02
"""A packet whose bytes stop for this long [s] is given up."""

CHUNK = 256
"""Bytes that are taken from the terminal at once."""

BITS = 10
"""Bits on the wire for a byte: start, eight, stop."""


class EmulatedBus:
    """Servos on one serial port, alive while the context is.

    :param servos: with different IDs.
    :param faults: what goes wrong.
    :param link: path of a symbolic link to the terminal.
    :param seed: of chance in faults.
    :raises ConfigError: for servos or faults that do not go together.
    :raises OutputError: at the start, if the link cannot be made.

    ``with EmulatedBus([EmulatedServo()]) as bus:`` runs it in a thread of this process. Methods may be
    called from any thread; what they change happens at the time they are called.
    """

    def __init__(
        self,
        servos: Sequence[EmulatedServo],
        faults: Iterable[Fault] = (),
        link: Path | str | None = None,
        seed: int = 0,
    ) -> None:
        ids = [servo.id for servo in servos]
        if not ids or len(set(ids)) != len(ids):
            raise ConfigError(f"a bus needs servos with different IDs, found {ids}")
        self.servos = tuple(servos)
        self.counts: Counter[str] = Counter()
        """What happened: ``heard``, ``answered``, and packets by the fault that befell them."""
        self._rng = np.random.default_rng(seed)
        self._faults = Faults((), self._rng)
        self._link = None if link is None else Path(link)
        for fault in faults:
            self._check(fault)
            self._faults.add(fault)
        self._parsers = [PacketParser(p) for p in sorted({servo.model.protocol for servo in servos})]
        self._clock = self._line_free = self._last_byte = 0.0
        self._outbox: list[tuple[float, int, bytes]] = []
        self._sent = 0
        self._silences: set[int] = set()
        self._silent_until = 0.0
        self._port: PseudoTerminal | None = None
        self._wishes: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
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
        """Open the port and let time begin."""
        self._port = PseudoTerminal(self._link)
        self._wake_reader, self._wake_writer = os.pipe()
        self._clock = self._line_free = time.monotonic()
        self._faults.begin(self._clock)
        for servo in self.servos:
            servo.begin(self._clock)
        self._stopping = False
        self._thread = threading.Thread(target=self._live, name="emulated servos", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take the port away and end.

        :raises BaseException: what ended the emulation early, if anything did.
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
        """Where programs find the port: the link, or the terminal itself.

        :raises ConfigError: while there is none.
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

    def servo(self, servo_id: int) -> EmulatedServo:
        """The servo with an ID.

        :raises ConfigError: if there is none.
        """
        for servo in self.servos:
            if servo.id == servo_id:
                return servo
        raise ConfigError(f"no servo {servo_id} on this bus; there are: {[s.id for s in self.servos]}")

    # Hands on it.

    def push(self, servo_id: int, torque: float, duration: float) -> None:
        """An outside torque on a shaft [N m] for a time [s]."""
        self._do(lambda: self.servo(servo_id).push(torque, duration))

    def set_voltage(self, voltage: float, servo_id: int | None = None) -> None:
        """Another supply voltage without load [V], of one servo or all."""
        self._do(lambda: _each(self._meant(servo_id), lambda servo: servo.set_voltage(voltage)))

    def set_temperature(self, temperature: float, servo_id: int | None = None) -> None:
        """Another temperature [°C], of one servo or all."""
        self._do(lambda: _each(self._meant(servo_id), lambda servo: servo.set_temperature(temperature)))

    def fail(self, servo_id: int, error: str) -> None:
        """A hardware error, by its name in the model's ``error_bits``."""
        self._do(lambda: self.servo(servo_id).fail(error))

    def silence(self, duration: float) -> None:
        """Nothing is heard or said for a time [s]."""

        def begin() -> None:
            self._silent_until = self._clock + duration

        self._do(begin)

    def unplug(self) -> None:
        """Let the port disappear; the servos stay powered."""
        self._do(self._unplug)

    def plug(self) -> None:
        """Let the port come back, by the same link."""
        self._do(self._plug)

    def add_fault(self, fault: Fault) -> None:
        """One more fault; its schedule counts from the start of the bus.

        :raises ConfigError: for a fault that concerns no servo of this bus.
        """
        self._check(fault)
        self._do(lambda: self._faults.add(fault, self._clock))

    def _meant(self, servo_id: int | None) -> Sequence[EmulatedServo]:
        return self.servos if servo_id is None else (self.servo(servo_id),)

    def _check(self, fault: Fault) -> None:
        concerned = [servo for servo in self.servos if fault.concerns(servo.id)]
        if not concerned:
            raise ConfigError(
                f"fault {fault.kind}: no servo {fault.servo}; there are: {[s.id for s in self.servos]}"
            )
        if fault.kind in HARDWARE_ERRORS:
            unable = [servo for servo in concerned if fault.kind not in servo.model.error_bits]
            if unable:
                valid = ", ".join(unable[0].model.error_bits)
                raise ConfigError(f"{unable[0].model.title} has no error {fault.kind!r}; valid: {valid}")

    def _do(self, action: Callable[[], object]) -> None:
        """Carry out an action in the thread of the emulation, and wait for it."""
        if self._thread is None or threading.current_thread() is self._thread:
            action()
            return
        done = threading.Event()
        problems: list[Exception] = []

        def act() -> None:
            try:
                action()
            except Exception as problem:  # handed to the caller
                problems.append(problem)
            finally:
                done.set()

        self._wishes.put(act)
        os.write(self._wake_writer, b"x")
        while not done.wait(0.1) and self.alive:
            continue
        if problems:
            raise problems[0]
        if not done.is_set():
            raise ConfigError("the emulation has ended; its reason is raised by close()")

    # The life of the bus: everything below runs in its thread.

    def _live(self) -> None:
        try:
            while not self._stopping:
                self._turn()
        except BaseException as problem:
            self._failure = problem

    def _turn(self) -> None:
        now = time.monotonic()
        wait = min(TICK, max(0.0, self._outbox[0][0] - now)) if self._outbox else TICK
        listening = [self._wake_reader]
        busy = self._line_free > now
        if busy:  # What a program sends too early waits, as in the adapter of a real line.
            wait = min(wait, self._line_free - now)
        elif self._port is not None:
            listening.append(self._port.master)
        ready = select.select(listening, [], [], wait)[0]
        now = time.monotonic()
        self._catch_up(now)
        if self._wake_reader in ready:
            os.read(self._wake_reader, 64)
            while not self._wishes.empty():
                self._wishes.get()()
        if self._port is not None and self._port.master in ready:
            self._receive(self._port, now)
        elif not busy and now - self._last_byte > GAP:
            for parser in self._parsers:
                if parser.pending:
                    self._answer(parser.protocol, parser.give_up(), now)
        self._send(time.monotonic())

    def _catch_up(self, now: float) -> None:
        """Bring servos and faults to a time, in order."""
        while self._clock < now:
            self._clock = min(self._clock + TICK, now)
            for servo in self.servos:
                servo.advance_to(self._clock)
            self._follow_faults()

    def _follow_faults(self, packet: bool = False) -> None:
        if self._faults.first_torque is None:
            times = [servo.first_torque for servo in self.servos if servo.first_torque is not None]
            self._faults.first_torque = min(times, default=None)
        for fault, begins in self._faults.changes(self._clock, packet):
            if begins:
                self.counts[fault.kind] += 1
            self._carry_out(fault, begins)

    def _carry_out(self, fault: Fault, begins: bool) -> None:
        if fault.kind == "silence":
            (self._silences.add if begins else self._silences.discard)(id(fault))
        elif fault.kind == "unplug":
            (self._unplug if begins else self._plug)()
        for servo in self.servos:
            if not fault.concerns(servo.id):
                continue
            if fault.kind == "push" and begins:
                servo.push(fault.settings["torque"], fault.duration)
            elif fault.kind == "brownout":
                servo.brown_out(fault.settings["to"] if begins else None)
            elif fault.kind in HARDWARE_ERRORS and begins:
                servo.fail(fault.kind)

    @property
    def _is_silent(self) -> bool:
        return bool(self._silences) or self._clock < self._silent_until

    def _receive(self, port: PseudoTerminal, now: float) -> None:
        try:
            data = os.read(port.master, CHUNK)
        except OSError:
            return
        self._last_byte = now
        if self._is_silent:
            return
        data = self._damage(data, BROADCAST, now)
        self._line_free = max(self._line_free, now) + self._wire_time(data, port.rate)
        for parser in self._parsers:
            self._answer(parser.protocol, parser.feed(data), self._line_free)

    def _wire_time(self, data: bytes, rate: int) -> float:
        return len(data) * BITS / rate if rate else 0.0

    def _answer(self, protocol: float, packets: Sequence[Packet], heard: float) -> None:
        """Let the servos carry out packets that they have heard at a time, and answer."""
        rate = self._port.rate if self._port is not None else 0
        for packet in packets:
            self._catch_up(heard)
            self._follow_faults(packet=True)
            if self._faults.hit("lost", packet.id, heard) is not None:
                self.counts["lost"] += 1
                continue
            self.counts["heard"] += 1
            listening = [
                s for s in self.servos if s.listens and (s.baud is None or not rate or s.baud == rate)
            ]
            for answer in answers(listening, protocol, packet):
                self._say(answer, rate)

    def _say(self, answer: StatusPacket, rate: int) -> None:
        """Put an answer on the wire, with what befalls it."""
        servo, data = answer
        delay = servo.memory.numbers["return_delay_time"] * servo.model.registers["return_delay_time"].scale
        self._line_free = max(self._line_free, self._clock) + delay
        queued = [data]
        foreign = self._faults.hit("foreign", servo.id, self._clock)
        if foreign is not None:
            self.counts["foreign"] += 1
            other = encode_status(servo.model.protocol, int(foreign.settings["as"]), 0, bytes(4))
            queued.insert(int(self._rng.integers(2)), other)
        for piece in queued:
            self._line_free += self._wire_time(piece, rate)
            due = self._line_free
            if piece is data:
                befallen = self._befall(piece, servo.id)
                if befallen is None:
                    continue
                piece, late = befallen
                due += late
            self._sent += 1
            heapq.heappush(self._outbox, (due, self._sent, piece))

    def _befall(self, data: bytes, servo: int) -> tuple[bytes, float] | None:
        """What faults make of an answer: its bytes and how much later it comes, or nothing."""
        if self._faults.hit("lost", servo, self._clock) is not None:
            self.counts["lost"] += 1
            return None
        data = self._damage(data, servo, self._clock)
        late = self._faults.hit("late", servo, self._clock)
        if late is not None:
            self.counts["late"] += 1
        return data, late.settings["delay"] if late is not None else 0.0

    def _damage(self, data: bytes, servo: int, clock: float) -> bytes:
        fault = self._faults.hit("corrupt", servo, clock)
        if fault is None or not data:
            return data
        found = damaged(data, fault, self._rng)
        self.counts["corrupt"] += found != data
        return found

    def _send(self, now: float) -> None:
        """Hand over what is due. Nobody reads: what does not fit is lost, as on a wire."""
        while self._outbox and self._outbox[0][0] <= now:
            data = heapq.heappop(self._outbox)[2]
            if self._port is None or self._is_silent:
                continue
            try:
                os.write(self._port.master, data)
                self.counts["answered"] += 1
            except OSError:
                self.counts["overrun"] += 1

    def _unplug(self) -> None:
        if self._port is not None:
            self._port.close()
            self._port = None
            self._outbox.clear()
            self._parsers = [PacketParser(parser.protocol) for parser in self._parsers]

    def _plug(self) -> None:
        if self._port is None:
            self._port = PseudoTerminal(self._link)


def _each(servos: Iterable[EmulatedServo], action: Callable[[EmulatedServo], None]) -> None:
    for servo in servos:
        action(servo)
