"""The driver against emulated servos: goals, torque, and when it lets go."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driving import config_for, drive, emulated, events, valid_samples
from helpers import refusal
from stribeck.emulator.faults import Fault
from stribeck.errors import ServoError
from stribeck.files.actuators import load_actuator
from stribeck.files.schema import convert
from stribeck.model.bench import Pendulum
from stribeck.servo.config import BusFile, driver_of, read_driver_config
from stribeck.servo.driver import Driver
from stribeck.servo.sample import TELEMETRY
from virtual_bus import VirtualBus

PATIENT = {"command_timeout": 2.0, "silence_timeout": 0.5, "watchdog": 2.0}
"""For tests of something else."""

FAULTS: list[tuple[str, Any, str]] = [
    ("overload", lambda bus: bus.fail(1, "overload"), "overload"),
    ("overheating", lambda bus: bus.set_temperature(80.0), "overheating"),
    ("brown-out", lambda bus: bus.set_voltage(3.2), "input voltage|3.2 V"),
    ("silence", lambda bus: bus.silence(2.0), "its servo has not answered"),
    ("unplugged", lambda bus: bus.unplug(), "is lost"),
    ("push", lambda bus: bus.push(1, 2.0, 0.6), "outside"),
]


def enabled(driver: Driver) -> Driver:
    """The driver, connected and enabled."""
    driver.connect()
    driver.enable()
    return driver


def test_a_pause_before_torque_goes_on_is_no_gap() -> None:
    """Nobody reads the servos while the user is told what is there: that is not a silence of theirs."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = bus.driver(config_for(bus.path, "xl330"))
        driver.connect()
        assert driver.cycle().valid.all()
        paused = bus.clock.now()
        bus.wait_for(lambda: bus.clock.now() - paused > 0.3, "0.3 s")
        driver.enable()
        samples = drive(driver, 0.2, lambda t: 0.0)
        driver.close()
    assert driver.counters.longest_gap < 0.3
    assert max(sample.gap[0] for sample in samples) < 0.3


def test_a_joint_follows_its_goal_and_reports_everything() -> None:
    """A slow sine is followed; every signal of the contract is there, torque by the datasheet's constant."""
    servos = emulated("xl330", pendulum=Pendulum(0.1, 0.1, 0.0))
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", **PATIENT)))
        samples = drive(driver, 1.0, lambda t: 0.5 * math.sin(2.0 * t))
        driver.close()
    last = samples[-1]
    assert valid_samples(samples) > 0.8 * len(samples)
    assert last.position[0] == pytest.approx(last.goal[0], abs=0.25)
    assert last.effort[0] == pytest.approx(0.52 / 1.47 * last.current[0], rel=1e-3)
    assert {name for name in TELEMETRY if getattr(last, name).shape == (1,)} >= {
        "pwm", "voltage", "temperature", "current", "torque_enable", "p_gain", "gap"
    }  # fmt: skip
    assert (last.voltage[0], last.torque_enable[0], last.p_gain[0]) == (
        pytest.approx(5.0, abs=0.3),
        1.0,
        400.0,
    )
    assert 885.0 * last.pwm[0] == pytest.approx(round(885.0 * last.pwm[0]), abs=1e-9)
    assert events(samples) == []
    stamps = [sample.stamp for sample in samples if sample.valid.all()]
    assert all(later > earlier for earlier, later in pairwise(stamps))
    assert all(sample.goal_stamp <= sample.stamp for sample in samples if sample.valid.all())


def test_torque_comes_on_without_a_jump() -> None:
    """A joint that stands at 0.5 rad is energised where it is, although its old goal is another."""
    servos = emulated("xl330")
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", **PATIENT)))
        drive(driver, 1.0, lambda t: min(t, 0.5))
        driver.disable()
        servos[0].memory.numbers["goal_position"] = 1000
        there = servos[0].state.position
        driver.enable()
        samples = drive(driver, 0.3, lambda t: there)
        driver.close()
    assert samples[-1].torque_enable[0] == 1.0
    moved = [abs(sample.position[0] - there) for sample in samples if sample.valid[0]]
    assert max(moved) < 0.01


