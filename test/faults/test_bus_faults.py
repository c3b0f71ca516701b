"""Faults of the bus in mid-motion: what must run on runs on, what must stop stops in time and says why."""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from driving import config_for, drive, emulated, emulator_process, events, valid_samples, wait_for
from emulated_bus import EmulatedBus
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.faults import parse_fault
from stribeck.servo import link
from stribeck.servo.driver import Driver, DriverSample
from virtual_bus import VirtualBus

RATE = 200.0
PATIENT = {"silence_timeout": 2.0, "command_timeout": 2.0, "watchdog": 2.0}
"""For tests on the wall clock, of a machine that stands still now and then; the others test the times."""
NOISE = {
    "lost": ["lost:p=0.05"],
    "corrupt": ["corrupt:bytes=0.01"],
    "foreign": ["foreign:p=0.2"],
    "all at once": ["lost:p=0.05", "corrupt:bytes=0.01", "foreign:p=0.2"],
}
ALONE = [noise if noise == "all at once" else pytest.param(noise, marks=pytest.mark.slow) for noise in NOISE]
BEFORE = [0.4, pytest.param(9.0, marks=pytest.mark.slow)]
"""How long a servo moves before something happens [s]."""

DRIVING = """
import math, sys
from driving import config_for, drive
from stribeck.servo import link
from stribeck.servo.driver import Driver

link.SLOW_PATIENCE = 0.5
driver = Driver(config_for(sys.argv[1], "xl330", silence_timeout=2.0, command_timeout=2.0, watchdog=2.0))
driver.connect()
driver.enable()
print("drives", flush=True)
drive(driver, 60.0, lambda t: 1.5 * math.sin(4.0 * t))
"""
"""A program that drives a servo until it is killed."""


def swing(t: float) -> float:
    """A goal in motion [rad]."""
    return 0.8 * math.sin(3.0 * t)


@contextmanager
def moving(model: str = "xl330", before: float = 0.4) -> Iterator[tuple[VirtualBus, EmulatedServo, Driver]]:
    """A servo in motion that does not protect itself: letting go is up to the driver."""
    servo = emulated(model, registers={"shutdown": 0})[0]
    with VirtualBus([servo]) as bus:
        driver = bus.driver(config_for(bus.path, model))
        driver.connect()
        driver.enable()
        assert drive(driver, before, swing)[-1].state == "on"
        yield bus, servo, driver
        driver.close()


def drive_until_limp(
    driver: Driver, strike: Callable[[], None], let_go: Callable[[DriverSample], bool]
) -> tuple[float, list[DriverSample]]:
    """Strike in mid-motion; the time [s] until the servo was let go, and the samples since."""
    start = driver.clock.now()
    strike()
    samples = drive(driver, 1.0, swing, until=let_go)
    assert let_go(samples[-1]), "the servo was not let go within 1 s"
    return driver.clock.now() - start, samples


def assert_said_once_and_recovers(driver: Driver, samples: list[DriverSample], *parts: str) -> None:
    """One event says why; after clearing and enabling the joint moves again."""
    samples = samples + drive(driver, 0.3, swing)
    found = events(samples)
    assert len(found) == 1, [event.text for event in found]
    assert any(part in found[0].text for part in parts), found[0].text
    driver.clear()
    driver.enable()
    after = drive(driver, 0.5, swing)
    assert after[-1].state == "on"
    assert after[-1].torque_enable[0] == 1.0
    assert events(after) == []


@pytest.mark.parametrize("model", ["xl330", "mx106"])
@pytest.mark.parametrize("noise", ALONE)
@pytest.mark.parametrize("duration", [2.5, pytest.param(10.0, marks=pytest.mark.slow)])
def test_a_noisy_bus_runs_on(noise: str, model: str, duration: float) -> None:
    """5 % lost packets, 1 % corrupt bytes, a foreign servo: 90 % of the samples, and nothing stops."""
    with VirtualBus(emulated(model), [parse_fault(text) for text in NOISE[noise]]) as bus:
        driver = bus.driver(config_for(bus.path, model, rate=RATE))
        driver.connect()
        driver.enable()
        samples = drive(driver, duration, swing)
        driver.close()
    assert events(samples) == []
    assert samples[-1].state == "on"
    assert valid_samples(samples) >= 0.9 * RATE * duration
    counters = driver.counters
    causes = {"lost": "timeouts", "corrupt": "corrupt", "foreign": "foreign", "all at once": "retries"}
    assert getattr(counters, causes[noise]) > 0


def test_six_servos_fit_on_one_bus_at_200_hz() -> None:
    """Six XL330 at 1 Mbit/s are all read and commanded 200 times in a second of the wire's time."""
    with VirtualBus(emulated(*["xl330"] * 6)) as bus:
        driver = bus.driver(config_for(bus.path, *["xl330"] * 6, rate=RATE))
        driver.connect()
        driver.enable()
        samples = drive(driver, 2.5, lambda t: [swing(t + k) for k in range(6)])
        driver.close()
    assert events(samples) == []
    assert valid_samples(samples) >= 0.99 * RATE * 2.5


