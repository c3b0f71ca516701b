r"""Energy that compensation may add to joints whose goal shows no intention of its own, and the speed it may drive them to.

A joint with friction :math:`B(v)` loses energy at every speed as long as :math:`\tau_{ff} \le B`. A fraction
:math:`\tau_c` of the identified friction is guaranteed. Torque beyond it draws energy from a tank,

.. math:: \dot E = -(|\tau_{ff}| - \tau_c)\,|v|,\quad E \le E_0.

As the tank empties, the torque fades to the guaranteed part, with which every joint comes to rest. What compensation
adds beyond what friction takes is therefore :math:`E_0` at most until the tank is refilled: at standstill for a joint
without a goal (it did not run away), or when a joint lags behind its goal (a goal that repeats the measured position
never is ahead of it). This is the passivity observer of Hannaford and Ryu, "Time-Domain Passivity Control of Haptic
Interfaces", 2002, doi:10.1109/70.988969, with the guaranteed friction in place of a measured force.

Where friction is even less than guaranteed, :class:`SpeedLimit` ends compensation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stribeck.live.direction.travel import SMOOTHING
from stribeck.live.formulas import Compiler, as_written, compiled_by
from stribeck.model.arrays import Array, Mask
from stribeck.model.namespace import array_namespace

STROKE = 1.5
r"""Capacity :math:`E_0` of the tank: the work of the friction at rest over this distance [rad]."""

FADING = 0.3
"""Fill level below which the torque fades, as a fraction of the capacity."""

LIMIT = 2.0
r"""Kinetic energy at which compensation ends, as a multiple of :math:`E_0`."""

SLOWEST, FASTEST = 2.0, 10.0
"""Bounds of the speed at which it ends, in the robot's coordinates [rad/s]."""


class EnergyTank:
    """Energy tanks of n joints with friction ``level`` at rest, (n,) [N m]."""

    def __init__(self, level: Array, compiler: Compiler = as_written) -> None:
        self._left, self._reserved = compiled_by(compiler, _left), compiled_by(compiler, _reserved)
        self.capacity = STROKE * level
        self._fading = FADING * self.capacity
        self.filled: Array = np.zeros_like(level)
        """Work of the friction that has been learnt from motion under goals in this run, at most the capacity [J]."""
        self.restart()

    def restart(self) -> None:
        """Refill the energy tanks."""
        self.content: Array = self.capacity.copy()
        self.reserve: Array = np.zeros_like(self.capacity)
        """Largest energy that torques on their way to the motor have drawn since the tank was refilled [J]."""

    def forget(self) -> None:
        """Scales have been replaced: nothing is known of them yet."""
        self.filled = np.zeros_like(self.filled)

    def fill(self, work: Array) -> None:
        """Account for friction that has been learnt from motion under goals, by its work [J]."""
        self.filled = np.minimum(self.filled + work, self.capacity)

    def update(
        self,
        torque: Array,
        certain: Array,
        velocity: Array,
        refilled: Mask,
        dt: float,
        delay: float | Array = 0.0,
    ) -> None:
        """Update with the energy added during a step.

        :param torque: applied friction torque [N m].
        :param certain: guaranteed friction [N m].
        :param velocity: measured velocity [rad/s].
        :param refilled: joints whose tank is refilled.
        :param delay: time for which a torque still acts after a state that would have ended it [s].
        """
        self.content = self._left(self.content, torque, certain, velocity, refilled, self.capacity, dt)
        self.reserve = self._reserved(self.reserve, torque, certain, velocity, refilled, delay)

    @property
    def fades(self) -> bool:
        """Whether :attr:`share` is less than 1 for any joint."""
        return True in (self.content - self.reserve < self._fading).tolist()

    @property
    def share(self) -> Array:
        """Remaining fraction of the torque beyond the guaranteed friction, in [0, 1], (n,)."""
        return self._share_of(self.content)

    @property
    def free_share(self) -> Array:
        """The same of joints without a goal: nothing until friction has been learnt in this run, in [0, 1], (n,)."""
        return self._share_of(np.minimum(self.content, self.filled))

    def _share_of(self, content: Array) -> Array:
        return np.minimum(np.maximum((content - self.reserve) / self._fading, 0.0), 1.0)


def _left(
    content: Any, torque: Any, certain: Any, velocity: Any, refilled: Any, capacity: Any, dt: Any
) -> Any:
    """Content of the tanks after a step [J]."""
    xp = array_namespace(content, torque, velocity)
    left = xp.maximum(content - _drawn(torque, certain, velocity) * dt, 0.0)
    return xp.where(refilled, capacity, left)


def _reserved(reserve: Any, torque: Any, certain: Any, velocity: Any, refilled: Any, delay: Any) -> Any:
    """What the tanks must still hold for the torques that are on their way [J]."""
    xp = array_namespace(reserve, torque, velocity)
    return xp.where(refilled, 0.0, xp.maximum(reserve, _drawn(torque, certain, velocity) * delay))


