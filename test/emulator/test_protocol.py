"""Packets of both protocols: those of the e-manual, round trips, and damage."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stribeck.emulator.protocol import (
    Instruction,
    Packet,
    PacketParser,
    checksum,
    crc16,
    encode,
    encode_fast_status,
    encode_status,
    stuffed,
    unstuffed,
)

INSTRUCTIONS = st.sampled_from([i for i in Instruction if i != Instruction.STATUS])
PACKETS = st.builds(Packet, st.integers(0, 252), INSTRUCTIONS.map(int), st.binary(max_size=60), st.just(True))
# Content that looks like headers, which both protocols have to cope with.
TRICKY = st.lists(st.sampled_from([0xFF, 0xFD, 0x00, 0x01]), max_size=24).map(bytes)


def hex_bytes(text):
    return bytes.fromhex(text)


@pytest.mark.parametrize(
    ("packet", "wire"),
    [
        (Packet(1, Instruction.PING), "FFFFFD00 01 0300 01 194E"),
        (Packet(254, Instruction.PING), "FFFFFD00 FE 0300 01 3142"),
        (Packet(1, Instruction.READ, hex_bytes("84000400")), "FFFFFD00 01 0700 02 84000400 1D15"),
        (Packet(1, Instruction.WRITE, hex_bytes("740000020000")), "FFFFFD00 01 0900 03 740000020000 CA89"),
        (Packet(1, Instruction.ACTION), "FFFFFD00 01 0300 05 02CE"),
        (Packet(1, Instruction.REBOOT), "FFFFFD00 01 0300 08 2F4E"),
        (
            Packet(254, Instruction.SYNC_READ, hex_bytes("840004000102")),
            "FFFFFD00 FE 0900 82 840004000102 CEFA",
        ),
        (
            Packet(254, Instruction.SYNC_WRITE, hex_bytes("740004000196000000 02AA000000")),
            "FFFFFD00 FE 1100 83 740004000196000000 02AA000000 8287",
        ),
        (
            Packet(254, Instruction.BULK_READ, hex_bytes("0190000200 0292000100")),
            "FFFFFD00 FE 0D00 92 0190000200 0292000100 1A05",
        ),
        (
            Packet(254, Instruction.BULK_WRITE, hex_bytes("0120000200A000 021F00010050")),
            "FFFFFD00 FE 1000 93 0120000200A000 021F00010050 B768",
        ),
    ],
)
def test_packets_of_the_manual_protocol_2(packet, wire):
    """The examples of the e-manual, both ways."""
    assert encode(2.0, packet) == hex_bytes(wire)
    assert PacketParser(2.0).feed(hex_bytes(wire)) == [packet]


@pytest.mark.parametrize(
    ("packet", "wire"),
    [
        (Packet(1, Instruction.WRITE, hex_bytes("0C64AA")), "FFFF 01 05 03 0C64AA DC"),
        (Packet(1, Instruction.PING), "FFFF 01 02 01 FB"),
        (Packet(1, Instruction.READ, hex_bytes("2B01")), "FFFF 01 04 02 2B01 CC"),
        (Packet(254, Instruction.ACTION), "FFFF FE 02 05 FA"),
        (
            Packet(254, Instruction.SYNC_WRITE, hex_bytes("1E04 0010005001 0120026003")),
            "FFFF FE 0E 83 1E04 0010005001 0120026003 67",
        ),
        (
            Packet(254, Instruction.BULK_READ, hex_bytes("00 02011E 020224")),
            "FFFF FE 09 92 00 02011E 020224 1D",
        ),
    ],
)
def test_packets_of_the_manual_protocol_1(packet, wire):
    """The examples of the e-manual, both ways."""
    assert encode(1.0, packet) == hex_bytes(wire)
    assert PacketParser(1.0).feed(hex_bytes(wire)) == [packet]


def test_status_packets_of_the_manual():
    """Answers as the e-manual prints them; of protocol 1 with an error."""
    assert encode_status(2.0, 1, 0, hex_bytes("060426")) == hex_bytes("FFFFFD00 01 0700 55 00 060426 655D")
    assert encode_status(2.0, 2, 0, hex_bytes("1F080000")) == hex_bytes(
        "FFFFFD00 02 0800 55 00 1F080000 BABE"
    )
    assert encode_status(1.0, 1, 0x24) == hex_bytes("FFFF 01 02 24 D8")


def test_a_fast_status_is_checked_after_each_servo():
    """Each servo's part ends with the CRC of everything before it, and the last one closes the packet."""
    packet = encode_fast_status([(1, 0, b"\x01\x02"), (2, 0x80, b"\x03\x04")])
    assert packet[:9] == hex_bytes("FFFFFD00 FE 0D00 55 00")
    assert crc16(packet[:12]) == int.from_bytes(packet[12:14], "little")
    assert crc16(packet[:-2]) == int.from_bytes(packet[-2:], "little")
    assert len(packet) == 7 + int.from_bytes(packet[5:7], "little")


