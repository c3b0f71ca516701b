"""What can go wrong on an emulated bus, by probability or by schedule.

As text (``stribeck emulate --fault``): ``KIND:key=value,…``, for example ``lost:p=0.05``,
``silence:every=2,for=0.05``, ``push:at=3,for=0.1,torque=0.05,id=1``, ``overload:after=2``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stribeck.errors import ConfigError

PACKET_KINDS: dict[str, dict[str, float]] = {
    "lost": {},
    "late": {"delay": 0.05},
    "corrupt": {"bytes": 0.0},
    "foreign": {"as": 99.0},
}
"""What happens to single packets, and the settings of each with their defaults.

``lost``: a packet of either direction does not arrive. ``late``: an answer comes ``delay`` s later.
``corrupt``: one byte of a packet of either direction is changed, or each byte with probability ``bytes``.
``foreign``: the ID ``as`` answers in addition."""

HARDWARE_ERRORS = ("overload", "overheating", "input_voltage", "electrical_shock", "encoder")

LASTING_KINDS: dict[str, dict[str, float]] = {
    "silence": {"for": 0.05},
    "brownout": {"for": math.inf, "to": 3.2},
    "unplug": {"for": math.inf},
    "push": {"for": 0.1, "torque": 0.05},
    **{name: {"for": math.inf} for name in HARDWARE_ERRORS},
}
"""What begins and lasts, and the settings of each with their defaults; ``for``: how long [s].

``silence``: nothing is heard or said. ``brownout``: the supply falls to ``to`` V. ``unplug``: the port
disappears, and comes back after ``for``. ``push``: an outside torque of ``torque`` N m. The others are
hardware errors, which stay until the servo is reset."""

TIMING = ("p", "at", "after", "every", "for", "id")
"""Settings of every fault: probability per packet; or begin in s since the start (``at``) or since torque
first came on (``after``), repeated ``every`` so many s, lasting ``for``; ``id``: one servo instead of all."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    :param kind: key of :data:`PACKET_KINDS` or :data:`LASTING_KINDS`.
    :param p: probability per packet, ``None`` for a schedule alone.
    :param at: begin [s] since the start.
    :param after: begin [s] since torque first came on.
    :param every: period of repetition [s].
    :param duration: how long it lasts [s].
    :param servo: ID of the servo it concerns, ``None`` for all.
    :param settings: what else the kind needs.
    :raises ConfigError: for settings that make no sense.
    """

    kind: str
    p: float | None = None
    at: float | None = None
    after: float | None = None
    every: float | None = None
    duration: float = math.inf
    servo: int | None = None
    settings: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        what = f"fault {self.kind}"
        own = PACKET_KINDS.get(self.kind, LASTING_KINDS.get(self.kind))
        if own is None:
            valid = ", ".join((*PACKET_KINDS, *LASTING_KINDS))
            raise ConfigError(f"unknown fault {self.kind!r}; valid: {valid}")
        defaults = {name: value for name, value in own.items() if name != "for"}
        object.__setattr__(self, "settings", {**defaults, **self.settings})
        if self.at is not None and self.after is not None:
            raise ConfigError(f"{what}: give at (since the start) or after (since torque on), not both")
        if self.p is None and not self.scheduled and not self.settings.get("bytes"):
            raise ConfigError(f"{what}: needs a probability p or a schedule at, after or every")
        if self.p is not None and self.scheduled and self.kind in LASTING_KINDS:
            raise ConfigError(f"{what}: give a probability or a schedule, not both")
        for name, value in (("p", self.p), ("bytes", self.settings.get("bytes"))):
            if value is not None and not 0.0 <= value <= 1.0:
                raise ConfigError(f"{what}: {name} is a probability from 0 to 1, found {value:g}")
        for name, value in (("every", self.every), ("for", self.duration)):
            if value is not None and not value > 0.0:
                raise ConfigError(f"{what}: {name} must be positive, found {value:g}")

    @property
    def scheduled(self) -> bool:
        """Whether it has a schedule."""
        return self.at is not None or self.after is not None or self.every is not None

    def concerns(self, servo: int) -> bool:
        """Whether a servo is meant; the broadcast ID is no single servo's."""
        return self.servo is None or self.servo == servo


