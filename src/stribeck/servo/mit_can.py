r"""Drives on CAN in MIT mode: frames of Damiao and RobStride, and a bus of python-can. Never tried on hardware.

In MIT mode the drive applies :math:`\tau = k_p(\theta_d - \theta) + k_d(\dot\theta_d - \dot\theta) + \tau_{ff}`. A number x of a range [a, b]
travels as :math:`round((2^n - 1)(x - a)/(b - a))`. The ranges are settings of the drive: read them from it (Damiao: registers PMAX, VMAX and
TMAX) or from the manual of its firmware, since published tables differ; with wrong ones every quantity is off by their ratio.

Sources: Damiao, "DM-J4310-2EC instruction manual", and RobStride, "RS00 user manual", sections on the protocol of the private and the MIT
mode. This module stands apart: driver, recorder and nodes do not use it.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Protocol

from stribeck.errors import ConfigError, ServoError

BACKLOG = 1024
"""Most frames that are read to empty the line before commands are sent."""

HOST = 0xFD
"""ID of the host in frames of RobStride."""

DAMIAO_STATES = {
    0x0: "disabled",
    0x1: "enabled",
    0x8: "overvoltage",
    0x9: "undervoltage",
    0xA: "overcurrent",
    0xB: "driver overheated",
    0xC: "motor overheated",
    0xD: "communication lost",
    0xE: "overload",
}
"""Codes in the first byte of Damiao's feedback."""

ROBSTRIDE_FAULTS = (
    "undervoltage",
    "overcurrent",
    "overheating",
    "encoder",
    "stall overload",
    "not calibrated",
)
"""Bits 16 to 21 of the identifier of RobStride's feedback."""


@dataclass(frozen=True)
class MitRanges:
    """Ranges of the numbers: positions, velocities and torques from minus to plus, gains from zero.

    :param position: [rad].
    :param velocity: [rad/s].
    :param torque: [N m].
    :param kp: [N m/rad].
    :param kd: [N m s/rad].
    :raises ConfigError: for ranges that are not positive and finite.
    """

    position: float
    velocity: float
    torque: float
    kp: float = 500.0
    kd: float = 5.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0.0 < value < math.inf:
                raise ConfigError(f"range of {name}: expected a positive number, found {value:g}")


class MitCommand(NamedTuple):
    """What a drive shall do [rad, rad/s, N m/rad, N m s/rad, N m]; all zero is no torque."""

    position: float = 0.0
    velocity: float = 0.0
    kp: float = 0.0
    kd: float = 0.0
    torque: float = 0.0


class MitState(NamedTuple):
    """What a drive reports.

    :param drive: ID.
    :param position, velocity, torque: [rad, rad/s, N m].
    :param temperature: of the motor [°C].
    :param enabled: whether it is driven.
    :param faults: names of present faults.
    """

    drive: int
    position: float
    velocity: float
    torque: float
    temperature: float
    enabled: bool
    faults: tuple[str, ...]


class CanFrame(NamedTuple):
    """A frame on CAN: identifier, eight data bytes, and whether the identifier has 29 bits."""

    identifier: int
    data: bytes
    extended: bool = False


def to_counts(value: float, lower: float, upper: float, bits: int) -> int:
    """A number of a range as an unsigned integer, clipped to the range.

    :raises ConfigError: for a number that is not finite.
    """
    if not math.isfinite(value):
        raise ConfigError(f"a command must be finite, found {value:g}")
    top = (1 << bits) - 1
    return round(top * (min(max(value, lower), upper) - lower) / (upper - lower))


def from_counts(count: int, lower: float, upper: float, bits: int) -> float:
    """The number that an unsigned integer stands for."""
    return lower + count * (upper - lower) / ((1 << bits) - 1)


def _counts(command: MitCommand, ranges: MitRanges, bits: tuple[int, int, int, int, int]) -> list[int]:
    """Position, velocity, gains and torque as integers, in this order."""
    spans = [
        (-ranges.position, ranges.position),
        (-ranges.velocity, ranges.velocity),
        (0.0, ranges.kp),
        (0.0, ranges.kd),
        (-ranges.torque, ranges.torque),
    ]
    return [to_counts(x, *span, n) for x, span, n in zip(command, spans, bits, strict=True)]


