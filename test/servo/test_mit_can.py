"""Frames of Damiao and RobStride at points computed by hand, and a bus of python-can's virtual interface."""

import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import refusal
from stribeck.errors import ServoError
from stribeck.servo.mit_can import CanFrame, Damiao, MitBus, MitCommand, MitRanges, RobStride

RANGES = MitRanges(12.5, 30.0, 10.0)


def test_a_command_of_nothing_is_the_middle_of_the_ranges():
    """Damiao's frame without torque: 0x7FF or 0x800 in the middle, zero gains. RobStride's torque stands in the identifier."""
    frame = Damiao.command(5, MitCommand(), RANGES)
    assert (frame.identifier, frame.extended) == (5, False)
    assert frame.data == bytes.fromhex("8000800000000800")
    frame = RobStride.command(5, MitCommand(), RANGES)
    assert (frame.identifier, frame.extended) == (0x01800005, True)
    assert frame.data == bytes.fromhex("8000800000000000")


def test_the_ends_of_the_ranges_are_all_ones():
    """And beyond them commands are clipped."""
    most = MitCommand(99.0, 99.0, 999.0, 99.0, 99.0)
    assert Damiao.command(1, most, RANGES).data == b"\xff" * 8
    frame = RobStride.command(1, most, RANGES)
    assert (frame.identifier, frame.data) == (0x01FFFF01, b"\xff" * 8)


def test_switching_frames_are_those_of_the_manuals():
    """Damiao: seven times FF and FC or FD; RobStride: types 3 and 4 with the host's ID."""
    assert Damiao.enable(3, True) == CanFrame(3, b"\xff" * 7 + b"\xfc")
    assert Damiao.enable(3, False) == CanFrame(3, b"\xff" * 7 + b"\xfd")
    assert RobStride.enable(3, True) == CanFrame(0x0300FD03, bytes(8), True)
    assert RobStride.enable(3, False) == CanFrame(0x0400FD03, bytes(8), True)


def test_feedback_of_damiao_by_hand():
    """Drive 2, enabled, at the upper end, still, with no torque, 40 and 41 °C; an overheated one is not enabled."""
    state = Damiao.state(CanFrame(0, bytes([0x12, 0xFF, 0xFF, 0x80, 0x08, 0x00, 40, 41])), RANGES)
    assert state is not None
    assert (state.drive, state.enabled, state.faults, state.temperature) == (2, True, (), 41.0)
    assert state.position == pytest.approx(12.5)
    assert state.velocity == pytest.approx(0.0, abs=0.01)
    assert state.torque == pytest.approx(0.0, abs=0.01)
    hot = Damiao.state(CanFrame(0, bytes([0xC2, 0, 0, 0, 0, 0, 0, 120])), RANGES)
    assert hot is not None
    assert (hot.enabled, hot.faults) == (False, ("motor overheated",))


def test_feedback_of_robstride_by_hand():
    """Drive 7 runs with an overcurrent, 36.5 °C; other types of frames are none."""
    data = bytes.fromhex("ffff80008000") + (365).to_bytes(2, "big")
    state = RobStride.state(
        CanFrame(0x02 << 24 | 2 << 22 | 0b000010 << 16 | 7 << 8 | 0xFD, data, True), RANGES
    )
    assert state is not None
    assert (state.drive, state.enabled, state.faults) == (7, True, ("overcurrent",))
    assert (state.position, state.temperature) == (pytest.approx(12.5), pytest.approx(36.5))
    assert RobStride.state(CanFrame(0x15 << 24, data, True), RANGES) is None
    assert RobStride.state(CanFrame(0x11, data), RANGES) is None


@given(st.floats(-12.5, 12.5), st.floats(-30.0, 30.0), st.floats(-10.0, 10.0))
def test_what_is_sent_is_read_back_to_half_a_count(position, velocity, torque):
    """The fields of Damiao's command, packed again as feedback."""
    data = Damiao.command(1, MitCommand(position, velocity, 0.0, 0.0, torque), RANGES).data
    packed = bytes([0x11, data[0], data[1], data[2], (data[3] & 0xF0) | (data[6] & 0x0F), data[7], 0, 0])
    state = Damiao.state(CanFrame(0, packed), RANGES)
    assert state is not None
    assert state.position == pytest.approx(position, abs=0.51 * 25.0 / 65535)
    assert state.velocity == pytest.approx(velocity, abs=0.51 * 60.0 / 4095)
    assert state.torque == pytest.approx(torque, abs=0.51 * 20.0 / 4095)


def test_numbers_that_are_none_are_refused():
    """Neither commands nor ranges."""
    refusal(lambda: Damiao.command(1, MitCommand(math.nan), RANGES), "finite", "nan")
    refusal(lambda: MitRanges(12.5, math.inf, 10.0), "velocity", "inf")


class Line:
    """A line that answers each command of Damiao with the position commanded; a drive may be silent."""

    def __init__(self, silent=()):
        self.sent, self.answers, self.silent, self.broken = [], [], silent, False

    def send(self, msg, timeout=None):
        """Take a frame."""
        if self.broken:
            raise OSError("bus off")
        self.sent.append(msg)
        if msg.data[:7] != b"\xff" * 7 and msg.identifier not in self.silent:
            self.answers.append(
                Answer(0, bytes([0x10 | msg.identifier]) + msg.data[:2] + bytes.fromhex("8008002829"))
            )

    def recv(self, timeout=None):
        """The next answer."""
        return self.answers.pop(0) if self.answers else None


class Answer:
    """As python-can gives it."""

    def __init__(self, identifier, data):
        self.arbitration_id, self.data, self.is_extended_id = identifier, data, False


