"""Emulated servos on a serial line, without I/O: bytes in, bytes out, on a clock that the caller advances.

A packet is received when its last bit would have arrived at the line's baud rate. An answer arrives after the servo's
return delay and its wire time.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.exchange import StatusPacket, answers
from stribeck.emulator.faults import HARDWARE_ERRORS, Fault, Faults, damaged, delay_of
from stribeck.emulator.protocol import BROADCAST, Packet, PacketParser, encode_status
from stribeck.errors import ConfigError

TICK = 0.005
"""Largest step in which servos and faults advance together [s]."""

GAP = 0.02
"""Pause after which an incomplete packet is discarded [s]."""

BITS = 10
"""Bits per byte on the wire: start, eight data bits, stop."""


class EmulatedLine:
    """Servos on one serial line.

    :param servos: with different IDs.
    :param seed: of random faults.
    :ivar counts: numbers of ``heard`` and ``answered`` packets, and of packets affected by each fault.
    :ivar busy_until: when the line is free again [s]; until then, written bytes wait in the adapter.
    :raises ConfigError: for incompatible servos or faults.
    """

    def __init__(self, servos: Sequence[EmulatedServo], faults: Iterable[Fault] = (), seed: int = 0) -> None:
        ids = [servo.id for servo in servos]
        if not ids or len(set(ids)) != len(ids):
            raise ConfigError(f"a bus needs servos with different IDs, found {ids}")
        self.servos = tuple(servos)
        self.counts: Counter[str] = Counter()
        self._rng = np.random.default_rng(seed)
        self._faults = Faults((), self._rng)
        for fault in faults:
            self._check(fault)
            self._faults.add(fault)
        self._parsers = [PacketParser(p) for p in sorted({servo.model.protocol for servo in servos})]
        self._clock = self.busy_until = self._last_byte = 0.0
        self._rate = 0
        self._outbox: list[tuple[float, int, bytes]] = []
        self._queued = 0
        self._silences: set[int] = set()
        self._stalls: set[int] = set()
        self._released = 0.0
        self._silent_until = 0.0

    def servo(self, servo_id: int) -> EmulatedServo:
        """The servo with an ID.

        :raises ConfigError: if there is none.
        """
        for servo in self.servos:
            if servo.id == servo_id:
                return servo
        raise ConfigError(f"no servo with ID {servo_id} on this bus; valid: {[s.id for s in self.servos]}")

    # External influences.

    def push(self, servo_id: int, torque: float, duration: float) -> None:
        """Apply an external torque [N m] to a shaft for a time [s]."""
        self.servo(servo_id).push(torque, duration)

    def set_voltage(self, voltage: float) -> None:
        """Change the open-circuit supply voltage [V]."""
        for servo in self.servos:
            servo.set_voltage(voltage)

    def set_temperature(self, temperature: float) -> None:
        """Change the temperature of all servos [°C]."""
        for servo in self.servos:
            servo.set_temperature(temperature)

    def fail(self, servo_id: int, error: str) -> None:
        """Raise a hardware error, by its name in the model's ``error_bits``."""
        self.servo(servo_id).fail(error)

    def silence(self, duration: float) -> None:
        """Discard all bytes on the line for a time [s]."""
        self._silent_until = self._clock + duration

    def stall(self, duration: float, gap: float = 0.005) -> None:
        """Hold all answers for a time [s]; then they arrive ``gap`` s apart."""
        elapsed = self._faults.elapsed(self._clock)
        self.add_fault(Fault("stall", at=elapsed, duration=duration, settings={"gap": gap}))

    def unplug(self) -> None:
        """Remove the port; the servos stay powered."""
        self._outbox.clear()
        self._released = 0.0
        self._parsers = [PacketParser(parser.protocol) for parser in self._parsers]

    def plug(self) -> None:
        """Restore the port under the same name."""

    def add_fault(self, fault: Fault) -> None:
        """Add a fault; its schedule counts from the start of the bus.

        :raises ConfigError: for a fault that affects no servo of this bus.
        """
        self._check(fault)
        self._faults.add(fault, self._clock)

    def _check(self, fault: Fault) -> None:
        concerned = [servo for servo in self.servos if fault.concerns(servo.id)]
        if not concerned:
            raise ConfigError(
                f"fault {fault.kind}: no servo with ID {fault.servo}; valid: {[s.id for s in self.servos]}"
            )
        if fault.kind in HARDWARE_ERRORS:
            unable = [servo for servo in concerned if fault.kind not in servo.model.error_bits]
            if unable:
                valid = ", ".join(unable[0].model.error_bits)
                raise ConfigError(
                    f"{unable[0].model.title} does not support the fault {fault.kind!r}; valid: {valid}"
                )

    # Time.

    def begin(self, clock: float) -> None:
        """Start time at ``clock`` [s]."""
        self._clock = self.busy_until = clock
        self._faults.begin(clock)
        for servo in self.servos:
            servo.begin(clock)

    def advance_to(self, now: float) -> None:
        """Advance servos and faults to a time, in order."""
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
            self._apply(fault, begins)

    def _apply(self, fault: Fault, begins: bool) -> None:
        if fault.kind == "silence":
            (self._silences.add if begins else self._silences.discard)(id(fault))
        elif fault.kind == "stall":
            (self._stalls.add if begins else self._stalls.discard)(id(fault))
            if not self._stalls:
                self._release(fault.settings["gap"])
        elif fault.kind == "unplug":
            (self.unplug if begins else self.plug)()
        for servo in self.servos:
            if not fault.concerns(servo.id):
                continue
            if fault.kind == "push" and begins:
                servo.push(fault.settings["torque"], fault.duration)
            elif fault.kind == "brownout":
                servo.brown_out(fault.settings["to"] if begins else None)
            elif fault.kind in HARDWARE_ERRORS and begins:
                servo.fail(fault.kind)

    def _release(self, gap: float) -> None:
        """After a stall, let the answers that waited arrive ``gap`` s apart, in their order."""
        held = sorted(entry for entry in self._outbox if entry[0] <= self._clock)
        rest = [entry for entry in self._outbox if entry[0] > self._clock]
        begin = max(self._clock, self._released)
        held = [(begin + k * gap, number, data) for k, (_, number, data) in enumerate(held)]
        self._released = held[-1][0] if held else self._released
        self._outbox = held + [(max(due, self._released), number, data) for due, number, data in rest]
        heapq.heapify(self._outbox)

    # Bytes.

    @property
    def next_answer(self) -> float:
        """When the next answer is due [s]; infinity if there is none, or the line stalls."""
        return self._outbox[0][0] if self._outbox and not self._stalls else math.inf

    def receive(self, data: bytes, now: float, rate: int) -> None:
        """Receive bytes that a program writes.

        :param rate: baud rate of the line [bit/s]; 0: unknown, all servos receive them.
        """
        self._rate, self._last_byte = rate, now
        if self._is_silent:
            return
        data = self._damage(data, BROADCAST, now)
        self.busy_until = max(self.busy_until, now) + self._wire_time(data)
        if self._hit("echo", BROADCAST) is not None:
            self._send_back(self.busy_until, data)
        for parser in self._parsers:
            self._answer(parser.protocol, parser.feed(data), self.busy_until)

    def drop_incomplete(self, now: float) -> None:
        """Discard an incomplete packet after a pause."""
        if now - self._last_byte > GAP:
            for parser in self._parsers:
                if parser.pending:
                    self._answer(parser.protocol, parser.give_up(), now)

    def answers_due(self, now: float) -> list[bytes]:
        """Answers that have reached the program by ``now``."""
        packets = []
        while self.next_answer <= now:
            data = heapq.heappop(self._outbox)[2]
            if not self._is_silent:
                packets.append(data)
        return packets

    @property
    def _is_silent(self) -> bool:
        return bool(self._silences) or self._clock < self._silent_until

    def _wire_time(self, data: bytes) -> float:
        return len(data) * BITS / self._rate if self._rate else 0.0

    def _answer(self, protocol: float, packets: Sequence[Packet], heard: float) -> None:
        """Let the servos execute and answer packets received at time ``heard``."""
        for packet in packets:
            self.advance_to(heard)
            self._follow_faults(packet=True)
            if self._hit("lost", packet.id) is not None:
                continue
            self.counts["heard"] += 1
            heard_by = [
                s for s in self.servos if s.listens and (not self._rate or s.baud in (None, self._rate))
            ]
            for answer in answers(heard_by, protocol, packet):
                self._queue(answer)

    def _queue(self, answer: StatusPacket) -> None:
        """Queue an answer for transmission, with the faults that affect it."""
        servo, data = answer
        delay = servo.memory.numbers["return_delay_time"] * servo.model.registers["return_delay_time"].scale
        self.busy_until = max(self.busy_until, self._clock) + delay
        pieces = [data]
        foreign = self._hit("foreign", servo.id)
        if foreign is not None:
            other = encode_status(servo.model.protocol, int(foreign.settings["as"]), 0, bytes(4))
            pieces.insert(int(self._rng.integers(2)), other)
        for piece in pieces:
            self.busy_until += self._wire_time(piece)
            due = self.busy_until
            if piece is data:
                if self._hit("lost", servo.id) is not None:
                    continue
                piece = self._damage(piece, servo.id, self._clock)
                late = self._hit("late", servo.id)
                due += delay_of(late, self._rng) if late is not None else 0.0
                double = self._hit("double", servo.id)
                if double is not None:
                    self._send_back(due + self._wire_time(piece) + delay_of(double, self._rng), piece)
            self._send_back(due, piece)

    def _send_back(self, due: float, data: bytes) -> None:
        """Let bytes reach the program at a time, but not before those that a stall has held."""
        self._queued += 1
        heapq.heappush(self._outbox, (max(due, self._released), self._queued, data))

    def _hit(self, kind: str, servo: int) -> Fault | None:
        fault = self._faults.hit(kind, servo, self._clock)
        if fault is not None:
            self.counts[kind] += 1
        return fault

    def _damage(self, data: bytes, servo: int, clock: float) -> bytes:
        fault = self._faults.hit("corrupt", servo, clock)
        if fault is None or not data:
            return data
        changed = damaged(data, fault, self._rng)
        self.counts["corrupt"] += changed != data
        return changed