def parse_fault(text: str) -> Fault:
    """A fault from ``KIND:key=value,…``.

    :raises ConfigError: for text that is none.
    """
    kind, _, rest = text.partition(":")
    kind = kind.strip()
    own = PACKET_KINDS.get(kind, LASTING_KINDS.get(kind))
    if own is None:
        return Fault(kind)  # which says what is valid
    found: dict[str, float] = {}
    for pair in (part for part in rest.split(",") if part.strip()):
        name, _, value = (part.strip() for part in pair.partition("="))
        valid = tuple(dict.fromkeys((*TIMING, *own)))
        if name not in valid or name in found:
            raise ConfigError(f"--fault {text}: found {pair.strip()!r}; valid, once each: {', '.join(valid)}")
        try:
            found[name] = float(value)
        except ValueError:
            raise ConfigError(f"--fault {text}: {name} needs a number, found {value!r}") from None
        if not math.isfinite(found[name]):
            raise ConfigError(f"--fault {text}: {name} needs a finite number, found {value!r}")
    servo = found.pop("id", None)
    return Fault(
        kind,
        p=found.pop("p", None),
        at=found.pop("at", None),
        after=found.pop("after", None),
        every=found.pop("every", None),
        duration=found.pop("for", own.get("for", math.inf)),
        servo=None if servo is None else int(servo),
        settings=found,
    )


class _Begun(NamedTuple):
    """How often a scheduled fault has begun, and when last [s]."""

    times: int
    at: float


class _Course:
    """A fault in time: whether it is on, and what it did."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.on = False
        self.times = 0
        """How often a scheduled fault has begun."""
        self.end = math.inf

    def since(self, clock: float, start: float, torque: float | None) -> float | None:
        """Time since the schedule began [s], ``None`` before."""
        origin, offset = (
            (torque, self.fault.after) if self.fault.after is not None else (start, self.fault.at)
        )
        if origin is None:
            return None
        elapsed = clock - origin - (offset or 0.0)
        return elapsed if elapsed >= 0.0 else None


class Faults:
    """The faults of a bus while time goes on.

    :param faults: what goes wrong.
    :param rng: source of chance.
    """

    def __init__(self, faults: Iterable[Fault], rng: np.random.Generator) -> None:
        self.rng = rng
        self.first_torque: float | None = None
        """When torque first came on, ``None`` while it has not."""
        self._start = 0.0
        self._courses = [_Course(fault) for fault in faults]

    def begin(self, clock: float) -> None:
        """Let time begin at ``clock`` [s]."""
        self._start = clock

    def add(self, fault: Fault, clock: float = -math.inf) -> None:
        """One more fault, from ``clock`` [s] on: what its schedule had before does not count."""
        course = _Course(fault)
        begun = self._begun(course, clock)
        if begun is not None and clock >= begun.at + fault.duration:
            course.times = begun.times
        self._courses.append(course)

    def hit(self, kind: str, servo: int, clock: float) -> Fault | None:
        """The fault of a kind that befalls a packet, drawn anew for each.

        :param servo: ID of the servo that sends or is asked, the broadcast ID for several.
        """
        for course in self._courses:
            fault = course.fault
            if fault.kind != kind or not fault.concerns(servo) or not self._within(course, clock):
                continue
            if fault.p is None or self.rng.random() < fault.p:
                return fault
        return None

    def changes(self, clock: float, packet: bool = False) -> list[tuple[Fault, bool]]:
        """Lasting faults that began (``True``) or ended (``False``) by ``clock``.

        :param packet: whether a packet gives those with a probability their chance.
        """
        found = []
        for course in self._courses:
            if course.fault.kind in PACKET_KINDS:
                continue
            if course.on and clock >= course.end:
                course.on = False
                found.append((course.fault, False))
            if self._begins(course, clock, packet):
                course.on = True
                found.append((course.fault, True))
        return found

    def _begins(self, course: _Course, clock: float, packet: bool) -> bool:
        fault = course.fault
        if fault.p is not None:
            if not packet or course.on or self.rng.random() >= fault.p:
                return False
            course.end = clock + fault.duration
            return True
        begun = self._begun(course, clock)
        if begun is None or begun.times <= course.times:
            return False
        course.times = begun.times
        course.end = begun.at + fault.duration
        return True

    def _begun(self, course: _Course, clock: float) -> _Begun | None:
        """The last time by ``clock`` that a schedule made a fault begin."""
        fault = course.fault
        elapsed = course.since(clock, self._start, self.first_torque) if fault.scheduled else None
        if elapsed is None:
            return None
        count = 1 if fault.every is None else int(elapsed / fault.every) + 1
        return _Begun(count, clock - elapsed + (count - 1) * (fault.every or 0.0))

    def _within(self, course: _Course, clock: float) -> bool:
        """Whether a fault of packets has its time."""
        fault = course.fault
        if not fault.scheduled:
            return True
        elapsed = course.since(clock, self._start, self.first_torque)
        if elapsed is None:
            return False
        return (elapsed if fault.every is None else elapsed % fault.every) < fault.duration


def damaged(data: bytes, fault: Fault, rng: np.random.Generator) -> bytes:
    """A packet with one byte changed, or each byte with the fault's probability ``bytes``."""
    found = bytearray(data)
    share = fault.settings["bytes"]
    places = np.flatnonzero(rng.random(len(data)) < share) if share else [rng.integers(len(data))]
    for place in places:
        found[int(place)] ^= int(rng.integers(1, 256))
    return bytes(found)
