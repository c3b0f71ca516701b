r"""Packets of the Dynamixel protocols 1.0 and 2.0: bytes to packets and back.

Pure functions and a stream parser, without I/O. Protocol 1 protects a packet by the complement of a sum.
Protocol 2 uses a CRC-16 with polynomial 0x8005 and initial value 0, and byte stuffing where content would
look like a header. Source: ROBOTIS e-manual, "Protocol 1.0", "Protocol 2.0", "CRC".
"""

from enum import IntEnum
from typing import NamedTuple

from stribeck.servo.packets import crc16

BROADCAST = 0xFE
"""ID that addresses all servos."""

LONGEST = 1024
"""Longest packet that a servo accepts [bytes]; larger lengths are treated as corrupt."""


class Instruction(IntEnum):
    """Instruction codes, the same in both protocols."""

    PING = 0x01
    READ = 0x02
    WRITE = 0x03
    REG_WRITE = 0x04
    ACTION = 0x05
    FACTORY_RESET = 0x06
    REBOOT = 0x08
    CLEAR = 0x10
    STATUS = 0x55
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83
    FAST_SYNC_READ = 0x8A
    BULK_READ = 0x92
    BULK_WRITE = 0x93
    FAST_BULK_READ = 0x9A


class Error1(IntEnum):
    """Bits of the error byte of protocol 1 for invalid instructions."""

    ANGLE_LIMIT = 0x02
    RANGE = 0x08
    CHECKSUM = 0x10
    INSTRUCTION = 0x40


class Error2(IntEnum):
    """Error numbers of protocol 2."""

    RESULT_FAIL = 0x01
    INSTRUCTION = 0x02
    CRC = 0x03
    DATA_RANGE = 0x04
    DATA_LENGTH = 0x05
    DATA_LIMIT = 0x06
    ACCESS = 0x07


ALERT = 0x80
"""Bit of the error byte of protocol 2: the servo has a hardware error."""


class Packet(NamedTuple):
    """One packet.

    :param id: receiver of an instruction, or sender of a status packet.
    :param instruction: instruction; for status packets of protocol 1 the error.
    :param parameters: the rest; for status packets of protocol 2 it begins with the error.
    :param intact: whether its checksum is correct.
    """

    id: int
    instruction: int
    parameters: bytes = b""
    intact: bool = True


def checksum(data: bytes) -> int:
    """Checksum of protocol 1: complement of the sum, one byte."""
    return ~sum(data) & 0xFF


def encode(protocol: float, packet: Packet) -> bytes:
    """Encode a packet. Status packets of protocol 1 have the error in place of the instruction."""
    if protocol == 1.0:
        body = bytes((packet.id, len(packet.parameters) + 2, packet.instruction)) + packet.parameters
        return b"\xff\xff" + body + bytes((checksum(body),))
    content = stuffed(bytes((packet.instruction,)) + packet.parameters)
    head = b"\xff\xff\xfd\x00" + bytes((packet.id,)) + (len(content) + 2).to_bytes(2, "little")
    return head + content + crc16(head + content).to_bytes(2, "little")


def encode_status(protocol: float, servo: int, error: int, data: bytes = b"") -> bytes:
    """Encode a status packet."""
    if protocol == 1.0:
        return encode(1.0, Packet(servo, error, data))
    return encode(2.0, Packet(servo, Instruction.STATUS, bytes((error,)) + data))


def encode_fast_status(parts: list[tuple[int, int, bytes]]) -> bytes:
    """Encode the single status packet with which several servos answer a fast read.

    Each servo appends its error, ID, data and the CRC of all bytes so far, without byte stuffing.

    :param parts: (servo, error, data) in the order of the request.
    """
    length = 1 + sum(4 + len(data) for _, _, data in parts)
    packet = b"\xff\xff\xfd\x00" + bytes((BROADCAST,)) + length.to_bytes(2, "little")
    packet += bytes((Instruction.STATUS,))
    for servo, error, data in parts:
        packet += bytes((error, servo)) + data
        packet += crc16(packet).to_bytes(2, "little")
    return packet


