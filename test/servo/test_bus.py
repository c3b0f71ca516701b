"""The bus against emulated servos: who is there, what is read and written, what gets lost."""

import math
from pathlib import Path

import numpy as np
import pytest

from driving import BAUD, bus_for, emulated, emulated_one, expected
from emulated_bus import EmulatedBus
from helpers import refusal
from stribeck.emulator.faults import Fault, parse_fault
from stribeck.servo.bus import Bus, without_watchdog
from stribeck.servo.checks import SIGNALS, check_rate, cycle_bytes, cycle_time
from stribeck.servo.port import Port
from stribeck.servo.remote import ServoSpec
from stribeck.servo.tables import model_named
from virtual_bus import VirtualBus

LAYOUTS = [
    ("xl330",),
    ("mx106",),
    ("xl320",),
    ("mx28_2", "mx64_2"),
    ("xl330", "xl320", "xm430"),
    ("mx64", "mx106", "mx64"),
    ("sts3215", "sts3250", "sts3215"),
    ("scs0009", "scs0009"),
]
"""Sync read, bulk read of protocol 1, bulk read of protocol 2 where layouts mix, Feetech's sync read, and single reads."""


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
        bus.hold(dict.fromkeys(range(len(models)), 0.0))
        bus.set_torque(range(len(models)), True)
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
        bus.hold({0: 0.0})
        bus.set_torque([0], True)
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
    for part in (
        "return_delay_time of servo 1 (Dynamixel XL330-M288) set from 250 to 0 (the servo keeps this after power-off)",
        "mode of",
        "watchdog",
        "has been switched off",
        "no low-latency",
    ):
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
        ([ServoSpec(1, model_named("xl330")), ServoSpec(2, model_named("mx106"))], "the same protocol"),
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
    text = refusal(lambda: check_rate(servos, 57_600, 200.0), "57600", "1000000 bit/s is fast enough")
    highest = int(text.rsplit("at most ", 1)[1].split()[0])
    check_rate(servos, 57_600, highest)
    refusal(lambda: check_rate(servos, 57_600, highest + 1))
    refusal(lambda: check_rate(expected(*["xl330"] * 30), BAUD, 2000.0), "no baud rate of these servos")
    refusal(lambda: Bus(Port("nowhere", 57_600), servos, rate=200.0), "too slow")


def test_time_of_a_cycle_by_hand() -> None:
    """One XL330 at 1 Mbit/s: 19 bytes of goals, 15 that ask, 38 that answer, and 50 µs."""
    servos = expected("xl330")
    assert cycle_bytes(servos) == 19 + 15 + 38
    assert cycle_time(servos, BAUD) == pytest.approx(72 * 10 / 1e6 + 50e-6)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("models", LAYOUTS)
def test_bytes_of_a_cycle_are_those_on_the_wire(models: tuple[str, ...]) -> None:
    """The estimate that refuses baud rates counts every byte that is sent and received."""
    with VirtualBus(emulated(*models)) as emulation:
        bus = emulation.bus(*models)
        bus.connect()
        port, counted = bus.link.port, []
        write, read = port.writePort, port._line.read

        def noted(data: bytes) -> bytes:
            counted.append(len(data))
            return data

        port.writePort = lambda packet: noted(packet) and write(packet)  # type: ignore[method-assign]
        port._line.read = lambda wait: noted(read(wait))  # type: ignore[method-assign]
        cycles = []
        for _ in range(100):
            counted.clear()
            bus.write_goals(np.zeros(len(models)))
            assert bus.read(emulation.clock.now() + 0.5).valid.all()
            cycles.append(sum(counted))
            emulation.clock.sleep(0.005)
        # Servos with a clock need a longer block now and then.
        dated = all(servo.has("realtime_tick") for servo in bus.servos)
        assert (min if dated else max)(cycles) == cycle_bytes(bus.servos)
        bus.close()
