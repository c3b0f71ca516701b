"""The bus against emulated servos: who is there, what is read and written, what gets lost."""

import math
import os
import time
from pathlib import Path

import numpy as np
import pytest

from driving import BAUD, bus_for, emulated, emulated_one, expected
from helpers import assert_clear, refusal
from stribeck.emulator.emulator import EmulatedBus
from stribeck.emulator.faults import Fault, parse_fault
from stribeck.errors import ConfigError, ServoError
from stribeck.servo.bus import Bus, without_watchdog
from stribeck.servo.checks import SIGNALS, check_rate, cycle_bytes, cycle_time
from stribeck.servo.link import Latency, Link
from stribeck.servo.port import Port, PortLostError, set_low_latency
from stribeck.servo.remote import RemoteServo, ServoSpec
from stribeck.servo.tables import model_named
from virtual_bus import VirtualBus

LAYOUTS = [
    ("xl330",),
    ("mx106",),
    ("xl320",),
    ("mx28_2", "mx64_2"),
    ("xl330", "xl320", "xm430"),
    ("mx64", "mx106", "mx64"),
]
"""Sync read, bulk read of protocol 1, and bulk read of protocol 2 where layouts mix."""


@pytest.mark.parametrize("models", LAYOUTS)
def test_everything_that_a_servo_measures_is_read(models: tuple[str, ...]) -> None:
    """Position, velocity, current or load, duty, voltage and temperature are those of the servos."""
    servos = emulated(*models, temperature=31.0, supply_resistance=0.0)
    with VirtualBus(servos) as emulation:
        bus = emulation.bus(*models)
        bus.connect()
        reading = bus.read(emulation.clock.now() + 0.5)
        bus.close()
        for index, servo in enumerate(servos):
            assert reading.valid[index]
            assert reading.position[index] == pytest.approx(servo.state.position, abs=0.006)
            assert reading.velocity[index] == 0.0
            assert reading.voltage[index] == pytest.approx(servo.model.nominal_voltage)
            assert reading.temperature[index] == 31.0
            has = servo.model.registers
            for name, values in (("current", reading.current), ("load", reading.load), ("pwm", reading.pwm)):
                assert (values[index] == 0.0) if SIGNALS[name] in has else math.isnan(values[index])


@pytest.mark.parametrize("models", LAYOUTS)
def test_goals_move_the_servos(models: tuple[str, ...]) -> None:
    """Goals of servos with different layouts arrive, in whole counts as returned."""
    servos = emulated(*models)
    with VirtualBus(servos) as emulation:
        bus = emulation.bus(*models)
        bus.connect()
        for index in range(len(models)):
            bus.hold(index, 0.0)
            bus.set_torque(index, True)
        goals = 0.3 + 0.1 * np.arange(len(models))
        sent = bus.write_goals(goals)
        np.testing.assert_allclose(sent, goals, atol=0.004)
        for index, servo in enumerate(servos):
            emulation.wait_for(lambda s=servo: s.state.position > 0.2, f"{servo.model.title} moves")
            register = servo.model.registers["goal_position"]
            wanted = register.counts(float(sent[index]), *register.limits)
            assert servo.memory.numbers["goal_position"] == wanted
        reading = bus.read(emulation.clock.now() + 0.5)
        for index, servo in enumerate(servos):
            assert reading.position[index] == pytest.approx(servo.state.position, abs=0.1)
        assert bus.torque_off() == []
        assert not any(servo.torque_enabled for servo in servos)
        bus.close()


@pytest.mark.parametrize("mode", ["current", "pwm", "current_position"])
def test_modes_turn_the_servo(mode: str) -> None:
    """Goals mean amperes, duty or radians, by the mode that connect sets."""
    servos = emulated("xl330")
    with VirtualBus(servos) as emulation:
        bus = emulation.bus("xl330", mode=mode)
        report = bus.connect()
        assert f"set from position to {mode}" in " ".join(report.notes)
        bus.hold(0, 0.0)
        bus.set_torque(0, True)
        goal = {"current": 0.3, "pwm": 0.25, "current_position": 0.5}[mode]
        sent = bus.write_goals(np.array([goal]))
        assert sent[0] == pytest.approx(goal, abs=0.001)
        emulation.wait_for(lambda: servos[0].state.position > 0.3, "the servo turns")
        bus.torque_off()
        bus.close()


