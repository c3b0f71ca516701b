"""Packet exchange with servos: matches answers to requests, counts errors and retries.

The group reads of dynamixel_sdk stop at the first servo that does not answer and lose the answers of the
others; they never retry, and silently drop packets from other servos. Therefore the library only builds,
sends and parses packets, and this module collects the answers. It works with versions 3 and 4 of the library,
whose signatures differ.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dynamixel_sdk import GroupBulkRead, GroupSyncRead, PacketHandler
from dynamixel_sdk.robotis_def import COMM_RX_TIMEOUT, COMM_SUCCESS, INST_PING

from stribeck.servo.port import SLOW_PATIENCE, Port

ATTEMPTS = 20
"""Attempts for a packet to a single servo: enough with 1 % corrupt bytes."""

PINGS = 8
"""Attempts to ping or to restart a servo that may be absent."""

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


class Block(NamedTuple):
    """A contiguous block of a control table: first address and number of bytes."""

    address: int
    length: int


MODEL_NUMBER = Block(0, 2)
"""Location of the model number in every servo."""


class Answer(NamedTuple):
    """A status packet.

    :param data: the requested bytes; empty for an acknowledgement.
    :param time: best estimate of when the servo read its registers, steady clock [s].
    """

    data: bytes
    error: int
    time: float


@dataclass
class Counters:
    """Events on the bus since the port was first opened.

    :param answers: valid answers.
    :param timeouts: missing answers.
    :param corrupt: packets that are truncated or have a wrong checksum.
    :param foreign: packets from servos that were not asked, or duplicate answers.
    :param wrong_length: packets with more or less data than requested.
    :param status_errors: answers that report a rejected instruction.
    :param retries: packets sent again.
    :param longest_gap: longest time between two valid answers of one servo while it was polled [s].
    """

    answers: int = 0
    timeouts: int = 0
    corrupt: int = 0
    foreign: int = 0
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
    """

    port: Port
    protocol: float
    counters: Counters = field(default_factory=Counters)
    latency: Latency = field(default_factory=Latency)

    def __post_init__(self) -> None:
        self._misses: dict[int, int] = {}
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

    def ping(self, identity: int, attempts: int = PINGS) -> int | None:
        """Model number of a servo, ``None`` if it does not answer, 0 if its model number cannot be read.

        The library's ping would mistake a late answer to another packet for the model number.
        """
        packet = [0xFF, 0xFF, identity, 2, INST_PING, 0]
        if self.protocol == 2.0:
            packet = [0xFF, 0xFF, 0xFD, 0x00, identity, 3, 0, INST_PING, 0, 0]
        length = 3 if self.protocol == 2.0 else 0
        for attempt in range(attempts):
            self.port.patience = SLOW_PATIENCE
            self._handler.txPacket(self.port, list(packet))
            self.port.setPacketTimeout(self.overhead + length)
            answer = self._collect({identity: length}, learn=False).get(identity)
            if answer is not None:
                if self.protocol == 1.0:
                    answer = self.read(identity, MODEL_NUMBER)
                return int.from_bytes(answer.data[:2], "little") if answer is not None else 0
            self.counters.retries += attempt + 1 < attempts
        return None

    def find_all(self) -> dict[int, int]:
        """Model numbers of all servos that answer a broadcast ping; empty with protocol 1, which has none."""
        models, _ = self._handler.broadcastPing(self.port)
        return {identity: int(entry[0]) for identity, entry in (models or {}).items()}

    def read(self, identity: int, block: Block, attempts: int = ATTEMPTS) -> Answer | None:
        """Read a block of a servo's control table; ``None`` if it does not answer."""
        for attempt in range(attempts):
            self.port.patience = SLOW_PATIENCE if attempts > 1 else self.latency.patience
            self._handler.readTx(self.port, identity, *block)
            answer = self._collect({identity: block.length}, learn=not attempt).get(identity)
            if answer is not None:
                return self._settled(answer, attempt)
            self.counters.retries += attempt + 1 < attempts
        return None

    def write(
        self, identity: int, address: int, raw: int, size: int, attempts: int = ATTEMPTS, patient: bool = True
    ) -> Answer | None:
        """Write a register and wait for the acknowledgement; ``None`` if there is none."""
        data = list(raw.to_bytes(size, "little"))
        for attempt in range(attempts):
            self.port.patience = SLOW_PATIENCE if patient else self.latency.patience
            self._handler.writeTxOnly(self.port, identity, address, size, data)
            self.port.setPacketTimeout(self.overhead)
            answer = self._collect({identity: 0}, learn=not attempt).get(identity)
            if answer is not None and not self._arrived_damaged(answer.error):
                return self._settled(answer, attempt)
            self.counters.retries += attempt + 1 < attempts
        return None

    def _settled(self, answer: Answer, attempt: int) -> Answer:
        """After a retry, discard late answers to earlier attempts, which the next request might accept."""
        if attempt:
            self.port.settle(self.latency.patience)
        return answer

    def reboot(self, identity: int) -> None:
        """Restart a servo (protocol 2), again if it does not acknowledge; use a ping to check that it came back."""
        for _ in range(PINGS):
            self.port.patience = SLOW_PATIENCE
            if self._handler.reboot(self.port, identity)[0] == COMM_SUCCESS:
                return

    # Several servos at once.

    def write_many(self, address: int, size: int, values: Mapping[int, int]) -> None:
        """Write one register of several servos in one packet, which is not acknowledged."""
        parameters: list[int] = []
        for identity, raw in values.items():
            parameters.append(identity)
            parameters.extend(raw.to_bytes(size, "little"))
        self._handler.syncWriteTxOnly(self.port, address, size, parameters, len(parameters))

    def read_many(self, blocks: Mapping[int, Block], until: float) -> dict[int, Answer]:
        """Read blocks of several servos: one request, one answer from each servo.

        Servos that do not answer are asked again, without the others, as long as the deadline ``until`` [s]
        leaves time for another attempt; there is at least one attempt. A missing servo may prevent those
        after it from answering, so every attempt begins with a different servo.

        :return: the answers, by servo.
        """
        answers: dict[int, Answer] = {}
        missing = dict(blocks)
        before: float | None = None
        while True:
            size = sum(block.length + self.overhead for block in missing.values())
            usual = self.latency.patience
            rest = until - self.port.clock.now() - self.port.wire_time(size)
            # The last attempt may use all the remaining time.
            self.port.patience = rest if usual < rest < 2.0 * usual else usual
            self._ask(missing)
            lengths = {identity: block.length for identity, block in missing.items()}
            came = self._collect(lengths, before is None, before)
            before = self._asked
            answers.update(came)
            order = [identity for identity in missing if identity not in came]
            shortest = self.port.wire_time(sum(blocks[identity].length + self.overhead for identity in order))
            if not order or self.port.clock.now() + shortest + 0.5 * SHORTEST_PATIENCE > until:
                return answers
            self.counters.retries += 1
            missing = {identity: blocks[identity] for identity in (*order[1:], order[0])}

    def _ask(self, blocks: Mapping[int, Block]) -> None:
        """Send the request for ``blocks``: sync read if they are all the same, otherwise bulk read."""
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
        self.port.setPacketTimeout(sum(block.length + self.overhead for block in blocks.values()))

    def _collect(
        self, lengths: Mapping[int, int], learn: bool, before: float | None = None
    ) -> dict[int, Answer]:
        """Collect valid answers of the requested servos, in any order, until all have arrived or the timeout.

        :param learn: whether to use the delay of the answers; false after a retry, whose answers may belong
            to the previous attempt.
        :param before: when the servos received the previous attempt [s], ``None`` if this is the first.
        """
        port, counters = self.port, self.counters
        awaited = dict(lengths)
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
            if identity not in awaited:
                counters.foreign += 1
                port.expect_more(len(data) + self.overhead)
            elif len(data) == awaited[identity]:
                del awaited[identity]
                if sampled is None:
                    sampled = self._sampled(before)
                    if learn:
                        wire = port.wire_time(port.sent + port.received)
                        self.latency.learn(port.received_at - port.sent_at - wire)
                answers[identity] = Answer(data, error, sampled)
                counters.status_errors += self.is_refusal(error)
            elif self.is_refusal(error):
                del awaited[identity]
                counters.status_errors += 1
            else:
                counters.wrong_length += 1
                port.expect_more(len(data) + self.overhead)
        counters.answers += len(answers)
        if answers or not damaged:
            self._note(awaited, answers)
        return answers

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

    def _arrived_damaged(self, error: int) -> bool:
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

    @property
    def _asked(self) -> float:
        """When the last packet ended on the wire [s]."""
        return self.port.sent_at + self.port.wire_time(self.port.sent)

    def _sampled(self, before: float | None) -> float:
        """Estimate when the servos read their registers [s]: all at once, when they receive the request.

        That is no earlier than the end of the request on the wire, and no later than the arrival of the first
        answer minus the wire time of the received bytes. The error of the midpoint is at most half that
        interval (USB: about 0.5 ms). A servo that reads its registers only when it is its turn to answer is
        later by the answers ahead of it, 0.3 ms each at 1 Mbit/s. An answer that arrives earlier than
        possible belongs to the previous attempt.
        """
        port, asked = self.port, self._asked
        came = port.received_at - port.wire_time(port.received)
        if came >= asked:
            return asked + 0.5 * (came - asked)
        if before is not None and before < came:
            return before + 0.5 * (came - before)
        # A pseudo-terminal may be faster than a wire.
        return port.sent_at + 0.5 * (port.received_at - port.sent_at)
