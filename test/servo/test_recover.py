"""Faults of timing can be got over by the program; every other fault, and an emergency stop, stays until it is cleared."""

import numpy as np
import pytest

from driving import config_for, drive, emulated
from helpers import refusal
from virtual_bus import VirtualBus

QUICK = {"command_timeout": 0.1, "silence_timeout": 0.075, "watchdog": 0.1}


def energised(bus, **changes):
    """A driver that holds a servo."""
    driver = bus.driver(config_for(bus.path, "xl330", **{**QUICK, **changes}))
    driver.connect()
    driver.enable()
    drive(driver, 0.1, lambda _: 0.0)
    assert bus.servos[0].torque_enabled
    return driver


def silent_commands(driver, bus):
    """No goal for longer than allowed."""
    bus.clock.sleep(0.0)
    until = bus.clock.now() + 0.2
    while bus.clock.now() < until:
        driver.cycle()
        bus.clock.sleep(0.005)


def silence(driver, bus):
    """No answer for longer than allowed, and then again."""
    bus.silence(0.15)
    drive(driver, 0.3, lambda _: 0.0)


def pause(driver, bus):
    """The program stands still for longer than the watchdog of the servo."""
    bus.clock.sleep(0.5)
    drive(driver, 0.1, lambda _: 0.0)


@pytest.mark.parametrize("disturb", [silent_commands, silence, pause])
def test_a_fault_of_timing_is_marked_and_can_be_recovered_from(disturb):
    """Torque is off until then; afterwards goals are obeyed again, from where the joint is."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = energised(bus)
        disturb(driver, bus)
        assert (driver.state, driver.disturbed) == ("fault", True), driver.reason
        assert driver.cycle().disturbed
        assert not bus.servos[0].torque_enabled
        driver.recover()
        assert (driver.state, driver.disturbed, driver.reason) == ("on", False, "")
        assert not bus.servos[0].torque_enabled, "the first goal energises"
        drive(driver, 0.2, lambda _: 0.0)
        assert bus.servos[0].torque_enabled
        driver.close()


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (lambda driver, bus: bus.fail(1, "overload"), "overload"),
        (lambda driver, bus: bus.set_temperature(80.0), "overheating"),
        (lambda driver, bus: bus.set_voltage(3.2), "3.2 V|voltage"),
        (lambda driver, bus: bus.unplug(), "lost"),
        (lambda driver, bus: bus.push(1, 2.0, 0.6), "outside"),
        (lambda driver, bus: driver.stop("emergency stop"), "emergency stop"),
    ],
)
def test_every_other_fault_stays(cause, said):
    """It is not marked, and recovery is refused with its reason; torque stays off."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = energised(bus)
        cause(driver, bus)
        drive(driver, 1.0, lambda _: 0.0)
        assert (driver.state, driver.disturbed) == ("fault", False)
        text = refusal(driver.recover, "torque stays off", "clear the fault")
        assert any(part in text for part in said.split("|"))
        assert driver.state == "fault"
        assert not bus.servos[0].torque_enabled or said == "lost"


def test_an_emergency_stop_switches_torque_off_before_anything_else_is_sent():
    """At the moment of the call, without a cycle; goals change nothing until the fault is cleared and torque enabled."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = energised(bus)
        before = bus.clock.now()
        driver.stop("emergency stop")
        assert not bus.servos[0].torque_enabled
        assert bus.clock.now() - before < 0.01
        samples = drive(driver, 0.2, lambda _: 0.3)
        assert np.isnan([sample.goal for sample in samples]).all()
        assert {event.text for sample in samples for event in sample.events} == {
            "emergency stop; torque is off"
        }
        refusal(driver.enable, "emergency stop")
        driver.clear()
        driver.enable()
        drive(driver, 0.1, lambda _: 0.0)
        assert bus.servos[0].torque_enabled
        driver.close()


def test_an_emergency_stop_wins_over_a_fault_of_timing():
    """Pressed while torque is off after lost answers: recovery is refused from then on."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = energised(bus)
        silence(driver, bus)
        assert driver.disturbed
        driver.stop("emergency stop")
        assert not driver.disturbed
        refusal(driver.recover, "torque stays off")


def test_an_emergency_stop_while_torque_is_off_keeps_it_off():
    """Before torque was ever enabled: it cannot be until the stop is cleared."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = bus.driver(config_for(bus.path, "xl330", **QUICK))
        driver.connect()
        driver.stop("emergency stop")
        refusal(driver.enable, "emergency stop")
        assert bus.servos[0].first_torque is None


def test_a_servo_that_reports_an_error_is_not_rebooted():
    """Lost answers, and an overload meanwhile: recovery names the overload, and the fault is no longer one of timing."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = energised(bus)
        silence(driver, bus)
        bus.fail(1, "overload")
        refusal(driver.recover, "overload")
        assert (driver.state, driver.disturbed) == ("fault", False)
        assert not bus.servos[0].torque_enabled
