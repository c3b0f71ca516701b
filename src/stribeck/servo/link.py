"""Packet exchange with servos: matches answers to requests, counts errors and retries.

The group reads of dynamixel_sdk stop at the first servo that does not answer and lose the answers of the
others; they never retry, and take any packet with the right ID and length. Therefore the library only builds,
sends and parses packets, and this module collects the answers. Each request has an answer length of its own
(:mod:`stribeck.servo.lengths`), so that late and repeated answers are not taken for others. It works with versions
3 and 4 of the library, whose signatures differ.
"""

from __future__ import annotations

import inspect
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dynamixel_sdk import GroupBulkRead, GroupSyncRead, PacketHandler
from dynamixel_sdk.robotis_def import COMM_RX_TIMEOUT, COMM_SUCCESS, INST_PING, INST_REBOOT

from stribeck.errors import ServoError
from stribeck.servo.lengths import LONGEST_DELAY, AnswerLengths, Block, Region, free_length
from stribeck.servo.port import SLOW_PATIENCE, Port

ATTEMPTS = 20
"""Attempts for a packet to a single servo: enough with 1 % corrupt bytes."""

PINGS = 8
"""Attempts to reach a servo that may be absent."""

SHORTEST_PATIENCE, LONGEST_PATIENCE = 8e-4, 4e-2
"""Bounds of :attr:`Latency.patience` while the servos move [s]."""

GROWN_PATIENCE = 8e-3
"""Upper bound of :attr:`Latency.patience` while no servo answers [s]; must not extend a stall by much."""

PATIENCE_MARGIN = 5e-4
"""Addition to 1.5 times the median delay [s]."""

LONGEST = {1.0: 259, 2.0: 1031}
"""Longest packet [bytes], by protocol."""

PADDING = {3: 256, 6: 256, 9: 1031, 12: 256, 15: 1031}
"""Padding bytes that complete a damaged packet, by the number of consecutive unanswered attempts; one corrupt
byte in a length field is more likely than two."""

PADDING_ALONE = {12: 1031}
"""Padding bytes by the number of consecutive attempts without an answer from one servo while others may answer."""

PADDING_TIME = 0.015
"""Maximum wire time of the padding [s]."""

MEMORY = 64
"""Number of answers from which the delay is estimated."""

MODEL_NUMBER = Region(0, 2, 46)
"""Location of the model number in every servo, within the shortest control table."""

BROADCAST = 0xFE
"""ID of all servos."""

PING_LENGTH = 3
"""Data bytes of the answer to a ping of protocol 2: model number and firmware version."""

OVERDUE_TIME = 1.0
"""Two answers within this time [s] that are later than :data:`~stribeck.servo.lengths.LONGEST_DELAY` are an error;
a single one may be a damaged packet with a valid checksum."""


class Answer(NamedTuple):
    """A status packet.

    :param data: the requested bytes; empty for an acknowledgement.
    :param time: best estimate of when the servo read its registers, steady clock [s].
    :param address: of the first byte of ``data``.
    """

    data: bytes
    error: int
    time: float
    address: int = 0

    def raw(self, address: int, size: int) -> int:
        """Unsigned value of a register that the data contain."""
        start = address - self.address
        return int.from_bytes(self.data[start : start + size], "little")


class Request(NamedTuple):
    """A request to one servo whose answer is awaited.

    :param asked: when its last byte has passed the wire [s].
    :param clock: address of the servo's clock if the answer contains it.
    """

    block: Block
    asked: float
    clock: int | None = None


Pending = dict[int, dict[int, Request]]
"""Requests by servo and by the length of their answer [data bytes]."""


@dataclass
class Counters:
    """Events on the bus since the port was first opened.

    :param answers: valid answers.
    :param timeouts: missing answers.
    :param corrupt: packets that are truncated or have a wrong checksum.
    :param foreign: packets from servos that were not asked.
    :param late: answers to earlier requests; they are not used.
    :param duplicates: repeated answers, and own packets that the adapter returns.
    :param overdue: answers later than :data:`~stribeck.servo.lengths.LONGEST_DELAY`.
    :param wrong_length: packets with a number of data bytes that was not requested.
    :param status_errors: answers that report a rejected instruction.
    :param retries: packets sent again.
    :param longest_gap: longest time between two valid answers of one servo while it was polled [s].
    """

    answers: int = 0
    timeouts: int = 0
    corrupt: int = 0
    foreign: int = 0
    late: int = 0
    duplicates: int = 0
    overdue: int = 0
    wrong_length: int = 0
    status_errors: int = 0
    retries: int = 0
    longest_gap: float = 0.0


