"""Control tables of Feetech servos: the series STS/SMS, and SCS where it differs.

Sources: Feetech, memory tables "FT-SMS-STS" and "FT-SCSCL" (doc.feetech.cn, product downloads); baud rates and sign bits as in the headers
``SMS_STS.h`` (2021-12-08) and ``SCSCL.h`` (2020-06-17) of the vendor's SCServo library; model numbers as in ``motors/feetech/tables.py`` of lerobot 0.4;
supply of the STS3250 and the STS3032 as in their specifications;
docs/hobby_arms.md lists them, and where they differ. Names are those of the Dynamixel tables where the meaning is the same: ``shutdown`` is the unloading
condition, ``punch`` the minimum startup force, ``present_pwm`` the "load", which the manual defines as the duty of the motor.
Nothing here has been compared with hardware.
"""

import math
from dataclasses import replace

from stribeck.servo.registers import (
    FEETECH_SCS,
    FEETECH_STS,
    PLAIN,
    RETURN_DELAY,
    REVOLUTION,
    TEMPERATURE,
    UNDOCUMENTED,
    VOLTAGE,
    Register,
    ServoModel,
    Unit,
    row,
    table,
)

_CENTER, _RESOLUTION = 2048, 4096
_COUNT = REVOLUTION / _RESOLUTION
_POSITION = Unit("sign-magnitude", _COUNT, "rad", _CENTER, 15)
_OFFSET = Unit("sign-magnitude", 1.0, "1", 0, 11)
_VELOCITY = Unit("sign-magnitude", _COUNT, "rad/s", 0, 15)
_SPEED = Unit("unsigned", _COUNT, "rad/s")
_ACCELERATION = Unit("unsigned", 100.0 * _COUNT, "rad/s^2")
_DUTY = Unit("sign-magnitude", 1e-3, "1")
_LIMIT = Unit("unsigned", 1e-3, "1")
_CURRENT = Unit("sign-magnitude", 6.5e-3, "A", 0, 15)
_TENTH = Unit("unsigned", 0.01, "s")
_PERCENT = Unit("unsigned", 0.01, "1")
_GAIN = (0, 254)

SPEED_UNIT = 0x04
"""Bit of ``phase`` that is set while speeds count in steps of 0.0146 rev/min, one position count per second."""

_BAUD = {0: 1_000_000, 1: 500_000, 2: 250_000, 3: 128_000, 4: 115_200, 5: 76_800, 6: 57_600, 7: 38_400}

_ERRORS = {"input_voltage": 0x01, "encoder": 0x02, "overheating": 0x04, "overcurrent": 0x08, "overload": 0x20}
"""Bits of the register ``hardware_error_status`` and of every status packet."""


def _common(number: int, voltages: tuple[int, int], position: Unit, highest: int) -> list[Register]:
    """Registers that both series have; ``voltages`` are factory values [0.1 V], ``highest`` is the largest position."""
    low, high = voltages
    return [
        row("firmware_version", 0, 1, "r", 3),
        row("firmware_minor_version", 1, 1, "r", 10),
        row("model_number", 3, 2, "r", number),
        row("id", 5, 1, "rw", 1, PLAIN, (0, 253)),
        row("baud_rate", 6, 1, "rw", 0, PLAIN, (0, 7)),
        row("return_delay_time", 7, 1, "rw", 250, RETURN_DELAY, (0, 254)),
        row("status_return_level", 8, 1, "rw", 1, PLAIN, (0, 1)),
        row("min_position_limit", 9, 2, "rw", 0, position, (0, highest)),
        row("max_position_limit", 11, 2, "rw", highest, position, (0, highest)),
        row("temperature_limit", 13, 1, "rw", 70, TEMPERATURE, (0, 100)),
        row("max_voltage_limit", 14, 1, "rw", high, VOLTAGE, (0, 254)),
        row("min_voltage_limit", 15, 1, "rw", low, VOLTAGE, (0, 254)),
        row("max_torque", 16, 2, "rw", 1000, _LIMIT, (0, 1000)),
        row("phase", 18, 1, "rw", 12, PLAIN, (0, 254)),
        row("shutdown", 19, 1, "rw", 44, PLAIN, (0, 254)),
        row("alarm_led", 20, 1, "rw", 47, PLAIN, (0, 254)),
        row("position_p_gain", 21, 1, "rw", 32, PLAIN, _GAIN),
        row("position_d_gain", 22, 1, "rw", 32, PLAIN, _GAIN),
        row("position_i_gain", 23, 1, "rw", 0, PLAIN, _GAIN),
        row("punch", 24, 2, "rw", 16, _LIMIT, (0, 1000)),
        row("cw_dead_zone", 26, 1, "rw", 1, PLAIN, (0, 32)),
        row("ccw_dead_zone", 27, 1, "rw", 1, PLAIN, (0, 32)),
        row("torque_enable", 40, 1, "rw", 0, PLAIN, (0, 1)),
        row("goal_time", 44, 2, "rw", 0, Unit("unsigned", 1e-3, "s"), (0, 1000)),
        row("present_input_voltage", 62, 1, "r", 0, VOLTAGE),
        row("present_temperature", 63, 1, "r", 0, TEMPERATURE),
        row("hardware_error_status", 65, 1, "r"),
        row("moving", 66, 1, "r"),
    ]