def _drawn(torque: Any, certain: Any, velocity: Any) -> Any:
    """Power beyond that which the guaranteed friction takes [W]."""
    xp = array_namespace(torque, velocity)
    return xp.maximum(xp.maximum(torque * velocity, 0.0) - xp.abs(certain * velocity), 0.0)


class SpeedLimit:
    r"""Ends the compensation of joints that it drives, which friction above the guaranteed fraction excludes.

    It ends at the speed :math:`v_b = \sqrt{2 \cdot 2 E_0/J}`, from :data:`SLOWEST` to :data:`FASTEST`, if compensation has put in the work
    :math:`\frac{3}{8} J v_b^2` since the joint was slower than :math:`v_b/2`: as much as that acceleration takes at least. A
    joint that a hand drives fast is therefore left alone for a while.

    :param capacity: :math:`E_0` (n,) [J].
    :param inertia: J (n,) [kg m²]; infinite where unknown: then :data:`FASTEST` alone decides.
    :param ratio: turns in the coordinates of the parameter files per turn of the joint (n,) [1].
    """

    def __init__(
        self, capacity: Array, inertia: Array, ratio: Array, compiler: Compiler = as_written
    ) -> None:
        self._smoothed, self._put_in = compiled_by(compiler, _smoothed), compiled_by(compiler, _put_in)
        self._energy = LIMIT * capacity
        self._slowest, self._fastest = (SLOWEST * ratio) ** 2, (FASTEST * ratio) ** 2
        self.ended: Mask = np.zeros(len(capacity), dtype=np.bool_)
        """Joints whose compensation has ended."""
        self.set_inertia(inertia)
        self.restart()

    @property
    def bound(self) -> Array:
        r""":math:`v_b` (n,) [rad/s]."""
        return np.asarray(np.sqrt(self._squared))

    def reason(self, joint: str, bound: float) -> str:
        """Why the compensation of a joint has ended, what may be the cause, and what to do.

        :param bound: :math:`v_b` in the robot's coordinates [rad/s].
        """
        return (
            f"{joint} moves faster than {bound:.3g} rad/s without a goal, in the direction of its friction torque: either a hand or a controller "
            "whose goals are not received moves it, or its friction is less than the guaranteed fraction of the identified one and the compensation drives it. "
            "Its torque is off until compensation is enabled again, or a goal is ahead of it: set goal_topic if a controller moves it, else "
            "identify it again or lower certain_fraction"
        )

    def set_inertia(self, inertia: Array) -> None:
        """The inertia from now on, (n,) [kg m²]."""
        known = np.isfinite(inertia)
        allowed = np.minimum(np.maximum(2.0 * self._energy / inertia, self._slowest), self._fastest)
        self._squared = np.where(known, allowed, self._fastest)
        self._least = np.where(known, 0.375 * inertia * self._squared, 0.0)
        self._quarter = 0.25 * self._squared
        self._slow = float(self._quarter.min())

    def restart(self) -> None:
        """Forget the motion; what has ended stays so."""
        self._speed: Array = np.zeros_like(self._energy)
        self._work: Array = np.zeros_like(self._energy)
        self._counting = False

    def update(
        self, torque: Array, velocity: Array, led: Mask | None, dt: float, smoothed: Array | None = None
    ) -> None:
        """Update with a step.

        :param torque: applied friction torque [N m].
        :param velocity: measured velocity [rad/s].
        :param led: joints whose goal is known to lead them: they are not driven, and may begin again; ``None`` if none is.
        :param smoothed: velocity smoothed with :data:`SMOOTHING`, if it is known [rad/s].
        """
        if smoothed is None:
            smoothed = self._smoothed(self._speed, velocity, min(1.0, dt / SMOOTHING))
        self._speed = speed = smoothed
        if led is not None and True in self.ended.tolist():
            self.ended = self.ended & ~led
        if not self._counting and speed.dot(speed) < self._slow:
            return
        squared = speed * speed
        if not self._counting and max(squared.tolist()) < self._slow:
            return
        fast = squared >= self._quarter
        if led is not None:
            fast &= ~led
        self._work = self._put_in(self._work, torque, velocity, fast, dt)
        self._counting = True in fast.tolist()
        driven = squared >= self._squared
        if True in driven.tolist():
            self.ended = self.ended | (fast & driven & (self._work >= self._least))


def _smoothed(value: Any, x: Any, share: Any) -> Any:
    return value + share * (x - value)


def _put_in(work: Any, torque: Any, velocity: Any, fast: Any, dt: Any) -> Any:
    """Work of the compensation since a joint became fast [J]."""
    xp = array_namespace(work, torque, velocity)
    return xp.where(fast, work + xp.maximum(torque * velocity, 0.0) * dt, 0.0)
