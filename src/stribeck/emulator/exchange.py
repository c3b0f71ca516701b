"""Executes an instruction on the servos of one bus and returns their answers in the order of sending."""

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.protocol import (
    BROADCAST,
    LONGEST,
    Error1,
    Error2,
    Instruction,
    Packet,
    encode_fast_status,
    encode_status,
    is_packet,
)

PING_ONLY, PING_AND_READ, ALL = 0, 1, 2
"""Values of ``status_return_level``: which instructions a servo answers."""


class StatusPacket(NamedTuple):
    """A status packet and the servo that sends it; for a fast read, the first servo."""

    servo: EmulatedServo
    data: bytes


class _Access(NamedTuple):
    """One servo's part of an instruction to several: read ``length`` bytes, or write ``data``."""

    servo: int
    address: int
    length: int
    data: bytes = b""


class _MalformedError(Exception):
    """An instruction has wrong parameters."""


def answers(servos: Sequence[EmulatedServo], protocol: float, packet: Packet) -> list[StatusPacket]:
    """Execute an instruction.

    :param servos: servos that receive it.
    :param protocol: of the packet; servos with the other protocol ignore it.
    """
    present = {servo.id: servo for servo in servos if servo.model.protocol == protocol}
    if not packet.intact:
        return _complaint(present, packet, Error2.CRC, Error1.CHECKSUM)
    for servo in present.values():
        servo.hear()
    several = _SEVERAL.get((protocol, packet.instruction))
    if protocol == 1.0 and packet.instruction in _GROUP_READS:
        way = _GROUP_READS[packet.instruction]
        present = {i: servo for i, servo in present.items() if servo.model.dialect.group_read == way}
    try:
        if several is not None:
            return several(present, packet.parameters)
        if packet.id == BROADCAST:
            replies = [_single(present[servo], packet, protocol) for servo in sorted(present)]
            return [reply for reply in replies if reply] if packet.instruction == Instruction.PING else []
        reply = _single(present[packet.id], packet, protocol) if packet.id in present else None
        return [reply] if reply else []
    except _MalformedError:
        return _complaint(present, packet, Error2.DATA_LENGTH, Error1.RANGE)


def _complaint(
    present: dict[int, EmulatedServo], packet: Packet, error: Error2, bits: Error1
) -> list[StatusPacket]:
    """Error status of the addressed servo, if it exists."""
    if packet.id not in present or not present[packet.id].model.dialect.refusals:
        return []
    reply = _status(present[packet.id], ALL, present[packet.id].status(error, bits))
    return [reply] if reply else []


def _status(servo: EmulatedServo, level: int, error: int, data: bytes = b"") -> StatusPacket | None:
    """A status packet, unless the servo's ``status_return_level`` is below ``level``."""
    if not _answers(servo, level):
        return None
    return StatusPacket(servo, encode_status(servo.model.protocol, servo.id, error, data))


def _answers(servo: EmulatedServo, level: int) -> bool:
    """Whether a servo answers instructions of a level; Feetech's levels begin with that of reading."""
    own = servo.memory.numbers["status_return_level"]
    return own + ALL - servo.model.dialect.answers_all >= level


def _single(servo: EmulatedServo, packet: Packet, protocol: float) -> StatusPacket | None:
    size = 1 if protocol == 1.0 else 2
    data = packet.parameters[size:]

    def address() -> int:
        if len(packet.parameters) < size:
            raise _MalformedError
        return int.from_bytes(packet.parameters[:size], "little")

    match packet.instruction:
        case Instruction.PING:
            numbers = servo.memory.numbers
            model = numbers["model_number"].to_bytes(2, "little") + bytes((numbers["firmware_version"],))
            return _status(servo, PING_ONLY, servo.status(), b"" if protocol == 1.0 else model)
        case Instruction.READ:
            if len(data) != size:
                raise _MalformedError
            return _status(servo, PING_AND_READ, *servo.read(address(), int.from_bytes(data, "little")))
        case Instruction.WRITE:
            return _status(servo, ALL, servo.write(address(), data))
        case Instruction.REG_WRITE:
            return _status(servo, ALL, servo.register(address(), data))
        case Instruction.ACTION:
            return _status(servo, ALL, servo.act())
        case Instruction.REBOOT if protocol == 2.0:
            reply = _status(servo, ALL, servo.status())
            servo.reboot()
            return reply
        case _ if not servo.model.dialect.refusals:
            return None
        case Instruction.FACTORY_RESET | Instruction.CLEAR:
            return _status(servo, ALL, servo.status(Error2.RESULT_FAIL, Error1.INSTRUCTION))
    return _status(servo, ALL, servo.status(Error2.INSTRUCTION, Error1.INSTRUCTION))


_READS = (
    Instruction.SYNC_READ,
    Instruction.FAST_SYNC_READ,
    Instruction.BULK_READ,
    Instruction.FAST_BULK_READ,
)

_GROUP_READS = {int(Instruction.SYNC_READ): "sync", int(Instruction.BULK_READ): "bulk"}
"""Which servos of protocol 1 know an instruction, by their dialect."""

_LEVELS = {int(Instruction.PING): PING_ONLY, int(Instruction.READ): PING_AND_READ}
"""The least ``status_return_level`` at which an instruction to one servo is answered, unless it is :data:`ALL`."""


