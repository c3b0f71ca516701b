"""Incoming messages of a live loop: joints in any order, and commands that apply according to their stamps."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.model.arrays import Array

Numbers = Sequence[float] | Array
"""Values of a message, may be empty."""

Order = npt.NDArray[np.intp]
"""Index of each of our joints in a message."""

KEPT_COMMANDS = 128
"""Number of commands kept, for states that arrive later than commands with similar stamps."""

KNOWN_ORDERS = 64
"""Number of lists of joint names whose order is cached."""

LONGEST_COMMAND_STEP = 0.05
"""Goals further apart in time than this are not differentiated [s]."""

COMMAND_FILTER = 0.02
"""Time constant of a commanded velocity that is the slope of the goals [s]."""


CLOCK_DRIFT = 2e-4
"""Largest drift between the clocks of different machines [s/s]."""

CLOCK_JITTER = 0.05
"""Commands whose delays agree within this are assumed to be stamped by one clock [s]."""

AGREEING_COMMANDS = 3
"""Number of agreeing commands after which a constant delay is attributed to a different clock."""

AGREEING_TIME = 0.1
"""Shortest time for which they agree [s]: commands that waited in a queue and come in one burst do not."""

LONGEST_TICK = 1.0
"""A simulated clock that advances by more in one step has jumped [s]."""

LARGEST_CLOCK_DIFFERENCE = 5.0
"""Largest difference between the clocks of commands and states that is made up for, give or take :data:`CLOCK_JITTER` [s]."""


class Command(NamedTuple):
    """Command of a controller, (n,) each, NaN where not given.

    Beside a goal position, an effort is the controller's own feed-forward torque (gravity, for example): in the mode
    ``goal_offset`` it is added to the offset. The goal itself must be the position that the joint should reach.
    """

    position: Array
    velocity: Array
    effort: Array


class JointOrder:
    """Index of each of our joints in messages that name joints."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._same: Order = np.arange(len(self.names))
        self._known: dict[tuple[str, ...], tuple[Order | None, str]] = {}

    def of(self, names: tuple[str, ...], *, strict: bool) -> tuple[Order | None, str]:
        """Index of each of our joints, or ``None`` and the reason; with ``strict``, unknown joints are an error."""
        entry = self._known.get(names)
        if entry is None:
            entry = self._find(names)
            if len(self._known) < KNOWN_ORDERS:
                self._known[names] = entry
        order, problem = entry
        if strict and order is not None and len(names) != len(self.names):
            unknown = sorted(set(names) - set(self.names))
            problem = f"unknown joint {', '.join(unknown)}: add it to joints, or set other_joints to ignore"
            return None, problem
        return order, problem

    def _find(self, names: tuple[str, ...]) -> tuple[Order | None, str]:
        doubled = sorted({name for name in self.names if names.count(name) > 1})
        missing = [name for name in self.names if name not in names]
        if doubled:
            return None, f"a message contains joint {', '.join(doubled)} twice"
        if missing:
            return None, f"joint {', '.join(missing)} missing"
        if names == self.names:
            return self._same, ""
        return np.array([names.index(name) for name in self.names]), ""

    def picked(self, values: Numbers, order: Order) -> Array:
        """:func:`picked`, faster if a message has the order of the joints."""
        if order is self._same and len(values) == len(order):
            return np.array(values, dtype=np.float64)
        return picked(values, order)


def picked(values: Numbers, order: Order) -> Array:
    """Values in the order of the joints, NaN for missing ones."""
    if not len(values):
        return np.full(len(order), np.nan)
    given: Array = np.asarray(values, dtype=np.float64)
    try:
        return given.take(order)
    except IndexError:
        missing = int(order.max()) + 1 - len(given)
        return np.asarray(np.concatenate([given, np.full(missing, np.nan)])[order])


class StreamClock:
    """Delay between the stamps of a stream and their arrivals, split into clock difference and lateness.

    The smallest delay since the start of the stream is taken as the clock difference; any excess is lateness.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget."""
        self.offset: float | None = None
        self._arrival = math.nan

    def lag(self, arrival: float, stamp: float) -> float:
        """Lateness of a message [s]; the clock difference may drift by :data:`CLOCK_DRIFT`."""
        behind = arrival - stamp
        if self.offset is None or not behind > self.offset:
            self.offset = behind
        else:
            elapsed = max(arrival - self._arrival, 0.0)
            self.offset = min(behind, self.offset + CLOCK_DRIFT * elapsed)
        self._arrival = arrival
        return behind - self.offset


