"""The bytes of an emulated servo's control table: which registers they are, and what they hold.

Addresses of indirect data stand for the bytes whose addresses the indirect addresses hold, so that a
program can read or write registers that lie apart in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from stribeck.emulator.protocol import Error2
from stribeck.errors import ConfigError
from stribeck.servo.registers import Register, ServoModel


class _Span(NamedTuple):
    """Bytes that lie together: where they really are, where they stand in the access, how many."""

    address: int
    offset: int
    length: int


class ControlTable:
    """A control table in use.

    :param model: the servo.
    :param changes: counts of registers that differ from the factory's, by name.
    :param live: registers that are measured anew at each read.
    :raises ConfigError: for a register that the servo does not have, or a count that it does not take.
    """

    def __init__(
        self, model: ServoModel, changes: Mapping[str, int], live: Mapping[str, Callable[[], int]]
    ) -> None:
        self.model = model
        self.numbers = {name: register.initial for name, register in model.registers.items()}
        for name, number in changes.items():
            register = model.register(name)
            if not register.accepts(number):
                raise ConfigError(f"{model.title}: {name} cannot be {number}")
            self.numbers[name] = number
        self._live = live
        ends = [register.address + register.size for register in model.registers.values()]
        self.end = max(ends + [block.data + block.size for block in model.indirect])
        self._indirect = bytearray()
        self._runs: dict[tuple[int, int], list[_Span]] = {}
        self._touched: dict[tuple[int, int], list[Register]] = {}
        self._reset_indirect()

    def power_on(self) -> None:
        """Forget what RAM held."""
        for name, register in self.model.registers.items():
            if not register.eeprom:
                self.numbers[name] = register.initial
        self._reset_indirect()

    def read(self, address: int, length: int) -> bytes | None:
        """Bytes of the table, zero between registers; ``None`` beyond its end."""
        if length < 1 or address + length > self.end:
            return None
        data = bytearray(length)
        for run in self._resolve(address, length):
            found = self._indirect[run.address : run.address + run.length]
            for register in self._registers(run.address, run.length):
                live = self._live.get(register.name)
                raw = register.raw(live() if live is not None else self.numbers[register.name])
                for k, byte in enumerate(
                    raw.to_bytes(register.size, "little"), register.address - run.address
                ):
                    if 0 <= k < run.length:
                        found[k] = byte
            data[run.offset : run.offset + run.length] = found
        return bytes(data)

    def parts(self, address: int, data: bytes) -> tuple[dict[str, int], Error2 | None]:
        """The counts that a write has for each register, and what is wrong with it, if anything."""
        found: dict[str, int] = {}
        if not data or address + len(data) > self.end:
            return found, Error2.ACCESS
        anything = False
        for run in self._resolve(address, len(data)):
            piece = data[run.offset : run.offset + run.length]
            anything = anything or any(self._is_indirect(run.address + k) for k in range(run.length))
            for register in self._registers(run.address, run.length):
                start = register.address - run.address
                if start < 0 or start + register.size > run.length:
                    return found, Error2.DATA_LENGTH
                raw = int.from_bytes(piece[start : start + register.size], "little")
                found[register.name] = register.number(raw)
        return found, None if found or anything else Error2.ACCESS

    def adopt(self, address: int, data: bytes) -> None:
        """Keep what a write has for indirect addresses and data; registers are not touched."""
        for run in self._resolve(address, len(data)):
            for k in range(run.length):
                if self._is_indirect(run.address + k):
                    self._indirect[run.address + k] = data[run.offset + k]
        if any(address < block.address + 2 * block.size for block in self.model.indirect):
            self._runs.clear()

    def _reset_indirect(self) -> None:
        self._indirect = bytearray(self.end)
        for block in self.model.indirect:
            for k in range(block.size):
                place = block.address + 2 * k
                self._indirect[place : place + 2] = (block.data + k).to_bytes(2, "little")
        self._runs.clear()

    def _is_indirect(self, address: int) -> bool:
        return any(
            block.address <= address < block.address + 2 * block.size
            or block.data <= address < block.data + block.size
            for block in self.model.indirect
        )

    def _resolve(self, address: int, length: int) -> list[_Span]:
        """Where the bytes of an access really are."""
        key = (address, length)
        if key not in self._runs:
            runs: list[_Span] = []
            for offset in range(length):
                target = self._target(address + offset)
                if runs and target == runs[-1].address + runs[-1].length:
                    runs[-1] = runs[-1]._replace(length=runs[-1].length + 1)
                else:
                    runs.append(_Span(target, offset, 1))
            self._runs[key] = runs
        return self._runs[key]

    def _target(self, address: int) -> int:
        for block in self.model.indirect:
            if block.data <= address < block.data + block.size:
                place = block.address + 2 * (address - block.data)
                target = int.from_bytes(self._indirect[place : place + 2], "little")
                return target if target < self.end else address
        return address

    def _registers(self, address: int, length: int) -> list[Register]:
        """The registers that have bytes in a run."""
        key = (address, length)
        if key not in self._touched:
            self._touched[key] = [
                register
                for register in self.model.registers.values()
                if register.address < address + length and address < register.address + register.size
            ]
        return self._touched[key]