def stuffed(content: bytes) -> bytes:
    """Insert 0xFD after each 0xFF 0xFF 0xFD, which would look like a header (byte stuffing)."""
    return content.replace(b"\xff\xff\xfd", b"\xff\xff\xfd\xfd")


def unstuffed(content: bytes) -> bytes:
    """Remove the bytes that :func:`stuffed` inserts."""
    return content.replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")


def packet_size(protocol: float, data: bytes) -> int | None:
    """Size of the packet at the start of ``data``, after its header; ``None`` if not yet known, 0 if there is none."""
    if protocol == 1.0:
        if len(data) < 4:
            return 0 if len(data) == 3 and data[2] == 0xFF else None
        return data[3] + 4 if data[2] != 0xFF and data[3] >= 2 else 0
    if len(data) < 7:
        return 0 if len(data) > 3 and data[3] != 0x00 else None
    length = data[5] + 256 * data[6]
    return length + 7 if data[3] == 0x00 and 3 <= length <= LONGEST else 0


def pieces_of(data: bytes) -> list[bytes]:
    """Bytes cut where packets of either protocol begin; the first piece may be none, the last one incomplete."""
    pieces, start, place = [], 0, 0
    while (place := data.find(b"\xff\xff", place)) >= 0:
        protocol = 2.0 if data.startswith(b"\xff\xff\xfd\x00", place) else 1.0
        size = packet_size(protocol, data[place : place + 7])
        if not size or len(data) < place + size:
            place += 1
            continue
        if place > start:
            pieces.append(data[start:place])
        pieces.append(data[place : place + size])
        start = place = place + size
    return [*pieces, data[start:]] if start < len(data) else pieces


def is_packet(piece: bytes) -> bool:
    """Whether a piece of :func:`pieces_of` is a packet, by its header and size."""
    protocol = 2.0 if piece.startswith(b"\xff\xff\xfd\x00") else 1.0
    return piece.startswith(b"\xff\xff") and packet_size(protocol, piece[:7]) == len(piece)


class PacketParser:
    """Finds packets in a stream of bytes, despite noise and damage.

    Bytes that do not start a packet are skipped. After a packet with a wrong checksum the search continues after its
    header, so that a damaged packet does not hide the following ones.

    :param protocol: 1.0 or 2.0.
    """

    def __init__(self, protocol: float) -> None:
        self.protocol = protocol
        self._header = b"\xff\xff" if protocol == 1.0 else b"\xff\xff\xfd"
        self._waiting = b""

    @property
    def pending(self) -> bool:
        """Whether a packet is incomplete."""
        return bool(self._waiting)

    def feed(self, data: bytes) -> list[Packet]:
        """Add bytes and return the packets that they complete."""
        self._waiting += data
        packets: list[Packet] = []
        while True:
            start = self._waiting.find(self._header)
            if start < 0:
                # The last bytes may be the start of a header.
                self._waiting = self._waiting[-(len(self._header) - 1) :]
                while self._waiting and not self._header.startswith(self._waiting):
                    self._waiting = self._waiting[1:]
                return packets
            self._waiting = self._waiting[start:]
            size = packet_size(self.protocol, self._waiting)
            if size == 0:
                self._waiting = self._waiting[1:]
            elif size is None or len(self._waiting) < size:
                return packets
            else:
                packet = self._packet(self._waiting[:size])
                self._waiting = self._waiting[size if packet.intact else len(self._header) :]
                packets.append(packet)

    def give_up(self) -> list[Packet]:
        """Discard the header of an incomplete packet and return the packets found after it."""
        packets: list[Packet] = []
        while self._waiting:
            waiting, self._waiting = self._waiting[1:], b""
            packets += self.feed(waiting)
        return packets

    def _packet(self, data: bytes) -> Packet:
        if self.protocol == 1.0:
            return Packet(data[2], data[4], data[5:-1], checksum(data[2:-1]) == data[-1])
        intact = crc16(data[:-2]).to_bytes(2, "little") == data[-2:]
        content = unstuffed(data[7:-2])
        return Packet(data[4], content[0], content[1:], intact)
