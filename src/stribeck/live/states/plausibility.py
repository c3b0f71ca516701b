"""Plausibility of measured states: detects frozen positions, and jumps that no joint can make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stribeck.model.arrays import Array, Mask

FROZEN_TIME = 0.05
"""A position that is constant for this long at nonzero velocity is frozen [s]..."""

FROZEN_STEPS = 4.0
"""... if by its velocity it should have moved by at least this many position steps..."""

ONE_WAY = 0.5
"""... and its net motion is at least this fraction of the distance travelled; otherwise it is noise..."""

STOPPING_TIME = 0.07
r"""... and exceeds what a joint that stops dead still reports: a velocity v filtered with a time constant T and delayed by
d goes on by :math:`v (T + d)`; velocities with :math:`T + d` up to this are provided for [s]."""

COARSEST_STEP = 0.003
"""Assumed size of a position step until one has been observed [rad]."""

LARGEST_MISFIT = 0.05
"""Largest difference between a change of position and the velocity from one state to the next [rad]."""


class Plausibility:
    """Checks the states of n joints.

    :param resolution: known position steps, (n,) [rad].
    :param moving: velocity above which a joint moves, (n,) [rad/s].
    """

    def __init__(self, names: Sequence[str], resolution: Array, moving: Array) -> None:
        self._names = tuple(names)
        self._step = resolution
        self._moving = moving
        self.restart()

    def restart(self) -> None:
        """Forget the states so far but keep the position steps."""
        n = len(self._names)
        self._zero: Array = np.zeros(n)
        self._at: Array | None = None
        self._speed: Array = np.zeros(n)
        self._still: Array = np.zeros(n)
        self._missed: Array = np.zeros(n)
        self._way: Array = np.zeros(n)
        self._seen: Array = np.full(n, COARSEST_STEP)
        self._moved_at: Array = self._zero
        """Velocity at the last change of each position [rad/s]."""
        self._nobody: Mask = np.zeros(n, dtype=np.bool_)
        self.late: Mask = self._nobody
        """Joints whose position is frozen."""

    def jump(self, at: Array, speed: Array, dt: float) -> str | None:
        """Reason why a state cannot follow the previous one, ``None`` if it can; nothing is stored.

        :param at: positions (n,) [rad].
        :param speed: measured velocities, NaN if missing (n,) [rad/s].
        :param dt: time since the last accepted state [s].
        """
        if self._at is None:
            return None
        change = at - self._at
        reach = LARGEST_MISFIT * LARGEST_MISFIT
        if change.dot(change) <= reach and not speed.dot(speed) * dt * dt > reach:
            return None  # the usual case: even the sum over the joints is small
        if np.abs(change).max() <= LARGEST_MISFIT and not np.abs(speed).max() * dt > LARGEST_MISFIT:
            return None
        measured = np.where(np.isfinite(speed), speed, self._speed)
        mean, larger = 0.5 * (measured + self._speed), np.maximum(np.abs(measured), np.abs(self._speed))
        misfit = np.abs(change - mean * dt)
        allowed = LARGEST_MISFIT + 8.0 * self._step + larger * dt
        if not (misfit > allowed).any():
            return None
        k = int(np.argmax(misfit - allowed))
        return f"{self._names[k]} jumps by {at[k] - self._at[k]:.3g} rad in {1e3 * dt:.0f} ms"

    @property
    def stale(self) -> bool:
        """Whether no position has changed for :data:`FROZEN_TIME`: then all of the state may be an old one."""
        return bool((self._still >= FROZEN_TIME).all())

    def frozen(self, at: Array, speed: Array, dt: float) -> str | None:
        """Update with a state; returns which joint's position is frozen, ``None`` if none is.

        Only a joint whose present velocity says that it moves can be frozen; what it should have moved until then is
        forgotten within :data:`FROZEN_TIME` of rest.
        """
        before, self._at, self._speed = self._at, at, speed
        self.late = self._nobody
        if before is None:
            self._moved_at = speed
            return None
        change = at - before
        if 0.0 not in change.tolist():
            self._still = self._missed = self._way = self._zero
            self._moved_at = speed
            return None
        change = np.abs(change)
        stands = change == 0.0
        self._seen = np.where(stands, self._seen, np.minimum(self._seen, change))
        self._moved_at = np.where(stands, self._moved_at, speed)
        moves = np.abs(speed) > 0.5 * self._moving
        kept = np.where(moves, 1.0, 1.0 - min(dt / FROZEN_TIME, 1.0))
        missed = np.where(moves, speed * dt, 0.0)
        self._still = np.where(stands, self._still + dt, 0.0)
        self._missed = np.where(stands, kept * self._missed + missed, 0.0)
        self._way = np.where(stands, kept * self._way + np.abs(missed), 0.0)
        if max(self._still.tolist()) < FROZEN_TIME:
            return None
        least = np.maximum(FROZEN_STEPS * np.maximum(self._step, self._seen), ONE_WAY * self._way)
        least = np.maximum(least, STOPPING_TIME * np.abs(self._moved_at))
        late = (self._still >= FROZEN_TIME) & moves & (np.abs(self._missed) > least)
        if not late.any():
            return None
        self.late = late
        k = int(np.argmax(late))
        return f"the position of {self._names[k]} has been constant for {1e3 * self._still[k]:.0f} ms, although its velocity is {speed[k]:.3g} rad/s"