def test_nothing_is_energised_before_the_first_goal() -> None:
    """Enabling alone switches no torque on, and waits for commands as long as it takes."""
    servos = emulated("xl330")
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330")))
        samples = drive(driver, 0.3)
        driver.close()
        assert servos[0].first_torque is None
    assert samples[-1].state == "on"
    assert np.isnan(samples[-1].goal).all()


def test_a_goal_of_nan_releases_one_joint_alone() -> None:
    """NaN is torque off for that joint; the other stays energised, and a number brings it back."""
    servos = emulated("xl330", "xl330")
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", "xl330", **PATIENT)))
        assert drive(driver, 0.2, lambda t: (0.1, 0.1))[-1].torque_enable.tolist() == [1.0, 1.0]
        sample = drive(driver, 0.2, lambda t: (math.nan, 0.1))[-1]
        assert sample.torque_enable.tolist() == [0.0, 1.0]
        assert np.isnan(sample.goal).tolist() == [True, False]
        assert [servo.torque_enabled for servo in servos] == [False, True]
        drive(driver, 0.2, lambda t: (0.1, 0.1))
        assert [servo.torque_enabled for servo in servos] == [True, True]
        driver.close()
        assert [servo.torque_enabled for servo in servos] == [False, False]


def test_goals_are_clipped_and_reported_as_sent() -> None:
    """Beyond the joint's limits the limit is sent, in whole counts of the servo."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = enabled(
            bus.driver(config_for(bus.path, "xl330", joint={"position_limits": [-0.4, 0.3]}, **PATIENT))
        )
        samples = drive(driver, 0.4, lambda t: 5.0 if t < 0.2 else 0.1001)
        driver.close()
    count = 2.0 * math.pi / 4096.0
    goals = {round(float(s.goal[0]) / count, 6) for s in samples if np.isfinite(s.goal[0])}
    assert goals == {round(0.3 / count), round(0.1001 / count)}


@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_joint_map_applies_to_everything(ratio: float) -> None:
    """A joint that is mounted the other way round, geared and offset follows in its own coordinates."""
    servos = emulated("xl330")
    mounted = {"joint_map": {"sign": -1, "ratio": ratio, "offset": 0.2}}
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", joint=mounted, **PATIENT)))
        assert drive(driver, 0.05)[-1].position[0] == pytest.approx(0.2, abs=0.002)
        samples = drive(
            driver, 3.0, lambda t: 0.2 + 0.3 * min(2.0 * t, 1.0), lambda sample: sample.position[0] > 0.47
        )
        driver.close()
    assert servos[0].state.position == pytest.approx(-0.3 * ratio, abs=0.1)
    assert samples[-1].position[0] == pytest.approx(0.5, abs=0.05)
    moving = max(samples, key=lambda sample: np.nan_to_num(sample.velocity[0]))
    assert moving.velocity[0] > 0.0
    pushing = max(samples, key=lambda sample: np.nan_to_num(sample.current[0]))
    assert min(pushing.current[0], pushing.pwm[0]) > 0.0
    constant = load_actuator("xl330").datasheet_torque_constant
    assert pushing.effort[0] == pytest.approx(ratio * (constant or 0.0) * pushing.current[0])


def test_gains_change_while_running() -> None:
    """A new gain is on the servo and in the samples from the next cycles on."""
    servos = emulated("xl330")
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", joint={"p_gain": 150}, **PATIENT)))
        assert drive(driver, 0.1, lambda t: 0.0)[-1].p_gain[0] == 150.0
        driver.set_gain(800)
        assert drive(driver, 0.1, lambda t: 0.0)[-1].p_gain[0] == 800.0
        assert servos[0].memory.numbers["position_p_gain"] == 800
        refusal(lambda: driver.set_gain(1e6), "no gain 1e+06", "0 to 16383")
        refusal(lambda: driver.set_gain(0.5), "whole numbers")
        driver.close()


def test_stale_commands_switch_torque_off() -> None:
    """When commands stop torque is off soon after the time-out; the reason is said once."""
    servos = emulated("xl330")
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330")))
        drive(driver, 0.3, lambda t: 0.1)
        stopped = bus.clock.now()
        samples = drive(driver, 1.0, until=lambda sample: sample.state == "fault")
        assert not servos[0].torque_enabled
        assert bus.clock.now() - stopped < 0.2
        samples += drive(driver, 0.2, lambda t: 0.1)
        driver.close()
    assert [event.text for event in events(samples)] == [samples[-1].reason]
    assert samples[-1].reason.startswith("no command for")
    assert samples[-1].reason.endswith("torque is off")


@pytest.mark.parametrize(("name", "strike", "part"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_every_fault_switches_torque_off_and_says_why_once(name: str, strike: Any, part: str) -> None:
    """Torque goes off, the reason is one event of one line, and goals are not obeyed any more."""
    servos = emulated("xl330")
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", **PATIENT)))
        drive(driver, 0.3, lambda t: 0.2 * math.sin(6.0 * t))
        strike(bus)
        samples = drive(driver, 3.0, lambda t: 0.2, until=lambda sample: sample.state == "fault")
        assert samples[-1].state == "fault", name
        samples += drive(driver, 0.3, lambda t: 0.2)
        refusal(driver.enable, "torque stays off", "clear the fault")
        driver.close()
        if name not in ("silence", "unplugged"):
            bus.wait_for(lambda: not servos[0].torque_enabled, "torque is off")
    found = events(samples)
    assert len(found) == 1
    assert any(word in found[0].text for word in part.split("|"))
    assert len(found[0].text.splitlines()) == 1
    assert np.isnan(samples[-1].goal).all()


def test_the_reason_of_a_fault_stands_while_torque_off_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Diagnostics are published by another thread meanwhile, and a session takes the reason from them."""
    seen: list[tuple[str, str]] = []
    confirm = Driver._torque_off
    monkeypatch.setattr(
        Driver, "_torque_off", lambda self, *a: (seen.append((self.state, self.reason)), confirm(self, *a))[1]
    )
    with VirtualBus(emulated("xl330")) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330")))
        drive(driver, 0.3, lambda t: 0.1)
        drive(driver, 1.0, until=lambda sample: sample.state == "fault")
        driver.close()
    during = next(reason for state, reason in seen if state == "fault")
    assert during.startswith("no command for")


