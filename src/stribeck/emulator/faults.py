"""Faults of an emulated bus, random or scheduled.

As text (``stribeck emulate --fault``): ``KIND:key=value,…``, for example ``lost:p=0.05``,
``silence:every=2,for=0.05``, ``push:at=3,for=0.1,torque=0.05,id=1``, ``overload:after=2``.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from stribeck.errors import ConfigError

PACKET_KINDS: dict[str, dict[str, float]] = {
    "lost": {},
    "late": {"delay": 0.05, "spread": 0.0},
    "double": {"delay": 0.0, "spread": 0.0},
    "echo": {},
    "corrupt": {"bytes": 0.0},
    "foreign": {"as": 99.0},
}
"""Faults of single packets, and the defaults of their settings.

``lost``: a packet in either direction does not arrive. ``late``: an answer arrives ``delay`` s later, plus a random
time up to ``spread`` s. ``double``: an answer arrives again, as much later. ``echo``: the adapter returns a packet to
its sender.
``corrupt``: one byte of a packet in either direction is changed, or each byte with probability ``bytes``.
``foreign``: the ID ``as`` answers in addition."""

HARDWARE_ERRORS = ("overload", "overheating", "input_voltage", "electrical_shock", "encoder")

LASTING_KINDS: dict[str, dict[str, float]] = {
    "silence": {"for": 0.05},
    "stall": {"for": 0.05, "gap": 0.005},
    "brownout": {"for": math.inf, "to": 3.2},
    "unplug": {"for": math.inf},
    "push": {"for": 0.1, "torque": 0.05},
    **{name: {"for": math.inf} for name in HARDWARE_ERRORS},
}
"""Faults that last, and the defaults of their settings; ``for``: duration [s].

``silence``: everything on the line is lost. ``stall``: answers wait until the end, then arrive ``gap`` s apart.
``brownout``: the supply falls to ``to`` V. ``unplug``: the port
disappears, and returns after ``for``. ``push``: an external torque of ``torque`` N m. The others are
hardware errors, which persist until the servo is reset."""

TIMING = ("p", "at", "after", "every", "for", "id")
"""Settings of every fault: probability per packet (``p``); or start after the start of the emulation (``at``) or
after torque was first on (``after``), period (``every``) and duration (``for``) [s]; ``id``: one servo instead of all.
A fault of packets without a schedule lasts ``for`` from when it is added."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    :param kind: key of :data:`PACKET_KINDS` or :data:`LASTING_KINDS`.
    :param p: probability per packet, ``None`` for a schedule only.
    :param at: start, after the start of the emulation [s].
    :param after: start, after torque was first on [s].
    :param every: period of repetition [s].
    :param duration: [s].
    :param servo: ID of the affected servo, ``None`` for all.
    :param settings: further settings of this kind of fault.
    :raises ConfigError: for invalid settings.
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
        where = f"fault {self.kind}"
        defaults = {name: value for name, value in _settings_of(self.kind).items() if name != "for"}
        object.__setattr__(self, "settings", {**defaults, **self.settings})
        if self.at is not None and self.after is not None:
            raise ConfigError(
                f"{where}: at (time since the start) and after (time since torque on) exclude each other: give one"
            )
        if self.p is None and not self.scheduled and not self.settings.get("bytes"):
            raise ConfigError(f"{where}: give a probability (p), or times (at, after or every)")
        if self.p is not None and self.scheduled and self.kind in LASTING_KINDS:
            raise ConfigError(f"{where}: a probability and times exclude each other: give one")
        for name, value in (("p", self.p), ("bytes", self.settings.get("bytes"))):
            if value is not None and not 0.0 <= value <= 1.0:
                raise ConfigError(f"{where}: {name} must be a probability from 0 to 1, found {value:g}")
        for name, value in (("every", self.every), ("for", self.duration)):
            if value is not None and not value > 0.0:
                raise ConfigError(f"{where}: {name} must be positive, found {value:g}")

    @property
    def scheduled(self) -> bool:
        """Whether the fault has a schedule."""
        return self.at is not None or self.after is not None or self.every is not None

    def concerns(self, servo: int) -> bool:
        """Whether a servo is affected; the broadcast ID denotes no single servo."""
        return self.servo is None or self.servo == servo


def _settings_of(kind: str) -> Mapping[str, float]:
    settings = PACKET_KINDS.get(kind, LASTING_KINDS.get(kind))
    if settings is None:
        raise ConfigError(f"unknown fault {kind!r}; valid: {', '.join((*PACKET_KINDS, *LASTING_KINDS))}")
    return settings


