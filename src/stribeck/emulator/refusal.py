"""Which values an emulated servo rejects, and why."""

from __future__ import annotations

from collections.abc import Mapping

from stribeck.emulator.joint import BridgeMode
from stribeck.emulator.protocol import Error1, Error2
from stribeck.servo.registers import ServoModel

GOALS = ("goal_pwm", "goal_current", "goal_velocity", "goal_position")

ONLY = {
    "drive_mode": 0,
    "secondary_id": 255,
    "protocol_type": 2,
    "feedforward_1st_gain": 0,
    "feedforward_2nd_gain": 0,
    "multi_turn_offset": 0,
    "resolution_divider": 1,
}
"""Registers of features that are not emulated, and the only value that they accept."""

DRIVES: dict[str, BridgeMode] = {
    "position": "position",
    "extended_position": "position",
    "current_position": "position",
    "current": "current",
    "pwm": "pwm",
}
"""Control of the motor bridge in each emulated mode."""

Refusal = tuple[Error2, Error1]
"""Reason for rejecting a write, for both protocols."""


def mode_of(model: ServoModel, number: int) -> str:
    """Operating mode by the count of its register (0 without one), empty for one that there is not."""
    return next((mode for mode, value in model.modes.items() if value == number), "")


def revives(model: ServoModel) -> bool:
    """Whether restoring the torque limit or switching torque off ends a shutdown, without a reboot."""
    return "torque_limit" in model.registers or not model.dialect.eeprom_lock


def refusal(
    model: ServoModel,
    numbers: Mapping[str, int],
    errors: int,
    name: str,
    number: int,
    others: Mapping[str, int],
) -> Refusal | None:
    """Reason why a register rejects a number, or ``None``.

    :param numbers: counts of all registers.
    :param errors: bits of the present hardware errors.
    :param others: counts that the same instruction writes.
    """
    register = model.registers[name]
    locked = model.dialect.eeprom_lock and (numbers["torque_enable"] or numbers.get("lock", 0))
    if not register.writable or (register.eeprom and locked):
        return Error2.ACCESS, Error1.RANGE
    expired = numbers.get("bus_watchdog", 0) < 0
    if (
        (expired and (name in GOALS or (name == "bus_watchdog" and number)))
        or not register.accepts(number)
        or number != ONLY.get(name, number)
        or (name == model.mode_register and mode_of(model, number) not in DRIVES)
        or (name == "baud_rate" and number not in model.baud_rates)
    ):
        return Error2.DATA_RANGE, Error1.RANGE
    if name == "torque_enable" and number and numbers["shutdown"] & errors and not revives(model):
        return Error2.RESULT_FAIL, Error1.RANGE
    if name == "goal_position" and model.dialect.refusals:
        lower, upper = (others.get(n, numbers[n]) for n in ("min_position_limit", "max_position_limit"))
        in_position = mode_of(model, numbers.get(model.mode_register, 0)) == "position"
        if in_position and not lower <= number <= upper:
            return Error2.DATA_LIMIT, Error1.ANGLE_LIMIT
    limit = name.replace("goal_", "") + "_limit" if name in GOALS[:3] else ""
    if limit in numbers and abs(number) > others.get(limit, numbers[limit]):
        return Error2.DATA_LIMIT, Error1.RANGE
    return None
