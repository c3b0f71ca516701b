"""Emulated servos behind a terminal: packets, time, faults, and the port itself."""

import contextlib
import os
import select
import time

import pytest

from emulated_bus import EmulatedBus
from emulator_client import ENOUGH, Client, client_of, servos
from helpers import refusal
from stribeck.emulator.faults import parse_fault
from stribeck.emulator.protocol import ALERT, Error2, Instruction, Packet, encode
from virtual_bus import VirtualBus


@contextlib.contextmanager
def bus_and_client(*made, protocol=2.0, faults=()):
    bus = VirtualBus(made or servos(1), [parse_fault(text) for text in faults])
    with bus, client_of(bus, protocol) as client:
        yield bus, client


# Instructions.


def test_servos_of_both_protocols_share_a_bus():
    """Each answers in its own language and takes the other for noise."""
    made = [*servos(1, 2), *servos(7, model="mx106")]
    with VirtualBus(made) as bus, client_of(bus) as two, client_of(bus, 1.0) as one:
        assert two.ask(Instruction.PING, 2) == [Packet(2, 0x55, b"\x00\xb0\x04\x2d")]
        assert one.ask(Instruction.PING, 7) == [Packet(7, 0)]
        assert one.read(0, 2, servo=7) == (320, 0)
        assert two.says_nothing(Packet(7, Instruction.PING))
        assert [p.id for p in two.ask(Instruction.PING, 254, count=2)] == [1, 2]


def test_several_are_read_and_written_at_once():
    """Sync and bulk instructions of protocol 2, answers in the order asked."""
    with bus_and_client(*servos(1, 2, 3)) as (bus, client):
        client.send(
            Packet(254, Instruction.SYNC_WRITE, bytes.fromhex("74000400 01 34080000 03 45080000")),
            Packet(254, Instruction.BULK_WRITE, bytes.fromhex("02 7400 0400 56080000 01 4000 0100 01")),
        )
        found = client.ask(Instruction.SYNC_READ, 254, bytes.fromhex("74000400 03 01 02"), count=3)
        assert [(p.id, p.parameters) for p in found] == [
            (3, bytes.fromhex("00 45080000")),
            (1, bytes.fromhex("00 34080000")),
            (2, bytes.fromhex("00 56080000")),
        ]
        found = client.ask(Instruction.BULK_READ, 254, bytes.fromhex("02 9000 0200 01 4000 0100"), count=2)
        assert [(p.id, p.parameters) for p in found] == [(2, b"\x00\x32\x00"), (1, b"\x00\x01")]
        fast = client.ask(Instruction.FAST_SYNC_READ, 254, bytes.fromhex("74000400 02 03"))[0]
        assert fast.intact
        assert (fast.id, fast.parameters[:6]) == (254, bytes.fromhex("00 02 56080000"))
        assert fast.parameters[8:14] == bytes.fromhex("00 03 45080000")
        assert bus.servos[0].torque_enabled


def test_several_of_protocol_1_are_read_and_written_at_once():
    """Sync write and bulk read as MX servos have them."""
    with bus_and_client(*servos(4, 5, model="mx106"), protocol=1.0) as (_, client):
        client.send(Packet(254, Instruction.SYNC_WRITE, bytes.fromhex("1E 02 04 3408 05 4508")))
        found = client.ask(Instruction.BULK_READ, 254, bytes.fromhex("00 02 05 1E 01 04 18"), count=2)
        assert [(p.id, p.instruction, p.parameters) for p in found] == [(5, 0, b"\x45\x08"), (4, 0, b"\x00")]


def test_broadcast_writes_reach_all_and_are_not_answered():
    """A write, reg write and action to ID 254."""
    with bus_and_client(*servos(1, 2)) as (bus, client):
        assert client.says_nothing(Packet(254, Instruction.WRITE, bytes.fromhex("4100 01")))
        assert client.read(65, 1, servo=2) == (1, 0)
        client.send(Packet(254, Instruction.REG_WRITE, bytes.fromhex("4100 00")))
        assert client.read(65, 1, servo=1) == (1, 0)
        client.send(Packet(254, Instruction.ACTION))
        assert client.read(65, 1, servo=1) == (0, 0)
        assert bus.counts["overrun"] == 0


def test_the_status_return_level_says_what_is_answered():
    """0: only pings; 1: reads as well; 2: everything."""
    with bus_and_client() as (_, client):
        client.send(Packet(1, Instruction.WRITE, bytes.fromhex("4400 01")))
        assert client.answers(1, 0.1) == []
        assert client.read(68, 1) == (1, 0)
        client.send(Packet(1, Instruction.WRITE, bytes.fromhex("4400 00")))
        assert client.says_nothing(Packet(1, Instruction.READ, bytes.fromhex("44000100")))
        client.ask(Instruction.PING)


