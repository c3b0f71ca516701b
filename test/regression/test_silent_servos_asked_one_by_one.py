"""Servos that are asked one by one (SCS) were each waited for: six that were silent took two and a half times as long as the deadline of a read."""

import pytest

from driving import emulated
from stribeck.emulator.faults import Fault
from stribeck.servo.answers import GROWN_PATIENCE, LONGEST
from virtual_bus import VirtualBus

MODELS = ("scs0009",) * 6
PERIOD = 0.02


@pytest.fixture
def connected():
    """Six servos and their bus, after a while without faults."""
    with VirtualBus(emulated(*MODELS)) as emulation:
        bus = emulation.bus(*MODELS)
        bus.connect()
        for _ in range(20):
            assert bus.read(emulation.clock.now() + PERIOD).valid.all()
        yield emulation, bus
        bus.close()


def cycles(emulation, bus, count):
    """Duration [s] and validity of reads in a cycle of 20 ms."""
    found = []
    for _ in range(count):
        start = emulation.clock.now()
        valid = bus.read(start + PERIOD).valid
        found.append((emulation.clock.now() - start, valid.tolist()))
        emulation.clock.sleep(max(0.0, start + PERIOD - emulation.clock.now()))
    return found


def test_all_silent_take_no_longer_than_the_deadline_and_the_patience_of_one_request(connected):
    """Also when the patience has grown; 51 ms before."""
    emulation, bus = connected
    emulation.silence(10.0)
    found = cycles(emulation, bus, 100)
    assert not any(any(valid) for _, valid in found)
    assert max(duration for duration, _ in found) < PERIOD + GROWN_PATIENCE + 0.001
    assert bus.link.latency.patience == GROWN_PATIENCE


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("silent", [(1,), (4,), (1, 2), (2, 6)])
def test_silent_ones_lose_no_sample_of_the_others(connected, silent):
    """They are asked in the next attempt; nobody waits for the second cycle."""
    emulation, bus = connected
    for servo in silent:
        emulation.add_fault(Fault("lost", p=1.0, servo=servo))
    found = cycles(emulation, bus, 100)
    wanted = [servo not in silent for servo in range(1, 7)]
    assert all(valid == wanted for _, valid in found)
    padding = bus.port.wire_time(LONGEST[1.0])  # for a servo that may wait for the rest of a damaged packet
    assert max(duration for duration, _ in found) < PERIOD + bus.link.latency.patience + padding


def test_what_no_time_was_left_for_comes_first_in_the_next_read(connected):
    """With a deadline that has passed there is one attempt, which ends with the silent servo; the others follow."""
    emulation, bus = connected
    emulation.add_fault(Fault("lost", p=1.0, servo=3))
    reads = [bus.read(emulation.clock.now()).valid.tolist() for _ in range(6)]
    assert reads[0] == [True, True, False, False, False, False]
    assert reads[1] == [True, True, False, True, True, True]
    assert reads[2:] == [reads[0], reads[1]] * 2