def _motion(
    counts: Sequence[int], ranges: MitRanges, bits: tuple[int, int, int]
) -> tuple[float, float, float]:
    """Position, velocity and torque from integers, in this order."""
    limits = (ranges.position, ranges.velocity, ranges.torque)
    parts = zip(counts, limits, bits, strict=True)
    position, velocity, torque = (from_counts(n, -limit, limit, b) for n, limit, b in parts)
    return position, velocity, torque


class Damiao:
    """Frames of Damiao's drives: 16 bits of position, 12 of everything else; feedback has four bits for the ID."""

    largest = 0x0F

    @staticmethod
    def command(drive: int, command: MitCommand, ranges: MitRanges) -> CanFrame:
        """The frame of a command."""
        first, *others = _counts(command, ranges, (16, 12, 12, 12, 12))
        whole = reduce(lambda before, count: before << 12 | count, others, first)
        return CanFrame(drive, whole.to_bytes(8, "big"))

    @staticmethod
    def enable(drive: int, on: bool) -> CanFrame:
        """The frame that switches a drive on or off."""
        return CanFrame(drive, b"\xff" * 7 + (b"\xfc" if on else b"\xfd"))

    @staticmethod
    def sender(frame: CanFrame) -> int | None:
        """ID of the drive whose feedback a frame is; ``None`` if it is none."""
        return None if frame.extended or len(frame.data) != 8 else frame.data[0] & 0x0F

    @staticmethod
    def state(frame: CanFrame, ranges: MitRanges) -> MitState | None:
        """What a frame reports; ``None`` if it is no feedback."""
        drive = Damiao.sender(frame)
        if drive is None:
            return None
        code = frame.data[0] >> 4
        whole = int.from_bytes(frame.data[1:6], "big")
        motion = _motion((whole >> 24, whole >> 12 & 0xFFF, whole & 0xFFF), ranges, (16, 12, 12))
        faults = () if code in (0, 1) else (DAMIAO_STATES.get(code, f"error {code:#x}"),)
        return MitState(drive, *motion, float(frame.data[7]), code == 1, faults)


class RobStride:
    """Frames of RobStride's drives in their private protocol: 16 bits each, 29 bits of identifier."""

    largest = 0xFF

    @staticmethod
    def command(drive: int, command: MitCommand, ranges: MitRanges) -> CanFrame:
        """The frame of a command; its torque is in the identifier."""
        *rest, torque = _counts(command, ranges, (16, 16, 16, 16, 16))
        return CanFrame(0x01 << 24 | torque << 8 | drive, b"".join(n.to_bytes(2, "big") for n in rest), True)

    @staticmethod
    def enable(drive: int, on: bool) -> CanFrame:
        """The frame that switches a drive on or off."""
        return CanFrame((0x03 if on else 0x04) << 24 | HOST << 8 | drive, bytes(8), True)

    @staticmethod
    def sender(frame: CanFrame) -> int | None:
        """ID of the drive whose feedback a frame is; ``None`` if it is none."""
        feedback = frame.extended and frame.identifier >> 24 == 0x02 and len(frame.data) == 8
        return frame.identifier >> 8 & 0xFF if feedback else None

    @staticmethod
    def state(frame: CanFrame, ranges: MitRanges) -> MitState | None:
        """What a frame reports; ``None`` if it is no feedback."""
        drive = RobStride.sender(frame)
        if drive is None:
            return None
        *counts, heat = (int.from_bytes(frame.data[k : k + 2], "big") for k in (0, 2, 4, 6))
        bits = frame.identifier >> 16 & 0x3F
        faults = tuple(name for k, name in enumerate(ROBSTRIDE_FAULTS) if bits >> k & 1)
        motion, enabled = _motion(counts, ranges, (16, 16, 16)), frame.identifier >> 22 & 0x3 == 2
        return MitState(drive, *motion, 0.1 * heat, enabled, faults)


class CanLine(Protocol):
    """What is used of ``can.BusABC``."""

    def send(self, msg: Any, timeout: float | None = None) -> None:
        """Send a frame."""

    def recv(self, timeout: float | None = None) -> Any:
        """The next frame, ``None`` after the time-out."""