@pytest.mark.parametrize("model", ["xl330", "mx106", "xl320"])
def test_a_cleared_fault_can_be_enabled_again(model: str) -> None:
    """After an overload the servo is brought back when told, with its gain, and follows again."""
    servos = emulated(model)
    gain = {"p_gain": 20}
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, model, joint=gain, **PATIENT)))
        drive(driver, 0.2, lambda t: 0.1)
        bus.fail(1, "overload")
        drive(driver, 1.0, lambda t: 0.1, until=lambda sample: sample.state == "fault")
        assert driver.state == "fault"
        driver.clear()
        driver.enable()
        samples = drive(driver, 0.4, lambda t: 0.1)
        driver.close()
    assert samples[-1].state == "on"
    assert samples[-1].torque_enable[0] == 1.0
    assert [event.text for event in events(samples, "info")] == ["fault cleared; torque is off"]
    assert servos[0].memory.numbers["position_p_gain"] == 20


def test_an_overload_while_torque_is_off_is_cleared_and_enabled_again() -> None:
    """`~/clear` helps although the driver is in no fault: enabling is refused until then."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", **PATIENT)))
        driver.disable()
        bus.fail(1, "overload")
        drive(driver, 0.2)
        assert driver.state == "off"
        refusal(driver.enable, "torque stays off", "overload", "clear the fault")
        driver.clear()
        driver.enable()
        assert drive(driver, 0.2, lambda t: 0.1)[-1].torque_enable[0] == 1.0
        driver.close()


def test_a_fault_whose_cause_stays_cannot_be_cleared() -> None:
    """While the port is away clearing is refused, and works when it is back."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", **PATIENT)))
        drive(driver, 0.1, lambda t: 0.1)
        bus.unplug()
        drive(driver, 1.0, lambda t: 0.1, until=lambda sample: sample.state == "fault")
        refusal(driver.clear, "cannot open")
        assert driver.state == "fault"
        assert not drive(driver, 0.1)[-1].valid.any()
        bus.plug()
        driver.clear()
        driver.enable()
        assert drive(driver, 0.2, lambda t: 0.1)[-1].torque_enable[0] == 1.0
        driver.close()