@pytest.mark.parametrize(
    ("packet", "error"),
    [
        (Packet(1, 0x77), Error2.INSTRUCTION),
        (Packet(1, Instruction.ACTION), Error2.INSTRUCTION),
        (Packet(1, Instruction.FACTORY_RESET, b"\xff"), Error2.RESULT_FAIL),
        (Packet(1, Instruction.READ, b"\x00"), Error2.DATA_LENGTH),
        (Packet(1, Instruction.WRITE, bytes.fromhex("8400 00000000")), Error2.ACCESS),
    ],
)
def test_what_cannot_be_done_is_answered_with_an_error(packet, error):
    """Unknown instructions, factory reset, malformed and forbidden accesses."""
    with bus_and_client() as (_, client):
        client.send(packet)
        assert client.answers()[0].parameters == bytes((error,))


def test_a_damaged_instruction_is_answered_with_a_crc_error():
    """Protocol 2 says 3, protocol 1 sets the bit of the checksum."""
    for protocol, model, wanted in ((2.0, "xl330", b"\x03"), (1.0, "mx106", b"")):
        with bus_and_client(*servos(1, model=model), protocol=protocol) as (_, client):
            wire = bytearray(encode(protocol, Packet(1, Instruction.PING)))
            wire[-1] ^= 0x55
            client.line.write(wire)
            answer = client.answers()[0]
            assert answer.parameters == wanted
            assert protocol == 2.0 or answer.instruction == 0x10


def test_half_a_packet_is_forgotten():
    """What stays unfinished does not swallow the next packet."""
    with bus_and_client() as (_, client):
        client.line.write(encode(2.0, Packet(1, Instruction.WRITE, bytes(100)))[:30])
        client.send(Packet(1, Instruction.PING))
        assert client.answers()[0].id == 1


def test_a_reboot_is_answered_and_then_the_servo_is_deaf_for_a_while():
    """RAM starts anew; the servo answers again by itself."""
    with bus_and_client() as (_, client):
        assert client.write(65, 1, 1) == 0
        assert client.ask(Instruction.REBOOT)[0].parameters == b"\x00"
        assert client.says_nothing(Packet(1, Instruction.PING), 0.1)
        client.until(
            lambda: not client.says_nothing(Packet(1, Instruction.PING), 0.1), "the servo comes back"
        )
        assert client.read(65, 1) == (0, 0)


# Time.


def test_time_goes_on_without_packets():
    """A servo that was sent somewhere goes there though nobody asks."""
    with bus_and_client() as (bus, client):
        assert client.write(64, 1, 1) == 0
        assert client.write(116, 4, 2500) == 0
        client.until(lambda: bus.servos[0].state.position > 0.6, "the servo moves")
        assert bus.servos[0].clock == pytest.approx(bus.clock.now(), abs=1.0)


def test_an_answer_takes_its_time_on_the_wire():
    """At 57600 bit/s a ping of 10 bytes and its answer of 14 take 4.2 ms; the return delay comes on top."""
    for rate, bits, delay in ((57_600, 57_600, 250), (1_000_000, 1e6, 100)):
        made = servos(1, registers={"return_delay_time": delay})
        with VirtualBus(made) as bus, client_of(bus, rate=rate) as client:
            start = bus.clock.now()
            client.ask(Instruction.PING)
            assert bus.clock.now() - start == pytest.approx(240 / bits + delay * 2e-6, rel=1e-6)


def test_a_servo_hears_only_its_own_rate_when_told():
    """At 57600 bit/s it is deaf for 1 Mbit/s; a new rate counts from its writing on."""
    with VirtualBus(servos(1, baud=57600)) as bus:
        with client_of(bus) as fast:
            assert fast.says_nothing(Packet(1, Instruction.PING))
        with client_of(bus, rate=57_600) as slow:
            assert slow.write(8, 1, 3) == 0
            assert slow.says_nothing(Packet(1, Instruction.PING))
        with client_of(bus) as fast:
            fast.ask(Instruction.PING)


