"""Feetech servos on the same bus and driver: what their protocol and registers do differently."""

import math
from typing import Any

import numpy as np
import pytest

from driving import config_for, drive, emulated, events, valid_samples
from helpers import refusal
from stribeck.emulator.faults import Fault, parse_fault
from stribeck.model.bench import Pendulum
from stribeck.servo.checks import check_rate
from stribeck.servo.driver import Driver
from stribeck.servo.lengths import LONGEST_DELAY
from stribeck.servo.remote import RemoteServo, ServoSpec
from stribeck.servo.tables import model_named
from virtual_bus import VirtualBus

PATIENT = {"command_timeout": 2.0, "silence_timeout": 0.5}
"""For tests of something else."""

MODELS = ("sts3215", "scs0009")

RATE = 100.0

FAULTS: list[tuple[str, Any, str]] = [
    ("overload", lambda bus: bus.fail(1, "overload"), "overload"),
    ("overheating", lambda bus: bus.set_temperature(80.0), "overheating"),
    ("brown-out", lambda bus: bus.set_voltage(3.2), "input voltage|3.2 V"),
    ("silence", lambda bus: bus.silence(2.0), "its servo has not answered"),
    ("late", lambda bus: bus.add_fault(Fault("late", p=1.0, settings={"delay": 0.3})), "has not answered"),
    ("unplugged", lambda bus: bus.unplug(), "is lost"),
    ("push", lambda bus: bus.push(1, 30.0, 0.6), "outside"),
]
"""Faults of the list of the Dynamixel bus that end a motion, and a word of the reason."""

HARMLESS = ("lost:p=0.1", "corrupt:p=0.1", "double:p=0.5,delay=0.001", "echo:p=1", "foreign:p=0.2")


def enabled(driver: Driver) -> Driver:
    """The driver, connected and enabled."""
    driver.connect()
    driver.enable()
    return driver


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("name", "strike", "part"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_every_fault_switches_torque_off_and_says_why_once(
    model: str, name: str, strike: Any, part: str
) -> None:
    """Torque goes off, the reason is one event of one line, and goals are not obeyed any more."""
    servos = emulated(model)
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, model, rate=RATE, **PATIENT)))
        drive(driver, 0.3, lambda t: 0.2 * math.sin(6.0 * t))
        strike(bus)
        samples = drive(driver, 3.0, lambda t: 0.2, until=lambda sample: sample.state == "fault")
        assert samples[-1].state == "fault", name
        samples += drive(driver, 0.3, lambda t: 0.2)
        refusal(driver.enable, "torque stays off", "clear the fault")
        driver.close()
        if name not in ("silence", "unplugged", "late"):
            bus.wait_for(lambda: not servos[0].torque_enabled, "torque is off")
    found = events(samples)
    assert len(found) == 1
    assert any(word in found[0].text for word in part.split("|"))
    assert len(found[0].text.splitlines()) == 1
    assert np.isnan(samples[-1].goal).all()


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", HARMLESS)
def test_lost_damaged_doubled_and_returned_packets_do_not_end_a_motion(model: str, text: str) -> None:
    """Samples are asked for again, and nothing is taken for what it is not."""
    with VirtualBus(emulated(model)) as bus:
        driver = enabled(bus.driver(config_for(bus.path, model, rate=RATE, **PATIENT)))
        bus.add_fault(parse_fault(text))
        samples = drive(driver, 1.5, lambda t: 0.2 * math.sin(2.0 * t))
        driver.close()
    assert events(samples) == []
    assert valid_samples(samples) > 0.9 * len(samples)


@pytest.mark.parametrize("model", MODELS)
def test_a_cleared_overload_can_be_enabled_again(model: str) -> None:
    """After an overload the servo is brought back when told, with its gain, and follows again."""
    servos = emulated(model)
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, model, rate=RATE, joint={"p_gain": 20}, **PATIENT)))
        drive(driver, 0.2, lambda t: 0.1)
        bus.fail(1, "overload")
        drive(driver, 1.0, lambda t: 0.1, until=lambda sample: sample.state == "fault")
        driver.clear()
        driver.enable()
        samples = drive(driver, 0.4, lambda t: 0.1)
        driver.close()
    assert samples[-1].state == "on"
    assert servos[0].memory.numbers["position_p_gain"] == 20


def test_six_servos_are_read_a_hundred_times_a_second() -> None:
    """Every sample of six servos at 1 Mbit/s is whole, and the answers of a longest delay have lengths of their own."""
    models = ("sts3215",) * 6
    with VirtualBus(emulated(*models, pendulum=Pendulum(0.1, 0.1, 0.0))) as bus:
        driver = enabled(bus.driver(config_for(bus.path, *models, rate=RATE, **PATIENT)))
        samples = drive(driver, 2.0, lambda t: 0.3 * math.sin(2.0 * t))
        driver.close()
        region = driver.bus.servos[0].region(("present_position", "present_current"))
    assert valid_samples(samples) == len(samples)
    stamps = np.array([sample.stamp for sample in samples])
    assert np.median(np.diff(stamps)) == pytest.approx(1.0 / RATE, rel=1e-3)
    assert len(region.cyclic_lengths) / RATE > LONGEST_DELAY
    refusal(
        lambda: check_rate([ServoSpec(i, model_named("sts3215")) for i in range(6)], 1_000_000, 400.0),
        "too slow",
    )


