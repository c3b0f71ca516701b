"""Configuration of one servo, and access to its registers by name over the bus."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from stribeck.errors import ConfigError, ServoError, check_valid
from stribeck.servo.lengths import Region
from stribeck.servo.link import Link
from stribeck.servo.port import NoAnswerError
from stribeck.servo.registers import Register, ServoModel

GOAL_REGISTERS = {
    "position": "goal_position",
    "extended_position": "goal_position",
    "current_position": "goal_position",
    "current": "goal_current",
    "pwm": "goal_pwm",
}
"""The register that holds the goal, by operating mode."""

HIGHEST_ID = 252

CLOCK = "realtime_tick"
"""Register that counts milliseconds, in servos that have it."""

READINGS = 8
"""Attempts to read a setting twice with the same result."""

WRITINGS = 20
"""Attempts to write a register: enough with 1 % corrupt bytes."""


@dataclass(frozen=True)
class ServoSpec:
    """Configuration of a servo on the bus.

    :param model: its control table and ratings.
    :param mode: one of :data:`GOAL_REGISTERS` that the model has.
    :param goal_current: maximum current in mode ``current_position`` [A]; ``None`` for the servo's limit.
    :param i_gain, d_gain: integral and derivative position gains, in firmware units.
    :raises ConfigError: for an impossible ID, mode or goal current.
    """

    identity: int
    model: ServoModel
    mode: str = "position"
    goal_current: float | None = None
    i_gain: int = 0
    d_gain: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.identity <= HIGHEST_ID:
            raise ConfigError(f"servo ID {self.identity} does not exist; valid: 0 to {HIGHEST_ID}")
        offered = (mode for mode in GOAL_REGISTERS if mode in self.model.modes)
        check_valid(self.mode, offered, f"{self}: unknown mode")
        if self.goal_current is not None and self.mode != "current_position":
            raise ConfigError(f"{self}: goal_current needs mode current_position, found mode {self.mode!r}")

    def __str__(self) -> str:
        return f"servo {self.identity} ({self.model.title})"

    @property
    def goal_register(self) -> Register:
        """The register that holds the goal."""
        return self.model.register(GOAL_REGISTERS[self.mode])

    @property
    def follows_position(self) -> bool:
        """Whether a goal is a position."""
        return GOAL_REGISTERS[self.mode] == "goal_position"

    def has(self, register: str) -> bool:
        """Whether the servo has a register."""
        return register in self.model.registers

    def region(self, names: Sequence[str]) -> Region:
        """The named registers that exist in the servo, and the servo's clock if it is among them."""
        registers = [self.model.registers[name] for name in names if self.has(name)]
        start = min(register.address for register in registers)
        length = max(register.address + register.size for register in registers) - start
        clock = self.model.registers[CLOCK].address if CLOCK in names and self.has(CLOCK) else None
        return Region(start, length, self.model.end, clock)


@dataclass(frozen=True)
class RemoteServo:
    """Access to a servo's registers by name. Calls block and retry.

    Without a deadline they take as long as a disturbed bus needs; use them so only while nothing moves.
    """

    link: Link
    servo: ServoSpec

    def read(self, name: str) -> int:
        """Read a register as counts. Settings are read until two consecutive answers agree.

        :raises ServoError: if the servo does not answer, or with an impossible value.
        """
        register = self.servo.model.register(name)
        region = self.servo.region([name])
        measured = name.startswith("present_")
        before: int | None = None
        for _ in range(READINGS):
            answer = self.link.read(self.servo.identity, region)
            if answer is None:
                raise self._silent(f"reading {name}")
            raw = answer.raw(register)
            if measured or raw == before:
                break
            before = raw
        else:
            raise ServoError(
                f"{self.servo}: {name} is different in every reading: does another program use the bus?"
            )
        number = register.number(raw)
        if register.eeprom and not register.accepts(number):
            lower, upper = register.limits
            raise ServoError(
                f"{self.servo} has {name} = {number}; valid: {lower} to {upper}. Restore the factory settings of the servo"
            )
        return number

    def value(self, name: str) -> float:
        """Read a register in SI units."""
        return self.servo.model.register(name).quantity(self.read(name))

    def write(self, name: str, number: int, until: float | None = None, tolerance: int = 0) -> None:
        """Write counts to a register, until reading it returns them.

        :param until: deadline [s], for servos that move.
        :param tolerance: largest allowed difference [counts], for registers that the servo changes.
        :raises ServoError: if the servo does not answer in time, or rejects the value.
        """
        register, dialect = self.servo.model.register(name), self.servo.model.dialect
        region, identity = self.servo.region([name]), self.servo.identity
        for attempt in itertools.count(1):
            raw = register.raw(number)
            error = self.link.write(identity, register.address, register.to_bytes(raw), patient=until is None)
            answer = self.link.read(identity, region, until=until)
            if answer is None:
                raise self._silent(f"writing {name}")
            found = register.number(answer.raw(register))
            if abs(found - number) <= tolerance:
                return
            if error is not None and dialect.is_refusal(error) and not dialect.is_damage(error):
                raise ServoError(f"{self.servo} refused {name} = {number}: {dialect.refusal(error)}")
            ended = attempt >= WRITINGS if until is None else self.link.port.clock.now() >= until
            if ended:
                raise ServoError(f"{self.servo} did not store {name} = {number}; it is still {found}")

    def adjust(self, name: str, number: int) -> int | None:
        """Write counts if the register exists and differs; return the previous counts if it was changed."""
        if not self.servo.has(name):
            return None
        before = self.read(name)
        if before == number:
            return None
        self.write(name, number)
        return before

    def hardware_errors(self) -> str:
        """Description of the reported hardware errors; empty without errors or without that register."""
        if not self.servo.has("hardware_error_status"):
            return ""
        return error_words(self.servo.model, self.read("hardware_error_status"))

    def _silent(self, doing: str) -> NoAnswerError:
        return NoAnswerError(
            f"{self.servo} on {self.link.port.port_name} does not answer ({doing}): check its power "
            "and wiring"
        )


def error_words(model: ServoModel, bits: int) -> str:
    """Description of hardware errors such as ``"overload, input voltage"``; empty for none."""
    words = [name.replace("_", " ") for name, bit in model.error_bits.items() if bits & bit]
    unknown = bits & ~sum(model.error_bits.values())
    return ", ".join([*words, *([f"error bits {unknown:#x}"] if unknown else [])])
