"""Causes of the residual torque after a fit: noise, ripple, delay, friction, or slow model error.

Each share is the part of the residual's energy that terms of one kind explain on held-out blocks of time, so that
irrelevant terms have a share of zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg, signal

from stribeck.core.arrays import Array
from stribeck.dynamics.motion import ProcessedMotion
from stribeck.dynamics.scores import relative_error
from stribeck.dynamics.signals import derivative

BLOCKS = 5
HARMONICS = 3
PERIODS = 200
"""Number of candidate ripple periods, between a fiftieth and a half of the travel."""

VELOCITIES = 12
"""Number of velocities between which friction is interpolated."""


def explain(motion: ProcessedMotion, predicted: Array) -> list[dict[str, float | None]]:
    """Shares of each joint's residual, a list over joints.

    ``rel``: relative error of the moving rows; ``delay``, ``ripple``, ``velocity``: shares of the residual's energy that
    a time shift, a periodic function of the position (``ripple_period``) and a function of the velocity explain;
    ``noise``: upper bound of the fraction of white noise, from the weakest fifth of the spectrum; ``slow``: the rest.
    """
    dt = float(np.median(np.diff(motion.time)))
    return [_joint(motion, j, predicted[:, j], dt) for j in range(len(motion.joints))]


def _joint(motion: ProcessedMotion, j: int, predicted: Array, dt: float) -> dict[str, float | None]:
    torque, rows = motion.torque[:, j], np.flatnonzero(motion.moving[:, j])
    position, velocity = motion.states.position[rows, j], motion.states.velocity[rows, j]
    if len(rows) < 20 * BLOCKS:
        return dict.fromkeys(("rel", "delay", "ripple", "ripple_period", "velocity", "noise", "slow"))
    residual = torque - predicted
    left = residual[rows] - residual[rows].mean()
    energy = float(left @ left)
    shift = derivative(predicted, dt)[rows, None]
    period, ripple = _ripple(position, left)
    shares = {
        "delay": _explained([shift], left),
        "ripple": ripple,
        "velocity": _explained([_hats(velocity)], left),
        "noise": min(_floor(residual, dt) * len(left) / energy, 1.0),
    }
    rest = max(0.0, 1.0 - shares["noise"] - max(shares["delay"], 0.0) - ripple - shares["velocity"])
    return {
        "rel": relative_error(torque[rows], predicted[rows]),
        **shares,
        "ripple_period": period,
        "slow": rest,
    }


def _explained(columns: Sequence[Array], left: Array) -> float:
    """Share of the energy that columns explain on held-out blocks."""
    matrix = np.column_stack(list(columns))
    total = 0.0
    for block in np.array_split(np.arange(len(left)), BLOCKS):
        others = np.ones(len(left), dtype=bool)
        others[block] = False
        weights = linalg.lstsq(matrix[others], left[others])[0]
        after = left[block] - matrix[block] @ weights
        total += float(after @ after)
    return max(0.0, 1.0 - total / float(left @ left))


def _ripple(position: Array, left: Array) -> tuple[float, float]:
    """Period of the strongest ripple over position, and the fraction of energy explained by it and its harmonics."""
    travel = float(np.ptp(position))
    periods = travel / np.geomspace(2.0, 50.0, PERIODS)
    angles = 2.0 * np.pi * position[:, None] / periods
    cosine, sine = np.cos(angles), np.sin(angles)
    power = (left @ cosine) ** 2 + (left @ sine) ** 2
    best = float(periods[int(power.argmax())])
    turns = [2.0 * np.pi * k * position / best for k in range(1, HARMONICS + 1)]
    columns = [np.column_stack([np.cos(turn), np.sin(turn)]) for turn in turns]
    return best, _explained(columns, left)


def _hats(velocity: Array) -> Array:
    """Piecewise linear basis functions of the velocity, (N, k)."""
    knots = np.unique(np.quantile(velocity, np.linspace(0.0, 1.0, VELOCITIES)))
    return np.column_stack([np.interp(velocity, knots, unit) for unit in np.eye(len(knots))])


def _floor(residual: Array, dt: float) -> float:
    """Mean square of white noise with the spectral density of the weakest fifth of the spectrum."""
    frequency, density = signal.welch(residual, 1.0 / dt, nperseg=min(256, len(residual)))
    floor = float(np.median(np.sort(density[1:])[: max(len(density) // 5, 1)]))
    return floor * float(frequency[-1])
