"""Fast decoder of sensor_msgs/JointState from plain CDR, without message objects.

A cycle of the compensation takes a tenth of a millisecond; making message objects would take as long as the friction
law itself, and the names in them are the same every time.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

BODY = 4
"""Offset of the message behind its encapsulation header; alignment counts from here."""

ENCAPSULATIONS = {b"\x00\x00": ">", b"\x00\x01": "<"}
"""Byte order of plain CDR, as struct and numpy call it."""

BEHIND_STAMP = BODY + 8


class Stamp(NamedTuple):
    """A time stamp of a message."""

    sec: int
    nanosec: int

    @property
    def seconds(self) -> float:
        """As a number [s]."""
        return self.sec + 1e-9 * self.nanosec

    @property
    def nanoseconds(self) -> int:
        """As a whole number [ns]."""
        return self.sec * 1_000_000_000 + self.nanosec

    @classmethod
    def of(cls, nanoseconds: int) -> Stamp:
        """From a whole number [ns]."""
        return cls(*divmod(nanoseconds, 1_000_000_000))


def header_stamp(data: bytes) -> Stamp:
    """Stamp of a serialised message that begins with a header, without reading further; 0 if it has none."""
    if len(data) < BEHIND_STAMP:
        return Stamp(0, 0)
    order = "<" if data[1] & 1 else ">"
    return Stamp(*struct.unpack_from(f"{order}iI", data, BODY))


class JointStateData(NamedTuple):
    """The content of a sensor_msgs/JointState.

    :param numbers: positions [rad], velocities [rad/s] and efforts [N m], each empty where not given.
    """

    stamp: Stamp
    names: tuple[str, ...]
    numbers: tuple[FloatArray, FloatArray, FloatArray]


class JointStateReader:
    """Reads the joint states of one sender; names are decoded again only when their bytes change."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._named = b""
        self._set_order("<")

    def read(self, data: bytes) -> JointStateData:
        """A joint state from plain CDR.

        :raises ValueError: for bytes that are no joint state.
        """
        order = ENCAPSULATIONS.get(data[:2])
        if order is None:
            raise ValueError(f"unknown encapsulation {data[:2].hex()} of a joint state; known: plain CDR")
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
            raise ValueError(f"a joint state of {len(data)} bytes is cut short") from problem
        return JointStateData(stamp, self._names, (position, velocity, effort))

    def _set_order(self, order: str) -> None:
        self._order, self._named = order, b""
        self._two, self._one = struct.Struct(order + "iI"), struct.Struct(order + "I")
        self._float = np.dtype(order + "f8")

    def _numbers(self, data: bytes, at: int) -> tuple[FloatArray, int]:
        """A sequence of numbers, and where it ends."""
        at += (BODY - at) % 4
        (count,) = self._one.unpack_from(data, at)
        at += 4
        if count:
            at += (BODY - at) % 8
        return np.frombuffer(data, self._float, count, at), at + 8 * count

    def _read_names(self, data: bytes) -> None:
        """The frame and the names, and the bytes that hold them."""
        _, at = self._text(data, BEHIND_STAMP)
        at += (BODY - at) % 4
        (count,) = self._one.unpack_from(data, at)
        if count > len(data):
            raise ValueError(f"a joint state of {len(data)} bytes has no {count} names")
        at += 4
        names = []
        for _ in range(count):
            name, at = self._text(data, at)
            names.append(name)
        self._names, self._named = tuple(names), data[BEHIND_STAMP:at]

    def _text(self, data: bytes, at: int) -> tuple[str, int]:
        """A text that ends with a zero byte, and where it ends."""
        at += (BODY - at) % 4
        (length,) = self._one.unpack_from(data, at)
        end = at + 4 + length
        if end > len(data):
            raise ValueError(f"a joint state of {len(data)} bytes is cut short")
        return data[at + 4 : end].rstrip(b"\0").decode(), end
