"""Fast decoder of sensor_msgs/JointState from plain CDR, without message objects.

A cycle of the compensation takes a tenth of a millisecond. Creating message objects would take as long as the friction
law itself, although the names in them never change.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from stribeck.model.arrays import Array

BODY = 4
"""Offset of the message after its encapsulation header; alignment counts from here."""

ENCAPSULATIONS = {b"\x00\x00": ">", b"\x00\x01": "<"}
"""Byte order of plain CDR, in the notation of struct and numpy."""

BEHIND_STAMP = BODY + 8


class Stamp(NamedTuple):
    """Time stamp of a message."""

    sec: int
    nanosec: int

    @property
    def seconds(self) -> float:
        """Time in seconds."""
        return self.sec + 1e-9 * self.nanosec

    @property
    def nanoseconds(self) -> int:
        """Time in nanoseconds."""
        return self.sec * 1_000_000_000 + self.nanosec

    @classmethod
    def of(cls, nanoseconds: int) -> Stamp:
        """A stamp from a time in nanoseconds."""
        return cls(*divmod(nanoseconds, 1_000_000_000))


def header_stamp(data: bytes) -> Stamp:
    """Stamp of a serialised message that begins with a header, without decoding the rest; 0 if it has none."""
    if len(data) < BEHIND_STAMP:
        return Stamp(0, 0)
    order = "<" if data[1] & 1 else ">"
    return Stamp(*struct.unpack_from(f"{order}iI", data, BODY))


class JointStateData(NamedTuple):
    """Content of a sensor_msgs/JointState; ``numbers`` are positions, velocities and efforts, empty if not given."""

    stamp: Stamp
    names: tuple[str, ...]
    numbers: tuple[Array, Array, Array]


class _Whole(NamedTuple):
    """Where a joint state with positions, velocities and efforts of all its n names has its numbers.

    :param begin: of the first length.
    :param counts: reads the three lengths from there.
    :param full: what they are, n each.
    :param numbers: begin of the positions; eight bytes, a length and padding, are between the sequences.
    :param end: of the efforts.
    """

    begin: int
    counts: struct.Struct
    full: tuple[int, int, int]
    numbers: int
    end: int

    @classmethod
    def of(cls, n: int, at: int, order: str) -> _Whole | None:
        """Behind names that end at a place; ``None`` without names."""
        if not n:
            return None
        begin = at + (BODY - at) % 4
        numbers = begin + 4 + (BODY - begin - 4) % 8
        gap = numbers - begin - 4 + 8 * n
        return cls(
            begin,
            struct.Struct(f"{order}I{gap}xI{8 * n + 4}xI"),
            (n, n, n),
            numbers,
            numbers + 8 * (3 * n + 2),
        )


class JointStateReader:
    """Reads the joint states of one sender; names are decoded, and places computed, only when their bytes change."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._named = b""
        self._set_order("<")

    def read(self, data: bytes) -> JointStateData:
        """Decode a joint state from plain CDR.

        :raises ValueError: for bytes that are not a joint state.
        """
        order = ENCAPSULATIONS.get(data[:2])
        if order is None:
            raise ValueError(f"unknown encapsulation {data[:2].hex()} of a joint state; valid: plain CDR")
        if order != self._order:
            self._set_order(order)
        try:
            stamp = Stamp(*self._two.unpack_from(data, BODY))
            if not (self._named and data.startswith(self._named, BEHIND_STAMP)):
                self._read_names(data)
            whole = self._whole
            if (
                whole is None
                or len(data) < whole.end
                or whole.counts.unpack_from(data, whole.begin) != whole.full
            ):
                return JointStateData(stamp, self._names, self._sequences(data))
        except struct.error as problem:
            raise ValueError(
                f"a joint state ends after {len(data)} bytes, before it is complete"
            ) from problem
        n = len(self._names)
        numbers = np.frombuffer(data, self._float, 3 * n + 2, whole.numbers)
        return JointStateData(
            stamp, self._names, (numbers[:n], numbers[n + 1 : 2 * n + 1], numbers[2 * n + 2 :])
        )

    def _sequences(self, data: bytes) -> tuple[Array, Array, Array]:
        at = BEHIND_STAMP + len(self._named)
        position, at = self._numbers(data, at)
        velocity, at = self._numbers(data, at)
        effort, at = self._numbers(data, at)
        return position, velocity, effort

    def _set_order(self, order: str) -> None:
        self._order, self._named = order, b""
        self._whole: _Whole | None = None
        self._two, self._one = struct.Struct(order + "iI"), struct.Struct(order + "I")
        self._float = np.dtype(order + "f8")

    def _numbers(self, data: bytes, at: int) -> tuple[Array, int]:
        """A sequence of numbers and the offset of its end."""
        at += (BODY - at) % 4
        (count,) = self._one.unpack_from(data, at)
        at += 4
        if count:
            at += (BODY - at) % 8
        return np.frombuffer(data, self._float, count, at), at + 8 * count

    def _read_names(self, data: bytes) -> None:
        """Decode the frame and the names, and keep their bytes for comparison."""
        _, at = self._text(data, BEHIND_STAMP)
        at += (BODY - at) % 4
        (count,) = self._one.unpack_from(data, at)
        if count > len(data):
            raise ValueError(f"a joint state of {len(data)} bytes cannot contain {count} names")
        at += 4
        names = []
        for _ in range(count):
            name, at = self._text(data, at)
            names.append(name)
        self._names, self._named = tuple(names), data[BEHIND_STAMP:at]
        self._whole = _Whole.of(len(names), at, self._order)

    def _text(self, data: bytes, at: int) -> tuple[str, int]:
        """A null-terminated string and the offset of its end."""
        at += (BODY - at) % 4
        (length,) = self._one.unpack_from(data, at)
        end = at + 4 + length
        if end > len(data):
            raise ValueError(f"a joint state ends after {len(data)} bytes, before it is complete")
        return data[at + 4 : end].rstrip(b"\0").decode(), end