class SimulatedTime:
    """Time on a simulated clock, interpolated between its ticks.

    A clock may tick rarely, as the 40 Hz of ``ros2 bag play --clock``, which at four times the pace are steps of 0.1 s; judged
    by its last tick, messages would seem late. Between two ticks time is assumed to pass as between the two before, at
    most for one tick, and it is never before the stamp of a state that has arrived.
    """

    def __init__(self) -> None:
        self._clock = self._seen = math.nan
        self._pace = self._step = 0.0
        self._newest = -math.inf

    def at(self, steady: float, clock: float, stamp: float = -math.inf) -> float:
        """The simulated time [s].

        :param steady: current time on a steady clock [s].
        :param clock: the last tick [s].
        :param stamp: stamp of the state that has just arrived [s].
        """
        if clock != self._clock:
            passed, elapsed = clock - self._clock, steady - self._seen
            if 0.0 < passed <= LONGEST_TICK and elapsed > 0.0:
                self._pace, self._step = passed / elapsed, passed
            else:  # a loop begins again, at the same pace
                self._newest = -math.inf
            self._clock, self._seen = clock, steady
        jumped = -math.inf < stamp < self._newest - LONGEST_TICK
        self._newest = stamp if jumped else max(stamp, self._newest)
        return max(clock + min(self._pace * (steady - self._seen), self._step), self._newest)


class _Kept(NamedTuple):
    stamp: float | None
    arrival: float
    command: Command
    rate: Array


class Applied(NamedTuple):
    """Command that applies to a state.

    :param command: ``None`` if there is none that is recent.
    :param rate: velocity of its goal, 0 where unknown (n,) [rad/s].
    :param age: time from the command to the state [s].
    """

    command: Command | None
    rate: Array
    age: float


class Commands:
    """The last commands of a controller.

    Commands with a stamp apply to states that are stamped after them, whenever they arrive, so that a recording
    gives the same pairs at any playback rate. Stamps of another clock than that of the states are corrected by the
    difference. Commands without a stamp apply from their arrival on; for a state that arrives later than usual, those count
    that had arrived when it was due.
    """

    def __init__(self, joints: int) -> None:
        self._zero: Array = np.zeros(joints)
        self._kept: deque[_Kept] = deque(maxlen=KEPT_COMMANDS)
        self._returned: _Kept | None = None
        self._agreeing, self._least, self._since = 0, math.nan, math.inf
        self._clock_at = math.nan
        self.difference = 0.0
        """Delay of the commands' clock relative to that of the states, 0 if negligible [s]."""
        self.beyond = 0.0
        """The same if it is too large to be made up for: such commands apply to no state [s]."""

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
        """Store a command; a stamp before that of the last command restarts the sequence.

        :param states_behind: delay from the stamps of states to their arrivals [s], if known.
        :param timeout: commands that arrive older than this are rejected [s].
        :param now: arrival time on the clock of ``states_behind``, if that differs from ``arrival`` [s].
        :returns: whether it was accepted.
        """
        if not math.isfinite(arrival if stamp is None else stamp):
            return False
        come = arrival if now is None else now
        if (
            stamp is not None
            and states_behind is not None
            and not self._in_time(arrival, come - stamp - states_behind, timeout, now is not None)
        ):
            if now is None or (self._kept and stamp < (self._kept[-1].stamp or 0.0)):
                # An old command, or the first one after a backward jump of time that the states have not shown yet.
                self._returned = _Kept(stamp, arrival, command, self._zero)
                return False
            arrival = (
                -math.inf
            )  # simulated time went on during a pause: it counts for the law, but is not passed on
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

    def before(self, stamp: float, arrival: float, timeout: float, late: float = 0.0) -> Applied:
        """The last command before a state, its velocity and its age; none if it is older than ``timeout`` [s].

        :param late: how much later than usual the state arrived [s].
        """
        returned = self._returned
        if returned is not None and not self.difference:
            age = stamp - (returned.stamp or 0.0)
            if 0.0 < age <= timeout:
                return Applied(returned.command, returned.rate, age)
        for kept in reversed(self._kept):
            age = arrival - late - kept.arrival
            if kept.stamp is not None:
                age = stamp - kept.stamp - self.difference
            elif age < 0.0 and kept is self._kept[0]:
                age = 0.0
            if age > 0.0 or (kept.stamp is None and age == 0.0):
                if age <= timeout:
                    return Applied(kept.command, kept.rate, age)
                break
        return Applied(None, self._zero, 0.0)

    def _in_time(self, arrival: float, behind: float, timeout: float, simulated: bool) -> bool:
        """Whether a command is recent, or only appears old because its clock differs by a constant.

        The difference is the shortest delay of commands that agree, and may drift by :data:`CLOCK_DRIFT`.
        In simulated time there is one clock, and a delay is the pause of a process.
        """
        if simulated:
            return behind <= timeout
        if abs(behind) <= 0.5 * timeout:
            self._agreeing, self._least, self.difference, self.beyond = 0, math.nan, 0.0, 0.0
            return True
        before = self._kept[-1].arrival if self._kept else -math.inf
        alike = abs(behind - self._least) <= CLOCK_JITTER and arrival > before
        drifted = self._least + CLOCK_DRIFT * (arrival - self._clock_at)
        self._agreeing = self._agreeing + 1 if alike else 0
        self._least = min(behind, drifted) if alike else behind
        self._since = self._since if alike else arrival
        self._clock_at = arrival
        if self._agreeing >= AGREEING_COMMANDS and arrival - self._since >= AGREEING_TIME:
            possible = abs(behind) <= LARGEST_CLOCK_DIFFERENCE + CLOCK_JITTER
            self.difference, self.beyond = (self._least, 0.0) if possible else (0.0, self._least)
        return behind <= timeout or self.difference != 0.0

    def _velocity(self, arrival: float, stamp: float | None, command: Command) -> Array:
        """Commanded velocity: as given, else the filtered slope of the goals."""
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
        velocity = np.where(np.isfinite(command.velocity), command.velocity, slope)
        return np.asarray(np.where(np.isfinite(velocity), velocity, 0.0))