def test_the_watchdog_runs_without_packets():
    """Nobody speaks for longer than 100 ms: the servo stands, the register says so."""
    with bus_and_client() as (bus, client):
        assert client.write(98, 1, 5) == 0
        assert client.write(64, 1, 1) == 0
        assert client.write(116, 4, 4000) == 0
        numbers = bus.servos[0].memory.numbers
        client.until(lambda: numbers["bus_watchdog"] == -1, "the watchdog runs out")
        client.until(lambda: bus.servos[0].state.velocity == 0.0, "the servo stands")
        assert client.read(98, 1) == (255, 0)
        assert client.write(116, 4, 2048) == Error2.DATA_RANGE


# Faults.


def test_lost_packets_are_not_answered():
    """All of one servo, none of the other."""
    with bus_and_client(*servos(1, 2), faults=["lost:p=1,id=2"]) as (bus, client):
        client.ask(Instruction.PING, 1)
        assert client.says_nothing(Packet(2, Instruction.PING))
        assert bus.counts["lost"] == 1
        assert [p.id for p in client.ask(Instruction.PING, 254)] == [1]


def test_corrupt_packets_have_wrong_checks():
    """In each direction: the servo complains or misses it, or the answer is damaged."""
    with bus_and_client(faults=["corrupt:p=0.5"]) as (bus, client):
        good = 0
        for _ in range(40):
            client.send(Packet(1, Instruction.PING))
            good += any(p.intact and p.parameters == b"\x00\xb0\x04\x2d" for p in client.answers(1, 0.03))
            client.parser.give_up()
        assert 1 <= good <= 22, f"{good} of 40 came through, a quarter was expected"
        assert bus.counts["corrupt"] > 10


def test_a_foreign_servo_answers_in_addition():
    """Two answers come, of the servo and of an ID that nobody asked."""
    with bus_and_client(faults=["foreign:p=1,as=42"]) as (_, client):
        assert sorted(p.id for p in client.ask(Instruction.PING, count=2)) == [1, 42]


def test_late_answers_come_late_and_hold_nothing_up():
    """The answer to the second question comes before the late one to the first."""
    with bus_and_client(*servos(1, 2), faults=["late:p=1,delay=0.2,id=1"]) as (_, client):
        client.send(Packet(1, Instruction.PING), Packet(2, Instruction.PING))
        assert [p.id for p in client.answers(2)] == [2, 1]


def test_in_a_silence_nothing_is_heard_or_said():
    """A write in a silence has no effect; afterwards everything works."""
    with bus_and_client() as (bus, client):
        bus.silence(0.2)
        assert client.says_nothing(Packet(1, Instruction.WRITE, bytes.fromhex("4100 01")), 0.1)
        client.until(lambda: not client.says_nothing(Packet(1, Instruction.PING), 0.05), "the silence ends")
        assert client.read(65, 1) == (0, 0)


def test_a_scheduled_silence_ends_by_itself():
    """From the start on, for 0.1 s."""
    with bus_and_client(faults=["silence:at=0,for=0.1"]) as (bus, client):
        client.until(lambda: not client.says_nothing(Packet(1, Instruction.PING), 0.03), "the silence ends")
        assert bus.counts["silence"] == 1


def test_an_overload_on_schedule_shuts_down_in_mid_motion():
    """0.1 s after torque came on: torque off, alert in every answer, the bit in the register."""
    with bus_and_client(faults=["overload:after=0.1"]) as (bus, client):
        assert client.write(64, 1, 1) == 0
        client.until(lambda: not bus.servos[0].torque_enabled, "the shutdown")
        assert client.read(70, 1) == (0x20, ALERT)
        assert client.read(64, 1) == (0, ALERT)


def test_a_brown_out_is_reported_and_passes():
    """For 0.5 s the supply is at 3.2 V; the servo says so, and stays off until it is rebooted."""
    with bus_and_client(faults=["brownout:after=0.05,for=0.5,to=3.2"]) as (bus, client):
        assert client.write(64, 1, 1) == 0
        client.until(lambda: client.read(144, 2)[0] == 32, "the supply falls")
        assert client.read(70, 1) == (0x01, ALERT)
        client.until(lambda: client.read(144, 2)[0] == 50, "the supply comes back")
        assert not bus.servos[0].torque_enabled


def test_a_push_moves_the_servo():
    """By call and by schedule; without torque the pendulum swings away."""
    with bus_and_client(*servos(1, 2), faults=["push:at=0.05,for=0.1,torque=0.08,id=2"]) as (bus, client):
        bus.push(1, -0.08, 0.1)
        client.until(lambda: bus.servo(1).state.position < -0.1, "the first servo swings")
        client.until(lambda: bus.servo(2).state.position > 0.1, "the second servo swings")


