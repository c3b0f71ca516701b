"""Emulated servos in simulated time behind a socket: what a driver in another thread or process sees."""

import math
import socket
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from driving import config_for, drive, emulated
from stribeck.emulator.faults import Fault
from stribeck.emulator.simulated import SimulatedLine, SimulationServer
from stribeck.errors import OutputError, ServoError
from stribeck.servo.driver import Driver
from stribeck.servo.port import port_named
from stribeck.session.simulation import JOIN, OPEN, REPORT, TURN, WRITE, Connection
from virtual_bus import VirtualBus

SERVOS = ("xl330", "xm430", "xl330")


@contextmanager
def served(path, faults=()):
    """Three emulated servos, served by a thread."""
    ended = threading.Event()
    with SimulationServer(path, emulated(*SERVOS, noise=0.3), faults) as server:
        thread = threading.Thread(target=server.serve, args=(ended.is_set,))
        thread.start()
        try:
            yield server
        finally:
            ended.set()
            thread.join()


def motion(driver):
    """Half a second of a motion: times, goals and measurements of all samples."""
    driver.connect()
    driver.enable()
    samples = drive(driver, 0.5, lambda t: 0.5 * np.sin(6.0 * t))
    driver.close()
    return [
        (s.stamp, s.goal_stamp, *s.times, *s.goal, *s.position, *s.velocity, *s.current, *s.voltage)
        for s in samples
    ]


@pytest.mark.parametrize(
    "faults", [(), (Fault("lost", p=0.05), Fault("late", p=0.02))], ids=["sound", "faulty"]
)
def test_a_socket_changes_nothing(tmp_path, faults):
    """Every time and every value is the same as on a bus in the same process; some answers do get lost."""
    here = VirtualBus(emulated(*SERVOS, noise=0.3), faults).driver(config_for("virtual", *SERVOS))
    with served(tmp_path / "servos", faults):
        there = Driver(config_for(str(tmp_path / "servos"), *SERVOS))
        np.testing.assert_array_equal(motion(there), motion(here))
        assert there.counters == here.counters
    assert (there.counters.timeouts > 0) == bool(faults)


def test_what_a_driver_wrote_in_a_turn_comes_before_the_report_that_ends_it(tmp_path, monkeypatch):
    """Both wait while the server is suspended, the report on a connection that is looked at first.

    Time went on first then, and the servos received in the next cycle what they were sent in this one.
    """
    written = []
    write = SimulatedLine.write
    monkeypatch.setattr(
        SimulatedLine, "write", lambda line, data: written.append(server.bus.clock.now()) or write(line, data)
    )
    with SimulationServer(tmp_path / "servos", emulated(*SERVOS), nodes=["/servo"]) as server:

        def served_until_nothing_waits():
            server.serve(lambda: not server._poll.poll(0))

        node, driver = (Connection.to(tmp_path / "servos") for _ in range(2))
        node.send(JOIN, "/servo")
        node.send(REPORT, 0, 0.0, -math.inf, {}, 0, None)
        driver.send(OPEN, 0.0, 1_000_000)
        served_until_nothing_waits()
        (begin, _, _), (number, kind, now, _) = driver.receive(), node.receive()
        assert (kind, now) == (TURN, begin)
        for _ in range(3):
            driver.send(WRITE, now, b"\xff\xff\xfd\x00")
        node.send(REPORT, number, now, now + 1.0, {}, 0, None)
        served_until_nothing_waits()
        assert written == [now] * 3
        assert server.bus.clock.now() == now + 1.0
        node.close(), driver.close()


def test_time_is_of_the_servos_only(tmp_path):
    """A driver that sleeps for half a second is back at once, half a second later, and its servos have aged by it."""
    with served(tmp_path / "servos") as server:
        port = port_named(str(tmp_path / "servos"), 1_000_000)
        before = port.clock.now()
        port.clock.sleep(0.5)
        assert port.clock.now() == before + 0.5
        assert {servo.clock for servo in server.bus.servos} == {before + 0.5}
        port.clock.close()


def test_a_name_that_is_no_socket_is_a_serial_port(tmp_path):
    """Only a socket means simulated time; a path that does not exist fails as any serial port."""
    with pytest.raises(ServoError, match="cannot open"):
        port_named(str(tmp_path / "ttyUSB0"), 1_000_000).openPort()


def test_a_socket_without_a_server_is_named(tmp_path):
    """The message says what to start."""
    left = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    left.bind(str(tmp_path / "servos"))
    left.close()
    with pytest.raises(ServoError, match="start `stribeck emulate --simulated` first"):
        port_named(str(tmp_path / "servos"), 1_000_000)


def test_servos_that_end_are_named(tmp_path):
    """A driver whose servos have ended says so in one line, and closes."""
    with served(tmp_path / "servos"):
        driver = Driver(config_for(str(tmp_path / "servos"), *SERVOS))
        driver.connect()
    sample = driver.cycle()
    assert sample.state == "fault"
    assert "the simulation has ended" in sample.reason
    driver.close()


def test_a_path_in_use_is_refused_and_one_of_a_dead_server_taken(tmp_path):
    """Two servers never share a path; a socket that nobody serves any more is replaced."""
    path = tmp_path / ("long" * 40) / "servos"
    path.parent.mkdir()
    with served(path), pytest.raises(OutputError, match="is in use"), served(path):
        pass
    assert not path.exists()
    path.write_text("mine")
    with pytest.raises(OutputError, match="is in use"), served(path):
        pass
    assert path.read_text() == "mine"