def test_goals_are_clipped_to_the_servos_own_limits() -> None:
    """A goal beyond the servo's position limits is sent as the limit: the servo would refuse it."""
    servos = emulated("xl330", registers={"min_position_limit": 1024, "max_position_limit": 3072})
    with VirtualBus(servos) as emulation:
        bus = emulation.bus("xl330")
        bus.connect()
        np.testing.assert_allclose(bus.write_goals(np.array([2.5])), [math.pi / 2])
        np.testing.assert_allclose(bus.write_goals(np.array([-9.0])), [-math.pi / 2])
        assert np.isnan(bus.write_goals(np.array([np.nan]))).all()
        bus.close()


@pytest.mark.parametrize("level", [0, 1, 2])
def test_connect_brings_a_servo_to_known_settings(level: int) -> None:
    """Return delay, status level, mode, profile, gains and watchdog are set, torque goes off, and it is said."""
    servo = emulated("xl330", registers={"return_delay_time": 250, "operating_mode": 0})[0]
    with VirtualBus([servo]) as emulation:
        numbers = servo.memory.numbers
        numbers.update(
            status_return_level=level, profile_velocity=9, position_d_gain=7, bus_watchdog=-1, torque_enable=1
        )
        bus = emulation.bus("xl330")
        report = bus.connect()
        bus.close()
    notes = " | ".join(report.notes)
    for part in ("return_delay_time", "mode of", "watchdog", "its torque is off now", "no low-latency"):
        assert part in notes
    names = ("return_delay_time", "status_return_level", "operating_mode", "profile_velocity")
    assert [numbers[name] for name in names] == [0, 2, 3, 0]
    assert [numbers[n] for n in ("position_d_gain", "bus_watchdog", "torque_enable")] == [0, 0, 0]
    assert report.warnings == report.refuse_recording == []
    assert not bus.port.low_latency


@pytest.mark.parametrize("model", ["mx106", "xl320"])
@pytest.mark.parametrize("level", [0, 1])
def test_servos_that_answer_nothing_are_made_to_talk(model: str, level: int) -> None:
    """A servo that only answers pings, or only reads, acknowledges everything after connecting."""
    servo = emulated(model, registers={"status_return_level": level})[0]
    with VirtualBus([servo]) as emulation:
        bus = emulation.bus(model)
        bus.connect()
        assert servo.memory.numbers["status_return_level"] == 2
        assert bus.read(emulation.clock.now() + 0.5).valid.all()
        bus.close()


def test_a_late_answer_is_not_taken_for_a_ping() -> None:
    """What still comes from before does not make another model of a servo."""
    with VirtualBus(emulated("xl330")) as emulation:
        bus = emulation.bus("xl330")
        bus.connect()
        emulation.add_fault(Fault("late", p=0.5, settings={"delay": 0.02}))
        for _ in range(20):
            bus.read(emulation.clock.now())
            assert bus.link.ping(1) == 1200
        bus.close()


def test_supply_above_the_rating_warns_and_refuses_recordings() -> None:
    """An XL330 at 6.5 V is told about, with its rating; at 5 V it is not."""
    with VirtualBus(emulated("xl330", voltage=6.5)) as emulation:
        bus = emulation.bus("xl330")
        report = bus.connect()
        bus.close()
    assert len(report.warnings) == len(report.refuse_recording) == 1
    assert "6.5 V" in report.warnings[0]
    assert "3.7 to 6 V" in report.warnings[0]