def test_checks_by_hand():
    """CRC of nothing is 0, of one byte the polynomial's row; the checksum is the complement of the sum."""
    assert crc16(b"") == 0
    assert crc16(b"\x01") == 0x8005
    assert checksum(hex_bytes("01 05 03 0C 64 AA")) == 0xDC


@pytest.mark.ci
@given(st.one_of(st.binary(max_size=80), TRICKY))
def test_stuffing_is_undone(content):
    """Stuffed content never looks like a header, and comes back whole."""
    assert not re.search(rb"\xff\xff\xfd(?!\xfd)", stuffed(content))
    assert unstuffed(stuffed(content)) == content


@given(
    st.lists(
        st.tuples(st.one_of(PACKETS, TRICKY.map(lambda t: Packet(7, 3, t))), st.binary(max_size=20)),
        max_size=5,
    )
)
def test_packets_survive_noise_between_them_protocol_2(stream):
    """Every packet is found, whatever stands between, fed byte by byte and in one piece alike."""
    wire = b"".join(encode(2.0, packet) + noise for packet, noise in stream)
    wanted = [packet for packet, _ in stream]
    for pieces in ([wire], [bytes((byte,)) for byte in wire]):
        parser = PacketParser(2.0)
        found = [packet for piece in pieces for packet in parser.feed(piece)] + parser.give_up()
        assert [packet for packet in found if packet.intact] == wanted


@given(
    st.lists(
        st.tuples(
            st.one_of(PACKETS, TRICKY.map(lambda t: Packet(7, 3, t))),
            st.binary(max_size=20).map(lambda noise: noise.replace(b"\xff", b"")),
        ),
        max_size=5,
    )
)
def test_packets_survive_noise_between_them_protocol_1(stream):
    """As with protocol 2; noise without headers, since one in 256 wrong packets has a right sum."""
    wire = b"\xff".join(encode(1.0, packet) + noise for packet, noise in stream)
    wanted = [packet for packet, _ in stream]
    for pieces in ([wire], [bytes((byte,)) for byte in wire]):
        parser = PacketParser(1.0)
        found = [packet for piece in pieces for packet in parser.feed(piece)] + parser.give_up()
        assert [packet for packet in found if packet.intact] == wanted


@given(PACKETS, st.data())
def test_a_changed_byte_is_never_taken_for_the_packet(packet, data):
    """A packet with one byte changed is not accepted as intact with other content; the next one is found."""
    wire = bytearray(encode(2.0, packet))
    place = data.draw(st.integers(0, len(wire) - 1))
    wire[place] ^= data.draw(st.integers(1, 255))
    parser = PacketParser(2.0)
    good = Packet(3, Instruction.PING)
    found = parser.feed(bytes(wire) + encode(2.0, good)) + parser.give_up()
    assert [p for p in found if p.intact] == [good]


def test_a_packet_that_stops_half_way_does_not_swallow_the_next():
    """Given up, the beginning of a packet is noise; what stands behind it is found."""
    parser = PacketParser(2.0)
    long = encode(2.0, Packet(1, Instruction.WRITE, bytes(40)))
    assert parser.feed(long[:20]) == []
    assert parser.pending
    assert parser.feed(encode(2.0, Packet(2, Instruction.PING))) == []
    assert parser.give_up() == [Packet(2, Instruction.PING)]
    assert not parser.pending
