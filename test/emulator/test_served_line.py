"""A line whose program gets the processor late: time slows down, and no answer belongs to another question."""

import numpy as np
import pytest

from driving import config_for, drive, emulated, events, valid_samples
from emulator_client import Client, servos
from late_line import LateLine, Program
from stribeck.emulator.exchange import answer_expected
from stribeck.emulator.protocol import Instruction, Packet, encode, pieces_of
from stribeck.emulator.served_line import LATEST
from stribeck.servo.driver import Driver

STARVED = (0.096, 0.18)
"""Times between turns on a busy machine [s]."""

WIRE = 0.003
"""Time of the longest question and its answers on the wire, with padding and return delays [s]."""

TICK_AND_POSITION = bytes.fromhex("7800 1000")
"""Address and length of a read from realtime_tick to present_position."""


def starved(seed):
    rng = np.random.default_rng(seed)
    return lambda: float(rng.uniform(*STARVED))


def sync_read(*ids):
    return Packet(254, Instruction.SYNC_READ, TICK_AND_POSITION + bytes(ids))


def goals(count, *ids):
    body = b"".join(bytes((i,)) + count.to_bytes(4, "little") for i in ids)
    return Packet(254, Instruction.SYNC_WRITE, bytes.fromhex("7400 0400") + body)


class Master(Client):
    """A program that asks at 200 Hz, gives up after a while, asks again after some padding, and more rarely in the end."""

    def __init__(self, line, patience):
        super().__init__(Program(line), clock=line.clock)
        self.served, self.patience = line, patience
        self.good, self.missed, self.longest, self.in_a_row = 0, 0, 0.0, 0

    def cycle(self, goal):
        """Goals out and all states in; each answer is checked against the question that it answers."""
        due = self.clock.now() + 0.005
        self.send(goals(goal, 1, 2))
        for padding in (b"", b"\xff" * 20, b"\x00" * 200):
            self.line.discard()  # as dynamixel_sdk does before each packet
            self.line.write(padding * (self.in_a_row < 8) + encode(2.0, sync_read(1, 2)))
            asked = self.clock.now()
            found = self.answers(2, WIRE + self.patience)
            for answer in found:
                self.check(answer, asked)
            if len(found) == 2:
                self.longest = max(self.longest, self.clock.now() - asked)
                self.good, self.in_a_row = self.good + 1, 0
                break
            self.parser.give_up()
        else:
            self.missed, self.in_a_row = self.missed + 1, self.in_a_row + 1
            due += 0.05 if self.in_a_row > 50 else 0.0
        self.clock.sleep(max(0.0, due - self.clock.now()))

    def check(self, answer, asked):
        """The answer tells its emulated time: not before the question, not after now."""
        tick = int.from_bytes(answer.parameters[1:3], "little")
        period, step = 32.768, 0.001
        time = tick * 1e-3 + period * round((self.served.emulated_time - tick * 1e-3) / period)
        earliest, latest = asked - self.served.delay, self.served.emulated_time
        assert earliest - 2.0 * step <= time <= latest + 2.0 * step


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("patience", [0.0008, 0.004, 0.03])
@pytest.mark.parametrize("suspended", [0.1, 0.5, 3.0])
def test_no_answer_belongs_to_an_older_question_after_a_suspension(suspended, patience):
    """Each answer is newer than the last question; afterwards all is as before, but for the time that was lost."""
    with LateLine(servos(1, 2)) as line:
        master = Master(line, patience)
        for k in range(20):
            master.cycle(2048 + k)
        assert (master.good, master.missed) == (20, 0)
        usual = master.longest
        line.suspend(suspended)
        end = line.clock.now() + suspended
        while line.clock.now() < end:
            master.cycle(2100)
        assert line.counts["given_up"] > 0
        missed, master.longest = master.missed, 0.0
        for k in range(200):
            master.cycle(2200 + k)
        assert master.missed <= missed + 1, "it recovers within a cycle"
        assert master.longest <= max(usual, WIRE + patience) + 1e-3
        assert line.counts["pauses"] == 1
        assert line.delay == pytest.approx(suspended - LATEST, abs=6e-3)
        assert line.servos[0].clock == pytest.approx(line.emulated_time, abs=2e-3)
        assert line.servos[1].memory.numbers["goal_position"] == 2399, "goals are executed in order"


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(("patience", "seed"), [(0.0008, 0), (0.004, 1), (0.03, 2)])
def test_no_answer_belongs_to_an_older_question_on_a_starved_machine(patience, seed):
    """Turns every 96 to 180 ms: the few answers that come are right, the buffer never fills, and the end recovers."""
    with LateLine(servos(1, 2), starved(seed)) as line:
        master = Master(line, patience)
        for k in range(600):
            master.cycle(2048 + k % 300)
        assert master.good < 200
        assert line.terminal.fullest < 6000
        assert line.delay > 1.0
        line.between = lambda: 0.0
        master.missed = 0
        line.suspend(0.0)
        for k in range(100):
            master.cycle(2048 + k)
        assert master.missed <= 1
        delay = line.delay
        master.cycle(2048)
        assert line.delay == delay


def test_a_delay_that_can_be_made_good_changes_nothing():
    """15 ms now and then: the same motion at the same times."""
    positions = []
    for delay in (0.0, 0.015):
        with LateLine(servos(1)) as line:
            client = Client(Program(line), clock=line.clock)
            assert client.write(64, 1, 1) == 0
            assert client.write(116, 4, 2600) == 0
            path = []
            for _ in range(10):
                line.suspend(delay)
                line.clock.sleep(0.003)
                line.clock.sleep(0.022)
                path.append(line.servos[0].state.position)
            assert line.delay == 0.0
            positions.append(path)
    assert positions[0] == positions[1]
    assert positions[0][-1] > 0.5