def test_a_servo_with_a_hardware_error_is_reported_in_words() -> None:
    """What the servo says is an error stands in the report, and in every reading."""
    servos = emulated("xl330")
    with VirtualBus(servos) as emulation:
        emulation.fail(1, "overload")
        bus = emulation.bus("xl330")
        report = bus.connect()
        assert report.errors == {1: "overload"}
        bus.read(emulation.clock.now() + 0.5)
        assert bus.errors == ["overload"]
        bus.reset(0)
        bus.read(emulation.clock.now() + 0.5)
        assert bus.errors == [""]
        bus.close()


def test_a_lost_packet_does_not_keep_a_servo_from_its_restart() -> None:
    """One packet in four is lost in either direction: a hardware error is cleared all the same, every time."""
    with VirtualBus(emulated("xl330")) as emulation:
        bus = emulation.bus("xl330")
        bus.connect()
        emulation.add_fault(parse_fault("lost:p=0.25"))
        for _ in range(10):
            emulation.fail(1, "overload")
            bus.reset(0)
            assert emulation.servo(1).errors == 0
        bus.close()


def test_servos_without_a_watchdog_are_named() -> None:
    """The user is told what stays energised: MX with protocol 1 and the XL320, not the XL330."""
    assert without_watchdog(expected("xl330")) == ""
    text = without_watchdog(expected("xl330", "xl320"))
    assert "XL-320" in text
    assert "XL330" not in text
    assert "power switch" in text
    assert "servo 1 (Dynamixel MX-106)" in without_watchdog(expected("mx106"))


def test_missing_and_wrong_servos_are_listed() -> None:
    """The error names missing IDs, wrong models, what was expected and what was found; the port is closed."""
    servos = [emulated_one("xl330", 1), emulated_one("xm430", 2)]
    servos.append(emulated_one("xl330", 7))
    with VirtualBus(servos) as emulation:
        bus = emulation.bus("xl330", "xl330", "xl330")
        refusal(
            bus.connect,
            "missing ID 3",
            "wrong model at ID 2",
            "3 Dynamixel XL330-M288",
            "2 Dynamixel XM430-W350",
            "7 Dynamixel XL330-M288",
        )
        assert not bus.is_open


def test_servos_at_another_baud_rate_are_missing() -> None:
    """A servo at 57600 bit/s is not found at 1 Mbit/s, and the message says where to look."""
    with VirtualBus(emulated("xl330", baud=57_600)) as emulation:
        refusal(emulation.bus("xl330").connect, "missing ID 1", "found: none", "baud rate")
        bus = emulation.bus("xl330", baud=57_600)
        bus.connect()
        assert bus.read(emulation.clock.now() + 0.5).valid.all()
        bus.close()


@pytest.mark.real_time
def test_a_port_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    """A missing device, a file that is no port, and a port in use are each said in one line."""
    refusal(bus_for(str(tmp_path / "nothing"), "xl330").connect, "No such file", "plugged in")
    (tmp_path / "file").write_text("")
    refusal(bus_for(str(tmp_path / "file"), "xl330").connect, "cannot open")
    with EmulatedBus(emulated("xl330")) as emulation:
        bus = bus_for(emulation.path, "xl330")
        bus.connect()
        refusal(bus_for(emulation.path, "xl330").connect, "cannot open", "other program")
        bus.close()


@pytest.mark.parametrize(
    ("servos", "part"),
    [
        ([], "at least one"),
        ([ServoSpec(1, model_named("xl330")), ServoSpec(1, model_named("xl330"))], "ID 1 occurs twice"),
        ([ServoSpec(1, model_named("xl330")), ServoSpec(2, model_named("mx106"))], "two protocols"),
    ],
)
def test_servos_that_cannot_share_a_bus_are_refused(servos: list[ServoSpec], part: str) -> None:
    """Equal IDs and mixed protocols are found before the port is opened."""
    refusal(lambda: Bus(Port("nowhere", BAUD), servos), part)


