"""Receives status packets of a servo bus and matches them to the requests that they answer.

Each request has an answer length of its own (:mod:`stribeck.servo.lengths`). Other packets are counted by cause and
dropped.
"""

import inspect
from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dynamixel_sdk.robotis_def import COMM_RX_TIMEOUT, COMM_SUCCESS

from stribeck.servo.lengths import LONGEST_DELAY, AnswerLengths, Block
from stribeck.servo.packets import packet_handler, whole_packet
from stribeck.servo.port import SLOW_PATIENCE, NoAnswerError, Port
from stribeck.servo.registers import BusDialect, Register

LONGEST = {1.0: 259, 2.0: 1031}
"""Longest packet [bytes], by protocol."""

PADDING = {3: 256, 6: 256, 9: 1031, 12: 256, 15: 1031}
"""Padding bytes that complete a damaged packet, by the number of consecutive unanswered attempts; one corrupt
byte in a length field is more likely than two."""

PADDING_ALONE = {12: 1031}
"""Padding bytes by the number of consecutive attempts without an answer from one servo while others may answer."""

PADDING_TIME = 0.015
"""Maximum wire time of the padding [s]."""

OVERDUE_TIME = 1.0
"""Two answers within this time [s] that are later than :data:`~stribeck.servo.lengths.LONGEST_DELAY` are an error;
a single one may be a damaged packet with a valid checksum."""

SHORTEST_PATIENCE, LONGEST_PATIENCE = 8e-4, 4e-2
"""Bounds of :attr:`Latency.patience` while the servos move [s]."""

GROWN_PATIENCE = 8e-3
"""Upper bound of :attr:`Latency.patience` while no servo answers [s]; must not extend a stall by much."""

PATIENCE_MARGIN = 5e-4
"""Addition to 1.5 times the median delay [s]."""

MEMORY = 64
"""Number of answers from which the delay is estimated."""


