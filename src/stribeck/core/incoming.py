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
    given = np.asarray(values, dtype=np.float64)
    try:
        return np.asarray(given.take(order))
    except IndexError:
        missing = int(order.max()) + 1 - len(given)
        return np.asarray(np.concatenate([given, np.full(missing, np.nan)])[order])


class Commands:
    """The last commands of a controller.

    Those with a stamp count for the states that are stamped after them, however close to them they
    arrive; so a recording played at any rate pairs them alike. Those without count from their arrival on.
    """

    def __init__(self, joints: int) -> None:
        self._zero: FloatArray = np.zeros(joints)
        self._kept: deque[tuple[float | None, Command, FloatArray]] = deque(maxlen=KEPT_COMMANDS)
        self._arrival = -math.inf

    def add(self, arrival: float, stamp: float | None, command: Command) -> None:
        """Take in a command; one whose stamp lies before that of the last begins anew."""
        if not math.isfinite(arrival if stamp is None else stamp):
            return
        with np.errstate(all="ignore"):
            rate = self._velocity(arrival, stamp, command)
        self._kept.append((stamp, command, rate))
        self._arrival = arrival

    def latest(self, now: float, timeout: float) -> Command | None:
        """The last command, if it arrived within ``timeout`` before ``now`` [s]."""
        if not self._kept or not now - self._arrival <= timeout:
            return None
        return self._kept[-1][1]

    def before(self, stamp: float, arrival: float, timeout: float) -> tuple[Command | None, FloatArray]:
        """The last command before a state and its velocity; none if it is older than ``timeout`` [s]."""
        for given, command, rate in reversed(self._kept):
            age = arrival - self._arrival if given is None else stamp - given
            if given is None or age > 0.0:
                if age <= timeout:
                    return command, rate
                break
        return None, self._zero

    def _velocity(self, arrival: float, stamp: float | None, command: Command) -> FloatArray:
        """Commanded velocity: as said, else the filtered slope of the goals."""
        slope = self._zero
        if self._kept:
            last_stamp, last, rate = self._kept[-1]
            before = self._arrival if last_stamp is None else last_stamp
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
