"""Constant-velocity sweeps: stretches in which a joint turns evenly, and the Stribeck curve that they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stribeck.identify.common.correlation import correlation_time
from stribeck.identify.joint.run import JointRun
from stribeck.model.arrays import Array, Mask

SHORTEST = 0.4
"""Shortest plateau [s]."""

EVEN = 0.08
"""Largest deviation of a plateau's velocity from its mean, relative to it."""

SMALLEST = 0.005
"""Velocities below this share of the largest are rest."""

LEVELS, SHARE = 3, 0.5
"""A recording is a sweep with so many different speeds in each direction, and this share of its moving rows in plateaus."""

ALIKE = 0.15
"""Plateaus whose speeds differ less, relative to the larger, have the same speed."""


@dataclass(frozen=True)
class Plateau:
    """A stretch of even motion.

    :param velocity, torque: means [rad/s], [N m].
    :param deviation: standard deviation of the mean torque, with correlated rows counted once [N m].
    """

    velocity: float
    torque: float
    deviation: float
    rows: slice
    run: int


def plateaus_of(runs: Sequence[JointRun]) -> list[Plateau]:
    """The plateaus of runs, in order of time."""
    fastest = max(float(np.quantile(np.abs(run.velocity), 0.995)) for run in runs)
    return [one for k, run in enumerate(runs) for one in _of_run(k, run, fastest)]


def _of_run(index: int, run: JointRun, fastest: float) -> list[Plateau]:
    step = float(np.median(np.diff(run.time)))
    width = max(1, round(0.5 * SHORTEST / step))
    if len(run.time) <= 2 * width:
        return []
    total = np.concatenate([[0.0], np.cumsum(run.velocity)])
    means = (total[width:] - total[:-width]) / width  # of rows k .. k + width - 1
    before, after = means[: len(means) - width], means[width:]
    level = 0.5 * (before + after)
    even = (np.abs(after - before) < EVEN * np.abs(level)) & (np.abs(level) > SMALLEST * fastest)
    centre = np.zeros(len(run.time), dtype=bool)
    centre[width : width + len(even)] = even
    edges = np.flatnonzero(np.diff(centre.astype(int), prepend=0, append=0))
    found = []
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        rows = slice(max(first - width // 2, 0), min(end + width // 2, len(run.time)))
        torque = run.torque[rows] - run.rigid[rows]
        velocity = float(np.mean(run.velocity[rows]))
        changed = float(np.ptp(level[first - width : end - width]))
        if run.time[rows][-1] - run.time[rows][0] < SHORTEST or changed > 2.0 * EVEN * abs(velocity):
            continue
        correlated = max(correlation_time([torque]), 1.0)
        deviation = float(np.std(torque) * np.sqrt(correlated / len(torque)))
        found.append(Plateau(velocity, float(np.mean(torque)), deviation, rows, index))
    return found


def is_sweep(runs: Sequence[JointRun], plateaus: Sequence[Plateau]) -> bool:
    """Whether recordings consist of plateaus at several speeds in both directions."""
    fastest = max(float(np.quantile(np.abs(run.velocity), 0.995)) for run in runs)
    moving = sum(int(np.sum(np.abs(run.velocity) > SMALLEST * fastest)) for run in runs)
    rows = sum(one.rows.stop - one.rows.start for one in plateaus)
    both = [levels([one for one in plateaus if sign * one.velocity > 0.0]) for sign in (1.0, -1.0)]
    return rows >= SHARE * moving and min(both) >= LEVELS


def levels(plateaus: Sequence[Plateau]) -> int:
    """Number of different speeds."""
    count, last = 0, 0.0
    for speed in sorted(abs(one.velocity) for one in plateaus):
        if speed > last * (1.0 + ALIKE):
            count, last = count + 1, speed
    return count


def rows_in(runs: Sequence[JointRun], plateaus: Sequence[Plateau]) -> list[Mask]:
    """The rows of each run that are in plateaus."""
    masks = [np.zeros(len(run.time), dtype=bool) for run in runs]
    for one in plateaus:
        masks[one.run][one.rows] = True
    return masks


def friction_points(plateaus: Sequence[Plateau]) -> tuple[Array, Array, Array]:
    """Velocity, torque and deviation of plateaus (P,) each."""
    found = np.array([(one.velocity, one.torque, one.deviation) for one in plateaus]).reshape(-1, 3)
    return found[:, 0], found[:, 1], found[:, 2]
