r"""Levenberg–Marquardt over all states and parameters, on the manifold, with bounds (seed 002, §3.4).

Each iteration minimises the quadratic model

.. math:: \tfrac12\delta^T(J^TJ + \lambda D)\,\delta + g^T\delta, \qquad l \le \chi + \delta_\chi \le u,

*exactly*: the states are eliminated along their chain, which leaves a problem of as many variables as there are
parameters, whose bounds make it the complementarity problem of :mod:`stribeck.multibody.complementarity`. (The seed's text
breaks off here.) D is Marquardt's diagonal for the parameters.

**The step back to the manifold** is a simulation: the elimination says how the unexplained impulses follow the state,
:math:`\epsilon_k = \epsilon_k^{old} + \alpha(G_\chi\delta_\chi + g) + G_x(x_k \boxminus x_k^{old})`, so that the trial stays near the
recorded motion where the mechanism alone would not (differential dynamic programming: Jacobson and Mayne, 1970).
A step that fails is shortened, with more damping.

**Ratio by stages.** The estimation begins with a small :math:`\rho`, where states follow the samples and the problem is
nearly linear in the parameters, and raises it to the wanted value. Stages before the last stop early; the one before the
last hardly, so that the last begins at one place wherever the first began.

**Kinks.** Where a joint begins to stick the cost has kinks, with one-sided derivatives only: there the model of the
neighbouring piece promises what no step keeps, and the search may end there. The cost is a sum of squares of N samples,
known to :math:`\sqrt{2/N}` of itself: an end at a kink counts as converged only if what a whole step still promises is small
against this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stribeck.multibody.chain import Eliminated, Flags, eliminate
from stribeck.multibody.complementarity import bounded_minimum
from stribeck.multibody.dynamics import BodyState
from stribeck.multibody.mechanism import Array
from stribeck.multibody.problem import Point, GridSamples, turned
from stribeck.multibody.rollout import TrajectoryRollout

FIRST_DAMPING = 1e-3
LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e8
CONVERGED = 1e-6
"""Predicted relative decrease of the cost at which the last stage ends."""

NEAR, NEXT = 1e-2, 1e-4
"""The same for the stages before, and for the one next to the last."""

PROMISED = 0.1
"""Decrease that may still be promised at a kink, as a share of the standard deviation of the cost."""

STAGE = 10.0
"""Factor from one stage's ratio to the next."""

TRACE = 1e-14
"""Share of the parameters' own weight, states held, in their damping: directions that samples do not see stay where they are."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the optimisation ended.

    :param point: parameters and states.
    :param cost: half the weighted sum of squares.
    :param converged: whether the predicted decrease fell below :data:`CONVERGED`, or at a kink below :data:`PROMISED`.
    :param history: ratio, cost, damping of each iteration.
    :param kink: whether it ended where no step lowers the cost, whatever was promised.
    """

    point: Point
    cost: float
    converged: bool
    history: list[tuple[float, float, float]] = field(default_factory=list)
    kink: bool = False


class _Step(NamedTuple):
    """An iteration: where it led, the damping of the next one, the predicted decrease; whether no step helped."""

    point: Point
    cost: float
    damping: float
    predicted: float
    kink: bool = False


