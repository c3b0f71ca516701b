"""Admission of measured states: on time, in order, of the expected joints, finite and plausible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stribeck.live.direction.motion import SLOPE_TIME
from stribeck.live.settings import Settings
from stribeck.live.states.doubt import BridgedError, DoubtError, possible
from stribeck.live.states.incoming import JointOrder, Order, StreamClock
from stribeck.live.states.merging import MergedState
from stribeck.live.states.plausibility import Plausibility
from stribeck.model.arrays import Array, Mask

LONGEST_STEP = 0.05
"""Upper bound of the time step with which the friction law computes [s]."""


JUMPED_BACK = "time jumped back"
"""Why a sequence starts anew where a simulator or a bag does."""


class Place(NamedTuple):
    """How a state follows the one before it.

    :param order: position of each joint in the message.
    :param before: stamp of the previous state [s], ``None`` for the first one.
    :param gap: why the sequence starts anew with this state, ``None`` if it does not.
    """

    order: Order
    before: float | None
    gap: str | None


class StateAdmission:
    """Checks each state of n joints against the previous ones; ``names`` gives the order of all arrays."""

    def __init__(self, names: Sequence[str], settings: Settings, plausibility: Plausibility) -> None:
        self.order = JointOrder(names)
        self.clock = StreamClock()
        self.stamp: float | None = None
        """Stamp of the last accepted state [s]."""
        self.late = 0.0
        """How much later than usual the last state arrived [s]."""
        self._settings, self._plausibility = settings, plausibility
        self.frozen: str | None = None
        """Why single joints are not trusted in the last state, ``None`` if all are."""
        self._bridged: str | None = None
        self._zero: Array = np.zeros(len(names))
        self.forget_slope()

    def restart(self) -> None:
        """Forget all states."""
        self.stamp = None
        self.clock.restart()
        self._plausibility.restart()

    def forget_slope(self) -> None:
        """Restart the estimate of velocities from the slope of positions."""
        self._slope = self._zero
        self._last_position: Array | None = None

    @property
    def frozen_joints(self) -> Mask:
        """Joints whose position stands still at a nonzero velocity, if :attr:`frozen` says that there are any."""
        return self._plausibility.late

    def bridged(self, reason: str) -> None:
        """Remember why a state was skipped."""
        self._bridged = reason

    def doubted(self, stamp: float) -> None:
        """Skip a rejected state, but remember its stamp as that of the last state.

        A frozen position keeps its history, so that it is not trusted again until it or its velocity changes.
        """
        if math.isfinite(stamp) and stamp != self.stamp:
            self.stamp = stamp
            self._plausibility.restart()

    def place(self, now: float, state: MergedState) -> Place:
        """Check how a state follows the previous one.

        :param now: current time on the clock of the stamps [s].
        :raises DoubtError: if the joints are not the expected ones, or the stamp is not a number.
        :raises BridgedError: if it is late, a duplicate, or older than the last one.
        """
        stamp, before, timeout = state.stamp, self.stamp, self._settings.timing.state_timeout
        if math.isfinite(stamp):
            if before is not None and stamp < before - timeout:
                self.clock.restart()  # time jumped back
            self.late = self.clock.lag(now, stamp)
            if self.late > self._settings.timing.state_lag:
                raise BridgedError(f"states arrive with a delay of {self.late:.2f} s")
        order, problem = self.order.of(tuple(state.names), strict=self._settings.other_joints == "refuse")
        if order is None:
            raise DoubtError(problem)
        if not math.isfinite(stamp):
            raise DoubtError("a time stamp is not a number")
        if before is None:
            return Place(order, None, None)
        if stamp == before:
            raise BridgedError("time does not advance: a state was received twice")
        if before - timeout < stamp < before:
            raise BridgedError("a state was received after a later one")
        if 0.0 < stamp - before <= timeout:
            return Place(order, before, None)
        gap = JUMPED_BACK
        if stamp > before:
            gap = self._bridged or f"no states for {1e3 * (stamp - before):.0f} ms"
        self._plausibility.restart()
        return Place(order, None, gap)

    def measured(self, state: MergedState, place: Place) -> tuple[Array, Array, Array, float]:
        """Positions, velocities and efforts in the order of the joints, and the time since the last state [s].

        A position that stands still at a nonzero velocity concerns its joint alone (:attr:`frozen`, :attr:`frozen_joints`),
        unless no position changes any more: then the whole state may be an old one.

        :raises DoubtError: for values that are not numbers or impossibly large, or positions of all joints that stand still while a velocity does not.
        :raises BridgedError: for a jump; merged states are not checked for jumps.
        """
        order, before = place.order, place.before
        elapsed = 0.0 if before is None else state.stamp - before
        dt = min(elapsed, LONGEST_STEP)
        picked = self.order.picked
        at, speed, effort = (
            picked(state.position, order),
            picked(state.velocity, order),
            picked(state.effort, order),
        )
        has_velocity = len(state.velocity) > 0
        if not (possible(at) and (not has_velocity or possible(speed))):
            raise DoubtError("position or velocity is not a number, or is impossibly large")
        if state.merged:
            self._plausibility.restart()
        elif before is not None and (jump := self._plausibility.jump(at, speed, elapsed)) is not None:
            raise BridgedError(jump)
        self.stamp, self._bridged, self.frozen = state.stamp, None, None
        if not has_velocity:
            speed = self._slope_of(at, dt)
        if not state.merged and (dt > 0.0 or before is None):
            frozen = self._plausibility.frozen(at, speed, dt)
            if frozen is not None and has_velocity:
                if self._plausibility.stale:
                    raise DoubtError(frozen)
                self.frozen = frozen
        return at, speed, effort, dt

    def _slope_of(self, at: Array, dt: float) -> Array:
        if self._last_position is not None and dt > 0.0:
            share = min(1.0, dt / SLOPE_TIME)
            self._slope = self._slope + share * ((at - self._last_position) / dt - self._slope)
        self._last_position = at
        return self._slope
