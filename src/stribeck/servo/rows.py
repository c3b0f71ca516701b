"""Rows of control tables: registers in one line each, and the units that servos of different makers share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, NamedTuple

from stribeck.servo.registers import Encoding, Register


class Unit(NamedTuple):
    """How counts become a quantity; see :class:`~stribeck.servo.registers.Register`."""

    encoding: Encoding
    scale: float
    unit: str
    zero: int = 0
    sign_bit: int = 10


REVOLUTION = 2.0 * math.pi
RPM = REVOLUTION / 60.0

PLAIN = Unit("unsigned", 1.0, "1")
SIGNED = Unit("signed", 1.0, "1")
TEMPERATURE = Unit("unsigned", 1.0, "degC")
VOLTAGE = Unit("unsigned", 0.1, "V")
RETURN_DELAY = Unit("unsigned", 2e-6, "s")
TICK = Unit("unsigned", 1e-3, "s")


def row(
    name: str,
    address: int,
    size: int,
    access: Literal["r", "rw"],
    initial: int = 0,
    unit: Unit = PLAIN,
    span: tuple[int, int] | None = None,
) -> Register:
    """A register; ``span`` is its accepted range [counts]."""
    minimum, maximum = span if span is not None else (None, None)
    encoding, scale, name_of_unit, zero, sign_bit = unit
    return Register(
        name,
        address,
        size,
        writable=access == "rw",
        eeprom=False,
        encoding=encoding,
        scale=scale,
        unit=name_of_unit,
        zero=zero,
        initial=initial,
        minimum=minimum,
        maximum=maximum,
        sign_bit=sign_bit,
    )


def table(registers: Iterable[Register], ram_start: int) -> dict[str, Register]:
    """A control table: registers below ``ram_start`` are EEPROM."""
    ordered = sorted(registers, key=lambda register: register.address)
    return {register.name: replace(register, eeprom=register.address < ram_start) for register in ordered}
