r"""Bandwidth and noise of recorded motion, from its spectra.

The acceleration is the k-th central difference of a signal with white noise of density n (k = 2 for positions, 1 for
measured velocities), so its noise has the density :math:`n\,(\sin(2\pi f\Delta t)/\Delta t)^{2k}`. n is taken from the
highest frequencies, which a machine's motion does not reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import integrate, signal

from stribeck.errors import TooShortError
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.signals import derivative, resample
from stribeck.model.arrays import Array

SECONDS = 8.0
"""Length of the windows of the spectra [s]."""

NOISE_SHARE = 0.01
"""Largest noise of filtered accelerations, relative to their root mean square: about that of filtered torques, or less."""

SHARE = 0.99
"""The motion's bandwidth holds this share of the power of velocities."""

HIGHER = 20.0
"""Largest cut-off, in multiples of the motion's bandwidth: friction that reverses has power far above it."""

ROLLED_OFF = 0.03
"""The torque was filtered where the density of its derivative falls below this share of that near the motion's bandwidth."""

HIGHEST = 0.2
"""Largest cut-off, in multiples of the sampling rate."""


@dataclass(frozen=True)
class Bandwidth:
    r"""Bandwidth and noise of the motion of each joint, (n,).

    :param motion: frequency below which velocities have :data:`SHARE` of their power [Hz].
    :param clear: cut-off with which the noise of accelerations is :data:`NOISE_SHARE` of their root mean square [Hz].
    :param torque: frequency above which torques were filtered before they were recorded [Hz], infinite if they were not.
    :param noise: density of the noise of velocities divided by :math:`(2\pi f)^{2k-2}` [(rad/s)²/Hz or (m/s)²/Hz].
    :param order: k, 1 for measured velocities and 2 for positions.
    :param rate: sampling rate [Hz].
    """

    motion: Array
    clear: Array
    torque: Array
    noise: Array
    order: int
    rate: float

    @property
    def cutoff(self) -> float:
        """Cut-off frequency of the filters [Hz], the median over the joints."""
        limit = np.minimum(np.minimum(self.clear, HIGHER * self.motion), HIGHEST * self.rate)
        return float(min(np.median(limit), np.median(self.torque)))

    def velocity_noise(self, cutoff: float) -> Array:
        r"""Standard deviation of velocities after a low-pass filter, (n,): :math:`\int_0^{f_c} n\,(2\pi f)^{2k-2} df`."""
        power = 2 * self.order - 2
        return np.asarray(np.sqrt(self.noise * (2.0 * np.pi) ** power * cutoff ** (power + 1) / (power + 1)))

    def acceleration_noise(self, cutoff: float) -> Array:
        r"""Standard deviation of accelerations likewise, (n,): :math:`\int_0^{f_c} n\,(2\pi f)^{2k} df`."""
        power = 2 * self.order
        return np.asarray(np.sqrt(self.noise * (2.0 * np.pi) ** power * cutoff ** (power + 1) / (power + 1)))


def bandwidth_of(runs: Sequence[ArmRecording], rate: float) -> Bandwidth:
    """Bandwidth and noise of recorded motion.

    :param runs: recordings without gaps.
    :param rate: sampling rate [Hz].
    :raises TooShortError: if no run lasts two seconds.
    """
    order = 2 if any(run.velocity is None for run in runs) else 1
    window = int(min(SECONDS, max(run.time[-1] - run.time[0] for run in runs)) * rate)
    if window < 2.0 * rate:
        raise TooShortError(
            f"the longest recording without a gap lasts {window / rate:.4g} s, expected 2 s or more"
        )
    frequency, density = _density(
        runs,
        rate,
        window,
        lambda run: run.position if order == 2 or run.velocity is None else run.velocity,
        order,
    )
    bandwidth = _bandwidth(frequency, density, order, rate)
    _, torque = _density(runs, rate, window, lambda run: run.effort, 1)
    return replace(bandwidth, torque=_rolled_off(frequency, torque, float(np.median(bandwidth.motion))))


def _density(
    runs: Sequence[ArmRecording],
    rate: float,
    window: int,
    pick: Callable[[ArmRecording], Array],
    order: int,
) -> tuple[Array, Array]:
    """Frequencies (F,) above zero, and densities (F, n) of the derivatives of a signal of the given order."""
    densities, weights = [], []
    for run in runs:
        grid = np.arange(run.time[0], run.time[-1], 1.0 / rate)
        if len(grid) < window:
            continue
        rates = resample(run.time, pick(run), grid)
        for _ in range(order):
            rates = derivative(rates, 1.0 / rate)
        frequency, density = signal.welch(rates, rate, window="hann", nperseg=window, axis=0)
        densities.append(density)
        weights.append(len(grid))
    return frequency[1:], np.average(densities, axis=0, weights=weights)[1:]


def _rolled_off(frequency: Array, density: Array, motion: float) -> Array:
    """Frequencies (n,) above which the derivatives of torques, with densities (F, n), have next to no power.

    Dry friction jumps at reversals: the density of its derivative is as high far above the bandwidth of the motion as near
    it, unless a drive or a driver has filtered the torque. Densities are averaged over bands of that bandwidth.
    """
    width = max(motion, 2.0 * (frequency[1] - frequency[0]))
    bands = np.arange(width, 0.5 * frequency[-1], width)  # beyond, differences of samples weaken derivatives
    powers = np.array(
        [density[(frequency >= low) & (frequency < low + width)].mean(axis=0) for low in bands[:-1]]
    )
    if len(powers) < 3:
        return np.full(density.shape[1], np.inf)
    alive = (
        powers >= ROLLED_OFF * powers[0]
    )  # a slow motion under gravity has less power above it, too, but noise as well
    last = len(powers) - 1 - np.argmax(alive[::-1], axis=0)
    return np.where(last + 1 < len(powers), bands[np.minimum(last + 1, len(bands) - 1)], np.inf)


def _bandwidth(frequency: Array, density: Array, order: int, rate: float) -> Bandwidth:
    """Bandwidth from the densities of accelerations (F, n)."""
    shape = (np.sin(2.0 * np.pi * frequency / rate) * rate)[:, None] ** (2 * order)
    high = (frequency > 0.2 * rate) & (frequency < 0.45 * rate)
    noise = np.median(density[high] / shape[high], axis=0)
    signal_only = np.maximum(density - noise * shape, 0.0)
    power = integrate.cumulative_trapezoid(
        signal_only / frequency[:, None] ** 2, frequency, axis=0, initial=0.0
    )
    motion = np.array([frequency[np.searchsorted(column, SHARE * column[-1])] for column in power.T])
    within = frequency[:, None] <= HIGHER * motion
    mean_square = integrate.trapezoid(signal_only * within, frequency, axis=0)
    floor = noise * (2.0 * np.pi) ** (2 * order) / (2 * order + 1)
    clear = (NOISE_SHARE**2 * mean_square / np.maximum(floor, 1e-300)) ** (1.0 / (2 * order + 1))
    unfiltered = np.full(density.shape[1], np.inf)
    return Bandwidth(motion, np.minimum(clear, 0.5 * rate), unfiltered, np.asarray(noise), order, rate)
