"""Packet exchange with servos: matches answers to requests, counts errors and retries.

The group reads of dynamixel_sdk stop at the first servo that does not answer and lose the answers of the
others; they never retry, and take any packet with the right ID and length. Therefore the library only builds,
sends and parses packets, and this module collects the answers. Each request has an answer length of its own
(:mod:`stribeck.servo.lengths`), so that late and repeated answers are not taken for others. It works with versions
3 and 4 of the library, whose signatures differ.
"""

from collections.abc import Mapping, Sequence

from dynamixel_sdk import GroupBulkRead
from dynamixel_sdk.robotis_def import COMM_RX_TIMEOUT, COMM_SUCCESS, INST_PING, INST_REBOOT, INST_SYNC_READ

from stribeck.servo.answers import SHORTEST_PATIENCE, Answer, Pending, Receiver, Request
from stribeck.servo.lengths import LONGEST_DELAY, Block, Region, free_length
from stribeck.servo.port import SLOW_PATIENCE, Port
from stribeck.servo.registers import BusDialect

ATTEMPTS = 20
"""Attempts for a packet to a single servo: enough with 1 % corrupt bytes."""

LONGEST_INTERVAL = 0.04
"""Longest interval in which a servo may have read its registers for a cyclic read [s]: their time is known to half of it. USB adapters
with the usual latency timer need 16 ms."""

PINGS = 8
"""Attempts to reach a servo that may be absent."""

BROADCAST = 0xFE
"""ID of all servos."""

PING_LENGTH = 3
"""Data bytes of the answer to a ping of protocol 2: model number and firmware version."""


