"""The emulated servo's watchdog, its errors, and its restart."""

import pytest

from emulated_servo import put, read, servo, write
from stribeck.emulator.device import BOOT_TIME
from stribeck.emulator.protocol import ALERT, Error2

# Watchdog.


def test_the_watchdog_stops_a_moving_servo_and_makes_goals_read_only():
    """100 ms after the last instruction the goal is where the servo is, until the watchdog is cleared."""
    device = servo()
    device.hear()
    put(device, bus_watchdog=5, torque_enable=1, goal_position=3000)
    device.advance_to(0.095)
    assert read(device, "bus_watchdog") == 5
    device.advance_to(0.105)
    assert read(device, "bus_watchdog") == -1
    stopped = device.state.position
    device.advance_to(0.4)
    assert device.state.velocity == 0.0
    assert abs(device.state.position - stopped) < 0.2
    assert read(device, "torque_enable") == 1
    assert write(device, "goal_position", 2048) == Error2.DATA_RANGE
    assert write(device, "bus_watchdog", 5) == Error2.DATA_RANGE
    put(device, bus_watchdog=0, goal_position=2048)


@pytest.mark.parametrize(("mode", "goal", "counts"), [(0, "goal_current", 300), (16, "goal_pwm", 300)])
def test_the_watchdog_takes_current_and_duty_away(mode, goal, counts):
    """In current and PWM mode the goal becomes zero."""
    device = servo()
    put(device, operating_mode=mode, bus_watchdog=1, torque_enable=1)
    put(device, **{goal: counts})
    device.advance_to(0.03)
    assert read(device, goal) == 0
    device.advance_to(0.04)
    assert read(device, "present_pwm" if mode == 16 else "present_current") == 0


def test_the_watchdog_is_content_while_instructions_come():
    """Any instruction on the bus counts; with torque off nothing is watched."""
    device = servo()
    put(device, bus_watchdog=1, torque_enable=1)
    for k in range(1, 50):
        device.advance_to(0.015 * k)
        device.hear()
    assert read(device, "bus_watchdog") == 1
    put(device, torque_enable=0)
    device.advance_to(3.0)
    assert read(device, "bus_watchdog") == 1


# Errors, voltage, reboot.


def test_an_overload_takes_torque_away_until_a_reboot():
    """The error shuts down, every answer has the alert, torque cannot come back before a reboot."""
    device = servo()
    put(device, torque_enable=1)
    device.fail("overload")
    assert device.read(64, 1) == (ALERT, b"\x00")
    assert read(device, "hardware_error_status") == 0x20
    assert write(device, "torque_enable", 1) == ALERT | Error2.RESULT_FAIL
    device.reboot()
    assert not device.listens
    device.advance_to(BOOT_TIME + 0.01)
    assert device.listens
    assert device.read(64, 1) == (0, b"\x00")
    put(device, torque_enable=1)


def test_protocol_1_comes_back_with_its_torque_limit():
    """After a shutdown the torque limit is zero; written anew, the servo works again."""
    device = servo("mx106")
    put(device, torque_enable=1)
    device.fail("overload")
    assert device.status() == 0x20
    assert device.read(34, 2) == (0x20, b"\x00\x00")
    assert not device.torque_enabled
    assert device.write(34, (1023).to_bytes(2, "little")) == 0
    assert device.torque_enabled


def test_a_brown_out_takes_torque_off_and_leaves_the_servo_talking():
    """At 3.2 V an XL330 reports the input voltage and shuts down; at 1 V it is gone, and starts anew."""
    device = servo()
    put(device, torque_enable=1, position_p_gain=123)
    device.brown_out(3.2)
    device.advance_to(0.01)
    assert read(device, "hardware_error_status") == 0x01
    assert read(device, "present_input_voltage") == 32
    assert not device.torque_enabled
    device.brown_out(1.0)
    device.advance_to(0.02)
    assert not device.listens
    device.brown_out(None)
    device.advance_to(0.03 + BOOT_TIME)
    assert device.listens
    assert read(device, "position_p_gain") == 400
    assert read(device, "hardware_error_status") == 0
    assert device.open_voltage == 5.0


def test_too_much_voltage_is_an_error_unless_shutdown_says_otherwise():
    """At 7.4 V an XL330 reports an error; with the bit out of shutdown it goes on."""
    for shutdown, works in ((53, False), (52, True)):
        device = servo(voltage=7.4, registers={"shutdown": shutdown})
        put(device, torque_enable=1)
        device.advance_to(0.01)
        assert read(device, "hardware_error_status") == 0x01
        assert device.torque_enabled is works


def test_heat_above_the_limit_is_an_error():
    """71 °C is more than the XL330's limit of 70 °C."""
    device = servo()
    device.set_temperature(70.0)
    assert read(device, "hardware_error_status") == 0
    device.set_temperature(71.0)
    assert read(device, "hardware_error_status") == 0x04
