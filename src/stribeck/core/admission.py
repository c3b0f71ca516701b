"""Which measured states count: in time, in order, of our joints, finite and plausible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.core.direction import SLOPE_TIME
from stribeck.core.doubt import BridgedError, DoubtError, finite
from stribeck.core.incoming import JointOrder, Order, StreamClock, picked
from stribeck.core.merging import MergedState
from stribeck.core.plausibility import Plausibility
from stribeck.core.settings import Settings

FloatArray = npt.NDArray[np.float64]

LONGEST_STEP = 0.05
"""Longest time that the law sees pass between two states [s]."""


class Place(NamedTuple):
    """Where a state stands among the others.

    :param order: of the joints in it.
    :param before: stamp of the state before it, ``None`` for a first one [s].
    :param gap: why it is a first one again.
    """

    order: Order
    before: float | None
    gap: str | None


class StateAdmission:
    """Checks the states of n joints against the ones before.

    :param names: of the joints, in the order of all arrays.
    :param plausibility: of positions and velocities.
    """

    def __init__(self, names: Sequence[str], settings: Settings, plausibility: Plausibility) -> None:
        self.order = JointOrder(names)
        self.clock = StreamClock()
        self.stamp: float | None = None
        """Of the last state that was taken [s]."""
        self._settings, self._plausibility = settings, plausibility
        self._bridged: str | None = None
        self._zero: FloatArray = np.zeros(len(names))
        self.forget_slope()

    def restart(self) -> None:
        """Forget all states."""
        self.stamp = None
        self.clock.restart()
        self._plausibility.restart()

    def forget_slope(self) -> None:
        """Velocities that are the slope of positions begin anew."""
        self._slope = self._zero
        self._last_position: FloatArray | None = None

    def bridged(self, reason: str) -> None:
        """A state was skipped for this reason."""
        self._bridged = reason

    def doubted(self, stamp: float) -> None:
        """A state was doubted: its time has passed, the next one follows after it."""
        if math.isfinite(stamp) and stamp != self.stamp:
            self.stamp = stamp
            self._plausibility.restart()

    def place(self, now: float, state: MergedState) -> Place:
        """Where a state stands.

        :param now: by the clock of the stamps [s].
        :raises DoubtError: if the joints are not ours, or the stamp is none.
        :raises BridgedError: if it came late, twice, or after a later one.
        """
        stamp, before, timeout = state.stamp, self.stamp, self._settings.state_timeout
        if math.isfinite(stamp):
            if before is not None and stamp < before - timeout:
                self.clock.restart()  # time jumped back
            lag = self.clock.lag(now, stamp)
            if lag > self._settings.state_lag:
                raise BridgedError(f"states arrive {lag:.2f} s late")
        order, problem = self.order.of(tuple(state.names), strict=self._settings.other_joints == "refuse")
        if order is None:
            raise DoubtError(problem)
        if not math.isfinite(stamp):
            raise DoubtError("a stamp is not a number")
        if before is None:
            return Place(order, None, None)
        if stamp == before:
            raise BridgedError("time stands still: a state came twice")
        if before - timeout < stamp < before:
            raise BridgedError("a state came after a later one")
        if 0.0 < stamp - before <= timeout:
            return Place(order, before, None)
        gap = "time jumped back"
        if stamp > before:
            gap = self._bridged or f"no states for {1e3 * (stamp - before):.0f} ms"
        self._plausibility.restart()
        return Place(order, None, gap)

    def measured(self, state: MergedState, place: Place) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Positions, velocities and efforts in the order of the joints, and the time since the last state [s].

        :raises DoubtError: if they are no numbers, or positions stand still although velocities move them.
        :raises BridgedError: for a jump. Where joints were measured at different times nothing tells one.
        """
        order, before = place.order, place.before
        elapsed = 0.0 if before is None else state.stamp - before
        dt = min(elapsed, LONGEST_STEP)
        at, speed, effort = (
            picked(state.position, order),
            picked(state.velocity, order),
            picked(state.effort, order),
        )
        told = len(state.velocity) > 0
        sound = math.isfinite(at.dot(speed)) if told else finite(at)  # finite products have finite factors
        if not (sound or (told and finite(at) and finite(speed))):
            raise DoubtError("position or velocity is not a number")
        if state.merged:
            self._plausibility.restart()
        elif before is not None and (jump := self._plausibility.jump(at, speed, elapsed)) is not None:
            raise BridgedError(jump)
        self.stamp, self._bridged = state.stamp, None
        if not told:
            speed = self._slope_of(at, dt)
        if not state.merged and (dt > 0.0 or before is None):
            frozen = self._plausibility.frozen(at, speed, dt)
            if frozen is not None and told:
                raise DoubtError(frozen)
        return at, speed, effort, dt

    def _slope_of(self, at: FloatArray, dt: float) -> FloatArray:
        if self._last_position is not None and dt > 0.0:
            share = min(1.0, dt / SLOPE_TIME)
            self._slope = self._slope + share * ((at - self._last_position) / dt - self._slope)
        self._last_position = at
        return self._slope
