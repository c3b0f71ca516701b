r"""Control-table registers, servo models, and the dialects of the bus.

Programs read and write the registers of a servo's control table over a serial bus. Register names are the
same for all servos, even where the manuals differ. A register holds an integer: *raw* is its unsigned value
on the wire (0 to :math:`2^{8\,size} - 1`), *number* its signed count; the quantity in SI units is (number -
zero) · scale.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

from stribeck.errors import ConfigError
from stribeck.servo.lengths import Region

GroupRead = Literal["sync or bulk", "bulk", "sync", "single"]
"""How several servos are read: by one request to all with the same block (sync) or a block each (bulk), or one by one."""


@dataclass(frozen=True)
class BusDialect:
    """One way to speak to servos: what differs between two makers, and between their protocols.

    Feetech's packets are those of Dynamixel's protocol 1. Their differences: the servos know sync read in place of bulk read, or
    neither; the model number is in bytes 3 and 4; the error byte reports the state of the servo only, so that a rejected write
    shows in the register alone; the SCS series stores its numbers with the high byte first; and what is written to the EEPROM
    area while the lock is set holds until the power goes off, also while torque is on. Sources: ROBOTIS e-manual, "Protocol 1.0"
    and "Protocol 2.0"; Feetech, "Communication protocol manual" and the memory tables of the STS/SMS and SCSCL series
    (doc.feetech.cn).

    :param title: name in messages.
    :param protocol: packet format, 1.0 or 2.0.
    :param group_read: see :data:`GroupRead`.
    :param model_number: location of the model number in every servo, within the shortest control table.
    :param refusals: meaning of the error byte of a rejected instruction: bits (protocol 1) or numbers (protocol 2).
    :param damage: bit or number of a request with a wrong checksum, 0 if servos do not report it.
    :param byte_order: of numbers of several bytes.
    :param eeprom_lock: whether EEPROM registers are closed while torque is on; otherwise a register ``eeprom_lock`` decides
        whether they keep what is written.
    :param answers_all: value of ``status_return_level`` at which every instruction is answered.
    """

    title: str
    protocol: float
    group_read: GroupRead
    model_number: Region
    refusals: Mapping[int, str] = field(hash=False)
    damage: int
    byte_order: Literal["little", "big"] = "little"
    eeprom_lock: bool = True
    answers_all: int = 2

    def is_refusal(self, error: int) -> bool:
        """Whether an error byte reports a rejected instruction, apart from hardware errors."""
        return bool(error & (0x7F if self.protocol == 2.0 else sum(self.refusals)))

    def is_damage(self, error: int) -> bool:
        """Whether an error byte reports a wrong checksum in the request."""
        return error & 0x7F == self.damage if self.protocol == 2.0 else bool(error & self.damage)

    def refusal(self, error: int) -> str:
        """Reason for a rejected instruction, in words."""
        if self.protocol == 2.0:
            return self.refusals.get(error & 0x7F, f"error {error & 0x7F}")
        return ", ".join(text for bit, text in self.refusals.items() if error & bit)


DYNAMIXEL_1 = BusDialect(
    "Dynamixel protocol 1",
    1.0,
    "bulk",
    Region(0, 2, 46),
    {
        0x02: "angle beyond its limits",
        0x08: "data out of range",
        0x10: "wrong checksum",
        0x40: "unknown instruction",
    },
    0x10,
)
DYNAMIXEL_2 = BusDialect(
    "Dynamixel protocol 2",
    2.0,
    "sync or bulk",
    Region(0, 2, 46),
    {
        1: "it failed",
        2: "unknown instruction",
        3: "wrong checksum",
        4: "data out of range",
        5: "data too short",
        6: "data beyond its limits",
        7: "no access (read-only, EEPROM with torque on, or the watchdog has expired)",
    },
    3,
)
FEETECH_STS = BusDialect(
    "Feetech STS/SMS", 1.0, "sync", Region(3, 2, 71), {}, 0, eeprom_lock=False, answers_all=1
)
FEETECH_SCS = BusDialect(
    "Feetech SCS", 1.0, "single", Region(3, 2, 66), {}, 0, "big", eeprom_lock=False, answers_all=1
)

Encoding = Literal["unsigned", "signed", "sign-magnitude", "offset"]
"""Encoding of numbers on the wire: ``signed`` is two's complement, ``sign-magnitude`` has its sign in the bit
:attr:`Register.sign_bit` (set: negative), ``offset`` is unsigned with an offset."""

UNDOCUMENTED = 0xFFFF
"""Model number of servos whose own is not documented."""


@dataclass(frozen=True)
class Register:
    """One entry of a control table.

    :param name: canonical name.
    :param address: first byte.
    :param size: bytes, in ``byte_order``.
    :param writable: whether programs may write it.
    :param eeprom: whether it survives power-off; EEPROM registers can be written only while torque is off.
    :param encoding: see :data:`Encoding`.
    :param scale: quantity per count.
    :param unit: SI unit of the quantity; ``1`` for plain numbers.
    :param zero: count at which the quantity is 0.
    :param initial: factory value [counts].
    :param minimum, maximum: accepted range [counts]; ``None``: all that the register can hold.
    :param sign_bit: bit of the sign of a sign-magnitude number.
    :param byte_order: order of its bytes.
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
    sign_bit: int = 10
    byte_order: Literal["little", "big"] = "little"

    def to_bytes(self, raw: int) -> bytes:
        """Bytes of a raw value."""
        return raw.to_bytes(self.size, self.byte_order)

    def from_bytes(self, data: bytes) -> int:
        """Raw value of its bytes."""
        return int.from_bytes(data, self.byte_order)

    def number(self, raw: int) -> int:
        """Convert a raw value to counts."""
        if self.encoding == "signed" and raw >= 1 << (8 * self.size - 1):
            return raw - (1 << 8 * self.size)
        if self.encoding == "sign-magnitude":
            magnitude = raw & ((1 << self.sign_bit) - 1)
            return -magnitude if raw >> self.sign_bit & 1 else magnitude
        return raw

    def raw(self, number: int) -> int:
        """Convert counts to the raw value.

        :raises ConfigError: for a number that the register cannot hold.
        """
        lower, upper = self.span
        if not lower <= number <= upper:
            raise ConfigError(f"{self.name}: {number} counts are out of range; valid: {lower} to {upper}")
        if self.encoding == "sign-magnitude" and number < 0:
            return 1 << self.sign_bit | -number
        return number % (1 << 8 * self.size)

    @property
    def span(self) -> tuple[int, int]:
        """Smallest and largest number that the register can hold."""
        if self.encoding == "signed":
            return -(1 << (8 * self.size - 1)), (1 << (8 * self.size - 1)) - 1
        if self.encoding == "sign-magnitude":
            return 1 - (1 << self.sign_bit), (1 << self.sign_bit) - 1
        return 0, (1 << 8 * self.size) - 1

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest number that the servo accepts."""
        lower, upper = self.span
        return (
            lower if self.minimum is None else self.minimum,
            upper if self.maximum is None else self.maximum,
        )

    def accepts(self, number: int) -> bool:
        """Whether the servo accepts ``number`` in this register."""
        lower, upper = self.limits
        return lower <= number <= upper

    def quantity(self, number: int) -> float:
        """Convert counts to the quantity, in :attr:`unit`."""
        return (number - self.zero) * self.scale

    def counts(self, quantity: float, lower: int, upper: int) -> int:
        """Convert a quantity to the nearest count, clipped to [``lower``, ``upper``]."""
        return round(min(max(quantity / self.scale + self.zero, lower), upper))

    def decode(self, raw: int) -> float:
        """Convert a raw value to the quantity, in :attr:`unit`."""
        return self.quantity(self.number(raw))


class IndirectBlock(NamedTuple):
    """Indirect addressing: registers that give access to others.

    :param address: first of ``size`` indirect addresses of 2 bytes.
    :param data: first of ``size`` bytes of indirect data.
    """

    address: int
    data: int
    size: int


@dataclass(frozen=True)
class ServoModel:
    """One servo model and firmware.

    :param name: key of ``config/actuators`` where one exists.
    :param title: name in messages.
    :param dialect: of the bus.
    :param resolution: counts per revolution.
    :param baud_rates: rate [bit/s] by the value of the register ``baud_rate``.
    :param registers: the control table by canonical name.
    :param modes: value of ``mode_register`` for each mode.
    :param mode_register: the register that selects the mode, empty for a servo with one mode.
    :param error_bits: bits of hardware errors (in ``hardware_error_status``, in ``shutdown`` and, with
        protocol 1, in every status packet).
    :param nominal_voltage, rated_min, rated_max: supply [V].
    :param indirect: indirect addresses and data.
    """

    name: str
    title: str
    dialect: BusDialect
    resolution: float
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
    def protocol(self) -> float:
        """Packet format, 1.0 or 2.0."""
        return self.dialect.protocol

    @property
    def model_number(self) -> int:
        """Model number in the answer to a ping."""
        return self.registers["model_number"].initial

    @cached_property
    def end(self) -> int:
        """First address beyond the registers."""
        return max(register.address + register.size for register in self.registers.values())

    @property
    def has_watchdog(self) -> bool:
        """Whether the servo has a Bus Watchdog, which stops it when no more packets arrive."""
        return "bus_watchdog" in self.registers

    def register(self, name: str) -> Register:
        """The register with a canonical name.

        :raises ConfigError: for a register that this servo does not have.
        """
        if name not in self.registers:
            raise ConfigError(f"{self.title} has no register {name!r}; it has: {', '.join(self.registers)}")
        return self.registers[name]

    def baud_value(self, rate: int) -> int:
        """Value of the register ``baud_rate`` for a rate [bit/s].

        :raises ConfigError: for a rate that the servo does not support.
        """
        for value, baud_rate in self.baud_rates.items():
            if baud_rate == rate:
                return value
        valid = ", ".join(str(baud_rate) for baud_rate in sorted(self.baud_rates.values()))
        raise ConfigError(f"{self.title} has no baud rate {rate}; valid: {valid}")


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
