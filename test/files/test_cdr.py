"""Joint states read from the wire."""

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stribeck.files.cdr import JointStateReader, Stamp, header_stamp
from stribeck.recordings.bags.messages import (
    contract_types,
    diagnostic_array,
    dynamic_joint_state,
    joint_state,
)

NUMBERS = st.lists(st.floats(allow_nan=False, width=64), max_size=9)
NAMES = st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=9))


def messages_with(
    frame: str, stamp: int, names: list[str], *numbers: list[float], little: bool = True
) -> bytes:
    """A joint state as a library writes it, in either byte order."""
    types = contract_types().types
    time = types["builtin_interfaces/msg/Time"](*divmod(stamp, 10**9))
    message = types["sensor_msgs/msg/JointState"](
        types["std_msgs/msg/Header"](time, frame), names, *(np.array(n, dtype=np.float64) for n in numbers)
    )
    return bytes(contract_types().serialize_cdr(message, "sensor_msgs/msg/JointState", little_endian=little))


@given(
    st.text(st.characters(codec="ascii", min_codepoint=32)), NAMES, NUMBERS, NUMBERS, NUMBERS, st.booleans()
)
def test_reads_what_a_library_writes(frame, names, position, velocity, effort, little):
    """Any joint state of the library comes back whole, whatever lengths and alignments it has."""
    data = messages_with(frame, 12_000_000_034, names, position, velocity, effort, little=little)
    found = JointStateReader().read(data)
    assert (found.stamp, found.names) == (Stamp(12, 34), tuple(names))
    assert [list(numbers) for numbers in found.numbers] == [position, velocity, effort]
    assert header_stamp(data).seconds == found.stamp.seconds == 12.000000034


@given(st.lists(st.tuples(NAMES, NUMBERS, st.booleans()), max_size=6))
def test_one_reader_follows_changing_messages(messages):
    """Names that are remembered never colour the next message."""
    reader = JointStateReader()
    for names, position, little in messages:
        found = reader.read(messages_with("base", 5, names, position, [], [1.0], little=little))
        assert found.names == tuple(names)
        assert [list(numbers) for numbers in found.numbers] == [position, [], [1.0]]


@given(
    NAMES.filter(bool),
    st.lists(
        st.tuples(st.sampled_from([(0, 0, 0), (0, 0, -1), (0, 1, 0), (-1, 0, 0), (0, 0, 1)]), st.booleans()),
        max_size=6,
    ),
    st.text("ab/", max_size=9),
)
def test_values_of_all_names_and_of_some(names, messages, frame):
    """States with a value of each name, which are read in one piece, and others between them."""
    reader = JointStateReader()
    for k, (more, little) in enumerate(messages):
        numbers = [[100.0 * k + 10.0 * j + i for i in range(len(names) + more[j])] for j in range(3)]
        found = reader.read(messages_with(frame, 5, names, *numbers, little=little))
        assert [list(found_numbers) for found_numbers in found.numbers] == numbers


@given(st.integers(0, 400), st.binary(max_size=8), st.integers(0, 400))
def test_damage_is_an_error_or_another_message(cut, junk, at):
    """Bytes that are no joint state raise ValueError and nothing else; the next message is read."""
    reader = JointStateReader()
    whole = joint_state(5, ["shoulder", "elbow"], [0.1, 0.2], [0.3, 0.4], [0.5, 0.6])
    damaged = bytearray(whole[:cut])
    damaged[at : at + len(junk)] = junk
    with contextlib.suppress(ValueError):
        reader.read(bytes(damaged))
    assert reader.read(whole).names == ("shoulder", "elbow")


def test_numbers_that_are_not_there():
    """A count beyond the message's end is refused, not believed."""
    data = bytearray(joint_state(5, ["a"], [], [], []))
    data[-12:-8] = struct.pack("<I", 2**31)
    with pytest.raises(ValueError, match="buffer"):
        JointStateReader().read(bytes(data))
    with pytest.raises(ValueError, match="unknown encapsulation 0007"):
        JointStateReader().read(b"\x00\x07" + bytes(data[2:]))


def test_a_stamp_before_1970():
    """Negative seconds count."""
    assert header_stamp(messages_with("", -1, [], [], [], [])).seconds == pytest.approx(-1e-9)
    assert Stamp.of(1_500_000_000).nanoseconds == 1_500_000_000


def test_a_stamp_is_read_without_decoding() -> None:
    """Of every message that begins with a header, to the nanosecond; what is too short has none."""
    stamp = 1_700_000_000_123_456_789
    for data in (
        joint_state(stamp, ["a"], [0.0]),
        dynamic_joint_state(stamp, {"a": {"pwm": 0.1}}),
        diagnostic_array(stamp, {"a": {"pwm": 0.1}}),
    ):
        assert header_stamp(data) == Stamp(1_700_000_000, 123_456_789)
        assert header_stamp(data).nanoseconds == stamp
    assert header_stamp(data).seconds == 1_700_000_000 + 1e-9 * 123_456_789
    assert header_stamp(b"\x00\x01\x00\x00") == Stamp(0, 0)
    assert header_stamp(b"\x00\x00\x00\x00" + bytes([0, 0, 0, 5, 0, 0, 0, 7])) == Stamp(5, 7)  # big-endian