def answer_expected(servos: Sequence[EmulatedServo], piece: bytes) -> bool:
    """Whether bytes are an instruction that a servo would answer; only their head is examined.

    :param piece: of :func:`stribeck.emulator.protocol.pieces_of`.
    """
    if not is_packet(piece):
        return False
    protocol = 2.0 if piece.startswith(b"\xff\xff\xfd\x00") else 1.0
    servo_id, instruction = (piece[4], piece[7]) if protocol == 2.0 else (piece[2], piece[4])
    if servo_id == BROADCAST:
        return instruction in (Instruction.PING, *_READS)
    level = _LEVELS.get(instruction, ALL)
    return any(
        servo.id == servo_id and servo.model.protocol == protocol and _answers(servo, level)
        for servo in servos
    )


# Instructions to several servos.


def _sync_reads(parameters: bytes, size: int) -> Iterator[_Access]:
    """Parse address and length, of ``size`` bytes each, then the IDs."""
    if len(parameters) < 2 * size + 1:
        raise _MalformedError
    address, length = (int.from_bytes(parameters[k : k + size], "little") for k in (0, size))
    for servo in parameters[2 * size :]:
        yield _Access(servo, address, length)


def _bulk_reads(parameters: bytes, protocol: float) -> Iterator[_Access]:
    """Parse protocol 2: ID, address and length for each servo. Protocol 1: a zero, then length, ID and address for each."""
    if protocol == 1.0:
        parameters, order, layout = parameters[1:], (1, 2, 0), "BBB"
    else:
        order, layout = (0, 1, 2), "<BHH"
    if not parameters or len(parameters) % struct.calcsize(layout):
        raise _MalformedError
    for part in struct.iter_unpack(layout, parameters):
        yield _Access(*(part[k] for k in order))


def _sync_writes(parameters: bytes, size: int) -> Iterator[_Access]:
    """Parse address and length, of ``size`` bytes each, then ID and data for each servo."""
    head = 2 * size
    if len(parameters) < head:
        raise _MalformedError
    address, length = (int.from_bytes(parameters[k : k + size], "little") for k in (0, size))
    if not length or (len(parameters) - head) % (length + 1):
        raise _MalformedError
    for k in range(head, len(parameters), length + 1):
        yield _Access(parameters[k], address, length, parameters[k + 1 : k + 1 + length])


def _bulk_writes(parameters: bytes) -> Iterator[_Access]:
    k = 0
    while k < len(parameters):
        if len(parameters) < k + 5:
            raise _MalformedError
        servo, address, length = struct.unpack_from("<BHH", parameters, k)
        k += 5 + length
        if len(parameters) < k:
            raise _MalformedError
        yield _Access(servo, address, length, parameters[k - length : k])


def _read_each(present: dict[int, EmulatedServo], parts: Iterator[_Access]) -> list[StatusPacket]:
    replies = [
        _status(present[part.servo], PING_AND_READ, *present[part.servo].read(part.address, part.length))
        for part in parts
        if part.servo in present
    ]
    return [reply for reply in replies if reply]


def _read_fast(present: dict[int, EmulatedServo], parts: Iterator[_Access]) -> list[StatusPacket]:
    """One packet from all servos; none if a servo is missing or the packet would be too long."""
    asked = list(parts)
    if any(part.servo not in present for part in asked):
        return []
    pieces = []
    for part in asked:
        error, data = present[part.servo].read(part.address, part.length)
        pieces.append((part.servo, error, data or bytes(part.length)))
    packet = encode_fast_status(pieces)
    return [StatusPacket(present[asked[0].servo], packet)] if len(packet) <= LONGEST else []


def _write_each(present: dict[int, EmulatedServo], parts: Iterator[_Access]) -> list[StatusPacket]:
    for part in list(parts):
        if part.servo in present:
            present[part.servo].write(part.address, part.data)
    return []


_SEVERAL: dict[tuple[float, int], Callable[[dict[int, EmulatedServo], bytes], list[StatusPacket]]] = {
    (2.0, Instruction.SYNC_READ): lambda present, data: _read_each(present, _sync_reads(data, 2)),
    (2.0, Instruction.FAST_SYNC_READ): lambda present, data: _read_fast(present, _sync_reads(data, 2)),
    (2.0, Instruction.BULK_READ): lambda present, data: _read_each(present, _bulk_reads(data, 2.0)),
    (2.0, Instruction.FAST_BULK_READ): lambda present, data: _read_fast(present, _bulk_reads(data, 2.0)),
    (2.0, Instruction.SYNC_WRITE): lambda present, data: _write_each(present, _sync_writes(data, 2)),
    (2.0, Instruction.BULK_WRITE): lambda present, data: _write_each(present, _bulk_writes(data)),
    (1.0, Instruction.SYNC_READ): lambda present, data: _read_each(present, _sync_reads(data, 1)),
    (1.0, Instruction.BULK_READ): lambda present, data: _read_each(present, _bulk_reads(data, 1.0)),
    (1.0, Instruction.SYNC_WRITE): lambda present, data: _write_each(present, _sync_writes(data, 1)),
}
"""Instructions to several servos, by protocol."""