class MitBus:
    """Drives of one maker on one CAN bus: each command is answered by a state.

    :param line: ``can.Bus(interface="socketcan", channel="can0")`` of python-can.
    :param codec: :class:`Damiao` or :class:`RobStride`.
    :param drives: ranges of each drive by its ID.
    :param message: makes a message of a frame; by default ``can.Message``.
    :param clock: time [s].
    :raises ConfigError: for an ID that feedback of the maker cannot hold, and without python-can.
    """

    def __init__(
        self,
        line: CanLine,
        codec: type[Damiao] | type[RobStride],
        drives: dict[int, MitRanges],
        message: Callable[[CanFrame], Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line, self._codec, self.drives = line, codec, dict(drives)
        for drive in self.drives:
            if not 0 <= drive <= codec.largest:
                raise ConfigError(
                    f"drive {drive}: {codec.__name__} supports only IDs from 0 to {codec.largest}: give the drive one of these"
                )
        self._message, self._clock = message or _can_messages(), clock

    def enable(self) -> None:
        """Switch all drives on, each with a command of no torque first.

        :raises ServoError: if a drive could not be told; those before it are off again.
        """
        told: list[int] = []
        try:
            for drive, ranges in self.drives.items():
                self._send(self._codec.command(drive, MitCommand(), ranges))
                told.append(drive)
                self._send(self._codec.enable(drive, True))
        except BaseException:
            self._switch_off(told)
            raise

    def disable(self) -> None:
        """Switch all drives off; all are told, and the first failure is raised then.

        :raises ServoError: if a drive could not be told.
        """
        problems = self._switch_off(self.drives)
        if problems:
            raise problems[0]

    def _switch_off(self, drives: Iterable[int]) -> list[ServoError]:
        """Tell each of some drives, whatever becomes of the others; what failed."""
        problems = []
        for drive in drives:
            try:
                self._send(self._codec.enable(drive, False))
            except ServoError as problem:
                problems.append(problem)
        return problems

    def exchange(self, commands: dict[int, MitCommand], wait: float) -> dict[int, MitState]:
        """Send a command to each drive and return the states that come back.

        Frames that wait on the line are dropped first: they answer earlier commands. If so many wait that the line is not
        empty after :data:`BACKLOG` frames or by the deadline, the commands are sent and no state is returned, since new ones cannot be told from old ones.

        :param wait: for all answers together, from the call on [s]; frames of others do not prolong it.
        :raises ServoError: if the bus fails; drives that have not answered are missing in the result.
        """
        deadline = self._clock() + wait
        emptied = self._empty(deadline)
        for drive, command in commands.items():
            self._send(self._codec.command(drive, command, self.drives[drive]))
        states: dict[int, MitState] = {}
        late = 0
        while emptied and len(states) < len(commands) and late < len(commands):
            left = deadline - self._clock()
            late += left <= 0.0  # what has arrived by then is still read, one frame for each drive
            frame = self._receive(max(left, 0.0))
            if frame is None:
                break
            sender = self._codec.sender(frame)
            if sender is None or sender not in commands:
                continue
            state = self._codec.state(frame, self.drives[sender])
            if state is not None:
                states[sender] = state
        return states

    def _empty(self, deadline: float) -> bool:
        """Drop the frames that wait; whether none is left."""
        for _ in range(BACKLOG):
            if self._receive(0.0) is None:
                return True
            if self._clock() >= deadline:
                return False
        return False

    def _receive(self, wait: float) -> CanFrame | None:
        """The next frame, ``None`` after a time [s]."""
        try:
            message = self._line.recv(wait)
        except Exception as problem:
            raise ServoError(f"the CAN bus failed: {problem}") from problem
        if message is None:
            return None
        return CanFrame(message.arbitration_id, bytes(message.data), bool(message.is_extended_id))

    def _send(self, frame: CanFrame) -> None:
        try:
            self._line.send(self._message(frame))
        except Exception as problem:
            raise ServoError(f"the CAN bus failed: {problem}") from problem


def _can_messages() -> Callable[[CanFrame], Any]:
    """What makes messages of python-can."""
    try:
        import can
    except ImportError:
        raise ConfigError("drives on CAN need python-can: pip install python-can") from None

    def message(frame: CanFrame) -> Any:
        return can.Message(arbitration_id=frame.identifier, data=frame.data, is_extended_id=frame.extended)

    return message
