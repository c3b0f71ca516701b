"""The bus when something goes wrong: lost and late answers, ports that go away, packets that are damaged."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from driving import BAUD, bus_for, emulated, served_here
from emulated_bus import EmulatedBus
from helpers import assert_clear, refusal
from stribeck.emulator.faults import Fault, parse_fault
from stribeck.errors import ConfigError, ServoError
from stribeck.servo.answers import Latency
from stribeck.servo.lengths import Block
from stribeck.servo.link import Link
from stribeck.servo.port import Port, PortLostError, set_low_latency
from stribeck.servo.registers import DYNAMIXEL_1, DYNAMIXEL_2
from stribeck.servo.remote import RemoteServo
from virtual_bus import VirtualBus


def test_a_lost_answer_of_one_servo_loses_no_other() -> None:
    """Servo 2 never answers: the samples of 1 and 3 are there, and 2 is asked again, alone."""
    with VirtualBus(emulated("xl330", "xl330", "xl330")) as emulation:
        bus = emulation.bus("xl330", "xl330", "xl330")
        bus.connect()
        emulation.add_fault(Fault("lost", p=1.0, servo=2))
        # A machine that is busy may only now deliver what connect asked for.
        while bus.read(emulation.clock.now() + 0.1).valid[1]:
            continue
        before = bus.counters.answers
        reading = bus.read(emulation.clock.now() + 0.1)
        bus.close()
        np.testing.assert_array_equal(reading.valid, [True, False, True])
        assert np.isnan(reading.position[1])
        assert bus.counters.answers - before == 2
        assert bus.counters.timeouts >= 1
        assert bus.counters.retries >= 1


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("model", ["xl330", "mx106", "sts3215", "scs0009"])
def test_what_goes_wrong_is_counted_by_cause(model: str) -> None:
    """Lost, corrupt and foreign packets count as such, and readings come all the same."""
    with VirtualBus(emulated(model)) as emulation:
        bus = emulation.bus(model)
        bus.connect()
        counters = bus.counters
        for text, cause in (
            ("lost:p=0.3", "timeouts"),
            ("corrupt:p=0.3", "corrupt"),
            ("foreign:p=0.3", "foreign"),
        ):
            emulation.add_fault(parse_fault(text))
            before = getattr(counters, cause)
            for _ in range(60):
                bus.read(emulation.clock.now() + 0.5)
            assert getattr(counters, cause) > before, cause
        answers = counters.answers
        for _ in range(20):
            assert bus.read(emulation.clock.now() + 0.5).valid.all()
        assert counters.answers == answers + 20
        bus.close()


def test_a_lost_packet_costs_a_few_milliseconds() -> None:
    """The patience with a lost packet is that of the answers seen, not the 34 ms of the library."""
    latency = Latency()
    assert latency.patience == pytest.approx(0.03)
    for _ in range(64):
        latency.learn(3e-4)
    assert latency.patience == pytest.approx(9.5e-4)
    for outlier in (0.1, 0.1, 3e-4):  # a machine that was busy
        latency.learn(outlier)
    assert latency.patience == pytest.approx(9.5e-4)
    for _ in range(64):  # another adapter
        latency.learn(0.016)
    assert latency.patience == pytest.approx(0.0245)


def test_patience_grows_while_nobody_answers_and_comes_back() -> None:
    """An adapter that has become slower is found again; a stall that ends is not outwaited."""
    latency = Latency()
    for _ in range(64):
        latency.learn(3e-4)
    for _ in range(30):
        latency.tell(False)
    assert latency.patience == pytest.approx(0.008)
    latency.tell(True)
    assert latency.patience == pytest.approx(9.5e-4)


@pytest.mark.real_time
@pytest.mark.parametrize("model", ["xl330", "mx106"])
def test_stamps_are_when_the_servo_was_read(model: str) -> None:
    """The stamp is within 1 ms of the moment at which the emulated servo read its registers, in the median."""
    servo = emulated(model)[0]
    moments: list[float] = []
    read = servo.read
    with served_here([servo]) as line:

        def noted(address: int, length: int) -> tuple[int, bytes]:
            moments.append(servo.clock + line.delay)
            return read(address, length)

        servo.read = noted  # type: ignore[method-assign]
        bus = bus_for(line.path, model)
        bus.connect()
        moments.clear()
        errors = []
        for _ in range(200):
            reading = bus.read(time.monotonic() + 0.5)
            errors.append(reading.times[0] - moments[-1])
        bus.close()
    # Steps of the emulated physics, 1 ms, are part of this.
    assert abs(np.median(errors)) < 1.5e-3


@pytest.mark.real_time
def test_an_unplugged_port_is_a_clear_error() -> None:
    """Reading from a port that is gone raises at once, in one line that says what to do."""
    with EmulatedBus(emulated("xl330")) as emulation:
        bus = bus_for(emulation.path, "xl330")
        bus.connect()
        emulation.unplug()
        start = time.monotonic()
        with pytest.raises(PortLostError) as caught:
            bus.read(time.monotonic() + 0.5)
        assert_clear(caught.value, "is lost", "plug")
        assert isinstance(caught.value, ServoError)
        assert time.monotonic() - start < 0.1
        bus.close()


@pytest.mark.real_time
def test_a_port_that_takes_no_data_is_given_up() -> None:
    """An adapter that hangs does not hang the driver: writing ends with an error after a moment."""
    with EmulatedBus(emulated("xl330")) as emulation:
        port = Port(emulation.path, BAUD)
        port.openPort()
        os.kill(emulation.pid, signal.SIGSTOP)
        try:
            _fill(port)
        finally:
            os.kill(emulation.pid, signal.SIGCONT)
        port.closePort()


def _fill(port: Port) -> None:
    """Write, while the emulation does not read, until nothing more fits."""
    with pytest.raises(PortLostError) as caught:
        port.writePort(bytes(1 << 20))
    assert_clear(caught.value, "accepts no data")


@pytest.mark.real_time
def test_a_port_can_be_opened_again(tmp_path: Path) -> None:
    """After unplugging and plugging in again the same bus connects by the same name."""
    with EmulatedBus(emulated("xl330"), link=tmp_path / "servo") as emulation:
        bus = bus_for(emulation.path, "xl330")
        bus.connect()
        emulation.unplug()
        with pytest.raises(ServoError):
            bus.read(time.monotonic() + 0.5)
        bus.close()
        refusal(bus.connect, "cannot open")
        emulation.plug()
        bus.connect()
        assert bus.read(time.monotonic() + 0.5).valid.all()
        bus.close()


def test_the_watchdog_is_armed_in_whole_steps_and_disarmed() -> None:
    """100 ms are five steps of 20 ms, 110 ms too; 0 disarms."""
    servos = emulated("xl330")
    with VirtualBus(servos) as emulation:
        bus = emulation.bus("xl330")
        bus.connect()
        for timeout, count in ((0.1, 5), (0.11, 5), (0.0, 0)):
            bus.set_watchdog(timeout)
            assert servos[0].memory.numbers["bus_watchdog"] == count
        bus.close()


def test_refused_writes_are_errors_in_words() -> None:
    """A gain beyond the register is refused here, a goal beyond the limits by the servo; both say so."""
    with VirtualBus(emulated("xl330", "xl330")) as emulation:
        bus = emulation.bus("xl330", "xl330")
        bus.connect()
        remote = RemoteServo(bus.link, bus.servos[0])
        refusal(lambda: remote.write("goal_position", 9999), "refused goal_position", "beyond its limits")
        refusal(lambda: remote.write("model_number", 7), "refused model_number", "no access")
        with pytest.raises(ConfigError):
            bus.set_gains({0: 1 << 20})
        assert bus.counters.status_errors == 2
        bus.close()


def test_an_interrupted_read_leaves_the_bus_usable() -> None:
    """Ctrl-C in the middle of a read does not swallow the packets that switch torque off."""
    servos = emulated("xl330")
    with VirtualBus(servos) as emulation:
        bus = emulation.bus("xl330")
        bus.connect()
        bus.set_torque([0], True)
        fill = bus.link.port._fill

        def interrupted() -> None:
            bus.link.port._fill = fill  # type: ignore[method-assign]
            raise KeyboardInterrupt

        bus.link.port._fill = interrupted  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            bus.read(emulation.clock.now() + 0.5)
        assert bus.torque_off() == []
        assert not servos[0].torque_enabled
        bus.close()


def test_low_latency_is_asked_for_where_the_driver_has_it() -> None:
    """A driver that takes the setting is given it; one that refuses it is left alone."""

    asked: list[bool] = []

    class Adapter:
        def set_low_latency_mode(self, wanted: bool) -> None:
            asked.append(wanted)

    class Terminal:
        def set_low_latency_mode(self, wanted: bool) -> None:
            raise ValueError("Failed to update ASYNC_LOW_LATENCY flag")

    assert set_low_latency(Adapter())
    assert asked == [True]
    assert not set_low_latency(Terminal())


@pytest.mark.real_time
@pytest.mark.parametrize("protocol", [1.0, 2.0])
def test_any_bytes_are_survived(protocol: float) -> None:
    """Whatever comes back, headers and lengths of packets among it, reading ends in time and finds nothing."""
    master, terminal = os.openpty()
    link = Link(Port(os.ttyname(terminal), BAUD), DYNAMIXEL_1 if protocol == 1.0 else DYNAMIXEL_2)
    link.port.openPort()
    header = b"\xff\xff" if protocol == 1.0 else b"\xff\xff\xfd\x00"
    rng = np.random.default_rng(0)
    for _ in range(150):
        noise = rng.integers(0, 256, int(rng.integers(0, 60))).astype(np.uint8).tobytes()
        link._handler.readTx(link.port, 1, 0, 4)
        os.write(master, noise + header + bytes(rng.integers(0, 8, 9).astype(np.uint8)) + noise)
        link.port.patience = 0.002
        start = time.monotonic()
        block = Block(0, 4)
        assert link.receiver.collect(link._record({1: block}, {}), {1: block}, learn=False) == {}
        assert time.monotonic() - start < 0.5
        os.read(master, 4096)
    link.port.closePort()
    os.close(master)
    os.close(terminal)


def test_a_damaged_length_does_not_silence_the_bus() -> None:
    """A servo that waits for the rest of a packet of 1000 bytes gets them, and answers again soon."""
    with VirtualBus(emulated("xl330")) as emulation:
        bus = emulation.bus("xl330")
        bus.connect()
        bus.link.port.writePort(bytes((0xFF, 0xFF, 0xFD, 0x00, 0x01, 0xE8, 0x03)))
        start = emulation.clock.now()
        while not bus.read(emulation.clock.now() + 0.004).valid.all():
            assert emulation.clock.now() - start < 0.2, "no answer within 200 ms"
        bus.close()