class Latency:
    """Estimate, from answers to first attempts, of the delay of answers beyond their wire time.

    The timeout :attr:`patience` is 1.5 times the median delay plus 0.5 ms: a lost packet costs little time, a
    slow adapter is not mistaken for packet loss, and single outliers have no effect. The next attempt still
    accepts a late answer. After many unanswered attempts the timeout grows, in case the adapter has become
    slower.

    :ivar failures: consecutive unanswered attempts.
    """

    def __init__(self) -> None:
        self._delays: deque[float] = deque()
        self._ordered: list[float] = []
        self._usual = SLOW_PATIENCE
        self.failures = 0

    def learn(self, delay: float) -> None:
        """Add the delay of an answer to a first attempt [s]."""
        self._delays.append(delay)
        insort(self._ordered, delay)
        if len(self._delays) > MEMORY:
            del self._ordered[bisect_left(self._ordered, self._delays.popleft())]
        usual = 1.5 * self._ordered[len(self._ordered) // 2] + PATIENCE_MARGIN
        self._usual = min(max(usual, SHORTEST_PATIENCE), LONGEST_PATIENCE)

    def tell(self, answered: bool) -> None:
        """Record whether any servo answered an attempt."""
        self.failures = 0 if answered else self.failures + 1

    @property
    def patience(self) -> float:
        """Longest accepted delay of an answer [s]."""
        grown = PATIENCE_MARGIN * 2.0 ** min(self.failures - 10, 10)
        return max(self._usual, min(grown, GROWN_PATIENCE))


class Answer(NamedTuple):
    """A status packet.

    :param data: the requested bytes; empty for an acknowledgement.
    :param time: best estimate of when the servo read its registers, steady clock [s].
    :param address: of the first byte of ``data``.
    :param interval: length of the interval in which it read them, around ``time`` [s].
    """

    data: bytes
    error: int
    time: float
    address: int = 0
    interval: float = 0.0

    def raw(self, register: Register) -> int:
        """Unsigned value of a register that the data contain."""
        start = register.address - self.address
        return register.from_bytes(self.data[start : start + register.size])


class Request(NamedTuple):
    """A request to one servo whose answer is awaited.

    :param asked: when its last byte has passed the wire [s].
    :param clock: address of the servo's clock if the answer contains it.
    :param repeated: whether it was sent again for an answer of the same length, which may answer any of them; ``asked`` is that
        of the first.
    """

    block: Block
    asked: float
    clock: int | None = None
    repeated: bool = False


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


class Receiver:
    """Status packets of the servos on a port, all with the same protocol.

    :param port: the port, not necessarily open yet.
    :param dialect: of the servos.
    :ivar lengths: answer lengths of each servo that was asked.
    :ivar overhead: number of bytes of a status packet without its data.
    :ivar handler: packet handler of dynamixel_sdk.
    :ivar flag: argument for its "fast" instructions, which protocol 2 takes since version 3.8.
    """

    def __init__(self, port: Port, dialect: BusDialect) -> None:
        self.port, self.dialect, self.protocol = port, dialect, dialect.protocol
        self.counters, self.latency = Counters(), Latency()
        self.lengths: defaultdict[int, AnswerLengths] = defaultdict(AnswerLengths)
        self.handler, self.overhead = packet_handler(self.protocol), 6 if self.protocol == 1.0 else 11
        has_flag = "fast_option" in inspect.signature(self.handler.rxPacket).parameters
        self.flag = (False,) if has_flag else ()
        self._misses: dict[int, int] = {}
        self._overdue: deque[tuple[float, str]] = deque(maxlen=2)

    def receive(self) -> tuple[Sequence[int], int]:
        """The next packet and its result; a whole and undamaged packet of protocol 2 does without the library."""
        if self.protocol == 2.0:
            packet = whole_packet(self.port.received_bytes())
            if packet is not None:
                self.port.readPort(len(packet))
                return self.handler.removeStuffing(packet), int(COMM_SUCCESS)
        found: tuple[Sequence[int], int] = self.handler.rxPacket(self.port, *self.flag)
        return found

    def collect(self, pending: Pending, blocks: Mapping[int, Block], learn: bool) -> dict[int, Answer]:
        """Collect answers of servos, in any order, until all have arrived or the timeout.

        :param pending: requests whose answers are accepted.
        :param blocks: what was requested last, by servo.
        :param learn: whether to use the delay of the answers; false if they may belong to another attempt.
        """
        port, counters = self.port, self.counters
        awaited = dict.fromkeys(blocks)
        answers: dict[int, Answer] = {}
        sampled: tuple[float, float] | None = None
        damaged = False
        while awaited:
            packet, result = self.receive()
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
            identity, error, data = self.parse(packet)
            request = pending[identity].get(len(data)) if identity in awaited else None
            refused = self.dialect.is_refusal(error)
            if self.protocol == 1.0 and port.is_echo(bytes(packet)):
                counters.duplicates += 1
                port.expect_more(len(packet))
            elif request is not None and self._accepts(identity, request, data):
                del awaited[identity]
                if request.repeated or request.block != blocks[identity]:
                    sampled_at = self._sampled_before(request, len(packet))
                    port.expect_more(len(packet))
                else:
                    if sampled is None:
                        sampled = self._sampled()
                        if learn:
                            wire = port.wire_time(port.sent + port.received)
                            self.latency.learn(port.received_at - port.sent_at - wire)
                    sampled_at = sampled
                middle, interval = sampled_at
                answers[identity] = Answer(data, error, middle, request.block.address, interval)
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
        return self.lengths[identity].accept(len(data), self.port.clock.now(), clock)

    def _count(self, identity: int, length: int, repeated: bool) -> None:
        """Count a packet that is no answer to the present request."""
        counters, now = self.counters, self.port.clock.now()
        if identity not in self.lengths:
            counters.foreign += 1
            return
        kind = "late" if not length else self.lengths[identity].kind(length, now)
        if repeated or kind == "duplicate":
            counters.duplicates += 1
        elif kind == "late":
            counters.late += 1
        elif kind == "unknown":
            counters.wrong_length += 1
        else:
            counters.overdue += 1
            self._overdue.append((now, f"servo {identity}"))

    def check_delay(self) -> None:
        """Raise :class:`~stribeck.servo.port.NoAnswerError` if answers are later than assumed, since they might be taken for others."""
        if len(self._overdue) < 2:
            return
        (before, _), (last, who) = self._overdue
        self._overdue.clear()
        if last - before < OVERDUE_TIME:
            raise NoAnswerError(
                f"{who} on {self.port.port_name} answers more than {LONGEST_DELAY:g} s late, so that answers "
                "cannot be matched to requests: check the adapter, its driver, and the load of this computer"
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

    def _rest(self, packet: Sequence[int]) -> bytes:
        """Bytes of a damaged packet from the next header on, which may be a valid packet."""
        data = bytes(packet)
        start = data.find(b"\xff\xff" if self.protocol == 1.0 else b"\xff\xff\xfd", 1)
        return b"" if start < 0 else data[start:]

    def parse(self, packet: Sequence[int]) -> tuple[int, int, bytes]:
        """Servo, error byte and data of a status packet that the library accepted."""
        if self.protocol == 1.0:
            return packet[2], packet[4], bytes(packet[5 : max(5, 3 + packet[3])])
        length = packet[5] | packet[6] << 8
        return packet[4], packet[8], bytes(packet[9 : max(9, 5 + length)])

    def _sampled(self) -> tuple[float, float]:
        """Estimate when the servos read their registers: all at once, when they receive the request.

        That is no earlier than the end of the request on the wire, and no later than the arrival of the first
        answer minus the wire time of the received bytes. The error of the midpoint is at most half that
        interval (USB: about 0.5 ms). A servo that reads its registers only when it is its turn to answer is
        later by the answers ahead of it, 0.3 ms each at 1 Mbit/s.

        :return: the midpoint and the length of the interval [s].
        """
        port = self.port
        asked = port.sent_at + port.wire_time(port.sent)
        came = port.received_at - port.wire_time(port.received)
        if came < asked:  # a pseudo-terminal may be faster than a wire
            asked, came = port.sent_at, port.received_at
        return asked + 0.5 * (came - asked), came - asked

    def _sampled_before(self, request: Request, size: int) -> tuple[float, float]:
        """The same for an answer to an earlier attempt, read before the present one was sent, or to any of several.

        :param size: of the answer [bytes].
        """
        came = self.port.received_at - self.port.wire_time(size)
        until = max(request.asked, came if request.repeated else min(came, self.port.sent_at))
        return request.asked + 0.5 * (until - request.asked), until - request.asked