def test_the_watchdog_counts_emulated_time():
    """100 ms: neither 3 s of suspension nor starved turns let it expire while a program speaks; its silence does."""
    with LateLine(servos(1, 2)) as line:
        master = Master(line, 0.002)
        assert master.write(98, 1, 5) == 0
        assert master.write(64, 1, 1) == 0
        numbers = line.servos[0].memory.numbers
        for between, suspended in ((lambda: 0.0, 3.0), (starved(1), 0.0)):
            line.between = between
            line.suspend(suspended)
            for _ in range(400):
                master.cycle(2300)
            assert numbers["bus_watchdog"] == 5
        line.between = lambda: 0.0
        line.suspend(1.0)
        line.clock.sleep(1.0)
        assert numbers["bus_watchdog"] == 5, "for the servo no time has passed"
        line.clock.sleep(0.06)
        assert numbers["bus_watchdog"] == 5
        line.clock.sleep(0.06)
        assert numbers["bus_watchdog"] == -1


def test_an_answer_is_not_sent_into_the_next_question():
    """A program that writes while its answer is due has given it up."""

    class Interrupted(LateLine):
        def _send(self, now):
            if self.next_answer <= now:
                self.terminal.input += encode(2.0, Packet(2, Instruction.PING))
            super()._send(now)

    with Interrupted(servos(1, 2)) as line:
        client = Client(Program(line), clock=line.clock)
        client.send(Packet(1, Instruction.PING))
        assert client.answers(1, 0.01) == []
        assert line.counts["collided"] > 0
        assert line.counts["answered"] == 0


def test_what_awaits_no_answer_is_executed_in_order():
    """Writes to all, and to a servo that answers reads alone; a write that would be answered is given up."""
    with LateLine(servos(1, 2)) as line:
        client = Client(Program(line), clock=line.clock)
        assert client.says_nothing(Packet(2, Instruction.WRITE, bytes.fromhex("4400 01")), 0.01)
        assert client.read(68, 1, servo=2) == (1, 0)
        line.suspend(0.1)
        client.send(
            goals(2100, 1, 2),
            Packet(1, Instruction.WRITE, bytes.fromhex("4100 01")),
            Packet(2, Instruction.WRITE, bytes.fromhex("4100 01")),
            goals(2200, 1),
            Packet(254, Instruction.WRITE, bytes.fromhex("5000 0900")),
            Packet(1, Instruction.PING),
            Packet(1, Instruction.READ, bytes.fromhex("7400 0400")),
        )
        (answer,) = client.answers(2, 0.2)
        assert answer.parameters == bytes((0,)) + (2200).to_bytes(4, "little")
        one, two = (servo.memory.numbers for servo in line.servos)
        assert (one["goal_position"], two["goal_position"]) == (2200, 2100)
        assert (one["led"], two["led"]) == (0, 1)
        assert (one["position_d_gain"], two["position_d_gain"]) == (9, 9)
        assert line.counts["given_up"] == 2


def test_bytes_are_cut_into_packets_of_both_protocols():
    """Noise, packets and an incomplete end, in order and complete."""
    one = encode(1.0, Packet(7, Instruction.READ, b"\x24\x02"))
    two = encode(2.0, Packet(1, Instruction.WRITE, b"\x74\x00\xff\xff\xfd\x00"))
    data = b"\x00\xff" + two + one + b"\xff" * 9 + two + two[:9]
    assert pieces_of(data) == [b"\x00\xff", two, one, b"\xff" * 9, two, two[:9]]
    assert pieces_of(b"") == []
    made = [*servos(1), *servos(7, model="mx106")]
    assert [answer_expected(made, piece) for piece in pieces_of(data)] == [
        False,
        True,
        True,
        False,
        True,
        False,
    ]
    assert not answer_expected(made, encode(2.0, Packet(7, Instruction.PING)))
    assert answer_expected(made, encode(2.0, Packet(254, Instruction.PING)))
    assert not answer_expected(made, encode(2.0, Packet(254, Instruction.REBOOT)))


@pytest.mark.slow
@pytest.mark.parametrize(("between", "suspended"), [(None, 0.1), (None, 3.0), (0, 0.1)])
def test_the_driver_loses_no_port(between, suspended):
    """Eight servos at 200 Hz: it goes on, or lets go because nobody answers; once cleared, it moves the servos again."""
    models = ["xl330"] * 8
    with LateLine(emulated(*models)) as line:
        config = config_for("late", *models, silence_timeout=0.5, watchdog=1.0, command_timeout=0.5)
        driver = Driver(config, line.port(config.baud_rate))
        driver.connect()
        driver.enable()
        assert valid_samples(drive(driver, 0.5, lambda t: 0.3)) > 90
        line.between = line.between if between is None else starved(between)
        line.suspend(suspended)
        samples = drive(driver, suspended + 0.5, lambda t: 0.4)
        text = " ".join(event.text for event in events(samples))
        assert "lost" not in text
        assert suspended < 0.5 or "answer" in text
        line.between = lambda: 0.0
        line.suspend(0.0)
        drive(driver, 0.3, lambda t: 0.4)
        if driver.state == "fault":
            driver.clear()
            driver.enable()
        samples = drive(driver, 1.0, lambda t: 0.5)
        assert valid_samples(samples) > 190
        assert samples[-1].position == pytest.approx([0.5] * 8, abs=0.02)
        driver.close()
