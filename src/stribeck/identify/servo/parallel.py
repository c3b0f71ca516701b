"""Fits of several laws to several subsets of the runs at once.

What is simulated for one of them counts for all: the best point of each fit, and minima that are equally good are kept; see :mod:`~stribeck.identify.servo.subset_losses`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from stribeck.identify.common.minimise import NormalEquations, minimise_batch
from stribeck.identify.servo.descent import random_steps
from stribeck.identify.servo.objective import EQUALLY_GOOD
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


DAMPINGS = 10.0 ** np.arange(-4.0, 3.0, 2.0)
"""Dampings tried in every iteration, relative to the last successful one."""

FAR = 0.1
"""Smallest distance of first starting points along some axis of the unit cube."""

RISE = 0.3
"""Relative rise of the loss that random trial points have on average, by its quadratic model."""


class Stage(NamedTuple):
    """A stage of a search.

    :param starts: points at which it begins, for each fit.
    :param iterations: largest number of iterations.
    :param tries: random trial points per iteration.
    :param horizon: interval at which simulations are reset to the measurement [s]; ``None`` for whole runs.
    """

    starts: int
    iterations: int
    tries: int
    horizon: float | None = None


FIRST = (Stage(6, 5, 4, 0.5), Stage(3, 5, 12, 1.5), Stage(2, 15, 48))
"""Search of each law for all runs."""

RUGGED = (Stage(24, 5, 4, 0.5), Stage(12, 5, 12, 1.5), Stage(4, 15, 48))
"""The same for M4, which has most minima. Those of M5 and M6, which contain it, are mostly near its own."""

STAGES = {"m4": RUGGED, "m6": (*FIRST[:2], FIRST[2]._replace(tries=96))}
"""Stages of laws that need others than :data:`FIRST`: M6 has most parameters, so random points miss its minimum more often."""

ON_SUBSETS = Stage(1, 2, 12)
"""First searches of all laws for all subsets, with one strength of the prior."""

ON_WITHIN_REACH = Stage(1, 8, 12)
"""The next, of laws that may be chosen."""

TRIED_RUNS, MOST_TRIES = 400, 48
"""Trial points in an iteration of these searches simulate about this many runs, up to so many points: few runs take less time."""

WITH_STRENGTHS = Stage(1, 12, 0)
"""Searches of these laws for all subsets with all strengths, until they have converged: the errors of fits that ended early are not those of the
fit that is made with the law chosen."""

QUASI_RANDOM = 512
"""Quasi-random points of each law, of which a search starts from the best; a power of 2."""


@dataclass(frozen=True, eq=False)
class ParallelFits(SubsetLosses):
    """Searches for the minima of several laws on subsets of the runs."""

    def refine(
        self,
        points: Array,
        rows: Rows,
        stage: Stage,
        tolerance: float = 2e-4,
        simulated: SimulatedPoints | None = None,
        together: bool = False,
    ) -> Array:
        """Points (S, n) after damped steps with random trial points; each search ends when an iteration gains less than ``tolerance``.

        A loss over whole runs has many minima close to each other, since a servo sticks a little earlier or later. Random
        points around the damped steps leave them; losses are cheap beside derivatives.

        :param simulated: receives all points, if they are simulated over whole runs.
        :param together: go on from the best of its points, whichever search has found it.
        """
        rollout = self.rollout if stage.horizon is None else self.rollout.with_reset_period(stage.horizon)
        rng = np.random.default_rng(0)
        known = {} if simulated is None else simulated.derivatives

        def losses(points: Array, searches: IntArray) -> Array:
            chosen = rows.take(searches)
            by_run = self.run_losses(points, chosen, rollout)
            if simulated is not None:
                simulated.add(self.general(points, chosen), by_run)
            return self.losses(points, chosen, by_run)

        def scatter(equations: NormalEquations, searches: IntArray) -> Array:
            used = self._used[rows.law[searches]]
            return random_steps(equations, stage.tries, RISE, rng) * used[:, None]

        return minimise_batch(
            lambda points, searches: self.equations(points, rows.take(searches), rollout, known),
            losses,
            points,
            losses(points, np.arange(len(points))),
            iterations=stage.iterations,
            dampings=DAMPINGS,
            tolerance=tolerance,
            rounding=LOSS_OF_ROUNDING,
            scatter=scatter if stage.tries else None,
            lowest=simulated.lowest_of(rows) if together and simulated is not None else None,
        ).points

    def starts(self, count: int, seed: int) -> tuple[Array, Rows]:
        """Quasi-random points of every law (L * count, n), as fits to the first subset.

        Positive parameters whose bounds span more than a factor of 20 are mostly near the lower one: their points are
        dense there.
        """
        cube = qmc.Sobol(self.dimension, rng=np.random.default_rng(seed)).random_base2(int(np.log2(count)))
        points = []
        for law, task in enumerate(self.tasks):
            free = task.parameters.free
            wide = [one.lower >= 0.0 and one.upper > 20.0 * one.lower for one in free]
            power = np.where(np.pad(wide, (0, self.dimension - len(free))), 3.0, 1.0)
            points.append(cube**power * self._used[law])
        laws = np.repeat(np.arange(len(self.tasks)), len(cube))
        return np.concatenate(points), Rows(laws, np.zeros_like(laws), np.zeros_like(laws))

    def fit(self, seed: int = 0, count: int = QUASI_RANDOM) -> Pool:
        """Search for the minima of every law on every subset with every strength.

        Laws are fitted to all runs first, over short horizons, then over whole runs. In the searches for the subsets and
        strengths, every point simulated is one of all fits whose laws contain it, and each fit goes on from the best. A fit
        to a subset can therefore start from what other runs told.

        :param count: quasi-random points per law; with fewer than :data:`QUASI_RANDOM` there are fewer starts, too.
        """
        points, rows = self.starts(count, seed)
        share, tries = min(1.0, count / QUASI_RANDOM), self._tries
        most = 2 * tries if len(self.subsets) == 1 else min(MOST_TRIES, 2 * tries)
        distance, simulated, reach = FAR, SimulatedPoints(self), np.ones(len(self.tasks), dtype=bool)
        for stages in zip(*(STAGES.get(task.law.name, FIRST) for task in self.tasks), strict=True):
            stage = stages[0]._replace(tries=min(max(one.tries for one in stages), most))
            counts = [max(round(one.starts * share), 2) for one in stages]
            rollout = self.rollout.with_reset_period(stage.horizon)
            losses = self.losses(points, rows, self.run_losses(points, rows, rollout))
            points, rows = self._best(points, rows, losses, counts, distance)
            points = self.refine(points, rows, stage, simulated=simulated if stage.horizon is None else None)
            distance = APART
        middle = self.every.take(self.every.strength == len(self.strengths) // 2)
        for rows, stage in (
            (middle, ON_SUBSETS),
            (middle, ON_WITHIN_REACH._replace(tries=tries)),
            (self.every, WITH_STRENGTHS),
        ):
            if stage is WITH_STRENGTHS and len(self.strengths) == 1:
                break
            rows = rows.take(reach[rows.law])
            self.refine(simulated.lowest(rows)[0], rows, stage, simulated=simulated, together=True)
            reach = simulated.within_reach()
        return simulated.minima()

    @property
    def _tries(self) -> int:
        """Random trial points per iteration in searches for subsets."""
        few = TRIED_RUNS // self.subsets.shape[1]
        return MOST_TRIES if len(self.subsets) == 1 else max(ON_SUBSETS.tries, min(few, MOST_TRIES))

    def _best(
        self, points: Array, rows: Rows, losses: Array, counts: Sequence[int], distance: float
    ) -> tuple[Array, Rows]:
        """The best points of each law that differ by more than a distance along an axis."""
        chosen = []
        for law, count in enumerate(counts):
            of_law = np.flatnonzero(rows.law == law)
            order = of_law[np.argsort(losses[of_law], kind="stable")]
            chosen.append(order[apart(points[order], count, distance)])
        index = np.concatenate(chosen)
        return points[index], rows.take(index)

    def ranked(self, pool: Pool, row: Rows) -> tuple[IntArray, Array, Array]:
        """Points of a pool for one fit, the best first: their indices, points in the law's cube and losses."""
        points, valid = self.projected(pool.points, int(row.law[0]))
        candidates = np.flatnonzero(valid)
        losses = self.losses(
            points[candidates], row.take(np.zeros(len(candidates), int)), pool.by_run[candidates]
        )
        order = np.argsort(losses, kind="stable")
        return candidates[order], points[candidates[order]], losses[order]

    def errors(self, pool: Pool) -> Array:
        """Mean absolute error of every run [rad] for every law, subset and strength (L, F, K, R).

        Where several minima fit a subset equally well, it is their mean: a search may end in any of them.
        """
        by_run = self.rollout.run_errors(pool.points)
        by_run = np.where(np.isfinite(by_run), by_run, np.inf)
        every, errors = self.every, []
        for k in range(len(every.law)):
            indices, _, _ = self.equally_good(pool, every.take(np.array([k])))
            errors.append(np.mean(by_run[indices], axis=0))
        return np.reshape(errors, (len(self.tasks), len(self.subsets), len(self.strengths), -1))

    def equally_good(self, pool: Pool, row: Rows) -> tuple[IntArray, Array, Array]:
        """Indices in a pool, points and losses of the minima of one fit that are equally good, the best first."""
        indices, points, losses = self.ranked(pool, row)
        good = losses <= losses[0] + EQUALLY_GOOD * abs(losses[0])
        return indices[good], points[good], losses[good]

    def minima(self, pool: Pool, law: int, strength: int, subset: int = 0) -> tuple[Array, Array]:
        """Equally good minima (M, n) of one fit that differ by more than :data:`APART`, the best first, and their losses (M,)."""
        row = Rows(np.array([law]), np.array([subset]), np.array([strength]))
        _, points, losses = self.equally_good(pool, row)
        chosen = apart(points, MOST_MINIMA)
        return points[chosen, : self.sizes[law]], losses[chosen]

    def best(self, pool: Pool, law: int, strength: int) -> Array:
        """The best point of a law for all runs (n,)."""
        return np.asarray(self.minima(pool, law, strength)[0][0])
