r"""Zero-torque mode: joints that bear their own weight and part of their friction, so that a hand guides them.

.. math::
    \tau = s_r\,(g(q) + \tau_h) + \tau_{ff} + \tau_b, \qquad
    \tau_h = \mathrm{clip}\bigl(K (a - q) - D \dot q,\ \pm h\bigr), \qquad
    \tau_b = -M_{jj}\,\omega_b\,\mathrm{sign}(\dot q)\,\max(|\dot q| - v_{max}, 0)

g is the gravity of the model, :math:`\tau_{ff}` the compensator's torque against friction without goals, and :math:`\tau_b` bounds the speed.
:math:`\tau_h` is an elasto-plastic hold: a spring and damper of the bandwidth :math:`\omega_h`, :math:`K = M_{jj}\omega_h^2, D = 2 M_{jj}\omega_h`, from an anchor a
that is dragged along when the torque reaches h. At the start h is the whole torque limit, which holds the joint where it is, and falls within
the ramp time to that of rest: :math:`h = s\,(\epsilon |g| + \tfrac{1}{10} b)`, with the error :math:`\epsilon` of gravity that it covers and the friction at rest b. s rises to 1 at standstill
and falls to 0 in motion: what gravity is wrong by does not move a joint that nobody touches, and a hand that moves it does not feel the hold.

:math:`s_r` is 1. When the mode is left, it falls to 0 within the ramp time while :math:`\tau_b = -D\dot q` damps: joints that nothing else bears sink at
:math:`|g|/D` at most, and the mode has ended when they rest.
"""

from __future__ import annotations

import numpy as np

from stribeck.model.arrays import Array, Mask

HOLD_BANDWIDTH = 25.0
r"""Of the hold, :math:`\omega_h` [rad/s]."""

LOOP_SHARE = 0.2
r"""Largest bandwidth times the delay of the loop, :math:`\omega_h T` [rad]."""

BRAKE = 20.0
r""":math:`\omega_b` [rad/s]."""

RISING, FALLING = 0.2, 0.05
"""Time constants of the hold at standstill and in motion [s]."""

STILL = 0.02
"""Speed below which a joint stands still [rad/s]."""

FRICTION_SHARE = 0.1
"""Share of the friction at rest in the hold [1]."""

RESTS = 0.99
"""Level of that hold from which on a joint has come to rest [1]."""

BEARS = 0.5
"""Share of its limit above which the hold, not friction, keeps a joint at rest [1]."""


class Guiding:
    r"""Torques of the zero-torque mode of n joints without those against friction, in the robot's coordinates.

    :param level: friction at rest (n,) [N m].
    :param limit: torque limit of the joints (n,) [N m].
    :param fastest: :math:`v_{max}` (n,) [rad/s].
    :param gravity_error: :math:`\epsilon` [1].
    :param ramp_time: from holding to guiding, and from guiding to damping [s].
    :param delay: of the loop [s].
    """

    def __init__(
        self, level: Array, limit: Array, fastest: Array, *, gravity_error: float, ramp_time: float, delay: float
    ) -> None:  # fmt: skip
        self._level, self.limit, self._fastest = level, limit, fastest
        self._error, self._ramp_time = gravity_error, ramp_time
        self._bandwidth = min(HOLD_BANDWIDTH, LOOP_SHARE / max(delay, 1e-9))
        self.begin()

    def begin(self) -> None:
        """Start anew: hold the joints where they are at the next state, and let go within the ramp time."""
        self._anchor: Array | None = None
        self._still: Array = np.ones_like(self._level)
        self._begun, self._released = 0.0, -1.0
        self.share = 1.0
        r""":math:`s_r` [1]."""
        self.ended = False
        """Whether the mode has been left and all joints rest."""
        self.holding: Mask = np.zeros(len(self._level), dtype=np.bool_)
        """Joints at rest that the hold keeps: their friction alone is less than the error of gravity."""

    def release(self) -> None:
        """Leave the mode: from the next state on joints are damped, and borne less and less."""
        self._released = max(self._released, 0.0)

    def torque(self, q: Array, v: Array, inertia: Array, gravity: Array, dt: float) -> Array:
        r"""Torque beside that against friction (n,) [N m].

        :param inertia: diagonal of the mass matrix (n,) [kg m²].
        :param gravity: g(q) (n,) [N m].
        :param dt: time since the last state [s].
        """
        if self._anchor is None:
            self._anchor = q
        self._begun += dt
        still = np.abs(v) < STILL
        share = 1.0 - np.exp(-dt / np.where(still, RISING, FALLING))
        self._still = self._still + share * (still - self._still)
        falls = max(1.0 - self._begun / self._ramp_time, 0.0) if self._ramp_time else 0.0
        rest = self._still * (self._error * np.abs(gravity) + FRICTION_SHARE * self._level)
        most = rest + falls * np.maximum(self.limit - rest, 0.0)
        w = self._bandwidth
        stiffness, damping = inertia * w * w, 2.0 * inertia * w
        reach = most / stiffness
        self._anchor = q + np.minimum(np.maximum(self._anchor - q, -reach), reach)
        held = np.minimum(np.maximum(stiffness * (self._anchor - q) - damping * v, -most), most)
        rests = still & (self._still > RESTS)
        self.holding = rests & (falls == 0.0) & (np.abs(held) > BEARS * most)
        if self._released >= 0.0:
            self._released += dt
            self.share = max(1.0 - self._released / self._ramp_time, 0.0) if self._ramp_time else 0.0
            self.ended = self.share == 0.0 and bool(rests.all())
            slows = -damping * v
        else:
            slows = -BRAKE * inertia * np.sign(v) * np.maximum(np.abs(v) - self._fastest, 0.0)
        return np.minimum(np.maximum(self.share * (gravity + held) + slows, -self.limit), self.limit)
