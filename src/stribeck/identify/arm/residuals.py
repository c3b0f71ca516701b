r"""Relative errors of predicted torques, :math:`rel = \|y - \hat y\| / \|y\|`, and causes of the residual torque after a fit.

Causes are noise, ripple, delay, friction, and slow model error. Each share is the part of the residual's energy that terms of one kind explain on held-out blocks of time, so that
irrelevant terms have a share of zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import linalg, signal, stats

from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.signals import derivative
from stribeck.model.arrays import Array

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
    ``noise``: upper bound of the share of noise that was white before the torque filter, from the weakest part of the
    spectrum below its cut-off; ``slow``: the rest.
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
        "noise": min(_noise(residual, dt, motion) * len(left) / energy, 1.0),
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


def _noise(residual: Array, dt: float, motion: ProcessedMotion) -> float:
    r"""Mean square of noise that was white before the torque filter, with the level of the weakest fifth of the spectrum.

    With the gain |H| of the filter, the spectral density S of the residual and the level :math:`n = S/|H|^2` in the pass
    band, where :math:`|H| > 1/2`, the mean square is :math:`n \int |H|^2 df`. The weakest fifth of white noise lies at the
    10 % quantile of a chi-square distribution with :math:`36K^2/(19K - 1)` degrees of freedom for K windows (Welch 1967).
    """
    window = min(256, max(len(residual) // 4, 16))
    frequency, density = signal.welch(residual, 1.0 / dt, nperseg=window)
    gain = np.ones(len(frequency))
    if motion.kernel is not None:
        half = len(motion.kernel) // 2
        phase = 2.0 * np.pi * np.outer(frequency, np.arange(-half, half + 1)) / motion.fine.rate
        gain = (np.cos(phase) @ motion.kernel) ** 2
    passed = np.flatnonzero(gain > 0.25)
    passed = passed[passed > 0]
    level = np.sort(density[passed] / gain[passed])
    windows = max(2 * len(residual) // window - 1, 1)
    freedom = 36.0 * windows**2 / (19.0 * windows - 1.0)
    floor = float(np.median(level[: max(len(level) // 5, 1)])) * freedom / float(stats.chi2.ppf(0.1, freedom))
    return floor * float(np.sum(gain) * (frequency[1] - frequency[0]))


def relative_error(measured: Array, predicted: Array) -> float:
    r""":math:`\|y - \hat y\|/\|y\|`; NaN if all measurements are zero."""
    norm = float(np.linalg.norm(measured))
    return float(np.linalg.norm(measured - predicted)) / norm if norm > 0.0 else float("nan")


def scores(motions: Sequence[ProcessedMotion], predictions: Sequence[Array]) -> dict[str, Any]:
    """Relative errors over the rows of all runs, as ``{"moving": {"per_joint", "all"}, "every_row": …}``."""
    measured = np.concatenate([motion.torque for motion in motions])
    predicted = np.concatenate(list(predictions))
    moving = np.concatenate([motion.moving for motion in motions])
    masks = {"moving": moving, "every_row": np.ones_like(moving)}
    return {
        name: {
            "per_joint": [
                _finite(relative_error(measured[mask[:, j], j], predicted[mask[:, j], j]))
                for j in range(measured.shape[1])
            ],
            "all": _finite(relative_error(measured[mask], predicted[mask])),
        }
        for name, mask in masks.items()
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
