"""Answers that come after the retry of their request were taken for those of the next request.

A status packet names neither the request nor the address. Position limits, current limits and the temperature limit of
other registers were accepted in silence, and torque off was confirmed by the late acknowledgement of a gain.
"""

from contextlib import suppress

import pytest

from bus_sweep import cut_off
from driving import config_for, drive, emulated
from stribeck.emulator.faults import Fault
from stribeck.errors import ServoError
from stribeck.servo.remote import RemoteServo
from virtual_bus import VirtualBus


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(("delay", "p"), [(0.05, 0.1), (0.035, 0.3), (0.3, 0.3)])
def test_late_answers_are_not_taken_for_other_registers(delay: float, p: float) -> None:
    """Connecting accepts the values in the servo's memory, 20 times."""
    for seed in range(20):
        servo = emulated("xl330")[0]
        with VirtualBus([servo], [Fault("late", p=p, settings={"delay": delay})], seed=seed) as emulation:
            bus = emulation.bus("xl330")
            with suppress(ServoError):  # such as a servo that does not answer any more
                bus.connect()
            if not bus.is_open:
                continue
            numbers = servo.memory.numbers
            assert bus._spans == [(0, 4095)]
            assert bus.temperature_limits.tolist() == [70.0]
            assert (numbers["goal_pwm"], numbers["goal_current"], numbers["return_delay_time"]) == (
                885,
                1750,
                0,
            )


@pytest.mark.ci
def test_a_late_acknowledgement_does_not_confirm_torque_off() -> None:
    """A servo that is cut off from the bus while energised has not confirmed, whatever still arrives from it."""
    for seed in range(60):
        servo = emulated("xl330")[0]
        with VirtualBus([servo], seed=seed) as emulation:
            bus = emulation.bus("xl330")
            bus.connect()
            bus.set_torque([0], True)
            emulation.add_fault(Fault("late", p=0.5, settings={"delay": 0.002 + 0.0005 * (seed % 12)}))
            bus.set_gains({0: 100 + seed})
            cut_off(servo)
            for _ in range(5):
                assert [spec.identity for spec in bus.torque_off()] == [1]
            assert servo.torque_enabled


def test_the_driver_reports_what_is_not_confirmed() -> None:
    """The same in the driver: no sample says that torque is off, and the fault says that it is not confirmed."""
    servo = emulated("mx106")[0]
    with VirtualBus([servo], seed=3) as emulation:
        driver = emulation.driver(config_for(emulation.path, "mx106"))
        driver.connect()
        driver.enable()
        drive(driver, 0.2, lambda t: 0.0)
        emulation.add_fault(Fault("late", p=0.5, settings={"delay": 0.004}))
        driver.set_gain(20)
        drive(driver, 0.02, lambda t: 0.0)
        cut_off(servo)
        samples = drive(driver, 0.5, lambda t: 0.0)
        driver.disable()
        assert servo.torque_enabled
        assert all(sample.torque_enable[0] for sample in samples)
        assert "could not be confirmed" in driver.reason


def test_a_confirmation_that_comes_later_is_reported() -> None:
    """The reason of a fault said for ever that torque off could not be confirmed, though every servo had confirmed it since."""
    servo = emulated("xl330")[0]
    with VirtualBus([servo], seed=3) as emulation:
        driver = emulation.driver(config_for(emulation.path, "xl330"))
        driver.connect()
        driver.enable()
        drive(driver, 0.2, lambda t: 0.0)
        emulation.add_fault(Fault("lost", p=1.0, after=0.0, duration=0.25))  # for 50 ms from now on
        driver.stop("emergency stop")
        assert driver.reason == (
            "emergency stop; torque off could not be confirmed: the watchdog stops servo 1 within 100 ms"
        )
        samples = drive(driver, 0.2, lambda t: 0.0)
        assert not servo.torque_enabled
        assert (samples[-1].state, samples[-1].reason) == ("fault", "emergency stop; torque is off")
        assert not samples[-1].torque_enable[0]
        said = [event.text for sample in samples for event in sample.events if event.kind == "info"]
        assert said == ["torque is off: every servo has confirmed it"]


def test_a_returned_ping_is_not_an_answer() -> None:
    """An adapter that returns what is sent does not make a servo of protocol 1 appear."""
    with VirtualBus(emulated("mx106"), [Fault("lost", p=1.0), Fault("echo", p=1.0)]) as emulation:
        bus = emulation.bus("mx106")
        with pytest.raises(ServoError, match="missing ID 1; expected: 1 Dynamixel MX-106; found: none"):
            bus.connect()


def test_a_written_value_is_read_back() -> None:
    """A write whose acknowledgement comes but whose value does not is an error."""
    servo = emulated("xl330")[0]
    with VirtualBus([servo]) as emulation:
        bus = emulation.bus("xl330")
        bus.connect()
        servo._set = lambda name, number: None  # type: ignore[method-assign]
        with pytest.raises(ServoError, match=r"did not store position_p_gain = 77; it is still 400"):
            RemoteServo(bus.link, bus.servos[0]).write("position_p_gain", 77)


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("temperature_limit", 20, "is 20 °C, but must be at least 30"),
        ("temperature_limit", 250, "temperature_limit = 250; valid: 0 to 100"),
        ("min_position_limit", 4000, "above max_position_limit"),
    ],
)
def test_implausible_settings_are_refused(name: str, number: int, text: str) -> None:
    """A servo with limits that no servo has is not moved."""
    servo = emulated("xl330", registers={"max_position_limit": 3000})[0]
    servo.memory.numbers[name] = number
    with VirtualBus([servo]) as emulation, pytest.raises(ServoError, match=text):
        emulation.bus("xl330").connect()


def test_answers_later_than_assumed_are_a_fault() -> None:
    """All answers one second late: connecting ends with a message that says so, or that the servo is silent."""
    late = Fault("late", p=0.5, settings={"delay": 0.7})
    messages = set()
    for seed in range(10):
        with (
            VirtualBus(emulated("xl330"), [late], seed=seed) as emulation,
            pytest.raises(ServoError) as caught,
        ):
            emulation.bus("xl330").connect()
        messages.add(str(caught.value))
    assert any(
        "more than 0.5 s late, so that answers cannot be matched to requests" in text for text in messages
    )


def test_answers_later_than_assumed_are_a_fault_of_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a servo's state is checked: torque off and the reason, never an exception; then it goes on.

    What happened: that check raised, which ended the loop of the driver while the servos were energised.
    """
    with VirtualBus(emulated("xl330", "xl330")) as bus:
        driver = bus.driver(config_for(bus.path, "xl330", "xl330"))
        driver.connect()
        driver.enable()
        drive(driver, 0.3, lambda _: 0.0)
        assert all(servo.torque_enabled for servo in bus.servos)
        receiver, read = driver.bus.link.receiver, driver.bus.state_of

        def late(index: int) -> object:
            now = driver.clock.now()
            receiver._overdue.extend([(now - 0.1, "servo 1"), (now, "servo 2")])
            return read(index)

        monkeypatch.setattr(driver.bus, "state_of", late)
        drive(driver, 1.0, lambda _: 0.0, until=lambda sample: sample.state == "fault")
        assert (driver.state, driver.disturbed) == ("fault", True)
        assert "servo 2 on virtual answers more than 0.5 s late" in driver.reason
        assert not any(servo.torque_enabled for servo in bus.servos)
        monkeypatch.undo()
        driver.recover()
        drive(driver, 0.3, lambda _: 0.0)
        assert (driver.state, driver.reason) == ("on", "")
        assert all(servo.torque_enabled for servo in bus.servos)
        driver.close()
