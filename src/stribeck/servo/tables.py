"""Control tables of Dynamixel servos, and every supported servo model.

Source: ROBOTIS e-manual, pages of the servos (control tables, initial values, ranges, baud rates). Those of Feetech are in
:mod:`stribeck.servo.feetech_tables`.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from stribeck.errors import check_valid
from stribeck.servo.feetech_tables import FEETECH_MODELS
from stribeck.servo.registers import (
    DYNAMIXEL_1,
    DYNAMIXEL_2,
    PLAIN,
    RETURN_DELAY,
    REVOLUTION,
    RPM,
    SIGNED,
    TEMPERATURE,
    TICK,
    VOLTAGE,
    IndirectBlock,
    Register,
    ServoModel,
    Unit,
    row,
    table,
)

# X series, and MX with protocol-2 firmware: the same layout; some models lack some registers.

_X_CENTER = 2048
_X_RESOLUTION = 4096
_X_TURNS = 256 * _X_RESOLUTION
_X_POSITION = Unit("signed", REVOLUTION / _X_RESOLUTION, "rad", _X_CENTER)
_X_VELOCITY = Unit("signed", 0.229 * RPM, "rad/s")
_X_SPEED = Unit("unsigned", 0.229 * RPM, "rad/s")
_X_ACCELERATION = Unit("unsigned", 214.577 * RPM / 60.0, "rad/s^2")
_X_DUTY = Unit("signed", 1.0 / 885.0, "1")
_X_GAIN = (0, 16383)

_X_COMMON = [
    row("model_information", 2, 4, "r"),
    row("firmware_version", 6, 1, "r", 45),
    row("id", 7, 1, "rw", 1, PLAIN, (0, 252)),
    row("return_delay_time", 9, 1, "rw", 250, RETURN_DELAY, (0, 254)),
    row("drive_mode", 10, 1, "rw", 0),
    row("operating_mode", 11, 1, "rw", 3, PLAIN, (0, 16)),
    row("secondary_id", 12, 1, "rw", 255),
    row("protocol_type", 13, 1, "rw", 2),
    row("homing_offset", 20, 4, "rw", 0, SIGNED, (-1044479, 1044479)),
    row("moving_threshold", 24, 4, "rw", 10, _X_SPEED, (0, 1023)),
    row("pwm_limit", 36, 2, "rw", 885, Unit("unsigned", 1.0 / 885.0, "1"), (0, 885)),
    row("max_position_limit", 48, 4, "rw", 4095, _X_POSITION, (0, 4095)),
    row("min_position_limit", 52, 4, "rw", 0, _X_POSITION, (0, 4095)),
    row("torque_enable", 64, 1, "rw", 0, PLAIN, (0, 1)),
    row("led", 65, 1, "rw", 0, PLAIN, (0, 1)),
    row("status_return_level", 68, 1, "rw", 2, PLAIN, (0, 2)),
    row("registered_instruction", 69, 1, "r"),
    row("hardware_error_status", 70, 1, "r"),
    row("feedforward_2nd_gain", 88, 2, "rw", 0, PLAIN, _X_GAIN),
    row("feedforward_1st_gain", 90, 2, "rw", 0, PLAIN, _X_GAIN),
    row("bus_watchdog", 98, 1, "rw", 0, Unit("signed", 0.02, "s"), (0, 127)),
    row("goal_pwm", 100, 2, "rw", 885, _X_DUTY, (-885, 885)),
    row("goal_velocity", 104, 4, "rw", 0, _X_VELOCITY, (-2047, 2047)),
    row("profile_acceleration", 108, 4, "rw", 0, _X_ACCELERATION, (0, 32767)),
    row("profile_velocity", 112, 4, "rw", 0, _X_SPEED, (0, 32767)),
    row("goal_position", 116, 4, "rw", _X_CENTER, _X_POSITION, (-_X_TURNS, _X_TURNS)),
    row("realtime_tick", 120, 2, "r", 0, TICK),
    row("moving", 122, 1, "r"),
    row("moving_status", 123, 1, "r"),
    row("present_pwm", 124, 2, "r", 0, _X_DUTY),
    row("present_velocity", 128, 4, "r", 0, _X_VELOCITY),
    row("present_position", 132, 4, "r", _X_CENTER, _X_POSITION),
    row("velocity_trajectory", 136, 4, "r", 0, _X_VELOCITY),
    row("position_trajectory", 140, 4, "r", _X_CENTER, _X_POSITION),
    row("present_input_voltage", 144, 2, "r", 0, VOLTAGE),
    row("present_temperature", 146, 1, "r", 0, TEMPERATURE),
]


class _XValues(NamedTuple):
    """Factory values that differ between models of the X series [counts]; other limits have their largest
    value.

    ``voltages``: the lowest value of both voltage limits, ``min_voltage_limit``, ``max_voltage_limit``.
    """

    model_number: int
    temperature_limit: int
    voltages: tuple[int, int, int]
    velocity_limit: int
    shutdown: int
    velocity_gains: tuple[int, int]
    position_p_gain: int
    position_i_gain: int = 0
    current_limit: int = 0
    position_d_gain: int = 0


def _x_series(current: float | None, baud_values: int, values: _XValues) -> dict[str, Register]:
    """The table of an X or MX(2.0) servo with its current per count [A], ``None`` if it measures load instead."""
    lowest, low, high = values.voltages
    velocity_p, velocity_i = values.velocity_gains
    rows = [
        *_X_COMMON,
        row("model_number", 0, 2, "r", values.model_number),
        row("baud_rate", 8, 1, "rw", 1, PLAIN, (0, baud_values - 1)),
        row("temperature_limit", 31, 1, "rw", values.temperature_limit, TEMPERATURE, (0, 100)),
        row("max_voltage_limit", 32, 2, "rw", high, VOLTAGE, (lowest, high)),
        row("min_voltage_limit", 34, 2, "rw", low, VOLTAGE, (lowest, high)),
        row("velocity_limit", 44, 4, "rw", values.velocity_limit, _X_SPEED, (0, 2047)),
        row("shutdown", 63, 1, "rw", values.shutdown, PLAIN, (0, 63)),
        row("velocity_i_gain", 76, 2, "rw", velocity_i, PLAIN, _X_GAIN),
        row("velocity_p_gain", 78, 2, "rw", velocity_p, PLAIN, _X_GAIN),
        row("position_d_gain", 80, 2, "rw", values.position_d_gain, PLAIN, _X_GAIN),
        row("position_i_gain", 82, 2, "rw", values.position_i_gain, PLAIN, _X_GAIN),
        row("position_p_gain", 84, 2, "rw", values.position_p_gain, PLAIN, _X_GAIN),
    ]
    if current is None:
        rows.append(row("present_load", 126, 2, "r", 0, Unit("signed", 1e-3, "1")))
    else:
        limit, unit = values.current_limit, Unit("signed", current, "A")
        unsigned = unit._replace(encoding="unsigned")
        rows.append(row("current_limit", 38, 2, "rw", limit, unsigned, (0, limit)))
        rows.append(row("goal_current", 102, 2, "rw", limit, unit, (-limit, limit)))
        rows.append(row("present_current", 126, 2, "r", 0, unit))
    return table(rows, ram_start=64)


_X_BAUD = {0: 9600, 1: 57600, 2: 115200, 3: 1_000_000, 4: 2_000_000, 5: 3_000_000, 6: 4_000_000}
_MX_2_BAUD = {**_X_BAUD, 7: 4_500_000}
_X_MODES = {
    "current": 0,
    "velocity": 1,
    "position": 3,
    "extended_position": 4,
    "current_position": 5,
    "pwm": 16,
}
_X_ERRORS = {
    "input_voltage": 0x01,
    "overheating": 0x04,
    "encoder": 0x08,
    "electrical_shock": 0x10,
    "overload": 0x20,
}

_XL330_VALUES = _XValues(1200, 70, (31, 35, 70), 445, 53, (180, 1600), 400, current_limit=1750)
_XL330 = ServoModel(
    name="xl330",
    title="Dynamixel XL330-M288",
    dialect=DYNAMIXEL_2,
    resolution=_X_RESOLUTION,
    baud_rates=_X_BAUD,
    registers=_x_series(1e-3, len(_X_BAUD), _XL330_VALUES),
    modes=_X_MODES,
    mode_register="operating_mode",
    error_bits=_X_ERRORS,
    nominal_voltage=5.0,
    rated_min=3.7,
    rated_max=6.0,
    indirect=(IndirectBlock(168, 208, 20),),
)
_XL330_M077_VALUES = _XL330_VALUES._replace(
    model_number=1190, velocity_limit=1620, velocity_gains=(40, 400), position_i_gain=400
)
_XC330_VALUES = _XValues(
    1240, 70, (31, 35, 70), 350, 52, (50, 1600), 1100, current_limit=2352, position_d_gain=500
)


def _5_v(name: str, title: str, values: _XValues) -> ServoModel:
    """A 5 V servo like the XL330."""
    return replace(_XL330, name=name, title=title, registers=_x_series(1e-3, len(_X_BAUD), values))


def _12_v(
    name: str,
    title: str,
    number: int,
    velocity_limit: int,
    current: float | None = None,
    current_limit: int = 0,
    position_p_gain: int = 850,
) -> ServoModel:
    """A 12 V servo with protocol-2 firmware; see :func:`_x_series`."""
    values = _XValues(
        number, 80, (95, 95, 160), velocity_limit, 52, (100, 1920), position_p_gain, 0, current_limit
    )
    modes = _X_MODES if current is not None else {m: v for m, v in _X_MODES.items() if "current" not in m}
    return replace(
        _XL330,
        name=name,
        title=title,
        baud_rates=_MX_2_BAUD,
        registers=_x_series(current, len(_MX_2_BAUD), values),
        modes=modes,
        nominal_voltage=12.0,
        rated_min=10.0,
        rated_max=14.8,
        indirect=(IndirectBlock(168, 224, 28), IndirectBlock(578, 634, 28)),
    )


# XL-320: protocol 2, but the layout, the 2-byte values and the gains of protocol-1 servos.

_XL320_CENTER = 512
_XL320_RESOLUTION = 1024 * 360 / 300
_XL320_POSITION = Unit("offset", REVOLUTION / _XL320_RESOLUTION, "rad", _XL320_CENTER)
_XL320_VELOCITY = Unit("sign-magnitude", 0.111 * RPM, "rad/s")
_DUTY_10_BIT = Unit("sign-magnitude", 1.0 / 1023.0, "1")
_LIMIT_10_BIT = Unit("unsigned", 1.0 / 1023.0, "1")

_XL320_TABLE = table(
    [
        row("model_number", 0, 2, "r", 350),
        row("firmware_version", 2, 1, "r", 29),
        row("id", 3, 1, "rw", 1, PLAIN, (0, 252)),
        row("baud_rate", 4, 1, "rw", 3, PLAIN, (0, 3)),
        row("return_delay_time", 5, 1, "rw", 250, RETURN_DELAY, (0, 254)),
        row("min_position_limit", 6, 2, "rw", 0, _XL320_POSITION, (0, 1023)),
        row("max_position_limit", 8, 2, "rw", 1023, _XL320_POSITION, (0, 1023)),
        row("operating_mode", 11, 1, "rw", 2, PLAIN, (1, 2)),
        row("temperature_limit", 12, 1, "rw", 65, TEMPERATURE, (0, 150)),
        row("min_voltage_limit", 13, 1, "rw", 60, VOLTAGE, (50, 250)),
        row("max_voltage_limit", 14, 1, "rw", 90, VOLTAGE, (50, 250)),
        row("max_torque", 15, 2, "rw", 1023, _LIMIT_10_BIT, (0, 1023)),
        row("status_return_level", 17, 1, "rw", 2, PLAIN, (0, 2)),
        row("shutdown", 18, 1, "rw", 3, PLAIN, (0, 7)),
        row("torque_enable", 24, 1, "rw", 0, PLAIN, (0, 1)),
        row("led", 25, 1, "rw", 0, PLAIN, (0, 7)),
        row("position_d_gain", 27, 1, "rw", 0, PLAIN, (0, 254)),
        row("position_i_gain", 28, 1, "rw", 0, PLAIN, (0, 254)),
        row("position_p_gain", 29, 1, "rw", 32, PLAIN, (0, 254)),
        row("goal_position", 30, 2, "rw", _XL320_CENTER, _XL320_POSITION, (0, 1023)),
        row("profile_velocity", 32, 2, "rw", 0, Unit("unsigned", 0.111 * RPM, "rad/s"), (0, 2047)),
        row("torque_limit", 35, 2, "rw", 1023, _LIMIT_10_BIT, (0, 1023)),
        row("present_position", 37, 2, "r", _XL320_CENTER, _XL320_POSITION),
        row("present_velocity", 39, 2, "r", 0, _XL320_VELOCITY),
        row("present_load", 41, 2, "r", 0, _DUTY_10_BIT),
        row("present_input_voltage", 45, 1, "r", 0, VOLTAGE),
        row("present_temperature", 46, 1, "r", 0, TEMPERATURE),
        row("registered_instruction", 47, 1, "r"),
        row("moving", 49, 1, "r"),
        row("hardware_error_status", 50, 1, "r"),
        row("punch", 51, 2, "rw", 32, PLAIN, (0, 1023)),
    ],
    ram_start=24,
)
_XL320 = ServoModel(
    name="xl320",
    title="Dynamixel XL-320",
    dialect=DYNAMIXEL_2,
    resolution=_XL320_RESOLUTION,
    baud_rates={0: 9600, 1: 57600, 2: 115200, 3: 1_000_000},
    registers=_XL320_TABLE,
    modes={"velocity": 1, "position": 2},
    mode_register="operating_mode",
    error_bits={"overload": 0x01, "overheating": 0x02, "input_voltage": 0x04},
    nominal_voltage=7.4,
    rated_min=6.0,
    rated_max=8.4,
)

# MX with protocol-1 firmware.

_MX_POSITION = _X_POSITION._replace(encoding="offset")
_MX_VELOCITY = Unit("sign-magnitude", 0.114 * RPM, "rad/s")
_MX_CURRENT = Unit("sign-magnitude", 4.5e-3, "A")
_MX_ACCELERATION = Unit("unsigned", math.radians(8.583), "rad/s^2")
_MX_BAUD = {
    **{value: round(2_000_000 / (value + 1)) for value in (1, 3, 4, 7, 9)},
    16: 115_200,
    34: 57_600,
    103: 19_200,
    207: 9_600,
    250: 2_250_000,
    251: 2_500_000,
    252: 3_000_000,
}
"""Baud rates from the e-manual: 2 Mbit/s over value + 1, rounded to standard rates, and three special ones."""


def _mx(number: int, max_voltage_limit: int) -> dict[str, Register]:
    return table(
        [
            row("model_number", 0, 2, "r", number),
            row("firmware_version", 2, 1, "r", 41),
            row("id", 3, 1, "rw", 1, PLAIN, (0, 252)),
            row("baud_rate", 4, 1, "rw", 34, PLAIN, (0, 254)),
            row("return_delay_time", 5, 1, "rw", 250, RETURN_DELAY, (0, 254)),
            row("min_position_limit", 6, 2, "rw", 0, _MX_POSITION, (0, 4095)),
            row("max_position_limit", 8, 2, "rw", 4095, _MX_POSITION, (0, 4095)),
            row("temperature_limit", 11, 1, "rw", 80, TEMPERATURE, (0, 99)),
            row("min_voltage_limit", 12, 1, "rw", 60, VOLTAGE, (50, 250)),
            row("max_voltage_limit", 13, 1, "rw", max_voltage_limit, VOLTAGE, (50, 250)),
            row("max_torque", 14, 2, "rw", 1023, _LIMIT_10_BIT, (0, 1023)),
            row("status_return_level", 16, 1, "rw", 2, PLAIN, (0, 2)),
            row("alarm_led", 17, 1, "rw", 36, PLAIN, (0, 127)),
            row("shutdown", 18, 1, "rw", 36, PLAIN, (0, 127)),
            row("multi_turn_offset", 20, 2, "rw", 0, SIGNED, (-24576, 24576)),
            row("resolution_divider", 22, 1, "rw", 1, PLAIN, (1, 4)),
            row("torque_enable", 24, 1, "rw", 0, PLAIN, (0, 1)),
            row("led", 25, 1, "rw", 0, PLAIN, (0, 1)),
            row("position_d_gain", 26, 1, "rw", 0, PLAIN, (0, 254)),
            row("position_i_gain", 27, 1, "rw", 0, PLAIN, (0, 254)),
            row("position_p_gain", 28, 1, "rw", 32, PLAIN, (0, 254)),
            row("goal_position", 30, 2, "rw", _X_CENTER, _MX_POSITION, (0, 4095)),
            row("profile_velocity", 32, 2, "rw", 0, Unit("unsigned", 0.114 * RPM, "rad/s"), (0, 2047)),
            row("torque_limit", 34, 2, "rw", 1023, _LIMIT_10_BIT, (0, 1023)),
            row("present_position", 36, 2, "r", _X_CENTER, _MX_POSITION),
            row("present_velocity", 38, 2, "r", 0, _MX_VELOCITY),
            row("present_load", 40, 2, "r", 0, _DUTY_10_BIT),
            row("present_input_voltage", 42, 1, "r", 0, VOLTAGE),
            row("present_temperature", 43, 1, "r", 0, TEMPERATURE),
            row("registered_instruction", 44, 1, "r"),
            row("moving", 46, 1, "r"),
            row("lock", 47, 1, "rw", 0, PLAIN, (0, 1)),
            row("punch", 48, 2, "rw", 0, PLAIN, (0, 1023)),
            row("realtime_tick", 50, 2, "r", 0, TICK),
            row("present_current", 68, 2, "r", 2048, _MX_CURRENT._replace(encoding="offset", zero=2048)),
            row("torque_control_mode_enable", 70, 1, "rw", 0, PLAIN, (0, 1)),
            row("goal_current", 71, 2, "rw", 0, _MX_CURRENT, (-1023, 1023)),
            row("profile_acceleration", 73, 1, "rw", 0, _MX_ACCELERATION),
        ],
        ram_start=24,
    )


_MX64 = ServoModel(
    name="mx64",
    title="Dynamixel MX-64",
    dialect=DYNAMIXEL_1,
    resolution=_X_RESOLUTION,
    baud_rates=_MX_BAUD,
    registers=_mx(310, 240),
    modes={"position": 0, "current": 1},
    mode_register="torque_control_mode_enable",
    error_bits={"input_voltage": 0x01, "overheating": 0x04, "overload": 0x20},
    nominal_voltage=12.0,
    rated_min=10.0,
    rated_max=14.8,
)

MODELS: dict[str, ServoModel] = {
    model.name: model
    for model in (
        _XL330,
        _5_v("xl330_m077", "Dynamixel XL330-M077", _XL330_M077_VALUES),
        _XL320,
        _MX64,
        replace(_MX64, name="mx106", title="Dynamixel MX-106", registers=_mx(320, 160)),
        _12_v("mx64_2", "Dynamixel MX-64 (protocol 2)", 311, 435, 3.36e-3, 1941),
        _12_v("mx106_2", "Dynamixel MX-106 (protocol 2)", 321, 360, 3.36e-3, 2047),
        _12_v("mx28_2", "Dynamixel MX-28 (protocol 2)", 30, 380),
        _12_v("xm430", "Dynamixel XM430-W350", 1020, 350, 2.69e-3, 1193, 800),
        _12_v("xm430_w210", "Dynamixel XM430-W210", 1030, 330, 2.69e-3, 1193, 800),
        _12_v("xm540", "Dynamixel XM540-W270", 1120, 128, 2.69e-3, 2047, 800),
        _5_v("xc330", "Dynamixel XC330-M288", _XC330_VALUES),
        *FEETECH_MODELS,
    )
}
"""Every model, by name."""


def model_named(name: str) -> ServoModel:
    """The servo model called ``name``.

    :raises ConfigError: for a name that is not in the table.
    """
    check_valid(name, MODELS, "unknown servo model")
    return MODELS[name]
