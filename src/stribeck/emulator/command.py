"""What the registers of an emulated servo command to its firmware."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from stribeck.emulator.joint import Firmware
from stribeck.emulator.refusal import DRIVES, mode_of
from stribeck.model.control_laws import Gains
from stribeck.servo.registers import ServoModel

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
