"""Noise of recorded motion, and the thresholds of rest and motion that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np

from stribeck.live.direction.motion import Tuning
from stribeck.model.arrays import Array

ORDER = 4
"""Order of the differences from which noise is found; smooth motion has hardly any."""

CLEAR = 5.0
"""Measured velocities above this multiple of their noise count as motion."""


def white_noise(signals: Sequence[Array]) -> Array:
    r"""Standard deviation of white noise in sampled signals (N, n), (n,).

    :math:`\sigma = rms(\Delta^4 x) / \sqrt{\binom{8}{4}}`: fourth differences multiply the variance of white noise by 70
    and leave little of smooth motion.
    """
    differences = np.concatenate([np.diff(signal, ORDER, axis=0) for signal in signals])
    return np.asarray(np.sqrt(np.mean(differences**2, axis=0) / comb(2 * ORDER, ORDER)))


def resolutions(positions: Sequence[Array]) -> Array:
    r"""Resolution of each joint (n,): white noise :math:`\sigma` is that of rounding to :math:`\sqrt{12}\,\sigma`."""
    return np.asarray(np.sqrt(12.0) * white_noise(positions))


def tunings(
    positions: Sequence[Array], velocities: Sequence[Array] = (), presliding: float | None = None
) -> list[Tuning]:
    r"""Thresholds of rest and motion of each joint, from the noise of its recordings.

    Positions count as having the resolution of :func:`resolutions`; velocities count as motion above :data:`CLEAR` times their noise.

    :param positions, velocities: of each recording (N, n) [rad or m, and per second].
    :param presliding: presliding length of the fit [rad or m]: friction changes sign within twice this length.
    """
    steps = resolutions(positions)
    noise = white_noise(velocities) if len(velocities) else 0.0 * steps
    found = []
    for step, fastest in zip(steps, CLEAR * noise, strict=True):
        tuning = Tuning.of_resolution(float(step))
        moving = max(tuning.moving_velocity, float(fastest))
        length = max(tuning.presliding, 2.0 * (presliding or 0.0))
        found.append(
            replace(tuning, moving_velocity=moving, command_velocity=moving / 3.0, presliding=length)
        )
    return found