class Solver:
    """Finds the optimum of one problem.

    :param rollout: of the same mechanism and step; compiled for recordings of one length.
    :param samples: with smooth values of the position sensors in ``path`` (N, ns).
    :param starts: index of the first state of each run.
    :param released: whether these are known: as ``path`` shows them, at rest (runs,).
    """

    def __init__(
        self, rollout: TrajectoryRollout, samples: GridSamples, path: Array, starts: Array, released: Flags
    ) -> None:
        self.rollout, self.problem = rollout, rollout.problem
        self.samples, self.path, self.starts, self.released = samples, path, starts, released
        problem = self.problem
        self.lower = problem.mechanism.parameters.lower
        self.upper = problem.mechanism.parameters.upper

    def stages(self, ratio: float) -> list[float]:
        """Ratios from the first to the wanted one."""
        first = min(self.problem.first_ratio(self.samples), ratio)
        count = int(np.ceil(np.log(ratio / first) / np.log(STAGE) - 1e-9))
        return [ratio / STAGE**k for k in range(count, -1, -1)]

    def solve(
        self, chi: Array, ratio: float, most: int = 40, progress: Callable[[float, float], None] | None = None
    ) -> Solution:
        """The optimum from parameters (p,).

        :param most: iterations of each stage.
        """
        point = self.rollout.along(
            self.samples, np.clip(chi, self.lower, self.upper), self.path, self.starts[self.released]
        )
        history: list[tuple[float, float, float]] = []
        cost, converged, kink = np.inf, False, False
        stages = self.stages(ratio)
        tolerances = [*[NEAR] * (len(stages) - 2), NEXT, CONVERGED][-len(stages) :]
        for stage, tolerance in zip(stages, tolerances, strict=True):
            cost, damping, converged = self.cost(point, stage), FIRST_DAMPING, False
            for _ in range(most):
                found = self._descend(point, stage, cost, damping)
                kink = found.kink
                if kink:
                    converged = found.predicted <= PROMISED * self.noise_of(cost)
                    break
                point, cost, damping = found.point, found.cost, found.damping
                history.append((stage, cost, damping))
                if progress is not None:
                    progress(stage, cost)
                converged = found.predicted <= tolerance * cost
                if converged:
                    break
        return Solution(point, cost, converged, history, kink)

    def noise_of(self, cost: float) -> float:
        """Standard deviation of a cost with as many samples: of another recording of the same."""
        return cost * float(np.sqrt(2.0 / np.sum(self.samples.count > 0)))

    def cost(self, point: Point, ratio: float) -> float:
        """Half the weighted sum of squares."""
        return self.problem.residuals(point, self.samples, ratio).cost

    def _descend(self, point: Point, ratio: float, before: float, damping: float) -> _Step:
        """A step forward, or none if no damping helps."""
        chain = self.problem.linearize(point, self.samples, self.starts, ratio, self.released)
        found = eliminate(chain)
        size = np.sum(chain.sample[..., -1 - len(point.chi) : -1] ** 2, axis=(0, 1))
        length = 1.0
        while damping <= MOST_DAMPING:
            # Marquardt's diagonal: what parameters weigh once the states follow, and a trace of what they weigh alone.
            damped = found.schur + np.diag(damping * (np.diag(found.schur) + TRACE * size))
            change = bounded_minimum(damped, found.reduced, self.lower - point.chi, self.upper - point.chi)
            predicted = before - found.cost(change)
            trial = self._moved(point, chain.first, chain.first_drift, found, change, length)
            cost = self.cost(trial, ratio)
            if np.isfinite(cost) and cost <= before - 1e-4 * length * predicted:
                gain = (before - cost) / max(predicted, 1e-300)
                factor = 0.1 if gain > 0.7 else 1.0 if gain > 0.1 else 4.0
                return _Step(trial, cost, max(damping * factor, LEAST_DAMPING), predicted)
            if predicted <= 1e-9 * before:
                return _Step(point, before, damping, predicted)  # lower than rounding can tell
            damping, length = damping * 10.0, 0.5 * length
        # Heavy damping promises little: what counts is the promise without it.
        change = bounded_minimum(found.schur, found.reduced, self.lower - point.chi, self.upper - point.chi)
        return _Step(point, before, damping, before - found.cost(change), kink=True)

    def _moved(
        self, point: Point, first: Array, first_drift: Array, found: Eliminated, change: Array, length: float
    ) -> Point:
        """The trial that a share of a step leads to."""
        d, starts = found.gain.shape[2] - len(change) - 1, self.starts
        known = np.append(change, 1.0)
        chi = np.clip(point.chi + length * change, self.lower, self.upper)
        by = (first @ (found.first_gain @ known)[..., None])[..., 0] + first_drift @ change
        q, v = point.q.copy(), point.v.copy()
        q[starts], v[starts] = self.problem.closed(*turned(q[starts], v[starts], length * by), chi)
        inertia, movable = self.problem.inertia(chi), self.problem.movable
        if self.released.any():
            known_starts = starts[self.released]
            q[known_starts] = self.rollout.shown(self.samples, chi, self.path)[0].q[known_starts]
            v[known_starts] = 0.0
        impulse, gain = np.zeros_like(point.impulse), np.zeros((*point.impulse.shape, d))
        impulse[:, movable] = self.problem.kicks(point) + length * (found.gain[:, :, d:] @ known)
        gain[:, movable] = found.gain[:, :, :d]
        impulse, gain = impulse * inertia, gain * inertia[:, None]
        return self.rollout.near(self.samples, point, chi, BodyState(q, v), impulse, gain)