def test_drives_that_do_not_answer_are_missing():
    """The others are there, with the ranges of each."""
    line = Line(silent=(2,))
    bus = MitBus(
        line, Damiao, {1: RANGES, 2: RANGES, 3: MitRanges(3.0, 30.0, 10.0)}, message=lambda frame: frame
    )
    states = bus.exchange({k: MitCommand(position=3.0) for k in (1, 2, 3)}, 0.0)
    assert set(states) == {1, 3}
    assert [states[k].position for k in (1, 3)] == pytest.approx([3.0, 3.0], abs=1e-3)


def test_an_id_that_feedback_cannot_hold_is_refused():
    """What happened: the state of drive 17 of Damiao was taken for that of drive 1. RobStride has eight bits."""
    refusal(lambda: MitBus(Line(), Damiao, {17: RANGES}, message=lambda frame: frame), "17", "0 to 15")
    MitBus(Line(), RobStride, {17: RANGES}, message=lambda frame: frame)
    refusal(lambda: MitBus(Line(), RobStride, {256: RANGES}, message=lambda frame: frame), "256", "0 to 255")


def test_drives_that_were_on_go_off_when_another_fails():
    """What happened: they stayed on. The first failure is raised, whether they can be told or not."""

    class Failing(Line):
        fails = (2,)

        def send(self, msg, timeout=None):
            """Fail for some drives."""
            if msg.identifier in self.fails:
                raise OSError(f"no buffer for {msg.identifier}")
            super().send(msg, timeout)

    line = Failing()
    bus = MitBus(line, Damiao, dict.fromkeys((1, 2, 3), RANGES), message=lambda frame: frame)
    with pytest.raises(ServoError, match="no buffer for 2"):
        bus.enable()
    assert [(frame.identifier, frame.data[7]) for frame in line.sent[1:]] == [(1, 0xFC), (1, 0xFD)]


class BusyLine(Line):
    """A line on which others send without end, a frame each millisecond of its clock, from some time on."""

    def __init__(self, clock, begin=0.0):
        super().__init__(silent=(2,))
        self.clock, self.begin = clock, begin

    def recv(self, timeout=None):
        """The next answer, else a frame of others."""
        self.clock[0] += 0.001
        if self.answers or self.clock[0] < self.begin:
            return super().recv(timeout)
        return Answer(0x321, b"\x17" + bytes(3))


def test_frames_of_others_do_not_prolong_an_exchange():
    """What happened: each began the wait anew, so that a silent drive held the cycle up for ever. It ends at its deadline."""
    clock = [100.0]
    line = BusyLine(clock, begin=100.0015)
    bus = MitBus(line, Damiao, {1: RANGES, 2: RANGES}, message=lambda frame: frame, clock=lambda: clock[0])
    states = bus.exchange({1: MitCommand(position=3.0), 2: MitCommand()}, 0.02)
    assert set(states) == {1}
    assert clock[0] == pytest.approx(100.02, abs=0.0031)


def test_a_line_that_does_not_become_empty_gives_no_states():
    """The commands are sent all the same, within the deadline."""
    clock = [100.0]
    line = BusyLine(clock)
    bus = MitBus(line, Damiao, {1: RANGES}, message=lambda frame: frame, clock=lambda: clock[0])
    assert bus.exchange({1: MitCommand(position=3.0)}, 0.02) == {}
    assert [frame.identifier for frame in line.sent] == [1]
    assert clock[0] == pytest.approx(100.02, abs=0.0011)


def test_a_late_answer_is_not_taken_for_a_new_one():
    """What happened: the state of the cycle before was returned, and each later one a cycle late."""
    line = Line()
    bus = MitBus(line, Damiao, {1: RANGES}, message=lambda frame: frame)
    line.send(Damiao.command(1, MitCommand(position=-2.0), RANGES))
    assert len(line.answers) == 1
    state = bus.exchange({1: MitCommand(position=3.0)}, 1.0)[1]
    assert state.position == pytest.approx(3.0, abs=1e-3)
    assert not line.answers


def test_a_bus_that_fails_is_said_after_all_drives_were_told():
    """Switching off tries every drive."""
    line = Line()
    bus = MitBus(line, Damiao, {1: RANGES, 2: RANGES}, message=lambda frame: frame)
    bus.enable()
    line.broken = True
    with pytest.raises(ServoError, match="bus off"):
        bus.disable()
    line.broken = False
    bus.disable()
    assert [(frame.identifier, frame.data[7]) for frame in line.sent[-2:]] == [(1, 0xFD), (2, 0xFD)]


def test_the_virtual_bus_of_python_can():
    """A drive at the other end of python-can's virtual interface."""
    can = pytest.importorskip("can", reason="frames on a bus need python-can")
    with (
        can.Bus(interface="virtual", channel="mit") as ours,
        can.Bus(interface="virtual", channel="mit") as drive,
    ):
        bus = MitBus(ours, RobStride, {7: RANGES})
        bus.enable()
        assert drive.recv(1.0).arbitration_id == 0x01800007
        assert drive.recv(1.0).arbitration_id == 0x0300FD07
        feedback = 0x02 << 24 | 2 << 22 | 7 << 8 | 0xFD
        data = bytes.fromhex("ffff800080000102")

        def answer():
            if drive.recv(5.0) is not None:
                drive.send(can.Message(arbitration_id=feedback, data=data, is_extended_id=True))

        answering = threading.Thread(target=answer)
        answering.start()
        state = bus.exchange({7: MitCommand(kd=1.0)}, 1.0)[7]
        answering.join()
        assert state.enabled
        assert state.position == pytest.approx(12.5)
