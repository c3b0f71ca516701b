"""What reaches a live loop: joints in any order, and commands that count from their stamps on."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Numbers = Sequence[float] | FloatArray
"""As a message has them, perhaps none."""

Order = npt.NDArray[np.intp]
"""Where each joint of ours stands in a message."""

KEPT_COMMANDS = 128
"""Commands that are remembered: states may arrive that much later than commands that are stamped alike."""

KNOWN_ORDERS = 64
"""Lists of joint names whose order is remembered."""

LONGEST_COMMAND_STEP = 0.05
"""Goals further apart than this have no slope [s]."""

COMMAND_FILTER = 0.02
"""Time constant of the commanded velocity, where it is the slope of the goals [s]."""


CLOCK_DRIFT = 2e-4
"""Clocks of different machines may drift apart by so much [s/s]."""

CLOCK_JITTER = 0.05
"""Commands that lie as far behind their arrivals, give or take this, are told by one clock [s]."""

AGREEING_COMMANDS = 3
"""So many commands must agree before their clock is held for another one."""

LARGEST_CLOCK_DIFFERENCE = 1.0
"""Commands that are further off than this are not held for those of another clock [s]."""


class Command(NamedTuple):
    """What a controller wants, (n,) each, NaN where it does not say.

    Beside a goal position, an effort is the controller's own feed-forward (gravity, say): in the mode
    ``goal_offset`` it becomes part of the offset. The goal itself must be where the joint is meant to go.
    """

    position: FloatArray
    velocity: FloatArray
    effort: FloatArray


class JointOrder:
    """Where our joints stand in messages that name joints."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._known: dict[tuple[str, ...], tuple[Order | None, str]] = {}

    def of(self, names: tuple[str, ...], *, strict: bool) -> tuple[Order | None, str]:
        """Where each of our joints stands, or ``None`` and why that cannot be said.

        :param strict: whether joints that are not ours are a reason.
        """
        found = self._known.get(names)
        if found is None:
            found = self._find(names)
            if len(self._known) < KNOWN_ORDERS:
                self._known[names] = found
        order, problem = found
        if strict and order is not None and len(names) != len(self.names):
            unknown = sorted(set(names) - set(self.names))
            return None, f"unknown joint {', '.join(unknown)} (other_joints: ignore lets it pass)"
        return order, problem

    def _find(self, names: tuple[str, ...]) -> tuple[Order | None, str]:
        doubled = sorted({name for name in self.names if names.count(name) > 1})
        missing = [name for name in self.names if name not in names]
        if doubled:
            return None, f"joint {', '.join(doubled)} stands twice in one message"
        if missing:
            return None, f"joint {', '.join(missing)} missing"
        return np.array([names.index(name) for name in self.names]), ""


def picked(values: Numbers, order: Order) -> FloatArray:
    """Values in the order of the joints, NaN for those that a message does not give."""
    if not len(values):
        return np.full(len(order), np.nan)
    given: FloatArray = np.asarray(values, dtype=np.float64)
    try:
        return given.take(order)
    except IndexError:
        missing = int(order.max()) + 1 - len(given)
        return np.asarray(np.concatenate([given, np.full(missing, np.nan)])[order])


class StreamClock:
    """How far the stamps of a stream lie behind their arrivals: a clock that differs, or messages that are late.

    The least that was seen since the stream began is taken for the clocks, what exceeds it for lateness.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget."""
        self.offset: float | None = None
        self._arrival = math.nan

    def lag(self, arrival: float, stamp: float) -> float:
        """How late a message is [s]; clocks may drift by :data:`CLOCK_DRIFT`."""
        behind = arrival - stamp
        if self.offset is None or not behind > self.offset:
            self.offset = behind
        else:
            elapsed = max(arrival - self._arrival, 0.0)
            self.offset = min(behind, self.offset + CLOCK_DRIFT * elapsed)
        self._arrival = arrival
        return behind - self.offset


class _Kept(NamedTuple):
    stamp: float | None
    arrival: float
    command: Command
    rate: FloatArray


