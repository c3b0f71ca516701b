"""What searches have simulated: the best point of each fit, and minima that are equally good."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stribeck.identify.servo.objective import EQUALLY_GOOD
from stribeck.identify.servo.rollout import NormalEquations
from stribeck.identify.servo.subset_losses import IntArray, Rows, SubsetLosses
from stribeck.model.arrays import Array, Mask

MOST_MINIMA = 8
"""Largest number of equally good minima of one fit."""

APART = 0.05
"""Points of the unit cube that differ by less than this along every axis belong to one minimum."""

REACH = 1.5
"""A law whose loss on all runs is more than this many times the least under conditions left out is not refined."""

LOSS_OF_ROUNDING = 1e-8
"""Losses of exact fits are rounding errors of this size [rad], of either sign."""


class Pool(NamedTuple):
    """Points of the general law (P, n), and contributions of the runs to their losses (P, R)."""

    points: Array
    by_run: Array


class SimulatedPoints:
    """Points that were simulated over whole runs: the best of every fit, and those that are equally good for some fit.

    :param derivatives: contributions of the runs to the normal equations at points of the general law, by their bytes.
    """

    def __init__(self, fits: SubsetLosses) -> None:
        self.fits = fits
        shape = (len(fits.tasks), len(fits.subsets), len(fits.strengths))
        runs = fits.subsets.shape[1]
        self.losses, self.best = np.full(shape, np.inf), np.zeros((*shape, fits.dimension))
        self.best_by_run = np.full((*shape, runs), np.inf)
        self.pool = Pool(np.empty((0, fits.dimension)), np.empty((0, runs)))
        self.derivatives: dict[bytes, NormalEquations] = {}

    def add(self, points: Array, by_run: Array) -> None:
        """Add points of the general law (P, n), and contributions of the runs to their losses (P, R)."""
        good = np.zeros(len(points), dtype=bool)
        for law, (lowest, best) in enumerate(zip(self.losses, self.best, strict=True)):
            own, contained = self.fits.projected(points, law)
            index = np.flatnonzero(contained)
            if not len(index):
                continue
            losses = self.fits.all_losses(own[index], law, by_run[index])
            first = np.argmin(losses, axis=0)
            least = np.take_along_axis(losses, first[None], axis=0)[0]
            better = least < lowest
            best[better] = own[index][first[better]]
            self.best_by_run[law][better] = by_run[index][first[better]]
            lowest[better] = least[better]
            good[index] |= np.any(losses <= lowest + EQUALLY_GOOD * np.abs(lowest), axis=(1, 2))
        new = Pool(points[good], by_run[good])
        self.pool = Pool(*map(np.concatenate, zip(self.pool, new, strict=True)))

    def lowest(self, rows: Rows) -> tuple[Array, Array]:
        """The best point of each fit in its law's cube (S, n), and its loss (S,)."""
        return self.best[tuple(rows)], self.losses[tuple(rows)]

    def lowest_of(self, rows: Rows) -> Callable[[IntArray], tuple[Array, Array]]:
        """The same for some of these fits."""
        return lambda index: self.lowest(rows.take(index))

    def minima(self) -> Pool:
        """Points that are equally good for some fit and differ by more than :data:`APART`, the best of each among them."""
        chosen: set[int] = set()
        for law, lowest in enumerate(self.losses):
            own, contained = self.fits.projected(self.pool.points, law)
            losses = np.where(
                contained[:, None, None], self.fits.all_losses(own, law, self.pool.by_run), np.inf
            )
            good = losses <= lowest + EQUALLY_GOOD * np.abs(lowest)
            for fit in np.ndindex(lowest.shape):
                index = np.flatnonzero(good[(slice(None), *fit)])
                index = index[np.argsort(losses[(index, *fit)], kind="stable")]
                chosen.update(index[apart(own[index], MOST_MINIMA)].tolist())
        index = np.array(sorted(chosen))
        return Pool(self.pool.points[index], self.pool.by_run[index])

    def within_reach(self) -> Mask:
        """Laws that may be chosen (L,), by their losses with the strength in the middle.

        Over all conditions, a law has under those left out at least its loss in a fit to all runs: a fit without some of
        the runs is at least as good on the others, and no better on all.
        """
        every = len(self.fits.strengths) // 2
        left_out = ~self.fits.subsets[1:]
        if not len(left_out):
            return np.ones(len(self.losses), dtype=bool)
        share = left_out / np.sum(left_out, axis=1, keepdims=True)
        by_run = self.best_by_run[:, :, every]
        least = np.sum(share * by_run[:, :1], axis=(1, 2))
        predicted = np.sum(share * by_run[:, 1:], axis=(1, 2))
        return np.asarray(least <= REACH * np.min(predicted) + LOSS_OF_ROUNDING)


def apart(points: Array, count: int, distance: float = APART) -> IntArray:
    """Indices of the first ``count`` of points (S, n) that differ by more than a distance along an axis."""
    picked = [0]
    for k in range(1, len(points)):
        if len(picked) < count and np.min(np.max(np.abs(points[picked] - points[k]), axis=1)) > distance:
            picked.append(k)
    return np.array(picked)