@pytest.mark.real_time
def test_unplugged_the_port_is_gone_and_the_servo_goes_on():
    """The program gets an error; plugged in again, the servo is where it would be, by the same path."""
    with EmulatedBus(servos(1), link=None) as bus:
        with client_of(bus.path) as client:
            assert client.write(64, 1, 1) == 0
            assert client.write(116, 4, 2300) == 0
            bus.unplug()
            with pytest.raises(OSError, match="Input/output error"):
                os.write(client.line.port, b"x")
            refusal(lambda: bus.path, "disconnected")
        Client(None).until(lambda: bus.servos[0].state.position > 0.2, "the servo goes on")
        bus.plug()
        with client_of(bus.path) as client:
            assert client.read(64, 1) == (1, 0)


@pytest.mark.slow
@pytest.mark.real_time
def test_unplugged_by_schedule_the_link_goes_and_comes_back(tmp_path):
    """As a device file does with its adapter."""
    link = tmp_path / "port"
    with EmulatedBus(servos(1), [parse_fault("unplug:at=1.0,for=0.5")], link):
        assert link.exists()
        Client(None).until(lambda: not link.is_symlink(), "the link goes")
        Client(None).until(link.exists, "the link comes back")
        with client_of(link) as client:
            client.ask(Instruction.PING)


def test_faults_and_servos_that_do_not_go_together_are_refused():
    """Errors that a servo does not know, servos that are not there, IDs given twice."""
    refusal(lambda: VirtualBus(servos(1, 1)), "different IDs", "[1, 1]")
    refusal(lambda: VirtualBus([]), "different IDs")
    refusal(lambda: VirtualBus(servos(1), [parse_fault("lost:p=0.1,id=2")]), "no servo with ID 2", "[1]")
    mx = servos(1, model="mx106")
    refusal(lambda: VirtualBus(mx, [parse_fault("encoder:at=1")]), "encoder", "overload")
    with VirtualBus(servos(1)) as bus:
        refusal(lambda: bus.push(2, 0.1, 0.1), "no servo with ID 2")
        refusal(lambda: bus.fail(1, "hunger"), "hunger", "overload")


# The port.


@pytest.mark.real_time
def test_the_link_is_made_and_taken_away(tmp_path):
    """It points to the terminal while the bus is there."""
    link = tmp_path / "port"
    with EmulatedBus(servos(1), link=link) as bus:
        assert bus.path == str(link)
        assert os.path.samefile(link, os.readlink(link))
    assert not link.is_symlink()


@pytest.mark.slow
@pytest.mark.real_time
def test_what_is_no_link_is_left_alone(tmp_path):
    """A file or a folder in the link's place is refused; a link that points nowhere is replaced."""
    file = tmp_path / "file"
    file.write_text("mine")
    for path in (file, tmp_path):
        refusal(EmulatedBus(servos(1), link=path).start, path, "not a link")
    assert file.read_text() == "mine"
    refusal(EmulatedBus(servos(1), link=tmp_path / "nowhere" / "port").start, "cannot create")
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "gone")
    with EmulatedBus(servos(1), link=dangling), client_of(dangling) as client:
        client.ask(Instruction.PING)


@pytest.mark.slow
@pytest.mark.real_time
def test_a_link_in_use_is_left_to_its_owner(tmp_path):
    """A second bus is refused and says what to do; the first one ends without taking away what is not its own."""
    link, other = tmp_path / "port", tmp_path / "other"
    with EmulatedBus(servos(1), link=link):
        refusal(EmulatedBus(servos(2), link=link).start, "another emulator may be running")
        with client_of(link) as client:
            client.ask(Instruction.PING, 1)
        with EmulatedBus(servos(2), link=other):
            link.unlink()
            link.symlink_to(os.readlink(other))
    assert link.is_symlink()


@pytest.mark.real_time
def test_a_program_that_does_not_read_loses_answers_and_nothing_stands():
    """The terminal's buffer fills; the servos go on."""
    with EmulatedBus(servos(1)) as bus, client_of(bus.path) as client:
        asks = encode(2.0, Packet(1, Instruction.READ, bytes.fromhex("0000 8000"))) * 20
        end = time.monotonic() + ENOUGH
        while not bus.counts["overrun"] and time.monotonic() < end:
            if select.select([], [client.line.port], [], 0.01)[1]:
                os.write(client.line.port, asks)
        assert bus.counts["overrun"] > 0
        clock = bus.servos[0].clock
        assert clock < time.monotonic() + 0.1, "a flood of packets does not hurry time on"
        Client(None).until(lambda: bus.servos[0].clock > clock + 0.05, "time goes on")