@pytest.mark.parametrize("model", MODELS)
def test_what_the_driver_sets_ends_with_the_power(model: str) -> None:
    """The EEPROM is locked before anything is set: gains come back as they were when the supply returns."""
    servos = emulated(model, registers={"eeprom_lock": 0, "position_p_gain": 16, "position_d_gain": 8})
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, model, rate=RATE, joint={"p_gain": 30}, **PATIENT)))
        drive(driver, 0.1, lambda t: 0.0)
        numbers = servos[0].memory.numbers
        assert (numbers["position_p_gain"], numbers["position_d_gain"], numbers["eeprom_lock"]) == (30, 0, 1)
        driver.close()
        servos[0].reboot()
    assert (numbers["position_p_gain"], numbers["position_d_gain"]) == (16, 8)


def test_a_write_that_the_servo_ignores_is_noticed() -> None:
    """The error byte of these servos does not report it: the register, read back, does."""
    with VirtualBus(emulated("sts3215")) as bus:
        own = bus.bus("sts3215")
        own.connect()
        remote = RemoteServo(own.link, own.servos[0])
        refusal(lambda: remote.write("position_p_gain", 255), "did not store position_p_gain", "255")
        own.close()


def test_the_position_counts_from_the_homing_offset() -> None:
    """Present position = encoder - offset; a goal is in the same coordinates."""
    servos = emulated("sts3215", registers={"homing_offset": 100})
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "sts3215", rate=RATE, **PATIENT)))
        assert driver.cycle().position[0] == pytest.approx(-100 * 2 * math.pi / 4096, abs=1e-9)
        samples = drive(driver, 1.0, lambda t: 0.0)
        driver.close()
    assert samples[-1].position[0] == pytest.approx(0.0, abs=0.03)
    assert servos[0].state.position == pytest.approx(100 * 2 * math.pi / 4096, abs=0.03)


def test_a_servo_of_undocumented_number_is_any_that_is_not_another_model() -> None:
    """An STS3032 with a number of its own is driven; one that answers as an STS3215 is a wrong model."""
    servos = [*emulated("sts3032", registers={"model_number": 521}), *emulated("sts3032")]
    for servo, number in ((servos[0], 521), (servos[1], 777)):
        servo.memory.numbers["model_number"] = number
        with VirtualBus([servo]) as bus:
            driver = bus.driver(
                config_for(bus.path, "sts3032", rate=RATE, joint={"actuator": "sts3215"}, **PATIENT)
            )
            if number == 777:
                refusal(driver.connect, "wrong model at ID 1", "STS3215")
            else:
                driver.connect()
                driver.close()


def test_a_servo_that_turns_endlessly_is_refused() -> None:
    """Both limits 0 are the multi-turn mode of the series, in which goals mean something else."""
    with VirtualBus(emulated("sts3215", registers={"max_position_limit": 0})) as bus:
        refusal(lambda: bus.bus("sts3215").connect(), "has no position limits", "position limits")


def test_other_steps_of_speed_are_warned_of() -> None:
    """Bit 2 of the phase decides whether a count is 0.0146 or 0.732 rev/min."""
    with VirtualBus(emulated("sts3215", registers={"phase": 8})) as bus:
        warned = bus.bus("sts3215").connect().warnings
    assert ["0.732 rev/min" in one for one in warned] == [True]
    with VirtualBus(emulated("sts3215")) as bus:
        assert bus.bus("sts3215").connect().warnings == []


def test_series_with_different_byte_orders_do_not_share_a_bus() -> None:
    """An STS and an SCS servo are told apart although their packets look the same."""
    with VirtualBus(emulated("sts3215", "scs0009")) as bus:
        refusal(lambda: bus.bus("sts3215", "scs0009"), "Feetech STS/SMS", "Feetech SCS", "a port for each")


@pytest.mark.parametrize("model", MODELS)
def test_a_changed_setting_is_said_to_end_with_the_power(model: str) -> None:
    """The EEPROM area is locked before anything is set, so the servo forgets it; X series servos keep it."""
    with VirtualBus(emulated(model, registers={"return_delay_time": 250})) as emulation:
        bus = emulation.bus(model)
        report = bus.connect()
        bus.close()
    (note,) = [note for note in report.notes if note.startswith("return_delay_time")]
    assert note.endswith("set from 250 to 0 (until power-off)")