@pytest.mark.ci
@pytest.mark.real_time
def test_six_servos_answer_together_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six XL330 of ``stribeck emulate``, at whatever rate the machine keeps: all answer together, and all follow."""
    models, wanted = ["xl330"] * 6, [0.1 * k for k in range(1, 7)]
    options = ("--servo", "xl330", "--id", *"123456")
    monkeypatch.setattr(link, "SLOW_PATIENCE", 0.5)
    with emulator_process(tmp_path / "servos", *options) as path:
        driver = Driver(config_for(path, *models, rate=RATE, **PATIENT))
        driver.connect()
        driver.enable()
        near = lambda s: bool(s.valid.all() and np.abs(s.position - wanted).max() < 0.03)  # noqa: E731
        samples = drive(driver, 30.0, lambda t: wanted, until=near)
        driver.close()
    assert events(samples) == []
    assert near(samples[-1])


@pytest.mark.parametrize("duration", [3.0, pytest.param(10.0, marks=pytest.mark.slow)])
def test_stalls_of_50_ms_are_survived_and_flagged(duration: float) -> None:
    """The bus stalls for 50 ms twice a second: torque stays on, every stall is a gap in a sample."""
    stalls = parse_fault("silence:after=0.5,every=0.5,for=0.05")
    with VirtualBus(emulated("xl330"), [stalls]) as bus:
        driver = bus.driver(config_for(bus.path, "xl330"))
        driver.connect()
        driver.enable()
        samples = drive(driver, duration, swing)
        driver.close()
    assert events(samples) == []
    assert (samples[-1].state, samples[-1].torque_enable[0]) == ("on", 1.0)
    gaps = [float(sample.gap[0]) for sample in samples if sample.valid[0] and sample.gap[0] > 0.045]
    assert len(gaps) >= 2 * duration - 2, gaps
    assert driver.counters.longest_gap >= max(gaps)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("model", ["xl330", "mx106"])
def test_an_overload_switches_torque_off_within_100_ms(model: str, before: float) -> None:
    """A servo that reports an overload and does not protect itself is let go in time, and recovers when told."""
    with moving(model, before=before) as (bus, servo, driver):
        took, samples = drive_until_limp(
            driver, lambda: bus.fail(1, "overload"), lambda sample: not servo.torque_enabled
        )
        assert took < 0.1
        assert_said_once_and_recovers(driver, samples, "overload")


@pytest.mark.parametrize("before", BEFORE)
def test_a_brown_out_switches_torque_off_within_100_ms(before: float) -> None:
    """At 3.2 V an XL330 is let go in time; at 5 V again it recovers when told."""
    with moving(before=before) as (bus, servo, driver):
        took, samples = drive_until_limp(
            driver, lambda: bus.set_voltage(3.2), lambda sample: not servo.torque_enabled
        )
        assert took < 0.1
        samples += drive(driver, 0.1, swing)
        bus.set_voltage(5.0)
        assert_said_once_and_recovers(driver, samples, "input voltage", "supply voltage of 3.2 V")


@pytest.mark.parametrize("before", BEFORE)
def test_unplugging_gives_the_bus_up_to_the_watchdog_within_100_ms(before: float) -> None:
    """The port disappears in mid-motion: that is said at once, the watchdog stops the servo, and it recovers."""
    with moving(before=before) as (bus, servo, driver):
        unplugged = bus.clock.now()
        took, samples = drive_until_limp(driver, bus.unplug, lambda sample: sample.state == "fault")
        assert took < 0.1
        assert "watchdog stops servo 1 within 100 ms" in samples[-1].reason
        bus.wait_for(lambda: servo.memory.numbers["bus_watchdog"] == -1, "the watchdog runs out", 0.5)
        assert bus.clock.now() - unplugged < 0.2
        bus.wait_for(lambda: abs(servo.state.velocity) < 0.02, "the servo stands")
        bus.plug()
        assert_said_once_and_recovers(driver, samples, "is lost")


def test_a_bus_that_falls_silent_is_given_up_within_100_ms() -> None:
    """A broken wire looks like silence: the driver lets go, and the watchdog of the servo does the rest."""
    with moving() as (bus, servo, driver):
        took, _ = drive_until_limp(driver, lambda: bus.silence(0.6), lambda sample: sample.state == "fault")
        assert took < 0.11  # 75 ms of silence, a cycle or two, and 8 ms of asking for a confirmation
        bus.wait_for(lambda: servo.memory.numbers["bus_watchdog"] == -1, "the watchdog runs out", 0.3)
        bus.wait_for(lambda: not servo.torque_enabled or drive(driver, 0.1) == [], "torque is off", 2.0)


@pytest.mark.ci
@pytest.mark.real_time
def test_a_killed_program_leaves_the_servo_to_its_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    """kill -9 of the driving process in mid-motion: the watchdog stops the servo, and the next program finds it."""
    monkeypatch.setattr(link, "SLOW_PATIENCE", 0.5)
    with EmulatedBus(emulated("xl330")) as bus:
        (servo,) = bus.servos
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        child = subprocess.Popen(
            [sys.executable, "-c", DRIVING, bus.path], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "drives\n"
        wait_for(lambda: abs(servo.state.velocity) > 2.0, "the servo moves")
        assert servo.numbers["bus_watchdog"] != -1
        child.kill()
        wait_for(lambda: servo.numbers["bus_watchdog"] == -1, "the watchdog runs out")
        wait_for(lambda: abs(servo.state.velocity) < 0.1, "the servo stands")
        child.communicate()
        there = servo.state.position
        driver = Driver(config_for(bus.path, "xl330", **PATIENT))
        assert "watchdog" in " ".join(driver.connect().notes)
        driver.enable()
        near = lambda s: bool(s.valid[0] and abs(s.position[0] - there) < 0.02)  # noqa: E731
        assert near(drive(driver, 5.0, lambda t: there, until=near)[-1])
        driver.close()
