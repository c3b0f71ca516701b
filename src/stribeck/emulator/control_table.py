"""The bytes of an emulated servo's control table.

An access to indirect data is redirected to the bytes at the indirect addresses, so that programs can read or write
scattered registers at once.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from stribeck.emulator.protocol import Error2
from stribeck.errors import ConfigError
from stribeck.servo.registers import Register, ServoModel


class _Span(NamedTuple):
    """Contiguous bytes: true address, offset in the access, length."""

    address: int
    offset: int
    length: int


class ControlTable:
    """A control table in use.

    :param changes: counts that differ from the factory values, by register.
    :param live: functions that compute the registers measured at each read.
    :ivar numbers: counts of all registers by name.
    :raises ConfigError: for an unknown register, or a count that it does not accept.
    """

    def __init__(
        self, model: ServoModel, changes: Mapping[str, int], live: Mapping[str, Callable[[], int]]
    ) -> None:
        self.model = model
        self.numbers = {name: register.initial for name, register in model.registers.items()}
        for name, number in changes.items():
            if not model.register(name).accepts(number):
                raise ConfigError(f"{model.title}: the register {name} cannot be {number}")
            self.numbers[name] = number
        self._kept = dict(self.numbers)
        self._live = live
        ends = [register.address + register.size for register in model.registers.values()]
        self.end = max(ends + [block.data + block.size for block in model.indirect])
        self._indirect = bytearray()
        self._spans: dict[tuple[int, int], list[_Span]] = {}
        self._touched: dict[tuple[int, int], list[Register]] = {}
        self._reset_indirect()

    def power_on(self) -> None:
        """Reset the RAM registers, and EEPROM registers that were written while the EEPROM was locked."""
        for name, register in self.model.registers.items():
            self.numbers[name] = self._kept[name] if register.eeprom else register.initial
        self._reset_indirect()

    def keep(self, name: str) -> None:
        """Keep the number of an EEPROM register beyond power-off, unless the EEPROM is locked."""
        if not self.numbers.get("eeprom_lock", 0):
            self._kept[name] = self.numbers[name]

    def read(self, address: int, length: int) -> bytes | None:
        """Read bytes, zero between registers; ``None`` beyond the end of the table."""
        if length < 1 or address + length > self.end:
            return None
        data = bytearray(length)
        for span in self._resolve(address, length):
            part = self._indirect[span.address : span.address + span.length]
            for register in self._registers(span):
                live = self._live.get(register.name)
                raw = register.raw(live() if live is not None else self.numbers[register.name])
                start = register.address - span.address
                for k, byte in enumerate(register.to_bytes(raw), start):
                    if 0 <= k < span.length:
                        part[k] = byte
            data[span.offset : span.offset + span.length] = part
        return bytes(data)

    def parts(self, address: int, data: bytes) -> tuple[dict[str, int], Error2 | None]:
        """Counts that a write assigns to each register, and the error if it is rejected."""
        numbers: dict[str, int] = {}
        if not data or address + len(data) > self.end:
            return numbers, Error2.ACCESS
        indirect = False
        for span in self._resolve(address, len(data)):
            piece = data[span.offset : span.offset + span.length]
            indirect = indirect or any(self._is_indirect(span.address + k) for k in range(span.length))
            for register in self._registers(span):
                start = register.address - span.address
                if start < 0 or start + register.size > span.length:
                    return numbers, Error2.DATA_LENGTH
                raw = register.from_bytes(piece[start : start + register.size])
                numbers[register.name] = register.number(raw)
        return numbers, None if numbers or indirect else Error2.ACCESS

    def adopt(self, address: int, data: bytes) -> None:
        """Store the part of a write that concerns indirect addresses and data."""
        changes = False
        for span in self._resolve(address, len(data)):
            for k in range(span.length):
                if self._is_indirect(span.address + k):
                    self._indirect[span.address + k] = data[span.offset + k]
                    changes = True
        if changes:
            self._spans.clear()

    def _reset_indirect(self) -> None:
        self._indirect = bytearray(self.end)
        for block in self.model.indirect:
            for k in range(block.size):
                place = block.address + 2 * k
                self._indirect[place : place + 2] = (block.data + k).to_bytes(2, "little")
        self._spans.clear()

    def _is_indirect(self, address: int) -> bool:
        return any(
            block.address <= address < block.address + 2 * block.size
            or block.data <= address < block.data + block.size
            for block in self.model.indirect
        )

    def _resolve(self, address: int, length: int) -> list[_Span]:
        key = (address, length)
        if key not in self._spans:
            spans: list[_Span] = []
            for offset in range(length):
                target = self._target(address + offset)
                if spans and target == spans[-1].address + spans[-1].length:
                    spans[-1] = spans[-1]._replace(length=spans[-1].length + 1)
                else:
                    spans.append(_Span(target, offset, 1))
            self._spans[key] = spans
        return self._spans[key]

    def _target(self, address: int) -> int:
        for block in self.model.indirect:
            if block.data <= address < block.data + block.size:
                place = block.address + 2 * (address - block.data)
                target = int.from_bytes(self._indirect[place : place + 2], "little")
                return target if target < self.end else address
        return address

    def _registers(self, span: _Span) -> list[Register]:
        key = (span.address, span.length)
        if key not in self._touched:
            self._touched[key] = [
                register
                for register in self.model.registers.values()
                if register.address < span.address + span.length
                and span.address < register.address + register.size
            ]
        return self._touched[key]