class Latency:
    """Estimate, from answers to first attempts, of the delay of answers beyond their wire time.

    The timeout :attr:`patience` is 1.5 times the median delay plus 0.5 ms: a lost packet costs little time, a
    slow adapter is not mistaken for packet loss, and single outliers have no effect. The next attempt still
    accepts a late answer. After many unanswered attempts the timeout grows, in case the adapter has become
    slower.

    :ivar failures: consecutive unanswered attempts.
    """

    def __init__(self) -> None:
        self._delays: deque[float] = deque(maxlen=MEMORY)
        self._usual = SLOW_PATIENCE
        self.failures = 0

    def learn(self, delay: float) -> None:
        """Add the delay of an answer to a first attempt [s]."""
        self._delays.append(delay)
        usual = 1.5 * sorted(self._delays)[len(self._delays) // 2] + PATIENCE_MARGIN
        self._usual = min(max(usual, SHORTEST_PATIENCE), LONGEST_PATIENCE)

    def tell(self, answered: bool) -> None:
        """Record whether any servo answered an attempt."""
        self.failures = 0 if answered else self.failures + 1

    @property
    def patience(self) -> float:
        """Longest accepted delay of an answer [s]."""
        grown = PATIENCE_MARGIN * 2.0 ** min(self.failures - 10, 10)
        return max(self._usual, min(grown, GROWN_PATIENCE))


@dataclass
class Link:
    """Link to the servos on a port, all with the same protocol.

    :param port: the port, not necessarily open yet.
    :param protocol: 1.0 or 2.0.
    :ivar cyclic_lengths: answer lengths that only reads in every cycle use, so that these stay short.
    """

    port: Port
    protocol: float
    cyclic_lengths: frozenset[int] = frozenset()
    counters: Counters = field(default_factory=Counters)
    latency: Latency = field(default_factory=Latency)

    def __post_init__(self) -> None:
        self._misses: dict[int, int] = {}
        self._lengths: defaultdict[int, AnswerLengths] = defaultdict(AnswerLengths)
        self._overdue: deque[tuple[float, str]] = deque(maxlen=2)
        self._handler: Any = PacketHandler(self.protocol)
        # Since version 3.8, protocol 2 takes a flag for the "fast" instructions.
        has_flag = "fast_option" in inspect.signature(self._handler.rxPacket).parameters
        flag = (False,) if has_flag else ()
        self._receive: Callable[[], tuple[list[int], int]] = lambda: self._handler.rxPacket(self.port, *flag)

    @property
    def overhead(self) -> int:
        """Number of bytes of a status packet without its data."""
        return 6 if self.protocol == 1.0 else 11

    # One servo.

    def model_number(self, identity: int) -> int | None:
        """Model number of a servo, ``None`` if it does not answer, 0 if it only answers pings."""
        numbers: list[int] = []
        for _ in range(PINGS):
            answer = self.read(identity, MODEL_NUMBER, attempts=PINGS)
            if answer is None:
                return self.ping(identity)
            numbers.append(answer.raw(MODEL_NUMBER.address, MODEL_NUMBER.length))
            if numbers[-2:-1] == numbers[-1:]:
                return numbers[-1]
        return numbers[-1]

    def ping(self, identity: int, attempts: int = PINGS) -> int | None:
        """Model number in the answer to a ping, ``None`` if there is no answer; 0 with protocol 1, whose answer to a
        ping is the same as any acknowledgement and therefore may be one.
        """
        length = PING_LENGTH if self.protocol == 2.0 else 0
        if length and self._wait_for_length(identity, [length], None) is None:
            return None
        for attempt in range(attempts):
            self.port.patience = SLOW_PATIENCE
            pending = self._record({identity: Block(0, length)}, {})
            self._instruct(identity, INST_PING)
            answer = self._collect(pending, {identity: Block(0, length)}, learn=False).get(identity)
            if answer is not None:
                return int.from_bytes(answer.data[:2], "little")
            self.counters.retries += attempt + 1 < attempts
        return None

    def find_all(self) -> dict[int, int]:
        """Model numbers of all servos that answer a broadcast ping; empty with protocol 1, which has none.

        Waits until no earlier answer can arrive any more, so that none is taken for a servo.
        """
        if self.protocol == 1.0:
            return {}
        port, models = self.port, dict[int, int]()
        port.clock.sleep(LONGEST_DELAY)
        for lengths in self._lengths.values():
            lengths.use(PING_LENGTH, port.clock.now(), port.wire_time(14 * 254))
        self._instruct(BROADCAST, INST_PING)
        port.setPacketTimeoutMillis(1e3 * (LONGEST_DELAY + port.wire_time(14 * 254)))
        while True:
            packet, result = self._receive()
            if result == COMM_RX_TIMEOUT or (result != COMM_SUCCESS and port.isPacketTimeout()):
                return models
            if result == COMM_SUCCESS:
                identity, _, data = self._parse(packet)
                if len(data) == PING_LENGTH:
                    models[identity] = int.from_bytes(data[:2], "little")

    def read(
        self, identity: int, region: Region, attempts: int = ATTEMPTS, until: float | None = None
    ) -> Answer | None:
        """Read registers of a servo, with an answer length of its own; ``None`` if it does not answer.

        What the answer says was true after the call began.

        :param until: deadline [s] in place of a number of attempts, for servos that move; there is at least one.
        :raises ServoError: if answers are later than assumed.
        """
        clock, quick = self.port.clock, until is not None or attempts == 1
        length = self._wait_for_length(
            identity, self._settings_lengths(region), clock.now() if quick else None
        )
        if length is None:
            return None
        blocks, pending = {identity: region.block(length)}, Pending()
        attempt = 0
        while True:
            self.port.patience = self.latency.patience if quick else SLOW_PATIENCE
            self._record(blocks, pending)
            self._handler.readTx(self.port, identity, *blocks[identity])
            answer = self._collect(pending, blocks, learn=not attempt).get(identity)
            attempt += 1
            self._check_delay()
            ended = attempt >= attempts if until is None else clock.now() >= until
            if answer is not None or ended:
                return answer
            self.counters.retries += 1

    def write(
        self, identity: int, address: int, raw: int, size: int, patient: bool = True
    ) -> int | None:
        """Write a register once and wait for an acknowledgement.

        :return: its error byte, or ``None`` without one. As it may acknowledge an earlier write, it proves nothing:
            read the register.
        """
        blocks = {identity: Block(address, 0)}
        self.port.patience = SLOW_PATIENCE if patient else self.latency.patience
        pending = self._record(blocks, {})
        self._handler.writeTxOnly(self.port, identity, address, size, list(raw.to_bytes(size, "little")))
        self.port.setPacketTimeout(self.overhead)
        answer = self._collect(pending, blocks, learn=False).get(identity)
        return None if answer is None else answer.error

    def reboot(self, identity: int) -> None:
        """Restart a servo (protocol 2) once; whether it did is seen from its registers only."""
        self.port.patience = SLOW_PATIENCE
        pending = self._record({identity: Block(0, 0)}, {})
        self._lengths[identity].forget_clock()
        self._instruct(identity, INST_REBOOT)
        self._collect(pending, {identity: Block(0, 0)}, learn=False)

    def forget_clocks(self) -> None:
        """Servos may have restarted, and their clocks with them."""
        for lengths in self._lengths.values():
            lengths.forget_clock()

    def _instruct(self, identity: int, instruction: int) -> None:
        """Send an instruction without parameters; its answer has the data of a ping, or none."""
        packet = [0xFF, 0xFF, identity, 2, instruction, 0]
        if self.protocol == 2.0:
            packet = [0xFF, 0xFF, 0xFD, 0x00, identity, 3, 0, instruction, 0, 0]
        self._handler.txPacket(self.port, packet)
        length = PING_LENGTH if self.protocol == 2.0 and instruction == INST_PING else 0
        self.port.setPacketTimeout(self.overhead + length)

    # Several servos at once.

    def write_many(self, address: int, size: int, values: Mapping[int, int]) -> None:
        """Write one register of several servos in one packet, which is not acknowledged."""
        parameters: list[int] = []
        for identity, raw in values.items():
            parameters.append(identity)
            parameters.extend(raw.to_bytes(size, "little"))
        self._handler.syncWriteTxOnly(self.port, address, size, parameters, len(parameters))

    def read_many(self, regions: Mapping[int, Region], until: float) -> dict[int, Answer]:
        """Read registers of several servos in every cycle: one request, one answer from each servo.

        Servos that do not answer are asked again, without the others, as long as the deadline ``until`` [s]
        leaves time for another attempt; there is at least one attempt. A missing servo may prevent those
        after it from answering, so every attempt begins with a different servo. Each attempt has other answer
        lengths: an answer has the time of the attempt that it belongs to, and one of an earlier call is not used.

        :return: the answers, by servo.
        :raises ServoError: if answers are later than assumed.
        """
        answers: dict[int, Answer] = {}
        missing, pending = dict(regions), Pending()
        while True:
            blocks = self._blocks(missing, cyclic=True)
            usual = self.latency.patience
            rest = until - self.port.clock.now() - self.port.wire_time(self._size(blocks))
            # The last attempt may use all the remaining time.
            self.port.patience = rest if usual < rest < 2.0 * usual else usual
            came = self._ask(blocks, pending, missing)
            self._check_delay()
            answers.update(came)
            order = [identity for identity in missing if identity not in came]
            again = {identity: regions[identity] for identity in (*order[1:], *order[:1])}
            shortest = self.port.wire_time(sum(region.length + self.overhead for region in again.values()))
            if not again or self.port.clock.now() + shortest + 0.5 * SHORTEST_PATIENCE > until:
                return answers
            self.counters.retries += bool(blocks)
            missing = again

    def read_once(
        self, regions: Mapping[int, Region], pending: Pending, patience: float
    ) -> dict[int, Answer]:
        """Read registers of several servos in one attempt, with answer lengths of their own.

        :param pending: requests whose answers are accepted too; the new ones are added.
        :param patience: longest accepted delay of an answer [s].
        """
        self.port.patience = patience
        return self._ask(self._blocks(regions, cyclic=False), pending, regions)

    def _blocks(self, regions: Mapping[int, Region], cyclic: bool) -> dict[int, Block]:
        """Blocks with free answer lengths, the same for all servos with the same registers if possible.

        A servo without such a length is left out; in a cycle, one without a clock then repeats its oldest.
        """
        now, blocks = self.port.clock.now(), dict[int, Block]()
        for region in dict.fromkeys(regions.values()):
            group = [identity for identity, its in regions.items() if its == region]
            dated = cyclic and region.clock is not None
            lengths: Sequence[int] = region.cyclic_lengths if cyclic else self._settings_lengths(region)
            length = free_length(lengths, [self._lengths[i] for i in group], now, dated)
            for identity in group:
                mine = self._lengths[identity]
                own = length if length is not None else free_length(lengths, [mine], now, dated)
                if cyclic and not mine.clock_runs and own is None:
                    own = min(lengths, key=mine.last_use)
                if cyclic and mine.clock_runs and own is not None and self._is_scarce(own, lengths):
                    # Nothing was answered for a while: the rest of the lengths lasts until the first are free again.
                    if now - mine.last_sent < 2.0 * LONGEST_DELAY / len(lengths):
                        own = None
                if own is not None:
                    blocks[identity] = region.block(own)
        return {identity: blocks[identity] for identity in regions if identity in blocks}

    def _settings_lengths(self, region: Region) -> Sequence[int]:
        """Lengths for reads of settings: those of cyclic reads only if there are no others."""
        return [length for length in region.lengths if length not in self.cyclic_lengths] or region.lengths

    @staticmethod
    def _is_scarce(length: int, lengths: Sequence[int]) -> bool:
        """Whether half of the lengths up to one are in use."""
        return length - lengths[0] >= len(lengths) // 2

    def _ask(
        self, blocks: Mapping[int, Block], pending: Pending, regions: Mapping[int, Region]
    ) -> dict[int, Answer]:
        """Send the request for ``blocks`` and collect: sync read if they are all the same, otherwise bulk read."""
        if not blocks:
            self.port.clock.sleep(self.port.patience)  # until a length is free
            return {}
        clocks = {identity: regions[identity].clock for identity in blocks}
        self._record(blocks, pending, clocks)
        if self.protocol == 1.0:
            # GroupBulkRead of version 4 passes one argument too many with protocol 1.
            parameters: list[int] = []
            for identity, block in blocks.items():
                parameters += [block.length, identity, block.address]
            self._handler.bulkReadTx(self.port, parameters, len(parameters))
        elif len(set(blocks.values())) == 1:
            group = GroupSyncRead(self.port, self._handler, *next(iter(blocks.values())))
            for identity in blocks:
                group.addParam(identity)
            group.txPacket()
        else:
            group = GroupBulkRead(self.port, self._handler)
            for identity, block in blocks.items():
                group.addParam(identity, *block)
            group.txPacket()
        self.port.setPacketTimeout(self._size(blocks))
        return self._collect(pending, blocks, learn=True)

    # Requests and answers.

    def _size(self, blocks: Mapping[int, Block]) -> int:
        """Number of bytes of the answers."""
        return sum(block.length + self.overhead for block in blocks.values())

    def _wait_for_length(self, identity: int, lengths: Sequence[int], until: float | None) -> int | None:
        """A free answer length; waits for one if none is free.

        :param until: do not wait longer [s]; the result is then ``None``.
        """
        clock, mine = self.port.clock, self._lengths[identity]
        while True:
            now = clock.now()
            # Preferably one that is unused for twice as long, by which a later answer is recognised.
            for at in (now - LONGEST_DELAY, now):
                if (length := free_length(lengths, [mine], at)) is not None:
                    return length
            free_at = min(mine.expiry(length) for length in lengths)
            if until is not None and free_at > until:
                return None
            clock.sleep(max(1e-4, free_at - now))

    def _record(
        self, blocks: Mapping[int, Block], pending: Pending, clocks: Mapping[int, int | None] | None = None
    ) -> Pending:
        """Add the requests that are sent next, also if sending is then interrupted."""
        port, now = self.port, self.port.clock.now()
        request = 20 + 5 * len(blocks)
        asked = max(port.sent_until, now) + port.wire_time(request)
        wire_time = asked + port.wire_time(self._size(blocks)) - now
        for identity, block in blocks.items():
            clock = clocks[identity] if clocks is not None else None
            pending.setdefault(identity, {})[block.length] = Request(block, asked, clock)
            if block.length:
                self._lengths[identity].use(block.length, now, wire_time, clock is not None)
        return pending

    def _collect(
        self, pending: Pending, blocks: Mapping[int, Block], learn: bool
    ) -> dict[int, Answer]:
        """Collect answers of servos, in any order, until all have arrived or the timeout.

        :param pending: requests whose answers are accepted.
        :param blocks: what was requested last, by servo.
        :param learn: whether to use the delay of the answers; false if they may belong to another attempt.
        """
        port, counters = self.port, self.counters
        awaited = dict.fromkeys(blocks)
        answers: dict[int, Answer] = {}
        sampled: float | None = None
        damaged = False
        while awaited:
            packet, result = self._receive()
            if result == COMM_RX_TIMEOUT:
                counters.timeouts += len(awaited)
                break
            if result != COMM_SUCCESS:
                counters.corrupt += 1
                damaged = True
                port.push_back(self._rest(packet))
                if port.all_came or port.isPacketTimeout():
                    break
                continue
            identity, error, data = self._parse(packet)
            request = pending[identity].get(len(data)) if identity in awaited else None
            refused = self.is_refusal(error)
            if self.protocol == 1.0 and port.is_echo(bytes(packet)):
                counters.duplicates += 1
                port.expect_more(len(packet))
            elif request is not None and self._accepts(identity, request, data):
                del awaited[identity]
                time = request.asked
                if request.block != blocks[identity]:
                    time = self._sampled_before(request, len(packet))
                    port.expect_more(len(packet))
                else:
                    if sampled is None:
                        sampled = self._sampled()
                        if learn:
                            wire = port.wire_time(port.sent + port.received)
                            self.latency.learn(port.received_at - port.sent_at - wire)
                    time = sampled
                answers[identity] = Answer(data, error, time, request.block.address)
                counters.status_errors += refused
            elif refused and not data and identity in awaited:
                del awaited[identity]
                counters.status_errors += 1
            else:
                self._count(identity, len(data), request is not None)
                port.expect_more(len(data) + self.overhead)
        counters.answers += len(answers)
        if answers or not damaged:
            self._note(awaited, answers)
        return answers

    def _accepts(self, identity: int, request: Request, data: bytes) -> bool:
        """Whether an answer of a requested length is no copy of an older one."""
        if not data:
            return True
        clock = None
        if request.clock is not None:
            start = request.clock - request.block.address
            clock = int.from_bytes(data[start : start + 2], "little")
        return self._lengths[identity].accept(len(data), self.port.clock.now(), clock)

    def _count(self, identity: int, length: int, repeated: bool) -> None:
        """Count a packet that is no answer to the present request."""
        counters, now = self.counters, self.port.clock.now()
        if identity not in self._lengths:
            counters.foreign += 1
            return
        kind = "late" if not length else self._lengths[identity].kind(length, now)
        if repeated or kind == "duplicate":
            counters.duplicates += 1
        elif kind == "late":
            counters.late += 1
        elif kind == "unknown":
            counters.wrong_length += 1
        else:
            counters.overdue += 1
            self._overdue.append((now, f"servo {identity}"))

    def _check_delay(self) -> None:
        """Raise an error if answers are later than assumed, since they might be taken for others."""
        if len(self._overdue) < 2:
            return
        (before, _), (last, who) = self._overdue
        self._overdue.clear()
        if last - before < OVERDUE_TIME:
            raise ServoError(
                f"{who} on {self.port.port_name} answers more than {LONGEST_DELAY:g} s late, so that answers cannot be "
                "told apart: check the adapter, its driver and how busy this computer is"
            )

    def _note(self, silent: Iterable[int], answered: Iterable[int]) -> None:
        """Count consecutive missing answers of each servo, and send padding bytes at certain counts.

        After a packet with a corrupted length field, a servo waits for bytes that never come and takes the
        next packets for them (the AX-12 manual mentions a timeout of 100 ms). The padding completes that
        packet.
        """
        answers = dict.fromkeys(answered, 0)
        misses = {identity: self._misses.get(identity, 0) + 1 for identity in silent}
        self._misses |= answers | misses
        self.latency.tell(bool(answers))
        padding = max(PADDING_ALONE.get(count, 0) for count in misses.values()) if misses else 0
        if not answers:
            padding = max(padding, PADDING.get(self.latency.failures, 0))
        if padding:
            size = min(padding, LONGEST[self.protocol], int(PADDING_TIME / self.port.wire_time(1)))
            self.port.writePort(bytes(size))
            self.port.clock.sleep(self.port.wire_time(size))

    def is_refusal(self, error: int) -> bool:
        """Whether an error byte reports a rejected instruction, apart from hardware errors."""
        return bool(error & (0x7F if self.protocol == 2.0 else 0x5A))

    def is_damage(self, error: int) -> bool:
        """Whether an error byte reports a wrong checksum in the request."""
        return bool(error & 0x10) if self.protocol == 1.0 else error & 0x7F == 3

    def _rest(self, packet: Sequence[int]) -> bytes:
        """Bytes of a damaged packet from the next header on, which may be a valid packet."""
        data = bytes(packet)
        start = data.find(b"\xff\xff" if self.protocol == 1.0 else b"\xff\xff\xfd", 1)
        return b"" if start < 0 else data[start:]

    def _parse(self, packet: Sequence[int]) -> tuple[int, int, bytes]:
        """Servo, error byte and data of a status packet that the library accepted."""
        if self.protocol == 1.0:
            return packet[2], packet[4], bytes(packet[5 : max(5, 3 + packet[3])])
        length = packet[5] | packet[6] << 8
        return packet[4], packet[8], bytes(packet[9 : max(9, 5 + length)])

    def _sampled(self) -> float:
        """Estimate when the servos read their registers [s]: all at once, when they receive the request.

        That is no earlier than the end of the request on the wire, and no later than the arrival of the first
        answer minus the wire time of the received bytes. The error of the midpoint is at most half that
        interval (USB: about 0.5 ms). A servo that reads its registers only when it is its turn to answer is
        later by the answers ahead of it, 0.3 ms each at 1 Mbit/s.
        """
        port = self.port
        asked = port.sent_at + port.wire_time(port.sent)
        came = port.received_at - port.wire_time(port.received)
        if came >= asked:
            return asked + 0.5 * (came - asked)
        # A pseudo-terminal may be faster than a wire.
        return port.sent_at + 0.5 * (port.received_at - port.sent_at)

    def _sampled_before(self, request: Request, size: int) -> float:
        """The same for an answer to an earlier attempt [s]: before the present one was sent.

        :param size: of the answer [bytes].
        """
        came = self.port.received_at - self.port.wire_time(size)
        return min(request.asked + 0.5 * max(0.0, came - request.asked), self.port.sent_at)
