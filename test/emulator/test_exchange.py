"""Whatever comes over the bus, emulated servos answer it or keep silent, and stay themselves."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.exchange import answers
from stribeck.emulator.protocol import Instruction, Packet, PacketParser
from stribeck.model.bench import Pendulum
from stribeck.servo.tables import MODELS

LOAD = Pendulum(0.1, 0.1, 0.0)
PARAMETERS = st.one_of(
    st.binary(max_size=40),
    # Addresses within the table, and several servos with parts of their own.
    st.builds(
        lambda address, data: address.to_bytes(2, "little") + data,
        st.integers(0, 260),
        st.binary(max_size=12),
    ),
    st.lists(st.sampled_from([0, 1, 2, 4, 64, 116, 132, 254]), max_size=16).map(bytes),
)
STREAM = st.lists(
    st.builds(
        Packet,
        st.sampled_from([1, 2, 3, 254]),
        st.one_of(st.sampled_from(list(Instruction)).map(int), st.integers(0, 255)),
        PARAMETERS,
        st.booleans(),
    ),
    max_size=30,
)


@pytest.mark.parametrize("protocol", [1.0, 2.0])
@given(stream=STREAM)
def test_no_instruction_breaks_a_servo(protocol, stream):
    """Answers are intact packets of servos that were asked; registers stay in range, the state stays finite."""
    names = ("mx64", "mx106") if protocol == 1.0 else ("xl330", "xl320")
    servos = [EmulatedServo(name, None, LOAD, servo_id=k + 1) for k, name in enumerate(names)]
    for servo in servos:
        servo.begin(0.0)
    for k, packet in enumerate(stream):
        listening = [servo for servo in servos if servo.listens]
        before = {servo.id for servo in listening}
        for answer in answers(listening, protocol, packet):
            found = PacketParser(protocol).feed(answer.data)
            assert len(found) == 1
            assert found[0].intact
            assert found[0].id in before | {servo.id for servo in servos} | {254}
        for servo in servos:
            servo.advance_to(0.002 * (k + 1))
            assert math.isfinite(servo.state.position)
            assert math.isfinite(servo.state.velocity)
            for name, number in servo.memory.numbers.items():
                register = MODELS[servo.model.name].registers[name]
                assert register.accepts(number) or (name, number) == ("bus_watchdog", -1), (name, number)


def test_a_fast_read_that_asks_for_too_much_is_not_answered():
    """1024 bytes and what goes round them are no packet."""
    servos = [EmulatedServo("xl330", None, LOAD, servo_id=1)]
    assert answers(servos, 2.0, Packet(1, Instruction.FAST_SYNC_READ, b"\x00\x00\x00\x04\x01")) == []


@given(st.integers(0, 300), st.integers(0, 300))
def test_every_part_of_every_table_can_be_read(address, length):
    """A read gives as many bytes as asked, or an error beyond the table's end."""
    for name in ("xl330", "mx106", "xl320"):
        servo = EmulatedServo(name, None, LOAD)
        error, data = servo.read(address, length)
        if 0 < length <= servo.memory.end - address:
            assert (error, len(data)) == (0, length)
        else:
            assert error
            assert data == b""