def test_impossible_servos_are_refused() -> None:
    """IDs and modes that a servo cannot have say what is valid."""
    refusal(lambda: ServoSpec(253, model_named("xl330")), "253", "0 to 252")
    refusal(lambda: ServoSpec(1, model_named("xl320"), "current"), "valid: position")
    refusal(lambda: ServoSpec(1, model_named("xl330"), "position", goal_current=1.0), "current_position")


def test_a_baud_rate_too_slow_for_the_rate_is_refused() -> None:
    """57600 bit/s does not carry 200 Hz; the message says which baud rate and which rate would do."""
    servos = expected("xl330")
    text = refusal(lambda: check_rate(servos, 57_600, 200.0), "57600", "1000000 bit/s would do")
    highest = int(text.rsplit("at most ", 1)[1].split()[0])
    check_rate(servos, 57_600, highest)
    refusal(lambda: check_rate(servos, 57_600, highest + 1))
    refusal(lambda: check_rate(expected(*["xl330"] * 30), BAUD, 2000.0), "no baud rate of these servos")
    refusal(lambda: Bus(Port("nowhere", 57_600), servos, rate=200.0), "too slow")


def test_time_of_a_cycle_by_hand() -> None:
    """One XL330 at 1 Mbit/s: 19 bytes of goals, 15 that ask, 34 that answer, and 50 µs."""
    servos = expected("xl330")
    assert cycle_bytes(servos) == 19 + 15 + 34
    assert cycle_time(servos, BAUD) == pytest.approx(68 * 10 / 1e6 + 50e-6)


@pytest.mark.parametrize("models", LAYOUTS)
def test_bytes_of_a_cycle_are_those_on_the_wire(models: tuple[str, ...]) -> None:
    """The estimate that refuses baud rates counts every byte that is sent and received."""
    with VirtualBus(emulated(*models)) as emulation:
        bus = emulation.bus(*models)
        bus.connect()
        port = bus.link.port
        counted = []
        write = port.writePort
        port.writePort = lambda packet: counted.append(len(packet)) or write(packet)  # type: ignore[method-assign]
        packets = len({servo.goal_register.address for servo in bus.servos}) + 1
        for _ in range(20):  # a busy machine may need a second attempt, or answer late: not counted here
            counted.clear()
            bus.write_goals(np.zeros(len(models)))
            whole = bus.read(emulation.clock.now() + 0.5).valid.all()
            if whole and len(counted) == packets and sum(counted) + port.received == cycle_bytes(bus.servos):
                break
        assert sum(counted) + port.received == cycle_bytes(bus.servos)
        bus.close()


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


@pytest.mark.parametrize("model", ["xl330", "mx106"])
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

    def noted(address: int, length: int) -> tuple[int, bytes]:
        moments.append(servo.clock)
        return read(address, length)

    servo.read = noted  # type: ignore[method-assign]
    with EmulatedBus([servo]) as emulation:
        bus = bus_for(emulation.path, model)
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
        emulation._do(lambda: _fill(port))
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
            bus.set_gain(0, 1 << 20)
        assert bus.counters.status_errors == 2
        bus.close()


def test_an_interrupted_read_leaves_the_bus_usable() -> None:
    """Ctrl-C in the middle of a read does not swallow the packets that switch torque off."""
    servos = emulated("xl330")
    with VirtualBus(servos) as emulation:
        bus = emulation.bus("xl330")
        bus.connect()
        bus.set_torque(0, True)
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
    link = Link(Port(os.ttyname(terminal), BAUD), protocol)
    link.port.openPort()
    header = b"\xff\xff" if protocol == 1.0 else b"\xff\xff\xfd\x00"
    rng = np.random.default_rng(0)
    for _ in range(150):
        noise = rng.integers(0, 256, int(rng.integers(0, 60))).astype(np.uint8).tobytes()
        link._handler.readTx(link.port, 1, 0, 4)
        os.write(master, noise + header + bytes(rng.integers(0, 8, 9).astype(np.uint8)) + noise)
        link.port.patience = 0.002
        start = time.monotonic()
        assert link._collect({1: 4}, learn=False) == {}
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
