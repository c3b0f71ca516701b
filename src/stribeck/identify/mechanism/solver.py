r"""Levenberg–Marquardt over all states and parameters, on the manifold, with bounds (Marklund et al. 2025, §3.4).

Each iteration minimises the quadratic model

.. math:: \tfrac12\delta^T(J^TJ + \lambda D)\,\delta + g^T\delta, \qquad l \le \chi + \delta_\chi \le u,

exactly. Eliminating the states along their chain leaves a bounded problem in the parameters alone, which is solved as a
complementarity problem (:mod:`stribeck.identify.mechanism.complementarity`). D is Marquardt's diagonal for the parameters.

**Retraction to the manifold.** A trial is a simulation with feedback from the states to the unexplained impulses,
:math:`\epsilon_k = \epsilon_k^{old} + \alpha(G_\chi\delta_\chi + g) + G_x(x_k \boxminus x_k^{old})`, which keeps it near the
recorded motion even for unstable mechanisms (differential dynamic programming: Jacobson and Mayne 1970). A rejected step is
repeated with more damping and a smaller :math:`\alpha`.

**Stages.** The search starts with a small :math:`\rho`, where states follow the samples and the problem is nearly linear in
the parameters, and increases it to the requested value. Early stages use loose tolerances; the last but one nearly converges,
so that the last stage starts from the same point for all initial values.

**Kinks.** Where a joint starts to stick, the cost has a kink with one-sided derivatives. There the quadratic model may predict
a decrease that no step achieves, and the search ends. The cost, a sum of squares of N samples, has a relative standard
deviation of :math:`\sqrt{2/N}`. A search that ends at a kink counts as converged only if the predicted decrease of an undamped
step is below the fraction :data:`PROMISED` of that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.mechanism.chain import EliminatedChain, Flags, StateChain, eliminate
from stribeck.identify.mechanism.complementarity import bounded_minimum
from stribeck.identify.mechanism.dynamics import BodyState
from stribeck.identify.mechanism.problem import GridSamples, Point, turned
from stribeck.identify.mechanism.rollout import TrajectoryRollout
from stribeck.model.arrays import Array

FIRST_DAMPING = 1e-3
LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e8
CONVERGED = 1e-6
"""Predicted relative decrease of the cost at which the last stage ends."""

NEAR, NEXT = 1e-2, 1e-4
"""The same for the early stages and the last but one."""

PROMISED = 0.1
"""Largest predicted decrease at a kink that counts as converged, in standard deviations of the cost."""

STAGE = 10.0
"""Factor between the ratios of two stages."""

TRACE = 1e-14
"""Fraction of the fixed-state information in the damping, so that parameters without information keep their values."""


@dataclass(frozen=True, eq=False)
class ManifoldSolution:
    """Result of the search.

    :param point: parameters and states.
    :param cost: half the weighted sum of squares.
    :param status: how the last stage ended; ``CONVERGED`` also for a kink that counts as convergence.
    :param history: ratio, cost and damping of each iteration.
    :param kink: whether the search ended at a kink, converged or not.
    """

    point: Point
    cost: float
    status: SolverStatus
    history: list[tuple[float, float, float]] = field(default_factory=list)
    kink: bool = False

    @property
    def converged(self) -> bool:
        """Whether the optimum was found."""
        return self.status == SolverStatus.CONVERGED


class _Step(NamedTuple):
    """Result of an iteration: new point, cost, next damping, predicted decrease; ``kink`` if no step lowers the cost."""

    point: Point
    cost: float
    damping: float
    predicted: float
    kink: bool = False


class ManifoldSolver:
    """Levenberg–Marquardt for one estimation problem.

    :param rollout: for the same mechanism and step; compiled for recordings of one length.
    :param path: smoothed values of the position sensors (N, ns).
    :param starts: index of the first state of each run.
    :param released: whether each run starts at rest in the state given by ``path`` (runs,).
    """

    def __init__(
        self, rollout: TrajectoryRollout, samples: GridSamples, path: Array, starts: Array, released: Flags
    ) -> None:
        self.rollout, self.problem = rollout, rollout.problem
        self.samples, self.path, self.starts, self.released = samples, path, starts, released
        parameters = self.problem.mechanism.parameters
        self.lower, self.upper = parameters.lower, parameters.upper

    def stages(self, ratio: float) -> list[float]:
        """Ratios of all stages up to the requested one."""
        first = min(self.problem.first_ratio(self.samples), ratio)
        count = int(np.ceil(np.log(ratio / first) / np.log(STAGE) - 1e-9))
        return [ratio / STAGE**k for k in range(count, -1, -1)]

    def solve(
        self, chi: Array, ratio: float, most: int = 40, progress: Callable[[float, float], None] | None = None
    ) -> ManifoldSolution:
        """Optimise, starting from parameters (p,), with at most ``most`` iterations per stage."""
        point = self.rollout.along(
            self.samples, np.clip(chi, self.lower, self.upper), self.path, self.starts[self.released]
        )
        history: list[tuple[float, float, float]] = []
        cost, status, kink = np.inf, SolverStatus.LIMIT, False
        stages = self.stages(ratio)
        tolerances = [*[NEAR] * (len(stages) - 2), NEXT, CONVERGED][-len(stages) :]
        for stage, tolerance in zip(stages, tolerances, strict=True):
            cost, damping, status = self.cost(point, stage), FIRST_DAMPING, SolverStatus.LIMIT
            if not np.isfinite(cost):
                return ManifoldSolution(point, cost, SolverStatus.DIVERGED, history)
            for _ in range(most):
                step = self._descend(point, stage, cost, damping)
                kink = step.kink
                if kink:
                    small = step.predicted <= PROMISED * self.cost_deviation(cost)
                    status = SolverStatus.CONVERGED if small else SolverStatus.KINK
                    break
                point, cost, damping = step.point, step.cost, step.damping
                history.append((stage, cost, damping))
                if progress is not None:
                    progress(stage, cost)
                if step.predicted <= tolerance * cost:
                    status = SolverStatus.CONVERGED
                    break
        return ManifoldSolution(point, cost, status, history, kink)

    def cost_deviation(self, cost: float) -> float:
        """Standard deviation of the cost over repeated recordings with the same number of samples."""
        return cost * float(np.sqrt(2.0 / np.sum(self.samples.count > 0)))

    def cost(self, point: Point, ratio: float) -> float:
        """Half the weighted sum of squares."""
        return self.problem.residuals(point, self.samples, self.starts, ratio).cost

    def _descend(self, point: Point, ratio: float, before: float, damping: float) -> _Step:
        """One step, with damping increased until it succeeds."""
        chain = self.problem.linearize(point, self.samples, self.starts, ratio, self.released)
        left = eliminate(chain)
        size = np.sum(chain.sample[..., -1 - len(point.chi) : -1] ** 2, axis=(0, 1))
        length = 1.0
        while damping <= MOST_DAMPING:
            # Marquardt's diagonal, plus a small part of the information with fixed states.
            damped = left.schur + np.diag(damping * (np.diag(left.schur) + TRACE * size))
            change = bounded_minimum(damped, left.reduced, self.lower - point.chi, self.upper - point.chi)
            predicted = before - left.cost(change)
            trial = self._moved(point, chain, left, change, length)
            cost = self.cost(trial, ratio)
            if np.isfinite(cost) and cost <= before - 1e-4 * length * predicted:
                gain = (before - cost) / max(predicted, 1e-300)
                factor = 0.1 if gain > 0.7 else 1.0 if gain > 0.1 else 4.0
                return _Step(trial, cost, max(damping * factor, LEAST_DAMPING), predicted)
            if predicted <= 1e-9 * before:
                return _Step(point, before, damping, predicted)  # below rounding errors
            damping, length = damping * 10.0, 0.5 * length
        # With heavy damping any predicted decrease is small, so the undamped one is used.
        change = bounded_minimum(left.schur, left.reduced, self.lower - point.chi, self.upper - point.chi)
        return _Step(point, before, damping, before - left.cost(change), kink=True)

    def _moved(
        self, point: Point, chain: StateChain, left: EliminatedChain, change: Array, length: float
    ) -> Point:
        """The trial point after the fraction ``length`` of a step."""
        d, starts = left.gain.shape[2] - len(change) - 1, self.starts
        affine = np.append(change, 1.0)
        chi = np.clip(point.chi + length * change, self.lower, self.upper)
        by = (chain.first @ (left.first_gain @ affine)[..., None])[..., 0] + chain.first_drift @ change
        q, v = point.q.copy(), point.v.copy()
        q[starts], v[starts] = self.problem.closed(*turned(q[starts], v[starts], length * by), chi)
        inertia, movable = self.problem.inertia(chi), self.problem.movable
        if self.released.any():
            at_rest = starts[self.released]
            q[at_rest] = self.rollout.shown(self.samples, chi, self.path)[0].q[at_rest]
            v[at_rest] = 0.0
        impulse, gain = np.zeros_like(point.impulse), np.zeros((*point.impulse.shape, d))
        moving = np.concatenate([movable, np.arange(len(inertia), impulse.shape[1])])
        size = np.concatenate([inertia, np.ones(impulse.shape[1] - len(inertia))])
        impulse[:, moving] = self.problem.kicks(point) + length * (left.gain[:, :, d:] @ affine)
        gain[:, moving] = left.gain[:, :, :d]
        impulse, gain = impulse * size, gain * size[:, None]
        return self.rollout.near(self.samples, point, chi, BodyState(q, v), impulse, gain)
