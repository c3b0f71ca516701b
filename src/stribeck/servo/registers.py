r"""What a control table is made of: registers, and the servo model that has them.

A servo is a table of registers that programs read and write over a serial bus. Names are the same for
every servo, whatever its manual calls them. Raw values are integers as they stand on the wire, from 0
to :math:`2^{8\,size} - 1`; :meth:`Register.decode` and :meth:`Register.encode` go from them to SI and
back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from stribeck.errors import ConfigError

Encoding = Literal["unsigned", "signed", "sign-magnitude", "offset"]
"""How the integer on the wire says a number: ``signed`` is two's complement, ``sign-magnitude`` has its
sign in bit 10 (set: clockwise, negative), ``offset`` is unsigned with zero somewhere in the middle."""

SIGN_BIT = 0x400


@dataclass(frozen=True)
class Register:
    """One entry of a control table.

    :param name: canonical name.
    :param address: first byte.
    :param size: bytes, little-endian.
    :param writable: whether a program may write it.
    :param eeprom: whether it survives power-off; such registers can be written with torque off only.
    :param encoding: see :data:`Encoding`.
    :param scale: quantity per count.
    :param unit: SI unit of the quantity; ``1`` for plain numbers.
    :param zero: the number that means 0.
    :param initial: factory value, as a number of counts.
    :param minimum, maximum: numbers of counts that the servo accepts, ``None`` for no bound of its own.
    """

    name: str
    address: int
    size: int
    writable: bool
    eeprom: bool
    encoding: Encoding = "unsigned"
    scale: float = 1.0
    unit: str = "1"
    zero: int = 0
    initial: int = 0
    minimum: int | None = None
    maximum: int | None = None

    def number(self, raw: int) -> int:
        """The number that the integer on the wire says."""
        if self.encoding == "signed" and raw >= 1 << (8 * self.size - 1):
            return raw - (1 << 8 * self.size)
        if self.encoding == "sign-magnitude":
            magnitude = raw & (SIGN_BIT - 1)
            return -magnitude if raw & SIGN_BIT else magnitude
        return raw

    def raw(self, number: int) -> int:
        """The integer on the wire for a number.

        :raises ConfigError: for a number that the register cannot hold.
        """
        lower, upper = self.span
        if not lower <= number <= upper:
            raise ConfigError(f"{self.name}: {number} counts do not fit; valid: {lower} to {upper}")
        if self.encoding == "sign-magnitude" and number < 0:
            return SIGN_BIT | -number
        return number % (1 << 8 * self.size)

    @property
    def span(self) -> tuple[int, int]:
        """Smallest and largest number that the register can hold."""
        if self.encoding == "signed":
            return -(1 << (8 * self.size - 1)), (1 << (8 * self.size - 1)) - 1
        if self.encoding == "sign-magnitude":
            return 1 - SIGN_BIT, SIGN_BIT - 1
        return 0, (1 << 8 * self.size) - 1

    def accepts(self, number: int) -> bool:
        """Whether the number lies in the servo's own range for this register."""
        lower, upper = self.span
        if self.minimum is not None:
            lower = self.minimum
        if self.maximum is not None:
            upper = self.maximum
        return lower <= number <= upper

    def decode(self, raw: int) -> float:
        """The quantity that the integer on the wire says, in :attr:`unit`."""
        return (self.number(raw) - self.zero) * self.scale

    def encode(self, value: float) -> int:
        """The integer on the wire that is nearest to a quantity in :attr:`unit`.

        :raises ConfigError: for a quantity that is not finite or out of the servo's range.
        """
        if not math.isfinite(value):
            raise ConfigError(f"{self.name}: expected a finite number, found {value}")
        number = round(value / self.scale) + self.zero
        if not self.accepts(number):
            lower = self.span[0] if self.minimum is None else self.minimum
            upper = self.span[1] if self.maximum is None else self.maximum
            raise ConfigError(
                f"{self.name}: {value:g} {self.unit} is out of range; valid: "
                f"{(lower - self.zero) * self.scale:g} to {(upper - self.zero) * self.scale:g}"
            )
        return self.raw(number)


class IndirectBlock(NamedTuple):
    """Registers through which others are reached.

    :param address: where ``size`` indirect addresses of 2 bytes begin.
    :param data: where as many bytes of indirect data begin.
    """

    address: int
    data: int
    size: int


@dataclass(frozen=True)
class ServoModel:
    """One servo model and firmware.

    :param name: key of ``config/actuators`` where one exists.
    :param title: name in words.
    :param model_number: what a ping answers.
    :param protocol: 1.0 or 2.0.
    :param resolution: counts per revolution.
    :param center: count that is 0 rad.
    :param baud_rates: bit/s by the value of the register ``baud_rate``.
    :param registers: the control table by canonical name.
    :param modes: value of :attr:`mode_register` by mode.
    :param mode_register: the register that selects the mode.
    :param error_bits: bits of a hardware error (in ``hardware_error_status``, in ``shutdown`` and, with
        protocol 1, in every status packet).
    :param nominal_voltage, rated_min, rated_max: supply [V].
    :param indirect: indirect addresses and data.
    """

    name: str
    title: str
    model_number: int
    protocol: float
    resolution: float
    center: int
    baud_rates: Mapping[int, int]
    registers: Mapping[str, Register]
    modes: Mapping[str, int]
    mode_register: str
    error_bits: Mapping[str, int]
    nominal_voltage: float
    rated_min: float
    rated_max: float
    indirect: tuple[IndirectBlock, ...] = ()

    @property
    def has_watchdog(self) -> bool:
        """Whether the servo stops by itself when the bus falls silent."""
        return "bus_watchdog" in self.registers

    def register(self, name: str) -> Register:
        """A register by canonical name.

        :raises ConfigError: for a register that this servo does not have.
        """
        if name not in self.registers:
            raise ConfigError(f"{self.title} has no register {name!r}; it has: {', '.join(self.registers)}")
        return self.registers[name]

    def position(self, raw: int) -> float:
        """Position of the servo [rad], 0 at :attr:`center`, for the integer on the wire."""
        return self.registers["present_position"].decode(raw)

    def count(self, position: float) -> int:
        """The integer on the wire that is nearest to a position [rad].

        :raises ConfigError: for a position that is not finite or out of range.
        """
        return self.registers["goal_position"].encode(position)

    def baud_value(self, rate: int) -> int:
        """The value of ``baud_rate`` for a rate in bit/s.

        :raises ConfigError: for a rate that the servo does not know.
        """
        for value, known in self.baud_rates.items():
            if known == rate:
                return value
        known_rates = ", ".join(str(known) for known in sorted(self.baud_rates.values()))
        raise ConfigError(f"{self.title} has no baud rate {rate}; valid: {known_rates}")