class Commands:
    """The last commands of a controller.

    Those with a stamp count for the states that are stamped after them, however close to them they
    arrive; so a recording played at any rate pairs them alike. Those without count from their arrival on,
    and so do those of a clock that is not that of the states.
    """

    def __init__(self, joints: int) -> None:
        self._zero: FloatArray = np.zeros(joints)
        self._kept: deque[_Kept] = deque(maxlen=KEPT_COMMANDS)
        self._returned: _Kept | None = None
        self._agreeing = 0
        self._clock = math.nan
        self.difference = 0.0
        """How far the clock of the stamps lies behind that of the states, where that matters [s]."""

    def __bool__(self) -> bool:
        return bool(self._kept)

    def add(
        self,
        arrival: float,
        stamp: float | None,
        command: Command,
        states_behind: float | None = None,
        timeout: float = math.inf,
        now: float | None = None,
    ) -> bool:
        """Take in a command; one whose stamp lies before that of the last begins anew.

        :param states_behind: how far stamps of states lie behind their arrivals [s], where that is known.
        :param timeout: a command that was older than this when it came is not taken [s].
        :param now: when it came by the clock of ``states_behind``, where that is not the one of ``arrival`` [s].
        :returns: whether it was taken.
        """
        if not math.isfinite(arrival if stamp is None else stamp):
            return False
        come = arrival if now is None else now
        if (
            stamp is not None
            and states_behind is not None
            and not self._in_time(arrival, come - stamp - states_behind, timeout)
        ):
            # Of long ago, or the first one after time jumped back, of which the states do not know yet.
            self._returned = _Kept(stamp, arrival, command, self._zero)
            return False
        if (
            self._returned is not None
            and stamp is not None
            and self._kept
            and stamp < (self._kept[-1].stamp or 0.0)
        ):
            self._kept.clear()
            self._kept.append(self._returned)
        self._returned = None
        with np.errstate(all="ignore"):
            rate = self._velocity(arrival, stamp, command)
        self._kept.append(_Kept(stamp, arrival, command, rate))
        return True

    def latest(self, now: float, timeout: float) -> Command | None:
        """The last command, if it arrived within ``timeout`` before ``now`` [s]."""
        if not self._kept or not now - self._kept[-1].arrival <= timeout:
            return None
        return self._kept[-1].command

    def before(self, stamp: float, arrival: float, timeout: float) -> tuple[Command | None, FloatArray]:
        """The last command before a state and its velocity; none if it is older than ``timeout`` [s]."""
        returned = self._returned
        if returned is not None and 0.0 < stamp - (returned.stamp or 0.0) <= timeout and not self.difference:
            return returned.command, returned.rate
        for kept in reversed(self._kept):
            by_arrival = kept.stamp is None or self.difference != 0.0
            age = arrival - kept.arrival if by_arrival else stamp - (kept.stamp or 0.0)
            if by_arrival or age > 0.0:
                if age <= timeout:
                    return kept.command, kept.rate
                break
        return None, self._zero

    def _in_time(self, arrival: float, behind: float, timeout: float) -> bool:
        """Whether a command is fresh, or old by a clock that differs: one that differs always alike."""
        if abs(behind) <= 0.5 * timeout:
            self._agreeing, self._clock, self.difference = 0, math.nan, 0.0
            return True
        before = self._kept[-1].arrival if self._kept else -math.inf
        alike = abs(behind - self._clock) <= CLOCK_JITTER and arrival > before
        self._agreeing = self._agreeing + 1 if alike else 0
        self._clock = behind
        if self._agreeing >= AGREEING_COMMANDS and abs(behind) <= LARGEST_CLOCK_DIFFERENCE:
            self.difference = behind
        return behind <= timeout or self.difference != 0.0

    def _velocity(self, arrival: float, stamp: float | None, command: Command) -> FloatArray:
        """Commanded velocity: as said, else the filtered slope of the goals."""
        slope = self._zero
        if self._kept:
            last_stamp, last_arrival, last, rate = self._kept[-1]
            before = last_arrival if last_stamp is None else last_stamp
            elapsed = (arrival if stamp is None else stamp) - before
            if elapsed < 0.0:
                self._kept.clear()
            elif elapsed == 0.0:
                slope = rate
            elif elapsed <= LONGEST_COMMAND_STEP:
                share = min(1.0, elapsed / COMMAND_FILTER)
                slope = rate + share * ((command.position - last.position) / elapsed - rate)
        said = np.where(np.isfinite(command.velocity), command.velocity, slope)
        return np.asarray(np.where(np.isfinite(said), said, 0.0))


class ControllerWishes:
    """Commands of a controller, and its goals where it tells them apart from the commands.

    From the first goal on, the goals inside commands no longer count.

    :param joints: number of joints n.
    :param timeout: age from which a command or goal no longer counts [s].
    """

    def __init__(self, joints: int, timeout: float) -> None:
        self._timeout = timeout
        self.commands, self.goals = Commands(joints), Commands(joints)
        self._nothing: FloatArray = np.full(joints, np.nan)

    def command(
        self,
        arrival: float,
        stamp: float | None,
        command: Command,
        states_behind: float | None,
        now: float | None,
    ) -> bool:
        """Take in a command (:meth:`Commands.add`); whether it counts."""
        return self.commands.add(arrival, stamp, command, states_behind, self._timeout, now)

    def goal(
        self,
        arrival: float,
        stamp: float | None,
        goal: Command,
        states_behind: float | None,
        now: float | None,
    ) -> bool:
        """Take in a goal; whether it counts."""
        return self.goals.add(arrival, stamp, goal, states_behind, self._timeout, now)

    def latest(self, now: float) -> Command | None:
        """The last command, if it is recent enough to be passed on at ``now`` [s]."""
        return self.commands.latest(now, self._timeout)

    def before(self, stamp: float, arrival: float) -> tuple[Command | None, FloatArray]:
        """Command and velocity of its goal that count for a state."""
        command, rate = self.commands.before(stamp, arrival, self._timeout)
        if not self.goals:
            return command, rate
        goal, rate = self.goals.before(stamp, arrival, self._timeout)
        effort = self._nothing if command is None else command.effort
        if goal is None:
            return (None if command is None else Command(self._nothing, self._nothing, effort)), rate
        return Command(goal.position, goal.velocity, effort), rate

    @property
    def notice(self) -> str | None:
        """Which clock differs from that of the states, and by how much."""
        for what, commands in (("goals", self.goals), ("commands", self.commands)):
            if commands.difference:
                side = "behind" if commands.difference > 0.0 else "ahead of"
                return (
                    f"{what} are stamped {abs(commands.difference):.3f} s {side} the states: they count from their "
                    "arrival on; synchronise the clocks"
                )
        return None
