"""Packet handlers of dynamixel_sdk, with the loops over bytes of protocol 2 made faster.

The library's checksum and byte stuffing take most of the processor time of a cycle. Source of both: ROBOTIS e-manual,
"Protocol 2.0", "CRC".
"""

from collections.abc import Iterable, Sequence
from typing import Any

from dynamixel_sdk import PacketHandler

HEADER = b"\xff\xff\xfd\x00"
STATUS = 0x55
"""Instruction code of a status packet."""

SHORTEST = 11
"""Size of a status packet without data [bytes]."""

HIGHEST_ID = 252

STUFFED = b"\xff\xff\xfd"
"""Bytes of a header; a packet that contains them elsewhere is sent with another 0xFD after them."""


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte << 8
        for _ in range(8):
            value = (value << 1) ^ 0x8005 if value & 0x8000 else value << 1
        table.append(value & 0xFFFF)
    return tuple(table)


_CRC = _crc_table()


def crc16(data: Iterable[int], crc: int = 0) -> int:
    """CRC-16 of protocol 2: polynomial 0x8005, initial value 0."""
    table = _CRC
    for byte in data:
        crc = ((crc << 8) & 0xFF00) ^ table[(crc >> 8) ^ byte]
    return crc


def whole_packet(data: bytes) -> bytes | None:
    """The status packet of protocol 2 at the beginning of some bytes, ``None`` if it is not there, incomplete or
    damaged.
    """
    if len(data) < SHORTEST or not data.startswith(HEADER) or data[7] != STATUS or data[4] > HIGHEST_ID:
        return None
    size = 7 + data[5] + (data[6] << 8)
    if not SHORTEST <= size <= len(data) or crc16(data[: size - 2]) != data[size - 2] | data[size - 1] << 8:
        return None
    return data[:size]


def packet_handler(protocol: float) -> Any:
    """The library's handler of a protocol."""
    handler: Any = PacketHandler(protocol)
    if protocol == 2.0:
        add, remove = handler.addStuffing, handler.removeStuffing

        def stuff(packet: list[int]) -> list[int]:
            return add(packet) if STUFFED in bytes(packet[7:]) else packet

        def unstuff(packet: Sequence[int]) -> Sequence[int]:
            return remove(list(packet)) if STUFFED in bytes(packet[7:]) else packet

        handler.addStuffing, handler.removeStuffing = stuff, unstuff
        handler.updateCRC = lambda crc, packet, size: crc16(packet[:size], crc)
    return handler