def _sts(number: int, voltages: tuple[int, int]) -> dict[str, Register]:
    """The table of an STS or SMS servo; see :func:`_common`."""
    rows = [
        *_common(number, voltages, _POSITION, 4095),
        row("protection_current", 28, 2, "rw", 500, Unit("unsigned", 6.5e-3, "A"), (0, 511)),
        row("resolution_divider", 30, 1, "rw", 1, PLAIN, (1, 3)),
        row("homing_offset", 31, 2, "rw", 0, _OFFSET, (-2047, 2047)),
        row("operating_mode", 33, 1, "rw", 0, PLAIN, (0, 3)),
        row("protective_torque", 34, 1, "rw", 20, _PERCENT, (0, 100)),
        row("protection_time", 35, 1, "rw", 200, _TENTH, (0, 254)),
        row("overload_torque", 36, 1, "rw", 80, _PERCENT, (0, 100)),
        row("velocity_p_gain", 37, 1, "rw", 10, PLAIN, _GAIN),
        row("overcurrent_time", 38, 1, "rw", 200, _TENTH, (0, 254)),
        row("velocity_i_gain", 39, 1, "rw", 200, PLAIN, _GAIN),
        row("profile_acceleration", 41, 1, "rw", 0, _ACCELERATION, (0, 254)),
        row("goal_position", 42, 2, "rw", _CENTER, _POSITION, (-32766, 32766)),
        row("profile_velocity", 46, 2, "rw", 0, _SPEED, (0, 3400)),
        row("torque_limit", 48, 2, "rw", 1000, _LIMIT, (0, 1000)),
        row("eeprom_lock", 55, 1, "rw", 1, PLAIN, (0, 1)),
        row("present_position", 56, 2, "r", _CENTER, _POSITION),
        row("present_velocity", 58, 2, "r", 0, _VELOCITY),
        row("present_pwm", 60, 2, "r", 0, _DUTY),
        row("present_current", 69, 2, "r", 0, _CURRENT),
        row("maximum_velocity", 84, 1, "rw", 0),
        row("maximum_acceleration", 85, 1, "rw", 0),
        row("acceleration_multiplier", 86, 1, "rw", 0),
    ]
    return table(rows, ram_start=40)


def _sts_model(
    name: str, title: str, number: int, voltages: tuple[int, int], supply: tuple[float, float, float]
) -> ServoModel:
    """A servo of the STS series; ``supply`` is nominal, lowest and highest rated [V]."""
    return ServoModel(
        name=name,
        title=f"Feetech {title}",
        dialect=FEETECH_STS,
        resolution=_RESOLUTION,
        baud_rates=_BAUD,
        registers=_sts(number, voltages),
        modes={"position": 0, "velocity": 1, "open_loop": 2, "step": 3},
        mode_register="operating_mode",
        error_bits=_ERRORS,
        nominal_voltage=supply[0],
        rated_min=supply[1],
        rated_max=supply[2],
    )


# SCS0009: 300 degrees in 1024 counts, high byte first, no sync read, no modes, no current.

_SCS_POSITION = Unit("offset", math.radians(300.0) / 1024, "rad", 512)
_SCS_VELOCITY = Unit("sign-magnitude", math.radians(300.0) / 1024, "rad/s", 0, 15)
_SCS_TABLE = table(
    (
        replace(register, byte_order="big")
        for register in (
            *_common(1284, (40, 80), _SCS_POSITION, 1023),
            row("protective_torque", 37, 1, "rw", 20, _PERCENT, (0, 100)),
            row("protection_time", 38, 1, "rw", 200, _TENTH, (0, 254)),
            row("profile_acceleration", 41, 1, "rw", 0, PLAIN, (0, 254)),
            row("goal_position", 42, 2, "rw", 512, _SCS_POSITION, (0, 1023)),
            row("profile_velocity", 46, 2, "rw", 0, _SCS_VELOCITY, (0, 1000)),
            row("eeprom_lock", 48, 1, "rw", 1, PLAIN, (0, 1)),
            row("present_position", 56, 2, "r", 512, _SCS_POSITION),
            row("present_velocity", 58, 2, "r", 0, _SCS_VELOCITY),
            row("present_pwm", 60, 2, "r", 0, _DUTY),
            row("sync_write_flag", 64, 1, "r"),
        )
    ),
    ram_start=40,
)

FEETECH_MODELS: tuple[ServoModel, ...] = (
    # 8 V is the factory value of its own limit, as supplies of 7.4 V give a little more.
    _sts_model("sts3215", "STS3215", 777, (40, 80), (7.4, 4.0, 8.0)),
    _sts_model("sts3215_12v", "STS3215 (12 V)", 777, (40, 140), (12.0, 6.0, 12.6)),
    _sts_model("sts3250", "STS3250", 2825, (40, 140), (12.0, 6.0, 12.6)),
    _sts_model("sts3032", "STS3032", UNDOCUMENTED, (40, 74), (6.0, 4.0, 7.4)),
    ServoModel(
        name="scs0009",
        title="Feetech SCS0009",
        dialect=FEETECH_SCS,
        resolution=1024 * 360 / 300,
        baud_rates=_BAUD,
        registers=_SCS_TABLE,
        modes={"position": 0},
        mode_register="",
        error_bits=_ERRORS,
        nominal_voltage=6.0,
        rated_min=4.0,
        rated_max=8.0,
    ),
)
"""Every model."""