class ControllerWishes:
    """Commands of a controller, and its goals if it publishes them separately.

    After the first separate goal, goals inside commands are ignored.

    :param timeout: age above which a command or goal is ignored [s].
    """

    def __init__(self, joints: int, timeout: float) -> None:
        self._timeout = timeout
        self.commands, self.goals = Commands(joints), Commands(joints)
        self._nothing: Array = np.full(joints, np.nan)

    def command(
        self,
        arrival: float,
        stamp: float | None,
        command: Command,
        states_behind: float | None,
        now: float | None,
    ) -> bool:
        """Store a command (:meth:`Commands.add`); returns whether it was accepted."""
        return self.commands.add(arrival, stamp, command, states_behind, self._timeout, now)

    def goal(
        self,
        arrival: float,
        stamp: float | None,
        goal: Command,
        states_behind: float | None,
        now: float | None,
    ) -> bool:
        """Store a goal; returns whether it was accepted."""
        return self.goals.add(arrival, stamp, goal, states_behind, self._timeout, now)

    def latest(self, now: float) -> Command | None:
        """The last command, if it is recent enough to be passed on at ``now`` [s]."""
        return self.commands.latest(now, self._timeout)

    def before(self, stamp: float, arrival: float, late: float = 0.0) -> Applied:
        """Command for a state, with the velocity and the age of its goal."""
        applied = self.commands.before(stamp, arrival, self._timeout, late)
        if not self.goals:
            return applied
        goal, rate, age = self.goals.before(stamp, arrival, self._timeout, late)
        effort = self._nothing if applied.command is None else applied.command.effort
        if goal is not None:
            return Applied(Command(goal.position, goal.velocity, effort), rate, age)
        if applied.command is None:
            return Applied(None, rate, age)
        return Applied(Command(self._nothing, self._nothing, effort), rate, age)

    @property
    def notice(self) -> str | None:
        """Warning about a clock that differs from that of the states, with the difference."""
        for what, commands in (("goals", self.goals), ("commands", self.commands)):
            difference = commands.difference or commands.beyond
            if not difference:
                continue
            apart = f"time stamps of {what} are {abs(difference):.3f} s {'behind' if difference > 0.0 else 'ahead of'} those of the states"
            if commands.difference:
                return f"{apart}, which is corrected: synchronise the clocks"
            return f"{apart}, more than the {LARGEST_CLOCK_DIFFERENCE:g} s that can be corrected, so they are ignored: synchronise the clocks"
        return None
