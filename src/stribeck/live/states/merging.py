"""Merges joint states from several publishers, each of which reports some of our joints.

For example, the broadcasters of an arm and of a gripper publish on one topic at different rates. Merging depends only on
header stamps and on the order of the messages, so a recording gives the same states at any playback rate.

- A message with all of our joints is passed on unchanged.
- A message with none of them is skipped and counted.
- A message with some of them updates these. Once every joint has been received, it makes a state of all joints with the
  newest stamp, if that is newer than the last state. A joint of a slower publisher keeps its last values for at most
  ``timeout``; after that there is no valid state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.live.direction.motion import SLOPE_TIME
from stribeck.live.states.incoming import KNOWN_ORDERS, Numbers, picked
from stribeck.model.arrays import Array


class MergedState(NamedTuple):
    """A state of all joints as in a message: positions [rad], velocities [rad/s], efforts [N m].

    :param merged: whether some values come from earlier messages and are older than the stamp.
    """

    stamp: float
    names: Sequence[str]
    position: Numbers
    velocity: Numbers
    effort: Numbers
    merged: bool = False


class _Part(NamedTuple):
    """Our joints in a list of names.

    :param ours: their indices among our joints.
    :param places: their indices in the message.
    :param problem: why such a message cannot be trusted, empty if it can.
    """

    ours: npt.NDArray[np.intp]
    places: npt.NDArray[np.intp]
    problem: str


class StateMerger:
    """Turns incoming joint state messages into states of all our joints.

    :param timeout: longest time without values of a joint [s].
    :param other_joints: whether a message with our joints may hold unknown ones.
    """

    def __init__(
        self, names: Sequence[str], timeout: float, other_joints: Literal["refuse", "ignore"]
    ) -> None:
        self.names = tuple(names)
        self.foreign = 0
        """Messages that held none of our joints."""
        self.merged = 0
        """Messages that held some of our joints."""
        self._timeout, self._strict = timeout, other_joints == "refuse"
        self._kinds: dict[tuple[str, ...], _Part | Literal["all", "none"]] = {}
        self._whole: MergedState | None = None
        self._position: Array
        self._velocity: Array
        self._effort: Array
        self._slopes: Array
        self._stamps: Array
        self._given: float
        self._forget()

    def take(
        self, stamp: float, names: Sequence[str], position: Numbers, velocity: Numbers, effort: Numbers
    ) -> MergedState | str | None:
        """A state of all joints, the reason why there is none, or ``None`` if there is nothing new."""
        key = tuple(names)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kind(key)
            if len(self._kinds) < KNOWN_ORDERS:
                self._kinds[key] = kind
        if kind == "all":
            self._whole = MergedState(stamp, key, position, velocity, effort)
            return self._whole
        if kind == "none":
            self.foreign += 1
            return None
        self.merged += 1
        return self._merge(stamp, kind, position, velocity, effort)

    def _kind(self, names: tuple[str, ...]) -> _Part | Literal["all", "none"]:
        ours = [k for k, name in enumerate(self.names) if name in names]
        if len(ours) == len(self.names):
            return "all"
        if not ours:
            return "none"
        doubled = [self.names[k] for k in ours if names.count(self.names[k]) > 1]
        unknown = sorted(set(names) - set(self.names))
        problem = ""
        if doubled:
            problem = f"a message contains joint {', '.join(sorted(doubled))} twice"
        elif unknown and self._strict:
            problem = f"unknown joint {', '.join(unknown)}: add it to joints, or set other_joints to ignore"
        places = [names.index(self.names[k]) for k in ours]
        return _Part(np.array(ours, dtype=np.intp), np.array(places, dtype=np.intp), problem)

    def _merge(
        self, stamp: float, part: _Part, position: Numbers, velocity: Numbers, effort: Numbers
    ) -> MergedState | str | None:
        if part.problem:
            return part.problem
        if not math.isfinite(stamp):
            return "a time stamp is not a number"
        self._begin_with_the_whole()
        before = self._stamps[part.ours]
        if (before == stamp).any():
            return "time does not advance: a state was received twice"
        jumped = bool((before > stamp).any())
        if jumped:
            self._forget()
            before = self._stamps[part.ours]
        at = picked(position, part.places)
        self._velocity[part.ours] = (
            picked(velocity, part.places) if len(velocity) else self._slope(part, at, stamp - before)
        )
        self._position[part.ours], self._effort[part.ours] = at, picked(effort, part.places)
        self._stamps[part.ours] = stamp
        if jumped:
            return "time jumped back"
        return self._state()

    def _state(self) -> MergedState | str | None:
        """State of all joints, if all have been received, recently, and something is newer than before."""
        newest = float(self._stamps.max())
        ages = newest - self._stamps
        for name, age in zip(self.names, ages.tolist(), strict=True):
            if age == math.inf:
                return f"joint {name} missing"
            if age > self._timeout:
                return f"joint {name}: no states for {1e3 * age:.0f} ms"
        if newest <= self._given:
            return None
        self._given = newest
        return MergedState(
            newest, self.names, self._position.copy(), self._velocity.copy(), self._effort.copy(), True
        )

    def _slope(self, part: _Part, at: Array, elapsed: Array) -> Array:
        """Filtered slope of the positions, for messages without velocities; begins at 0 after a gap or a NaN."""
        ours = part.ours
        share = np.minimum(1.0, elapsed / SLOPE_TIME)
        slope = self._slopes[ours] + share * ((at - self._position[ours]) / elapsed - self._slopes[ours])
        self._slopes[ours] = np.where((elapsed <= self._timeout) & np.isfinite(slope), slope, 0.0)
        return self._slopes[ours]

    def _begin_with_the_whole(self) -> None:
        """Take over the values of the last message that held all joints."""
        whole, self._whole = self._whole, None
        if whole is None or not math.isfinite(whole.stamp) or not whole.stamp > self._stamps.max():
            return
        order = np.array([whole.names.index(name) for name in self.names], dtype=np.intp)
        self._position, self._effort = picked(whole.position, order), picked(whole.effort, order)
        self._velocity = picked(whole.velocity, order)
        self._stamps[:] = self._given = whole.stamp

    def _forget(self) -> None:
        unknown = np.full(len(self.names), np.nan)
        self._position, self._velocity, self._effort = unknown.copy(), unknown.copy(), unknown.copy()
        self._slopes = np.zeros(len(self.names))
        self._stamps = np.full(len(self.names), -np.inf)
        self._given = -math.inf
