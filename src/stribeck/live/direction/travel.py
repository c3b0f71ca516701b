"""Recent motion of joints: smoothed velocity, its noise, and the distance from the last reversal."""

from __future__ import annotations

from typing import Any

import numpy as np

from stribeck.live.formulas import Compiler, as_written, compiled_by
from stribeck.model.arrays import Array
from stribeck.model.namespace import array_namespace

SMOOTHING = 0.03
"""Time constant of the smoothed velocity [s]."""

NOISE_TIME = 1.0
"""Time constant of the estimate of the velocity noise [s]."""


class Travel:
    """Recent motion of n joints, from measured positions and velocities."""

    def __init__(self, joints: int, compiler: Compiler = as_written) -> None:
        self._joints = joints
        self._step_of = compiled_by(compiler, _smallest)
        self._bends_of = compiled_by(compiler, _bends)
        self._smoothed = compiled_by(compiler, _smoothed)
        self._turns = compiled_by(compiler, _turns)
        self._furthest = compiled_by(compiler, _furthest)
        self.restart()

    def restart(self) -> None:
        """Reset the state."""
        self.velocity: Array = np.zeros(self._joints)
        """Smoothed velocity [rad/s]."""
        self.direction: Array = np.zeros(self._joints)
        """Direction of the motion since the last reversal: -1, 0 or 1."""
        self.step: Array = np.full(self._joints, np.inf)
        """Smallest nonzero velocity measured so far [rad/s]; large for quantised velocities."""
        self.bends: Array = np.zeros(self._joints)
        """Mean square of the second difference of the velocity [rad²/s²]."""
        self._before: tuple[Array, Array] | None = None
        self.extreme: Array = np.zeros(self._joints)
        """Furthest position in that direction since the last reversal [rad]."""
        self.since: Array = np.zeros(self._joints)
        """Time since the last reversal [s]."""
        self._position = self._turn = self.extreme
        self._begun = False

    def update(self, position: Array, velocity: Array, hysteresis: Any, dt: float) -> None:
        """Update with a state; backward motion by less than ``hysteresis`` [rad] is not a reversal."""
        self._position = position
        if not self._begun:
            self._turn, self.extreme, self.velocity, self._begun = position, position, velocity, True
            return
        self.step = self._step_of(self.step, velocity)
        if self._before is not None:
            self.bends = self._bends_of(self.bends, velocity, *self._before, min(1.0, dt / NOISE_TIME))
            self._before = velocity, self._before[0]
        else:
            self._before = velocity, velocity
        self.velocity = self._smoothed(self.velocity, velocity, min(1.0, dt / SMOOTHING))
        self.since = self.since + dt
        turns = self._turns(position, self.extreme, self.direction, hysteresis)
        if True in turns.tolist():
            self.since = np.where(turns, 0.0, self.since)
            self._turn = np.where(turns, self.extreme, self._turn)
            self.direction = np.where(turns, np.sign(position - self.extreme), self.direction)
        self.extreme = self._furthest(position, self.extreme, self.direction)

    @property
    def distance(self) -> Array:
        """Distance from the last reversal, 0 before any [rad]."""
        return np.asarray(np.abs(self._position - self._turn) * (self.direction != 0.0))

    @property
    def noise(self) -> Array:
        """Standard deviation of the velocity noise, from second differences [rad/s]."""
        return np.asarray(noise(self.bends))


def noise(bends: Any) -> Any:
    """Standard deviation of white noise from the mean square of its second differences."""
    return array_namespace(bends).sqrt(bends / 6.0)


def _smallest(step: Any, velocity: Any) -> Any:
    xp = array_namespace(step, velocity)
    size = xp.abs(velocity)
    return xp.where(size > 0.0, xp.minimum(step, size), step)


def _bends(bends: Any, velocity: Any, last: Any, earlier: Any, share: Any) -> Any:
    bend = velocity - 2.0 * last + earlier
    return bends + share * (bend * bend - bends)


def _smoothed(value: Any, x: Any, share: Any) -> Any:
    return value + share * (x - value)


def _turns(position: Any, extreme: Any, direction: Any, hysteresis: Any) -> Any:
    """Joints that reverse or start to move."""
    change = position - extreme
    begins = (direction == 0.0) & (array_namespace(change).abs(change) > hysteresis)
    return begins | (change * direction < -hysteresis)


def _furthest(position: Any, extreme: Any, direction: Any) -> Any:
    return array_namespace(position).where((position - extreme) * direction > 0.0, position, extreme)


def turned(share: Any, change: Any, length: Any) -> Any:
    r"""How far friction has reversed after a motion, in [-1, 1].

    :math:`z \to s + (z - s)\,e^{-|\Delta\theta|/\ell}`, :math:`s = sign(\Delta\theta)` (P. R. Dahl, "A Solid Friction Model", 1968).

    :param change: :math:`\Delta\theta` [rad].
    :param length: presliding length :math:`\ell` [rad].
    """
    xp = array_namespace(share, change)
    sign = xp.sign(change)
    return sign + (share - sign) * xp.exp(-xp.abs(change) / length)


class Turning:
    r"""How far the friction of n joints has reversed with their motion (:func:`turned`).

    Within the presliding length after a reversal, friction is a spring and dissipates almost nothing. In a closed cycle,
    a torque with a fraction g < 1 of this direction adds less energy than friction dissipates, by the factor g. A torque
    that follows only the sign of the velocity adds more, and the joint vibrates on that spring.
    """

    def __init__(self, joints: int, compiler: Compiler = as_written) -> None:
        self._joints = joints
        self._turned = compiled_by(compiler, _turned_to)
        self.restart()

    def restart(self) -> None:
        """Reset the state."""
        self.share: Array = np.zeros(self._joints)
        self._position: Array | None = None

    @property
    def begun(self) -> bool:
        """Whether there has been a state."""
        return self._position is not None

    def update(self, position: Array, motion: Array | None, length: Any) -> None:
        """Update with a state.

        :param motion: direction of motion, needed at the first state, because friction of a moving joint is developed.
        :param length: presliding length [rad].
        """
        if self._position is not None:
            self.share = self._turned(self.share, position, self._position, length)
        elif motion is not None:
            self.share = motion
        self._position = position


def _turned_to(share: Any, position: Any, before: Any, length: Any) -> Any:
    return turned(share, position - before, length)
