"""Losses of several laws on subsets of the runs, in the compiled program of the most general law.

M1 to M5 are M6 with some parameters zero or equal, so one program serves all of them: a point of a law is mapped to a
point of the general law, and derivatives are mapped back. One simulation of all runs gives the loss of every subset, with every
strength of the prior, of every law that contains the point; derivatives at a point serve all subsets, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.identify.common.minimise import NormalEquations
from stribeck.identify.servo.prior import Prior, prior_for
from stribeck.identify.servo.rollout import Rollout
from stribeck.identify.servo.task import FitTask
from stribeck.model.arrays import Array, Mask
from stribeck.model.terms import FRICTION_PARAMETERS

IntArray = npt.NDArray[np.int_]


class Rows(NamedTuple):
    """Which fit each point belongs to: indices of law, subset and strength of the prior (S,)."""

    law: IntArray
    subset: IntArray
    strength: IntArray

    def take(self, index: npt.NDArray[np.int_] | Mask) -> Rows:
        """The chosen rows."""
        return Rows(*(part[index] for part in self))


@dataclass(frozen=True, eq=False)
class SubsetLosses:
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
        losses = np.zeros(len(points))
        for law in np.unique(rows.law):
            index = np.flatnonzero(rows.law == law)
            every = self.all_losses(points[index], law, by_run[index])
            losses[index] = every[np.arange(len(index)), rows.subset[index], rows.strength[index]]
        return losses

    def all_losses(self, points: Array, law: int, by_run: Array) -> Array:
        """Losses (P, F, K) of points of a law (P, n) on all subsets with all strengths."""
        finite = np.isfinite(by_run)
        mean = np.where(finite, by_run, 0.0) @ self._shares.T
        mean[~finite @ self.subsets.T] = np.inf
        if (prior := self._priors[law]) is None:
            return np.repeat(mean[:, :, None], len(self.strengths), axis=2)
        factor = np.asarray(self.strengths) / np.sum(self.subsets, axis=1, keepdims=True)
        exponent = prior.exponent(points[:, : self.sizes[law]])
        return np.asarray(mean[:, :, None] * np.exp(exponent[:, None, None] * factor))

    def equations(
        self, points: Array, rows: Rows, rollout: Rollout, known: dict[bytes, NormalEquations] | None = None
    ) -> NormalEquations:
        """Local least-squares problems in the cubes of the laws.

        :param known: derivatives at points of earlier calls; those at these points take their place.
        """
        unique, place = np.unique(self.general(points, rows), axis=0, return_inverse=True)
        at = self._derivatives(unique, rollout, {} if known is None else known)
        size, n = points.shape
        loss, gradient, hessian = np.zeros(size), np.zeros((size, n)), np.zeros((size, n, n))
        for k, by_run in enumerate(at):
            of_point = np.flatnonzero(place == k)
            shares = self._shares[rows.subset[of_point]]
            for whole, part in zip((loss, gradient, hessian), by_run, strict=True):
                whole[of_point] = np.tensordot(shares, np.where(np.isfinite(part), part, 0.0), 1)
        exponent, slope, bend = self._prior(points, rows)
        matrix = self._maps[0][rows.law]
        gradient = np.einsum("sij,si->sj", matrix, gradient) + loss[:, None] * slope
        hessian = np.einsum("sij,sik,skl->sjl", matrix, hessian, matrix) + loss[:, None, None] * bend
        factor = np.exp(exponent)
        return NormalEquations(loss * factor, gradient * factor[:, None], hessian * factor[:, None, None])

    @staticmethod
    def _derivatives(
        points: Array, rollout: Rollout, known: dict[bytes, NormalEquations]
    ) -> list[NormalEquations]:
        """Contributions of the runs to the normal equations at each point of the general law."""
        new = [k for k, point in enumerate(points) if point.tobytes() not in known]
        if new:
            found = rollout.run_equations(points[new])
            parts = zip(*(part.astype(np.float32) for part in found), strict=True)
            known |= {points[k].tobytes(): NormalEquations(*part) for k, part in zip(new, parts, strict=True)}
        at = [known[point.tobytes()] for point in points]
        known.clear()
        known |= {point.tobytes(): part for point, part in zip(points, at, strict=True)}
        return at

    @cached_property
    def _used(self) -> Mask:
        """Which coordinates each law uses (L, n)."""
        return np.asarray(np.arange(self.dimension) < self.sizes[:, None])

    def projected(self, general: Array, law: int) -> tuple[Array, Mask]:
        """Points (S, n) of the general law as points of another law, and which of them it contains (S,)."""
        matrix, offset = self._maps[0][law], self._maps[1][law]
        points = np.clip((general - offset) @ np.linalg.pinv(matrix).T, 0.0, 1.0)
        return points, np.all(np.abs(points @ matrix.T + offset - general) < 1e-9, axis=1)

    @property
    def every(self) -> Rows:
        """All fits: laws, subsets, strengths, the last running fastest."""
        return Rows(*np.indices((len(self.tasks), len(self.subsets), len(self.strengths))).reshape(3, -1))
