"""Torque limits and rest thresholds of joints for live compensation, from the URDF and the recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np

from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.live.direction.motion import Tuning
from stribeck.model.arrays import Array

ORDER = 4
"""Order of the differences from which noise is found; smooth motion has hardly any."""

CLEAR = 5.0
"""Measured velocities above this multiple of their noise count as motion."""


def torque_limits(arm: ArmModel | None, given: Sequence[float] | None, runs: Sequence[ArmRecording]) -> Array:
    """Largest torque of each joint (n,) [N m or N]: as given, else the URDF's effort limit, else the largest recorded one."""
    largest = np.max([np.abs(run.effort).max(axis=0) for run in runs], axis=0)
    limits = np.array(given) if given is not None else largest * 0.0 if arm is None else arm.effort_limits
    return np.asarray(np.where(limits > 0.0, limits, largest))


def white_noise(signals: Sequence[Array]) -> Array:
    r"""Standard deviation of white noise in sampled signals (N, n), (n,).

    :math:`\sigma = rms(\Delta^4 x) / \sqrt{\binom{8}{4}}`: fourth differences multiply the variance of white noise by 70
    and leave little of smooth motion.
    """
    differences = np.concatenate([np.diff(signal, ORDER, axis=0) for signal in signals])
    return np.asarray(np.sqrt(np.mean(differences**2, axis=0) / comb(2 * ORDER, ORDER)))


def tunings(runs: Sequence[ArmRecording], presliding: float | None) -> list[Tuning]:
    r"""Thresholds of rest and motion of each joint, from the noise of its recordings.

    Positions with white noise :math:`\sigma` count as having the resolution :math:`\sqrt{12}\,\sigma`, whose rounding
    has that standard deviation; velocities count as motion above :data:`CLEAR` times their noise.

    :param presliding: presliding length of the fit [rad or m]: friction changes sign within twice this length.
    """
    positions = white_noise([run.position for run in runs])
    velocities = [run.velocity for run in runs if run.velocity is not None]
    noise = white_noise(velocities) if velocities else 0.0 * positions
    found = []
    for step, fastest in zip(np.sqrt(12.0) * positions, CLEAR * noise, strict=True):
        tuning = Tuning.of_resolution(float(step))
        moving = max(tuning.moving_velocity, float(fastest))
        length = max(tuning.presliding, 2.0 * (presliding or 0.0))
        found.append(
            replace(tuning, moving_velocity=moving, command_velocity=moving / 3.0, presliding=length)
        )
    return found
