"""Which values the registers of an emulated servo reject, and why; what the others command to its firmware."""

import math
from collections.abc import Mapping
from dataclasses import replace

from stribeck.emulator.joint import BridgeMode, Firmware
from stribeck.emulator.protocol import Error1, Error2
from stribeck.model.control_laws import Gains
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


DUTY_LIMITS = ("torque_limit", "pwm_limit", "max_torque")
"""Registers that limit the duty; a servo obeys the first that it has."""


def gains_of(numbers: Mapping[str, int]) -> Gains:
    """Position gains in firmware units."""
    return Gains(*(float(numbers[f"position_{letter}_gain"]) for letter in "pid"))


def command_of(model: ServoModel, numbers: Mapping[str, int], errors: int, ramp: float) -> Firmware:
    """Command to the firmware while torque is on.

    :param numbers: counts of the registers.
    :param errors: bits of the present hardware errors.
    :param ramp: largest speed of the goal in the firmware [rad/s], infinity without one.
    """

    def quantity(name: str) -> float:
        return model.registers[name].quantity(numbers[name])

    mode = mode_of(model, numbers.get(model.mode_register, 0))
    drive = DRIVES[mode]
    goal = _goal_position(model, numbers) if drive == "position" else quantity(f"goal_{drive}")
    duty = quantity(next(name for name in DUTY_LIMITS if name in numbers))
    if errors and "protective_torque" in numbers:
        duty = min(duty, quantity("protective_torque"))
    if "goal_pwm" in numbers and drive != "pwm":
        duty = min(duty, abs(quantity("goal_pwm")))
    current = quantity("current_limit") if "current_limit" in numbers else None
    if mode == "current_position" and current is not None:
        current = min(current, abs(quantity("goal_current")))
    speed = min(quantity("profile_velocity") or math.inf, ramp)
    command = Firmware(drive, goal, gains_of(numbers), duty, current, speed if speed < math.inf else None)
    if model.dialect.refusals:
        return command
    # Feetech's law computes with counts.
    count = model.registers["present_position"].scale
    zone = count * max(numbers["cw_dead_zone"], numbers["ccw_dead_zone"])
    return replace(command, resolution=count, dead_zone=zone, punch=quantity("punch"))


def _goal_position(model: ServoModel, numbers: Mapping[str, int]) -> float:
    """The goal in coordinates of the joint [rad]. Feetech servos move to the nearest allowed position."""
    register = model.registers["goal_position"]
    goal, offset = numbers["goal_position"], numbers.get("homing_offset", 0)
    if model.dialect.refusals:
        return register.quantity(goal - offset)
    lower, upper = numbers["min_position_limit"], numbers["max_position_limit"]
    if lower < upper:
        goal = min(max(goal, lower), upper)
    return register.quantity(goal + offset)
