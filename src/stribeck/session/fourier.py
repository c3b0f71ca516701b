r"""Finite Fourier series as joint trajectories that start and end at rest.

.. math::

    q_i(t) &= q_{i0} + \sum_{l=1}^{L} \frac{a_{il}}{\omega l}\sin(\omega l t) - \frac{b_{il}}{\omega l}\cos(\omega l t) \\
    \dot q_i(t) &= \sum_l a_{il}\cos(\omega l t) + b_{il}\sin(\omega l t) \\
    \ddot q_i(t) &= \sum_l \omega l\,(b_{il}\cos(\omega l t) - a_{il}\sin(\omega l t))

With :math:`\omega = 2\pi/T` the motion is periodic, and both ends are at rest if :math:`\sum_l a_{il} = 0` and
:math:`\sum_l l\,b_{il} = 0`. Source: Swevers et al., "Optimal Robot Excitation and Identification", 1997.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array
from stribeck.model.trajectories import Trajectory

REST = 1e-6
"""Largest velocity and acceleration at an end that count as rest, relative to the largest coefficient."""


class Basis(NamedTuple):
    r"""Basis functions of the coefficients :math:`c_i = (a_{i1} … a_{iL}, b_{i1} … b_{iL}, q_{i0})`.

    :param position, velocity, acceleration: (N, 2 L + 1); :math:`q_i(t_k)` is row k times :math:`c_i`.
    """

    position: Array
    velocity: Array
    acceleration: Array


def basis(time: npt.ArrayLike, frequency: float, harmonics: int) -> Basis:
    r"""The series' basis functions and their derivatives.

    :param time: (N,) [s].
    :param frequency: :math:`\omega` of the first harmonic [rad/s].
    :param harmonics: L.
    """
    times = np.asarray(time, dtype=np.float64)
    order = frequency * np.arange(1, harmonics + 1)
    sine, cosine = np.sin(np.outer(times, order)), np.cos(np.outer(times, order))
    one, zero = np.ones((len(times), 1)), np.zeros((len(times), 1))
    return Basis(
        np.hstack([sine / order, -cosine / order, one]),
        np.hstack([cosine, sine, zero]),
        np.hstack([-sine * order, cosine * order, zero]),
    )


def rest_basis(harmonics: int) -> Array:
    r"""Orthonormal columns Z (2 L + 1, 2 L - 1): :math:`c = Z z` is at rest at both ends for every z.

    The last element of z is the offset q0.

    :raises ConfigError: for fewer than two harmonics, with which no motion is possible.
    """
    if harmonics < 2:
        raise ConfigError(
            f"a series that starts and ends at rest needs at least 2 harmonics, found {harmonics}"
        )
    order = np.arange(1, harmonics + 1, dtype=np.float64)
    matrix = np.zeros((2 * harmonics + 1, 2 * harmonics - 1))
    for block, condition in enumerate((np.ones(harmonics), order)):
        rows = slice(block * harmonics, (block + 1) * harmonics)
        columns = slice(block * (harmonics - 1), (block + 1) * (harmonics - 1))
        matrix[rows, columns] = _orthogonal_to(condition)
    matrix[-1, -1] = 1.0
    return matrix


def _orthogonal_to(direction: Array) -> Array:
    """Orthonormal columns orthogonal to a direction (L,), (L, L - 1), from a Householder reflection."""
    mirror = direction / np.linalg.norm(direction)
    mirror = mirror + math.copysign(1.0, mirror[0]) * np.eye(len(mirror))[0]
    reflection = np.eye(len(mirror)) - 2.0 * np.outer(mirror, mirror) / (mirror @ mirror)
    return np.asarray(reflection[:, 1:])


def grid_factor(harmonics: int, samples: int) -> float:
    r"""Fraction of a limit that samples may reach so that the curve between them stays below it: :math:`\cos(\pi L/N)`.

    A trigonometric polynomial p of degree L with samples at N > 2 L equal steps of its period has
    :math:`\max|p| \le \max_k |p(t_k)| / \cos(\pi L/N)` (Ehlich, Zeller 1964).
    """
    return math.cos(math.pi * harmonics / samples)


@dataclass(frozen=True, eq=False)
class FourierTrajectory:
    """A Fourier series for each joint, all with the same period.

    :param duration: one period T [s].
    :param sine: a, (n, L) [rad/s].
    :param cosine: b, (n, L) [rad/s].
    :param offset: q0, (n,) [rad].
    :raises ConfigError: for inconsistent shapes, values that are not finite, or a motion that does not start
        and end at rest.
    """

    joints: tuple[str, ...]
    duration: float
    sine: Array
    cosine: Array
    offset: Array

    def __post_init__(self) -> None:
        shape = (len(self.joints), self.harmonics)
        if self.sine.shape != shape or self.cosine.shape != shape or self.offset.shape != shape[:1]:
            raise ConfigError(
                f"a Fourier trajectory of {shape[0]} joints needs the same number of rows with equally many coefficients, and the same number of offsets; "
                f"found {self.sine.shape}, {self.cosine.shape} and {self.offset.shape}"
            )
        if not (0.0 < self.duration < math.inf and np.isfinite(self.coefficients).all()):
            raise ConfigError(
                "a Fourier trajectory needs a positive duration and finite coefficients and offsets"
            )
        ends = basis([0.0], self.frequency, self.harmonics)
        size = REST * max(1.0, float(np.abs(self.coefficients[:, :-1]).max(initial=0.0)))
        for what, rows in (("velocity", ends.velocity), ("acceleration", ends.acceleration)):
            moving = np.abs(rows @ self.coefficients.T)[0]
            if (moving > size).any():
                raise ConfigError(
                    f"joint {self.joints[int(moving.argmax())]!r} does not start at rest, as its {what} is "
                    f"{moving.max():.3g}: the coefficients must satisfy sum a = 0 and sum l b = 0"
                )

    @classmethod
    def from_coefficients(
        cls, joints: tuple[str, ...], duration: float, coefficients: Array
    ) -> FourierTrajectory:
        """The trajectory with coefficients (n, 2 L + 1) in the order of :class:`Basis`."""
        count = coefficients.shape[1] // 2
        return cls(
            joints, duration, coefficients[:, :count], coefficients[:, count:-1], coefficients[:, -1].copy()
        )

    @property
    def harmonics(self) -> int:
        """Number of harmonics L."""
        return int(self.sine.shape[-1])

    @property
    def frequency(self) -> float:
        r""":math:`\omega = 2\pi/T` [rad/s]."""
        return 2.0 * math.pi / self.duration

    @property
    def coefficients(self) -> Array:
        """Coefficients (n, 2 L + 1) in the order of :class:`Basis`."""
        return np.hstack([self.sine, self.cosine, self.offset[:, None]])

    def states(self, time: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at times (N,) [s], each (N, n) [rad, rad/s, rad/s^2]."""
        values = basis(time, self.frequency, self.harmonics)
        c = self.coefficients.T
        return values.position @ c, values.velocity @ c, values.acceleration @ c

    def to_play(self, name: str) -> Trajectory:
        """This trajectory as the goals of a recording session; ``name`` is its key in recordings."""

        def goal(row: Array) -> Callable[[Array], Array]:
            return lambda time: np.asarray(basis(time, self.frequency, self.harmonics).position @ row)

        goals = dict(zip(self.joints, map(goal, self.coefficients), strict=True))
        return Trajectory(
            name, "a Fourier series for each joint", self.duration, np.zeros_like, joint_goals=goals
        )