class Link:
    """Link to the servos on a port, all with the same protocol.

    :param port: the port, not necessarily open yet.
    :param dialect: of the servos.
    :ivar cyclic_lengths: answer lengths that only reads in every cycle use, so that these stay short.
    """

    def __init__(self, port: Port, dialect: BusDialect) -> None:
        self.port, self.dialect, self.protocol = port, dialect, dialect.protocol
        self.receiver = Receiver(port, dialect)
        self.counters, self.latency = self.receiver.counters, self.receiver.latency
        self.cyclic_lengths: frozenset[int] = frozenset()
        self._unasked: list[int] = []
        self._handler, self._lengths = self.receiver.handler, self.receiver.lengths

    # One servo.

    def model_number(self, identity: int) -> int | None:
        """Model number of a servo, ``None`` if it does not answer, 0 if it only answers pings."""
        numbers: list[int] = []
        place = self.dialect.model_number
        for _ in range(PINGS):
            answer = self.read(identity, place, attempts=PINGS)
            if answer is None:
                return self.ping(identity)
            start = place.address - answer.address
            numbers.append(int.from_bytes(answer.data[start : start + 2], self.dialect.byte_order))
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
            answer = self.receiver.collect(pending, {identity: Block(0, length)}, learn=False).get(identity)
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
            packet, result = self.receiver.receive()
            if result == COMM_RX_TIMEOUT or (result != COMM_SUCCESS and port.isPacketTimeout()):
                return models
            if result == COMM_SUCCESS:
                identity, _, data = self.receiver.parse(packet)
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
        patient_until = clock.now() if attempts == 1 else until
        length = self._wait_for_length(identity, self._settings_lengths(region), patient_until)
        if length is None:
            return None
        blocks, pending = {identity: region.block(length)}, Pending()
        attempt = 0
        while True:
            self.port.patience = self.latency.patience if quick else SLOW_PATIENCE
            self._record(blocks, pending)
            self._handler.readTx(self.port, identity, *blocks[identity])
            answer = self.receiver.collect(pending, blocks, learn=not attempt).get(identity)
            attempt += 1
            self.receiver.check_delay()
            ended = attempt >= attempts if until is None else clock.now() >= until
            if answer is not None or ended:
                return answer
            self.counters.retries += 1

    def write(self, identity: int, address: int, data: bytes, patient: bool = True) -> int | None:
        """Write a register once and wait for an acknowledgement.

        :return: its error byte, or ``None`` without one. As it may acknowledge an earlier write, it proves nothing:
            read the register.
        """
        blocks = {identity: Block(address, 0)}
        self.port.patience = SLOW_PATIENCE if patient else self.latency.patience
        pending = self._record(blocks, {})
        self._handler.writeTxOnly(self.port, identity, address, len(data), list(data))
        self.port.setPacketTimeout(self.receiver.overhead)
        answer = self.receiver.collect(pending, blocks, learn=False).get(identity)
        return None if answer is None else answer.error

    def reboot(self, identity: int) -> None:
        """Restart a servo (protocol 2) once; whether it did is seen from its registers only."""
        self.port.patience = SLOW_PATIENCE
        pending = self._record({identity: Block(0, 0)}, {})
        self._lengths[identity].forget_clock()
        self._instruct(identity, INST_REBOOT)
        self.receiver.collect(pending, {identity: Block(0, 0)}, learn=False)

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
        self.port.setPacketTimeout(self.receiver.overhead + length)

    # Several servos at once.

    def write_many(self, address: int, size: int, values: Mapping[int, bytes]) -> None:
        """Write one register of several servos in one packet, which is not acknowledged."""
        parameters: list[int] = []
        for identity, data in values.items():
            parameters.append(identity)
            parameters.extend(data)
        self._handler.syncWriteTxOnly(self.port, address, size, parameters, len(parameters))

    def read_many(self, regions: Mapping[int, Region], until: float) -> dict[int, Answer]:
        """Read registers of several servos in every cycle: one request, one answer from each servo.

        Servos that do not answer are asked again, without the others, as long as the deadline ``until`` [s]
        leaves time for another attempt; there is at least one attempt. A missing servo may prevent those
        after it from answering, so every attempt begins with a different servo. Each attempt has other answer
        lengths, while they last: an answer has the time of the attempt that it belongs to, or of all with its length. One
        of an earlier call is not used, nor one that came so late that its time is not known (:data:`LONGEST_INTERVAL`).

        Where an attempt takes several requests (:data:`~stribeck.servo.registers.GroupRead`), it ends with the first that is not
        answered, so that it waits no longer than one request does; the next attempt, or the next call, begins with the others.

        :return: the answers, by servo.
        :raises ServoError: if answers are later than assumed.
        """
        answers: dict[int, Answer] = {}
        first = {identity: regions[identity] for identity in self._unasked if identity in regions}
        missing, pending = first | dict(regions), Pending()
        before: dict[int, Block] = {}
        while True:
            blocks = self._blocks(missing, cyclic=True, before=before)
            parts = self._parts(blocks)
            usual = self.latency.patience
            rest = until - self.port.clock.now() - self.port.wire_time(self._size(blocks))
            # The last attempt may use all the remaining time.
            self.port.patience = rest if usual < rest < 2.0 * usual and len(parts) < 2 else usual
            found, asked = self._ask(parts, pending, missing, to_end=False)
            came = {i: answer for i, answer in found.items() if answer.interval <= LONGEST_INTERVAL}
            self.receiver.check_delay()
            answers.update(came)
            before |= asked
            self._unasked = [identity for identity in blocks if identity not in asked]
            order = [i for i in missing if i not in came and i not in self._unasked]
            missing = {i: regions[i] for i in (*self._unasked, *order[1:], *order[:1])}
            shortest = self.port.wire_time(
                sum(region.length + self.receiver.overhead for region in missing.values())
            )
            if not missing or self.port.clock.now() + shortest + 0.5 * SHORTEST_PATIENCE > until:
                return answers
            self.counters.retries += bool(blocks)

    def read_once(
        self, regions: Mapping[int, Region], pending: Pending, patience: float
    ) -> dict[int, Answer]:
        """Read registers of several servos in one attempt, with answer lengths of their own; every servo is asked.

        :param pending: requests whose answers are accepted too; the new ones are added.
        :param patience: longest accepted delay of an answer [s].
        """
        self.port.patience = patience
        return self._ask(self._parts(self._blocks(regions, cyclic=False)), pending, regions)[0]

    def _blocks(
        self, regions: Mapping[int, Region], cyclic: bool, before: Mapping[int, Block] | None = None
    ) -> dict[int, Block]:
        """Blocks with free answer lengths, the same for all servos with the same registers if possible.

        A servo without such a length is left out; in a cycle, one without a clock repeats its oldest, and where it has been asked
        already the one of this cycle.

        :param before: blocks that the servos have been asked for in this cycle.
        """
        before = before or {}
        now, blocks = self.port.clock.now(), dict[int, Block]()
        groups: dict[Region, list[int]] = {}
        for identity, region in regions.items():
            groups.setdefault(region, []).append(identity)
        for region, group in groups.items():
            lengths: Sequence[int] = region.cyclic_lengths if cyclic else self._settings_lengths(region)
            dated = cyclic and region.clock is not None
            length = free_length(lengths, [self._lengths[i] for i in group], now, dated, LONGEST_DELAY)
            counted = any(i in before and not self._lengths[i].clock_runs for i in group)
            if length is not None and not counted and not (cyclic and self._is_scarce(length, lengths)):
                blocks |= dict.fromkeys(group, region.block(length))
                continue
            for identity in group:
                again = identity in before
                own = self._scarce_length(identity, lengths, now, dated, again) if cyclic else None
                own = free_length(lengths, [self._lengths[identity]], now) if not cyclic else own
                if own is not None:
                    blocks[identity] = region.block(own)
                elif again and region.clock is None:
                    blocks[identity] = before[identity]
        return blocks if len(groups) == 1 else {i: blocks[i] for i in regions if i in blocks}

    def _scarce_length(
        self, identity: int, lengths: Sequence[int], now: float, dated: bool, again: bool
    ) -> int | None:
        """Answer length for a cyclic read while many are in use, ``None`` to wait."""
        mine = self._lengths[identity]
        if not mine.clock_runs:
            return mine.of_cycle(lengths, now, again)
        length = free_length(lengths, [mine], now, dated, LONGEST_DELAY) or free_length(
            lengths, [mine], now, dated
        )
        # Nothing was answered for a while: the rest of the lengths has to last until the first are free again.
        soon = now - mine.last_sent < 2.0 * LONGEST_DELAY / len(lengths)
        return None if length is None or (soon and self._is_scarce(length, lengths)) else length

    def _settings_lengths(self, region: Region) -> Sequence[int]:
        """Lengths for reads of settings: those of cyclic reads only if there are no others."""
        return [length for length in region.lengths if length not in self.cyclic_lengths] or region.lengths

    @staticmethod
    def _is_scarce(length: int, lengths: Sequence[int]) -> bool:
        """Whether half of the lengths up to one are in use."""
        return length - lengths[0] >= len(lengths) // 2

    def _ask(
        self,
        parts: Sequence[Mapping[int, Block]],
        pending: Pending,
        regions: Mapping[int, Region],
        to_end: bool = True,
    ) -> tuple[dict[int, Answer], dict[int, Block]]:
        """Send one request for each part and collect the answers.

        :param to_end: whether to go on after a request that was not answered by all its servos in time.
        :return: the answers, and the blocks that were asked for.
        """
        if not parts:
            self.port.clock.sleep(self.port.patience)  # until a length is free
        answers, asked = dict[int, Answer](), dict[int, Block]()
        for part in parts:
            clocks = {identity: regions[identity].clock for identity in part}
            size = self._size(part)
            self._record(part, pending, size, clocks)
            self._request(part)
            self.port.setPacketTimeout(size)
            found = self.receiver.collect(pending, part, learn=True)
            answers, asked = answers | found, asked | dict(part)
            if not to_end and len(found) < len(part):
                break
        return answers, asked

    def _parts(self, blocks: Mapping[int, Block]) -> list[dict[int, Block]]:
        """The blocks that one request can ask for at a time: all, those that are alike, or one."""
        if "bulk" in self.dialect.group_read:
            return [dict(blocks)] if blocks else []
        parts: dict[object, dict[int, Block]] = {}
        for identity, block in blocks.items():
            parts.setdefault(block if self.dialect.group_read == "sync" else identity, {})[identity] = block
        return list(parts.values())

    def _request(self, blocks: Mapping[int, Block]) -> None:
        """Send one request to several servos."""
        block, alike = next(iter(blocks.values())), len(set(blocks.values())) == 1
        if self.dialect.group_read == "bulk":
            # GroupBulkRead of version 4 passes one argument too many with protocol 1.
            parameters: list[int] = []
            for identity, (address, length) in blocks.items():
                parameters += [length, identity, address]
            self._handler.bulkReadTx(self.port, parameters, len(parameters))
        elif self.protocol == 1.0:
            if len(blocks) == 1:
                self._handler.readTx(self.port, next(iter(blocks)), *block)
            else:  # dynamixel_sdk knows the sync read of protocol 2 only
                body = [*block, *blocks]
                packet = [0xFF, 0xFF, BROADCAST, len(body) + 2, INST_SYNC_READ, *body, 0]
                self._handler.txPacket(self.port, packet)
        elif alike:
            self._handler.syncReadTx(self.port, *block, list(blocks), len(blocks), *self.receiver.flag)
        else:
            group = GroupBulkRead(self.port, self._handler)
            for identity, each in blocks.items():
                group.addParam(identity, *each)
            group.txPacket()

    # Requests and answers.

    def _size(self, blocks: Mapping[int, Block]) -> int:
        """Number of bytes of the answers."""
        return sum(block.length + self.receiver.overhead for block in blocks.values())

    def _wait_for_length(self, identity: int, lengths: Sequence[int], until: float | None) -> int | None:
        """A free answer length; waits for one if none is free.

        :param until: do not wait longer [s]; the result is then ``None``.
        """
        clock, mine = self.port.clock, self._lengths[identity]
        while True:
            now = clock.now()
            for margin in (LONGEST_DELAY, 0.0):
                if (length := free_length(lengths, [mine], now, margin=margin)) is not None:
                    return length
            free_at = min(mine.expiry(length) for length in lengths)
            if until is not None and free_at > until:
                return None
            clock.sleep(max(1e-4, free_at - now))

    def _record(
        self,
        blocks: Mapping[int, Block],
        pending: Pending,
        size: int = 0,
        clocks: Mapping[int, int | None] | None = None,
    ) -> Pending:
        """Add the requests that are sent next, also if sending is then interrupted.

        :param size: of the answers [bytes].
        """
        port, now = self.port, self.port.clock.now()
        request = 20 + 5 * len(blocks)
        asked = max(port.sent_until, now) + port.wire_time(request)
        wire_time = asked + port.wire_time(size or self._size(blocks)) - now
        for identity, block in blocks.items():
            clock = clocks[identity] if clocks is not None else None
            requests = pending.setdefault(identity, {})
            first = requests.get(block.length)
            again = first is not None and first.block == block and clock is None
            requests[block.length] = (
                first._replace(repeated=True) if first and again else Request(block, asked, clock)
            )
            if block.length:
                self._lengths[identity].use(block.length, now, wire_time, clock is not None)
        return pending