def parse_fault(text: str) -> Fault:
    """Parse ``KIND:key=value,…``.

    :raises ConfigError: for invalid text.
    """
    kind, _, rest = text.partition(":")
    kind = kind.strip()
    defaults = _settings_of(kind)
    values: dict[str, float] = {}
    for pair in (part for part in rest.split(",") if part.strip()):
        name, _, value = (part.strip() for part in pair.partition("="))
        valid = tuple(dict.fromkeys((*TIMING, *defaults)))
        if name not in valid or name in values:
            raise ConfigError(
                f"fault {text}: found {pair.strip()!r}; valid, each at most once: {', '.join(valid)}"
            )
        try:
            values[name] = float(value)
        except ValueError:
            raise ConfigError(f"fault {text}: {name} needs a number, found {value!r}") from None
        if not math.isfinite(values[name]):
            raise ConfigError(f"fault {text}: {name} needs a finite number, found {value!r}")
    servo = values.pop("id", None)
    timing = {name: values.pop(name, None) for name in ("p", "at", "after", "every")}
    duration = values.pop("for", defaults.get("for", math.inf))
    return Fault(
        kind, **timing, duration=duration, servo=None if servo is None else int(servo), settings=values
    )


@dataclass
class _Course:
    """State of a fault: when it ends [s], whether it is active, and how often it has started."""

    fault: Fault
    end: float
    on: bool = False
    times: int = 0


class Faults:
    """The faults of a bus over time.

    :ivar first_torque: when torque was first on [s], ``None`` before.
    """

    def __init__(self, faults: Iterable[Fault], rng: np.random.Generator) -> None:
        self.rng = rng
        self.first_torque: float | None = None
        self._start = 0.0
        self._courses = [_Course(fault, fault.duration) for fault in faults]

    def begin(self, clock: float) -> None:
        """Start the emulation at time ``clock`` [s]."""
        self._start = clock
        for course in self._courses:
            course.end = clock + course.fault.duration

    def elapsed(self, clock: float) -> float:
        """Time since the start of the emulation at ``clock`` [s]."""
        return clock - self._start

    def add(self, fault: Fault, clock: float = -math.inf) -> None:
        """Add a fault at ``clock`` [s], without the scheduled occurrences that are already over."""
        course = _Course(fault, clock + fault.duration)
        begun = self._begun(fault, clock)
        if begun is not None and clock >= begun[1] + fault.duration:
            course.times = begun[0]
        self._courses.append(course)

    def hit(self, kind: str, servo: int, clock: float) -> Fault | None:
        """Draw whether a fault of a kind affects a packet, and return it.

        :param servo: ID of the sending or addressed servo, the broadcast ID for several.
        """
        for course in self._courses:
            fault = course.fault
            if fault.kind != kind or not fault.concerns(servo) or not self._within(course, clock):
                continue
            if fault.p is None or self.rng.random() < fault.p:
                return fault
        return None

    def changes(self, clock: float, packet: bool = False) -> list[tuple[Fault, bool]]:
        """Lasting faults that started (``True``) or ended (``False``) by ``clock``.

        :param packet: whether a packet is sent, which may trigger random faults.
        """
        changes = []
        for course in self._courses:
            if course.fault.kind in PACKET_KINDS:
                continue
            if course.on and clock >= course.end:
                course.on = False
                changes.append((course.fault, False))
            if self._begins(course, clock, packet):
                course.on = True
                changes.append((course.fault, True))
        return changes

    def _begins(self, course: _Course, clock: float, packet: bool) -> bool:
        fault = course.fault
        if fault.p is not None:
            if not packet or course.on or self.rng.random() >= fault.p:
                return False
            course.end = clock + fault.duration
            return True
        begun = self._begun(fault, clock)
        if begun is None or begun[0] <= course.times:
            return False
        course.times, course.end = begun[0], begun[1] + fault.duration
        return True

    def _elapsed(self, fault: Fault, clock: float) -> float | None:
        """Time since the schedule started [s], ``None`` before."""
        origin = self._start if fault.after is None else self.first_torque
        if not fault.scheduled or origin is None:
            return None
        elapsed = clock - origin - (fault.after or fault.at or 0.0)
        return elapsed if elapsed >= 0.0 else None

    def _begun(self, fault: Fault, clock: float) -> tuple[int, float] | None:
        """Number of scheduled starts by ``clock``, and the time of the last one [s]."""
        elapsed = self._elapsed(fault, clock)
        if elapsed is None:
            return None
        count = 1 if fault.every is None else int(elapsed / fault.every) + 1
        return count, clock - elapsed + (count - 1) * (fault.every or 0.0)

    def _within(self, course: _Course, clock: float) -> bool:
        """Whether a packet fault is active: by its schedule, or for its duration since it was added."""
        fault = course.fault
        if not fault.scheduled:
            return clock < course.end
        elapsed = self._elapsed(fault, clock)
        if elapsed is None:
            return False
        return (elapsed if fault.every is None else elapsed % fault.every) < fault.duration


def delay_of(fault: Fault, rng: np.random.Generator) -> float:
    """Delay of a packet by a fault ``late`` or ``double`` [s]."""
    spread = fault.settings["spread"]
    return fault.settings["delay"] + (float(rng.uniform(0.0, spread)) if spread else 0.0)


def damaged(data: bytes, fault: Fault, rng: np.random.Generator) -> bytes:
    """Change one byte of a packet, or each byte with the fault's probability ``bytes``."""
    changed = bytearray(data)
    share = fault.settings["bytes"]
    places = np.flatnonzero(rng.random(len(data)) < share) if share else [rng.integers(len(data))]
    for place in places:
        changed[int(place)] ^= int(rng.integers(1, 256))
    return bytes(changed)
