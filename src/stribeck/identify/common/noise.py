"""Noise of recorded motion, and the thresholds of rest and motion that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np

from stribeck.live.direction.motion import FINEST, Tuning
from stribeck.model.arrays import Array

ORDER = 4
"""Order of the differences from which noise is found; smooth motion has hardly any."""

BLOCK, FEWEST, QUIET, SMALLER = 12, 10, 0.1, 0.586
"""Rows of a block, least number of blocks, quantile of their noise that counts, and its share of that of white noise."""

ROUNDING = 1e-6
"""Noise of a block, relative to that of all rows, below which it stands still but for rounding."""

CLEAR = 5.0
"""Measured velocities above this multiple of their noise count as motion."""


def white_noise(signals: Sequence[Array]) -> Array:
    r"""Standard deviation of white noise in sampled signals (N, n), (n,).

    Fourth differences leave little of smooth motion and multiply the variance of white noise by :math:`\binom{8}{4} = 70`. Reversals and motion
    that is fast for the sampling rate remain in them; so their mean squares are taken over blocks of :data:`BLOCK` rows, too. The quantile
    :data:`QUIET` of those in which the joint does not stand still is :data:`SMALLER` of white noise alone; if it says less than half of the mean over all rows, it
    counts in its place.
    """
    squares, blocks = [], []
    for signal in signals:
        found = np.diff(signal, ORDER, axis=0) ** 2 / comb(2 * ORDER, ORDER)
        squares.append(found)
        count = len(found) // BLOCK
        blocks.append(found[: count * BLOCK].reshape(count, BLOCK, found.shape[1]).mean(axis=1))
    rms, of_blocks = np.sqrt(np.concatenate(squares).mean(axis=0)), np.sqrt(np.concatenate(blocks))
    if len(of_blocks) < FEWEST:
        return np.asarray(rms)
    moved = of_blocks > ROUNDING * rms
    quiet = [
        np.quantile(column[some], QUIET) / SMALLER if some.any() else 0.0
        for column, some in zip(of_blocks.T, moved.T, strict=True)
    ]
    return np.where(np.array(quiet) < 0.5 * rms, quiet, rms)


def resolutions(positions: Sequence[Array]) -> Array:
    r"""Resolution of each joint (n,): white noise :math:`\sigma` is that of rounding to :math:`\sqrt{12}\,\sigma`."""
    return np.asarray(np.sqrt(12.0) * white_noise(positions))


def tunings(
    positions: Sequence[Array], velocities: Sequence[Array] = (), presliding: float | None = None
) -> list[Tuning]:
    r"""Thresholds of rest and motion of each joint, from the noise of its recordings.

    Positions count as having the resolution of :func:`resolutions`; velocities count as motion above :data:`CLEAR` times their noise.

    :param positions, velocities: of each recording (N, n) [rad or m, and per second].
    :param presliding: presliding length of the fit [rad or m]: friction changes sign within twice this length, or two steps of the resolution.
    """
    steps = resolutions(positions)
    noise = white_noise(velocities) if len(velocities) else 0.0 * steps
    found = []
    for step, fastest in zip(steps, CLEAR * noise, strict=True):
        tuning = Tuning.of_resolution(float(step))
        moving = max(tuning.moving_velocity, float(fastest))
        length = tuning.presliding
        if presliding is not None:
            length = max(2.0 * max(float(step), FINEST), 2.0 * presliding)
        found.append(
            replace(tuning, moving_velocity=moving, command_velocity=moving / 3.0, presliding=length)
        )
    return found
