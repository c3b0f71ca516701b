r"""Filters, derivatives and sampling of recorded motion, without phase.

A zero-phase Butterworth filter runs forwards and backwards: its gain at the frequency f is
:math:`|H|^2 = 1/(1 + (\tan(\pi f/f_s)/\tan(\pi f_c/f_s))^{2n})`, one half at the cut-off :math:`f_c`, which is in Hz.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np
from scipy import signal, sparse

from stribeck.core.arrays import Array
from stribeck.errors import ConfigError, TooShortError

SETTLED = 8.0
"""Periods of the cut-off frequency after which a filter has forgotten its start."""


@dataclass(frozen=True)
class ZeroPhase:
    """A Butterworth low-pass, forwards and backwards.

    :param order: of each of the two passes.
    :param cutoff: where the gain is one half [Hz].
    :param padding: samples by which the ends are extended (turned about the end point), so that none of
        them shows the start of the filter; as many as it takes to forget it if left out.
    """

    order: int
    cutoff: float
    padding: int | None = None

    def __call__(self, samples: Array, rate: float) -> Array:
        """Filtered samples (N, …) that come at a rate [Hz].

        :raises ConfigError: for a cut-off that is not below half the rate.
        :raises TooShortError: for fewer samples than the ends need.
        """
        found, sections = np.asarray(samples, dtype=np.float64), self._sections(rate)
        padding = ceil(SETTLED * rate / self.cutoff) if self.padding is None else self.padding
        if self.padding is None:
            padding = min(padding, len(found) - 1)
        if len(found) <= max(padding, 3 * self.order):
            raise TooShortError(
                f"{len(found)} samples are too few for a filter of order {self.order} at {self.cutoff:g} Hz; "
                f"record more than {max(padding, 3 * self.order)} or raise the cut-off"
            )
        return np.asarray(signal.sosfiltfilt(sections, found, axis=0, padlen=padding))

    def gain(self, frequency: Array, rate: float) -> Array:
        """Gain at frequencies [Hz], (N,)."""
        warped = np.tan(np.pi * np.asarray(frequency) / rate) / np.tan(np.pi * self.cutoff / rate)
        return np.asarray(1.0 / (1.0 + warped ** (2 * self.order)))

    def kernel(self, rate: float) -> Array:
        """Impulse response, (2 h + 1,), its middle at time zero: the filter as a convolution."""
        half = ceil(SETTLED * rate / self.cutoff)
        impulse = np.zeros(4 * half + 1)
        impulse[2 * half] = 1.0
        response = signal.sosfiltfilt(self._sections(rate), impulse, padlen=0)[half : 3 * half + 1]
        return np.asarray(response / response.sum())

    def _sections(self, rate: float) -> Array:
        if not 0.0 < self.cutoff < 0.5 * rate:
            raise ConfigError(
                f"cut-off {self.cutoff:g} Hz is not between 0 and half the sampling rate, {0.5 * rate:g} Hz"
            )
        return np.asarray(signal.butter(self.order, self.cutoff, fs=rate, output="sos"))


def convolution(kernel: Array, samples: int, rows: slice) -> sparse.csr_array:
    """Some rows of the convolution with a kernel of odd length, (rows, samples); the ends hold their value.

    :param samples: length of the signals.
    :param rows: which samples of the result are wanted.
    """
    half = len(kernel) // 2
    wanted = np.arange(samples)[rows]
    columns = np.clip(wanted[:, None] + np.arange(-half, half + 1), 0, samples - 1)
    starts = np.repeat(np.arange(len(wanted)), len(kernel))
    entries = (np.tile(kernel[::-1], len(wanted)), (starts, columns.ravel()))
    return sparse.csr_array(entries, shape=(len(wanted), samples))


def derivative(samples: Array, dt: float, edge_order: Literal[1, 2] = 2) -> Array:
    r"""Derivative in time of (N, …) samples: central differences, :math:`(x_{k+1}-x_{k-1})/(2\Delta t)`, no phase.

    :param edge_order: at the two ends a parabola through the nearest three samples gives it (2), so that the
        error is :math:`O(\Delta t^2)` there too, or the difference of two samples (1).
    """
    return np.asarray(np.gradient(samples, dt, axis=0, edge_order=edge_order))


def resample(time: Array, samples: Array, grid: Array) -> Array:
    """Samples (N, …) at irregular times (N,), at the times of a grid (M,): linear; beyond the ends the last holds."""
    flat = samples.reshape(len(samples), -1)
    found = np.column_stack([np.interp(grid, time, column) for column in flat.T])
    return found.reshape(len(grid), *samples.shape[1:])


def decimate(samples: Array, factor: int, rate: float, bandwidth: float) -> Array:
    """Every so-many-th of the samples (N, …), which hold nothing above a bandwidth [Hz].

    :raises ConfigError: if what is kept is too slow for the bandwidth (Nyquist): filter first.
    """
    if rate / factor <= 2.0 * bandwidth:
        raise ConfigError(
            f"every {factor}th of samples at {rate:g} Hz leaves {rate / factor:g} Hz, too slow for signals up to "
            f"{bandwidth:g} Hz: keep more, or filter below {0.5 * rate / factor:g} Hz first"
        )
    return samples[::factor]


def direction(velocity: Array, rest: float) -> Array:
    """Sign of a velocity, 0 where it is below ``rest`` in size."""
    return np.asarray(np.where(np.abs(velocity) < rest, 0.0, np.sign(velocity)))


def presliding(position: Array, length: float) -> Array:
    r"""How far friction is developed, in [-1, 1], (N, n): Dahl's model, driven by the position alone.

    :math:`z_k = clip(z_{k-1} + (q_k - q_{k-1})/\delta, -1, 1)`: a reversal turns the friction within
    :math:`2\delta` of motion, and a joint that stops keeps what it had.

    :param position: (N, n) [rad].
    :param length: presliding length :math:`\delta` [rad].

    Source: Dahl, "A solid friction model", 1968, with exponent 0.
    """
    steps = np.diff(position, axis=0, prepend=position[:1]) / length
    found = np.zeros_like(steps)
    state = np.zeros(steps.shape[1])
    for k, step in enumerate(steps):
        state = np.minimum(np.maximum(state + step, -1.0), 1.0)
        found[k] = state
    return found


def autocovariance(residual: Array) -> Array:
    r"""Autocovariance :math:`\gamma_0, \gamma_1, …` of a signal (N,), up to where it first falls below zero.

    The mean counts as zero. What lies beyond the first zero is noise of the estimate.
    """
    n = len(residual)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(residual, size)
    found = np.fft.irfft(np.abs(spectrum) ** 2, size)[:n] / n
    below = np.flatnonzero(found <= 0.0)
    return np.asarray(found[: below[0]] if len(below) else found)