def test_a_servo_that_rebooted_in_motion_is_noticed() -> None:
    """A servo whose supply broke away has forgotten its torque; the driver does not go on as if it held."""
    servos = emulated("xl330")
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", **PATIENT)))
        drive(driver, 0.2, lambda t: 0.1)
        servos[0].memory.power_on()
        samples = drive(driver, 1.0, lambda t: 0.1, until=lambda sample: sample.state == "fault")
        driver.close()
    assert "switched torque off" in events(samples)[0].text


def test_a_pause_of_ours_beyond_the_watchdog_is_a_fault() -> None:
    """If this program sleeps until the servo stops by itself, it does not go on as if nothing were."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", command_timeout=5.0)))
        drive(driver, 0.2, lambda t: 0.1)
        bus.wait_for(lambda: bus.servos[0].memory.numbers["bus_watchdog"] == -1, "the watchdog runs out")
        samples = drive(driver, 0.5, lambda t: 0.1, until=lambda sample: sample.state == "fault")
        assert "watchdog" in events(samples)[0].text
        driver.clear()
        driver.enable()
        assert drive(driver, 0.2, lambda t: 0.1)[-1].state == "on"
        driver.close()


def test_disable_switches_torque_and_watchdog_off() -> None:
    """After disabling nothing is energised, no watchdog waits, and commands are not obeyed."""
    servos = emulated("xl330", "xl320")
    with VirtualBus(servos) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", "xl320", **PATIENT)))
        drive(driver, 0.2, lambda t: 0.1)
        assert servos[0].memory.numbers["bus_watchdog"] > 0
        driver.disable("told so")
        assert not any(servo.torque_enabled for servo in servos)
        assert servos[0].memory.numbers["bus_watchdog"] == 0
        samples = drive(driver, 0.2, lambda t: 0.1)
        driver.close()
    assert [event.text for event in events(samples, "info")] == ["torque off: told so"]
    assert not any(servo.torque_enabled for servo in servos)


def test_torque_stays_off_where_it_may_not_be_on() -> None:
    """Outside its limits, at a wrong supply, or without a connection, enabling is refused with the reason."""
    servos = emulated("xl330")
    with VirtualBus(servos) as bus:
        driver = bus.driver(config_for(bus.path, "xl330", joint={"position_limits": [0.5, 1.0]}))
        refusal(driver.enable, "connect first")
        driver.connect()
        refusal(driver.enable, "outside 0.400 to 1.100 rad")
        driver.close()
        driver = bus.driver(config_for(bus.path, "xl330", min_voltage=5.5))
        driver.connect()
        refusal(driver.enable, "below 5.50 V")
        driver.close()
        driver = bus.driver(config_for(bus.path, "xl330", max_temperature=25.0))
        driver.connect()
        refusal(driver.enable, "25 °C")
        driver.close()


def test_a_hardware_error_at_connect_is_a_fault_until_cleared() -> None:
    """A servo that is in shutdown is not simply used: it is cleared when told."""
    with VirtualBus(emulated("xl330")) as bus:
        bus.fail(1, "overheating")
        driver = bus.driver(config_for(bus.path, "xl330"))
        driver.connect()
        assert driver.state == "fault"
        assert "overheating" in driver.reason
        driver.clear()
        driver.enable()
        driver.close()


def test_a_gap_is_flagged_and_counted() -> None:
    """After 30 ms of silence the next sample says how long it was, and the ones after it say 0 again."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", **PATIENT)))
        drive(driver, 0.3, lambda t: 0.0)
        bus.silence(0.03)
        samples = drive(driver, 0.3, lambda t: 0.0)
        driver.close()
    gaps = [float(sample.gap[0]) for sample in samples if sample.valid[0]]
    assert max(gaps) > 0.025
    assert driver.counters.longest_gap >= max(gaps)
    assert gaps[-1] == 0.0


def test_set_goals_refuses_what_are_no_goals() -> None:
    """Too many goals and infinite ones are refused, with the joints named."""
    driver = Driver(config_for("nowhere", "xl330"))
    refusal(lambda: driver.set_goals([0.0, 1.0]), "expected 1 goals (j1)")
    refusal(lambda: driver.set_goals([math.inf]), "finite or NaN")


