"""What a controller sees and what becomes of its commands: encoder, velocity, transport delay."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plants.friction import FloatArray

VELOCITY_NOISE = 2e-3
"""Standard deviation of a measured velocity [rad/s]."""


class Encoder:
    """Positions in counts, and velocities as their difference over one sample or measured with noise.

    :param resolution: one count [rad], (L,).
    :param measured: lanes whose velocity is measured.
    :param dt: sample time [s].
    """

    def __init__(
        self, resolution: FloatArray, measured: npt.NDArray[np.bool_], dt: float, start: FloatArray
    ) -> None:
        self.resolution, self._measured, self._dt = resolution, measured, dt
        self._last = self.counts(start)
        self._rng = np.random.default_rng(1)

    def counts(self, position: FloatArray) -> FloatArray:
        """A position as the encoder gives it [rad]."""
        return np.floor(position / self.resolution + 0.5) * self.resolution

    def read(
        self, position: FloatArray, velocity: FloatArray, noise: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Position [rad] and velocity [rad/s].

        :param noise: standard normal numbers, (L,).
        """
        at = self.counts(position)
        slope, self._last = (at - self._last) / self._dt, at
        return at, np.where(self._measured, velocity + VELOCITY_NOISE * noise, slope)


class Delay:
    """Commands come into force some samples later, each lane with a delay of its own."""

    def __init__(self, samples: npt.NDArray[np.int64]) -> None:
        self._samples, self._lanes = samples, np.arange(len(samples))
        self._held: FloatArray = np.zeros((int(samples.max()) + 1, len(samples)))
        self._at = 0

    def through(self, command: FloatArray) -> FloatArray:
        """The command that comes into force with this sample."""
        depth = len(self._held)
        self._at = (self._at + 1) % depth
        self._held[self._at] = command
        return self._held[(self._at - self._samples) % depth, self._lanes]
