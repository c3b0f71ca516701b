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


class JointStateReader:
    """Reads the joint states of one sender; names are decoded only when their bytes change."""

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
            at = BEHIND_STAMP + len(self._named)
            position, at = self._numbers(data, at)
            velocity, at = self._numbers(data, at)
            effort, at = self._numbers(data, at)
        except struct.error as problem:
            raise ValueError(
                f"a joint state ends after {len(data)} bytes, before it is complete"
            ) from problem
        return JointStateData(stamp, self._names, (position, velocity, effort))

    def _set_order(self, order: str) -> None:
        self._order, self._named = order, b""
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

    def _text(self, data: bytes, at: int) -> tuple[str, int]:
        """A null-terminated string and the offset of its end."""
        at += (BODY - at) % 4
        (length,) = self._one.unpack_from(data, at)
        end = at + 4 + length
        if end > len(data):
            raise ValueError(f"a joint state ends after {len(data)} bytes, before it is complete")
        return data[at + 4 : end].rstrip(b"\0").decode(), end