def test_what_stays_energised_is_known_before_anything_moves() -> None:
    """The driver names servos without a watchdog without being connected."""
    assert Driver(config_for("nowhere", "xl330")).stays_energised == ""
    assert "MX-106" in Driver(config_for("nowhere", "mx106")).stays_energised


def test_disabling_a_driver_that_is_not_connected_does_nothing() -> None:
    """Shutting down in any order is no error."""
    driver = Driver(config_for("nowhere", "xl330"))
    driver.disable()
    driver.close()
    assert not driver.cycle().valid.any()
    with pytest.raises(ServoError):
        driver.connect()


def test_a_configuration_is_read_from_yaml(tmp_path: Path) -> None:
    """Everything that the file says arrives; what it leaves out is the default."""
    path = tmp_path / "driver.yaml"
    path.write_text(
        "port: /dev/ttyUSB0\nbaud_rate: 1000000\nrate: 100\njoints:\n  elbow:\n    id: 3\n    model: mx106\n"
        "    position_limits: [-1, 2]\n    joint_map: {sign: -1, offset: 0.5}\n    p_gain: 16\n"
    )
    config = read_driver_config(path)
    joint = config.joints[0]
    assert (config.port, config.rate, config.watchdog) == ("/dev/ttyUSB0", 100.0, 0.1)
    assert (joint.name, joint.servo.identity, joint.servo.model.name, joint.p_gain) == (
        "elbow",
        3,
        "mx106",
        16,
    )
    assert (joint.joint_map.sign, joint.joint_map.ratio, joint.joint_map.offset) == (-1.0, 1.0, 0.5)
    assert joint.actuator == "mx106"
    assert joint.torque_constant == pytest.approx(8.4 / 5.2)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"colour": 1}, ("unknown key 'colour'", "valid: port")),
        ({"baud_rate": 12345}, ("no baud rate 12345", "1000000")),
        ({"rate": 2000}, ("too slow for 2000 Hz", "is fast enough")),
        ({"rate": 20}, ("silence_timeout", "three cycles")),
        ({"watchdog": 5}, ("watchdog: must be at most 2.54", "5")),
        ({"joints": {}}, ("at least one joint",)),
        ({"joints": {"a": {"id": 1, "model": "xl330"}}}, ("position_limits missing",)),
        ({"joints": {"a": {"id": 1, "model": "zl9", "position_limits": [0, 1]}}}, ("unknown servo model",)),
        (
            {"joints": {"a": {"id": 1, "model": "xl330", "position_limits": [1, 0]}}},
            ("not below", "joints: a"),
        ),
        (
            {"joints": {"a": {"id": 1, "model": "xl330", "position_limits": [0, 1], "p_gain": -1}}},
            ("no gain -1", "0 to 16383"),
        ),
        (
            {
                "joints": {
                    "a": {"id": 1, "model": "xl330", "position_limits": [0, 1], "joint_map": {"ratio": 0}}
                }
            },
            ("ratio must be positive",),
        ),
    ],
)
def test_configurations_that_make_no_sense_are_refused(
    change: dict[str, Any], parts: tuple[str, ...]
) -> None:
    """Each message says what was found and what is valid, before any port is opened."""
    joints = {"a": {"id": 1, "model": "xl330", "position_limits": [-1, 1]}}
    data = {"port": "nowhere", "baud_rate": 1_000_000, "joints": joints, **change}
    refusal(lambda: Driver(driver_of(convert(data, BusFile, "driver.yaml"), "driver.yaml")), *parts)


def test_an_own_loop_of_cycles_needs_no_clock() -> None:
    """A user who calls cycle() with the time has the same samples as run() gives."""
    with VirtualBus(emulated("xl330")) as bus:
        driver = enabled(bus.driver(config_for(bus.path, "xl330", **PATIENT)))
        bus.add_fault(Fault("lost", p=0.2))
        samples = []
        for _ in range(100):
            now = bus.clock.now()
            driver.set_goals([0.1], now)
            samples.append(driver.cycle(now))
        driver.close()
    assert valid_samples(samples) >= 75  # a busy machine loses some, too
    assert samples[-1].state == "on"
