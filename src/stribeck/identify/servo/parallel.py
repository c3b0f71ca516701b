"""Fits of several laws to several subsets of the runs at once, in the compiled program of the most general law.

M1 to M5 are M6 with some parameters zero or equal, so one program serves all of them: a point of a law is mapped to a
point of the general law, and derivatives are mapped back. One simulation of all runs gives the loss of every subset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from stribeck.identify.common.minimise import BatchEquations, minimise_batch
from stribeck.identify.servo.descent import random_steps
from stribeck.identify.servo.objective import EQUALLY_GOOD
from stribeck.identify.servo.prior import Prior, prior_for
from stribeck.identify.servo.rollout import NormalEquations, Rollout
from stribeck.identify.servo.task import FitTask
from stribeck.model.arrays import Array, Mask
from stribeck.model.terms import FRICTION_PARAMETERS

IntArray = npt.NDArray[np.int_]

MOST_MINIMA = 8
"""Largest number of equally good minima of one fit."""

DAMPINGS = 10.0 ** np.arange(-4.0, 3.0, 2.0)
"""Dampings tried in every iteration, relative to the last successful one."""

APART = 0.05
"""Points of the unit cube that differ by less than this along every axis belong to one minimum."""

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

ON_SUBSETS = (Stage(2, 6, 12), Stage(1, 8, 48))
"""Searches of all laws for all subsets, with one strength of the prior."""

WITH_STRENGTHS = Stage(1, 4, 12)
"""Searches of all laws for all subsets with all strengths."""

QUASI_RANDOM = 512
"""Quasi-random points of each law, of which a search starts from the best; a power of 2."""


class Rows(NamedTuple):
    """Which fit each point belongs to: indices of law, subset and strength of the prior (S,)."""

    law: IntArray
    subset: IntArray
    strength: IntArray

    def take(self, index: npt.NDArray[np.int_] | Mask) -> Rows:
        """The chosen rows."""
        return Rows(*(part[index] for part in self))


LOSS_OF_ROUNDING = 1e-8
"""Losses of exact fits are rounding errors of this size [rad]."""


class Pool(NamedTuple):
    """Points of the general law (P, n), and contributions of the runs to their losses (P, R)."""

    points: Array
    by_run: Array


class Fitted(NamedTuple):
    """Points in the unit cubes of their laws (S, n), their losses (S,), and contributions of the runs (S, R)."""

    points: Array
    losses: Array
    by_run: Array


@dataclass(frozen=True, eq=False)
class ParallelFits:
    """Losses and derivatives of several laws on subsets of the runs.

    :param tasks: one per law, the most general law last, of the same runs.
    :param rollout: simulations of the general law.
    :param subsets: runs fitted, (F, R).
    :param strengths: factors on the exponent of the prior.
    :param on_progress: called with the number of evaluations after every batch.
    """

    tasks: Sequence[FitTask]
    rollout: Rollout
    subsets: Mask
    strengths: Sequence[float] = (1.0,)
    on_progress: Callable[[int], None] = lambda evaluations: None

    @property
    def dimension(self) -> int:
        """Number of free parameters of the general law; points of other laws are padded."""
        return self.rollout.dimension

    @cached_property
    def sizes(self) -> IntArray:
        """Number of free parameters of each law (L,)."""
        return np.array([len(task.parameters.free) for task in self.tasks])

    @cached_property
    def _maps(self) -> tuple[Array, Array]:
        """Matrices (L, n, n) and offsets (L, n) from the unit cube of each law to that of the general law."""
        general, n = self.rollout.parameters, self.dimension
        matrices, offsets = np.zeros((len(self.tasks), n, n)), np.zeros((len(self.tasks), n))
        width = general.upper - general.lower
        for k, task in enumerate(self.tasks):
            values = dict.fromkeys(general.free_names, 0.0)
            values |= {
                name: general[name].value
                for name in general.free_names
                if name in FRICTION_PARAMETERS and FRICTION_PARAMETERS[name].shape
            }
            for j, parameter in enumerate(task.parameters.free):
                richer = [name for name, one in FRICTION_PARAMETERS.items() if one.like == parameter.name]
                for name in (parameter.name,) if parameter.name in general.free_names else richer:
                    if name in general.free_names:
                        i = general.free_names.index(name)
                        matrices[k, i, j] = (parameter.upper - parameter.lower) / width[i]
                        values[name] = parameter.lower
            offsets[k] = general.to_unit([values[name] for name in general.free_names])
        return matrices, offsets

    @cached_property
    def _shares(self) -> Array:
        """Factors on the weights of the runs (F, R), so that every subset's loss is a mean over its runs."""
        count = np.sum(self.subsets, axis=1, keepdims=True)
        return np.asarray(self.subsets * (self.subsets.shape[1] / count))

    @cached_property
    def _priors(self) -> list[Prior | None]:
        return [prior_for(task.actuator, task.parameters, 1) for task in self.tasks]

    def general(self, points: Array, rows: Rows) -> Array:
        """Points of the general law (S, n)."""
        matrices, offsets = self._maps
        return np.asarray(np.einsum("sij,sj->si", matrices[rows.law], points) + offsets[rows.law])

    def _prior(self, points: Array, rows: Rows) -> tuple[Array, Array, Array]:
        """Exponent (S,), its gradient (S, n) and Hessian (S, n, n)."""
        size, n = points.shape
        exponent, gradient, hessian = np.zeros(size), np.zeros((size, n)), np.zeros((size, n, n))
        runs = np.sum(self.subsets, axis=1)[rows.subset]
        factor = np.asarray(self.strengths)[rows.strength] / runs
        for k, prior in enumerate(self._priors):
            chosen, m = np.flatnonzero(rows.law == k), self.sizes[k]
            if prior is None or not len(chosen):
                continue
            part, scale = points[chosen, :m], factor[chosen]
            exponent[chosen] = scale * prior.exponent(part)
            gradient[chosen, :m] = scale[:, None] * prior.gradient(part)
            hessian[chosen[:, None, None], np.arange(m)[:, None], np.arange(m)] = (
                scale[:, None, None] * prior.hessian
            )
        return exponent, gradient, hessian

    def run_losses(self, points: Array, rows: Rows, rollout: Rollout | None = None) -> Array:
        """Contributions of the runs (S, R); infinite for runs that diverge."""
        losses = (rollout or self.rollout).run_losses(self.general(points, rows))
        self.on_progress(self.rollout.meter.evaluations)
        return np.where(np.isfinite(losses), losses, np.inf)

    def losses(self, points: Array, rows: Rows, by_run: Array) -> Array:
        """Losses (S,) of points whose contributions by run are known."""
        shares = self._shares[rows.subset]
        mean = np.sum(np.where(shares > 0.0, shares * by_run, 0.0), axis=-1)
        return np.asarray(mean * np.exp(self._prior(points, rows)[0]))

    def equations(self, points: Array, rows: Rows, rollout: Rollout) -> NormalEquations:
        """Local least-squares problems in the cubes of the laws."""
        shares = None if np.all(self.subsets) else self._shares[rows.subset]
        loss, gradient, hessian = rollout.normal_equations(self.general(points, rows), shares=shares)
        matrix = self._maps[0][rows.law]
        exponent, slope, bend = self._prior(points, rows)
        gradient = np.einsum("sij,si->sj", matrix, gradient) + loss[:, None] * slope
        hessian = np.einsum("sij,sik,skl->sjl", matrix, hessian, matrix) + loss[:, None, None] * bend
        factor = np.exp(exponent)
        return NormalEquations(loss * factor, gradient * factor[:, None], hessian * factor[:, None, None])

    def refine(self, points: Array, rows: Rows, stage: Stage, tolerance: float = 2e-4) -> Fitted:
        """Damped steps with random trial points; each search ends when an iteration gains less than ``tolerance``.

        A loss over whole runs has many minima close to each other, since a servo sticks a little earlier or later. Random
        points around the damped steps leave them; losses are cheap beside derivatives.
        """
        rollout = self.rollout if stage.horizon is None else self.rollout.with_reset_period(stage.horizon)
        rng = np.random.default_rng(0)

        def losses(points: Array, searches: IntArray) -> Array:
            chosen = rows.take(searches)
            return self.losses(points, chosen, self.run_losses(points, chosen, rollout))

        def scatter(equations: BatchEquations, searches: IntArray) -> Array:
            used = self._used[rows.law[searches]]
            return random_steps(equations, stage.tries, RISE, rng) * used[:, None]

        found = minimise_batch(
            lambda points, searches: self.equations(points, rows.take(searches), rollout),
            losses,
            points,
            losses(points, np.arange(len(points))),
            iterations=stage.iterations,
            dampings=DAMPINGS,
            tolerance=tolerance,
            rounding=LOSS_OF_ROUNDING,
            scatter=scatter,
        )
        by_run = self.run_losses(found.points, rows, rollout)
        return Fitted(found.points, self.losses(found.points, rows, by_run), by_run)

    @cached_property
    def _used(self) -> Mask:
        """Which coordinates each law uses (L, n)."""
        return np.asarray(np.arange(self.dimension) < self.sizes[:, None])

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
        return np.concatenate(points), self.rows(np.repeat(np.arange(len(self.tasks)), len(cube)))

    def rows(self, laws: IntArray) -> Rows:
        """Fits of these laws to the first subset with the first strength."""
        return Rows(laws, np.zeros_like(laws), np.zeros_like(laws))

    def projected(self, general: Array, law: int) -> tuple[Array, Mask]:
        """Points (S, n) of the general law as points of another law, and which of them it contains (S,)."""
        matrix, offset = self._maps[0][law], self._maps[1][law]
        points = np.clip((general - offset) @ np.linalg.pinv(matrix).T, 0.0, 1.0)
        return points, np.all(np.abs(points @ matrix.T + offset - general) < 1e-9, axis=1)

    def fit(self, seed: int = 0, count: int = QUASI_RANDOM) -> Pool:
        """Search for the minima of every law on every subset with every strength.

        Laws are fitted to all runs first, over short horizons, then over whole runs. Each point found for one subset,
        strength or simpler law is a starting point of the others. A fit to a subset can therefore start
        from what other runs told; on the XL330 it ends 3 % above the lowest loss known for the subset, on average.

        :param count: quasi-random points per law; with fewer than :data:`QUASI_RANDOM` there are fewer starts, too.
        """
        points, rows = self.starts(count, seed)
        share = min(1.0, count / QUASI_RANDOM)
        distance = FAR
        for stages in zip(*(RUGGED if task.law.name == "m4" else FIRST for task in self.tasks), strict=True):
            counts = [max(round(stage.starts * share), 2) for stage in stages]
            rollout = self.rollout.with_reset_period(stages[0].horizon)
            losses = self.losses(points, rows, self.run_losses(points, rows, rollout))
            points, rows = self._best(points, rows, losses, counts, distance)
            found = self.refine(points, rows, stages[0])
            points = found.points
            distance = APART
        pool = Pool(self.general(points, rows), found.by_run)
        middle = len(self.strengths) // 2
        for stage in (*ON_SUBSETS, WITH_STRENGTHS):
            starts, rows = self._from_pool(pool, stage.starts, None if stage is WITH_STRENGTHS else middle)
            found = self.refine(starts, rows, stage)
            general = self.general(found.points, rows)
            pool = Pool(*map(np.concatenate, ((pool.points, general), (pool.by_run, found.by_run))))
        return pool

    def _best(
        self, points: Array, rows: Rows, losses: Array, counts: Sequence[int], distance: float
    ) -> tuple[Array, Rows]:
        """The best points of each law that differ by more than a distance along an axis."""
        chosen = []
        for law, count in enumerate(counts):
            of_law = np.flatnonzero(rows.law == law)
            order = of_law[np.argsort(losses[of_law], kind="stable")]
            chosen.append(order[_apart(points[order], count, distance)])
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

    @property
    def every(self) -> Rows:
        """All fits: laws, subsets, strengths, the last running fastest."""
        return Rows(*np.indices((len(self.tasks), len(self.subsets), len(self.strengths))).reshape(3, -1))

    def _from_pool(self, pool: Pool, count: int, strength: int | None = None) -> tuple[Array, Rows]:
        """For each fit (with one strength) the best ``count`` points of the pool that differ by more than :data:`APART`."""
        starts, indices, every = [], [], self.every
        if strength is not None:
            every = every.take(every.strength == strength)
        for k in range(len(every.law)):
            _, points, _ = self.ranked(pool, every.take(np.array([k])))
            picked = points[_apart(points, count)]
            starts.append(picked)
            indices += [k] * len(picked)
        return np.concatenate(starts), every.take(np.array(indices))

    def errors(self, pool: Pool) -> Array:
        """Mean absolute error of every run [rad] for every law, subset and strength (L, F, K, R).

        Where several minima fit a subset equally well, it is their mean: a search may end in any of them.
        """
        by_run = self.rollout.run_errors(pool.points)
        by_run = np.where(np.isfinite(by_run), by_run, np.inf)
        every, errors = self.every, []
        for k in range(len(every.law)):
            indices, _ = self._equally_good(pool, every.take(np.array([k])))
            errors.append(np.mean(by_run[indices], axis=0))
        return np.reshape(errors, (len(self.tasks), len(self.subsets), len(self.strengths), -1))

    def _equally_good(self, pool: Pool, row: Rows) -> tuple[IntArray, Array]:
        """Indices in a pool and points of the minima of one fit that are equally good, the best first."""
        indices, points, losses = self.ranked(pool, row)
        good = losses <= losses[0] + EQUALLY_GOOD * abs(losses[0])
        return indices[good], points[good]

    def minima(self, pool: Pool, law: int, strength: int, subset: int = 0) -> Array:
        """Equally good minima (M, n) of one fit that differ by more than :data:`APART`, the best first."""
        row = Rows(np.array([law]), np.array([subset]), np.array([strength]))
        points = self._equally_good(pool, row)[1]
        return np.asarray(points[_apart(points, MOST_MINIMA), : self.sizes[law]])

    def best(self, pool: Pool, law: int, strength: int) -> Array:
        """The best point of a law for all runs (n,)."""
        return np.asarray(self.minima(pool, law, strength)[0])


def _apart(points: Array, count: int, distance: float = APART) -> IntArray:
    """Indices of the first ``count`` of points (S, n) that differ by more than a distance along an axis."""
    picked = [0]
    for k in range(1, len(points)):
        if len(picked) < count and np.min(np.max(np.abs(points[picked] - points[k]), axis=1)) > distance:
            picked.append(k)
    return np.array(picked)
