r"""Zero-phase filters, derivatives and resampling of recorded motion.

A zero-phase Butterworth filter runs forwards and backwards. Its gain at the frequency f is
:math:`|H|^2 = 1/(1 + (\tan(\pi f/f_s)/\tan(\pi f_c/f_s))^{2n})`, one half at the cut-off :math:`f_c` [Hz].
"""

from __future__ import annotations

from math import ceil
from typing import Literal

import numpy as np
from scipy import signal, sparse

from stribeck.errors import ConfigError, TooShortError
from stribeck.identify.arm.config import FilterSettings
from stribeck.model.arrays import Array

SETTLED = 8.0
"""Periods of the cut-off frequency after which the transient of a filter has decayed."""


class ZeroPhase(FilterSettings):
    """The filter of settings; extensions are odd, by default as long as :data:`SETTLED`."""

    def __call__(self, samples: Array, rate: float) -> Array:
        """Filtered samples (N, …).

        :param rate: sampling rate [Hz].

        :raises ConfigError: for a cut-off that is not below half the rate.
        :raises TooShortError: for fewer samples than the padding needs.
        """
        values, sections = np.asarray(samples, dtype=np.float64), self._sections(rate)
        padding = ceil(SETTLED * rate / self.cutoff) if self.padding is None else self.padding
        if self.padding is None:
            padding = min(padding, len(values) - 1)
        if len(values) <= max(padding, 3 * self.order):
            raise TooShortError(
                f"{len(values)} samples are too few for a filter of order {self.order} at {self.cutoff:g} Hz: "
                f"record more than {max(padding, 3 * self.order)}, or raise the cut-off frequency"
            )
        return np.asarray(signal.sosfiltfilt(sections, values, axis=0, padlen=padding))

    def kernel(self, rate: float) -> Array:
        """Impulse response (2 h + 1,) with time zero in the middle."""
        half = ceil(SETTLED * rate / self.cutoff)
        impulse = np.zeros(4 * half + 1)
        impulse[2 * half] = 1.0
        response = signal.sosfiltfilt(self._sections(rate), impulse, padlen=0)[half : 3 * half + 1]
        return np.asarray(response / response.sum())

    def _sections(self, rate: float) -> Array:
        if not 0.0 < self.cutoff < 0.5 * rate:
            raise ConfigError(
                f"the cut-off frequency {self.cutoff:g} Hz must be between 0 and half the sampling rate, {0.5 * rate:g} Hz"
            )
        return np.asarray(signal.butter(self.order, self.cutoff, fs=rate, output="sos"))


def convolution(kernel: Array, samples: int, rows: slice) -> sparse.csr_array:
    """Matrix (rows, samples) of some rows of the convolution with a kernel of odd length; end values are held.

    :param samples: length of the signals.
    :param rows: samples of the result to compute.
    """
    half = len(kernel) // 2
    wanted = np.arange(samples)[rows]
    columns = np.clip(wanted[:, None] + np.arange(-half, half + 1), 0, samples - 1)
    starts = np.repeat(np.arange(len(wanted)), len(kernel))
    entries = (np.tile(kernel[::-1], len(wanted)), (starts, columns.ravel()))
    return sparse.csr_array(entries, shape=(len(wanted), samples))


def derivative(samples: Array, dt: float, edge_order: Literal[1, 2] = 2) -> Array:
    r"""Time derivative (N, …) by central differences, :math:`(x_{k+1}-x_{k-1})/(2\Delta t)`, without phase shift.

    :param edge_order: at both ends, 2: a parabola through the nearest three samples, with an error of
        :math:`O(\Delta t^2)` as everywhere, or 1: the difference of two samples.
    """
    return np.asarray(np.gradient(samples, dt, axis=0, edge_order=edge_order))


def resample(time: Array, samples: Array, grid: Array) -> Array:
    """Interpolate samples (N, …) at irregular times (N,) linearly at times (M,); end values are held."""
    flat = samples.reshape(len(samples), -1)
    columns = np.column_stack([np.interp(grid, time, column) for column in flat.T])
    return columns.reshape(len(grid), *samples.shape[1:])


def direction(velocity: Array, rest: float) -> Array:
    """Sign of a velocity, 0 if its magnitude is below ``rest``."""
    return np.asarray(np.where(np.abs(velocity) < rest, 0.0, np.sign(velocity)))


def linear_presliding(position: Array, length: float) -> Array:
    r"""Developed share of friction in [-1, 1], (N, n), by Dahl's model (Dahl 1968, exponent 0) from the position only.

    :math:`z_k = clip(z_{k-1} + (q_k - q_{k-1})/\delta, -1, 1)`: after a reversal, friction changes its sign within
    :math:`2\delta` of motion; a joint that stops keeps its friction. In the term
    :mod:`~stribeck.model.terms.presliding` (exponent 1) friction approaches its new value exponentially, 86 % of the way
    after :math:`2\delta`: the two lengths are different quantities.

    :param position: (N, n) [rad].
    :param length: presliding length :math:`\delta` [rad].
    """
    steps = np.diff(position, axis=0, prepend=position[:1]) / length
    developed, state = np.zeros_like(steps), np.zeros(steps.shape[1])
    for k, step in enumerate(steps):
        developed[k] = state = np.clip(state + step, -1.0, 1.0)
    return developed
