r"""The loss that a fit minimises, and the split into fitted and held-out runs.

The error of a model is the mean over runs of each run's mean absolute position error. The absolute value has a kink at
zero, so the fit minimises :math:`\rho(r) = \sqrt{r^2 + \delta^2} - \delta` instead, with :math:`\delta` two steps of a
12-bit encoder (3.07 mrad): a parabola within encoder noise, the absolute value for larger errors. The mean absolute
error at the optimum exceeds the smallest possible one by a few μrad.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stribeck.errors import ConfigError
from stribeck.model.log import Log
from stribeck.model.namespace import array_namespace

SMOOTHING = 2.0 * 2.0 * np.pi / 4096.0
r""":math:`\delta` [rad]."""

EQUALLY_GOOD = 0.01
"""A loss or error at most this share above the best is equally good; runs of the same motion differ by more."""


def smooth_absolute(residual: Any) -> Any:
    r""":math:`\rho(r) = \sqrt{r^2 + \delta^2} - \delta` [rad]."""
    xp = array_namespace(residual)
    return xp.sqrt(residual * residual + SMOOTHING**2) - SMOOTHING


def smooth_absolute_weight(residual: Any) -> Any:
    r""":math:`\rho'(r)/r = 1/\sqrt{r^2 + \delta^2}`, the weight of iteratively reweighted least squares."""
    xp = array_namespace(residual)
    return 1.0 / xp.sqrt(residual * residual + SMOOTHING**2)


def smooth_absolute_curvature(residual: Any) -> Any:
    r""":math:`\rho''(r) = \delta^2 / (r^2 + \delta^2)^{3/2}` [1/rad]."""
    xp = array_namespace(residual)
    return SMOOTHING**2 / xp.sqrt(residual * residual + SMOOTHING**2) ** 3


def equivalent_error(loss: Any) -> Any:
    r"""The constant error [rad] with this loss: the inverse of :math:`\rho`."""
    xp = array_namespace(loss)
    positive = 0.5 * (loss + abs(loss))  # for exact fits, rounding makes losses slightly negative
    return xp.sqrt(positive * (positive + 2.0 * SMOOTHING))


@dataclass(frozen=True)
class Split:
    """Fitted and held-out runs.

    :param rule: how they were chosen, in words.
    """

    train: tuple[Log, ...]
    validation: tuple[Log, ...]
    rule: str


def split_runs(
    logs: Sequence[Log],
    *,
    validation_kp: float | None = None,
    validation_fraction: float | None = None,
    seed: int = 0,
) -> Split:
    """Hold out the runs at one gain, or a random share of the runs, or none.

    :param validation_kp: firmware gain to hold out.
    :param validation_fraction: share of the runs to hold out, in (0, 1).
    :raises ConfigError: for a gain that no run has, a share that leaves one side empty, or both options.
    """
    if validation_kp is not None and validation_fraction is not None:
        raise ConfigError(
            "`hold_out_gain` and `hold_out` exclude each other: hold out a gain, or a share of the runs"
        )
    if validation_kp is not None:
        gains = sorted({log.setup.kp for log in logs})
        if validation_kp not in gains:
            raise ConfigError(
                f"no run has gain {validation_kp:g}, which is to be held out; gains of the runs: {', '.join(f'{g:g}' for g in gains)}"
            )
        held = {k for k, log in enumerate(logs) if log.setup.kp == validation_kp}
        rule = f"gain {validation_kp:g} held out"
    elif validation_fraction is not None:
        if not 0.0 < validation_fraction < 1.0:
            raise ConfigError(
                f"hold_out, the share of the runs to hold out, must be between 0 and 1, found {validation_fraction:g}"
            )
        count = round(validation_fraction * len(logs))
        order = np.random.default_rng(seed).permutation(len(logs))
        held = {int(k) for k in order[:count]}
        rule = f"{validation_fraction:g} of the runs held out at random, seed {seed}"
        if not held:
            raise ConfigError(
                f"hold_out: {validation_fraction:g} of {len(logs)} runs is less than one run: hold out a larger share"
            )
    else:
        held, rule = set(), "all runs fitted"
    train = tuple(log for k, log in enumerate(logs) if k not in held)
    if not train:
        raise ConfigError("all runs are held out for validation: leave at least one to fit")
    return Split(train, tuple(log for k, log in enumerate(logs) if k in held), rule)
