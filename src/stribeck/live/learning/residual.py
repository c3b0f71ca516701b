r"""Unmodelled torque of joints: discrete generalised-momentum observer, with delayed commands.

With :math:`M(q)\ddot q + h(q, \dot q) = \tau + \tau_x` and the momentum :math:`p = M\dot q`, a first-order
filter of time constant T on both sides gives

.. math:: r = \frac{p - p_f}{T} - F[\tau - h], \qquad \dot p_f = \frac{p - p_f}{T},

which equals :math:`F[\tau_x]`, the filtered friction and contact torques, without measured accelerations. It is
the observer of De Luca, Albu-Schäffer, Haddadin, Hirzinger, "Collision Detection and Safe Reaction with the
DLR-III Lightweight Manipulator Arm", 2006, doi:10.1109/IROS.2006.282053, with gain 1/T. The model is held
between its evaluations; when M changes, :math:`p_f` is shifted accordingly, so that only :math:`M\ddot q` counts.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from stribeck.live.formulas import Compiler, as_written, compiled_by
from stribeck.model.arrays import Array
from stribeck.model.namespace import array_namespace
from stribeck.rigid.dynamics import Dynamics

KEPT = 1.0
"""Longest delay of states after sent torques [s]."""


class LowPass:
    """First-order low-pass filter of several signals, with time constant T [s], a number or an array."""

    def __init__(self, shape: tuple[int, ...], time_constant: float | Array) -> None:
        self.time_constant = time_constant
        self.value: Array = np.zeros(shape)

    def update(self, x: Array, share: float | Array) -> Array:
        """Smoothed values after a step with input x, weighted with ``share`` = 1 − exp(−Δt/T)."""
        self.value = self.value + share * (x - self.value)
        return self.value


class MomentumResidual:
    """Residual torque of joints, (n,) [N m], in the coordinates of the dynamics.

    :param time_constant: T of each joint [s], (n,).
    :param period: shortest period of evaluating the model [s].
    """

    def __init__(
        self,
        dynamics: Dynamics,
        time_constant: Array,
        period: float = 0.005,
        compiler: Compiler = as_written,
    ) -> None:
        self.dynamics, self.time_constant, self.period = dynamics, time_constant, period
        self._taken, self._filtered = compiled_by(compiler, _taken), compiled_by(compiler, _filtered)
        self._difference = compiled_by(compiler, _difference)
        self.restart()

    def restart(self) -> None:
        """Reset the measured state."""
        self.share: Array = np.zeros_like(self.time_constant)
        self.inertia: Array | None = None
        self.bias = self._lacking = np.zeros_like(self.time_constant)
        """Torque that the model needs beside the inertial one: gravity, Coriolis and centrifugal forces [N m]."""
        self._momentum: Array | None = None
        self._age = math.inf

    def update(self, q: Array, v: Array, torque: Array, dt: float) -> Array:
        r"""The residual after a step.

        :param torque: known motor torque that acts at this measurement [N m].
        :param dt: time since the last step [s].
        """
        self._age += dt
        before = self.inertia
        if self.inertia is None or self._age >= self.period:
            self.inertia, self.bias = self.dynamics.mass_matrix_and_bias(q, v)
            self._age = 0.0
        momentum = _product(self.inertia, v)
        if self._momentum is None:
            self._momentum = momentum
        elif before is not None and before is not self.inertia:
            self._momentum = self._momentum + _product(self.inertia - before, v)
        self.share = share = self._taken(self.time_constant, dt)
        # The same filter weight as for the torques; a different one would underestimate the inertia.
        rate = share / dt if dt > 0.0 else 1.0 / self.time_constant
        self._lacking = self._filtered(self._lacking, torque - self.bias, share)
        residual = self._difference(rate, momentum, self._momentum, self._lacking)
        self._momentum = self._filtered(self._momentum, momentum, share)
        return np.asarray(residual)


def _product(inertia: Array, v: Array) -> Array:
    return np.asarray(inertia * v if inertia.ndim == 1 else inertia @ v)


def _taken(time_constant: Any, dt: Any) -> Any:
    return -array_namespace(time_constant).expm1(-dt / time_constant)


def _filtered(value: Any, x: Any, share: Any) -> Any:
    return value + share * (x - value)


def _difference(rate: Any, momentum: Any, filtered: Any, lacking: Any) -> Any:
    return rate * (momentum - filtered) - lacking


class Delayed:
    """Values with a ``delay`` [s]: torques act later than they are sent."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._sent: deque[tuple[float, Array]] = deque()

    def clear(self) -> None:
        """Forget."""
        self._sent.clear()

    def add(self, time: float, value: Array) -> None:
        """Store a value that applies from ``time`` [s] on; a time before the last one clears the history."""
        if self._sent and time < self._sent[-1][0]:
            self._sent.clear()
        self._sent.append((time, value))
        self._drop(time - KEPT)  # bounds the memory without calls of at()

    def at(self, time: float) -> Array | None:
        """The value that acts at ``time``: the last one sent at least ``delay`` before."""
        self._drop(time)
        return self._sent[0][1] if self._sent else None

    def _drop(self, time: float) -> None:
        while len(self._sent) > 1 and self._sent[1][0] <= time - self.delay + 1e-9:
            self._sent.popleft()
