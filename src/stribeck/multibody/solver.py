r"""Levenberg–Marquardt over all states and parameters, on the manifold, with bounds (seed 002, §3.4).

Each iteration minimises the quadratic model

.. math:: \tfrac12\delta^T(J^TJ + \lambda D)\,\delta + g^T\delta, \qquad l \le \chi + \delta_\chi \le u,

*exactly*: the states are eliminated along their chain, which leaves a problem of as many variables as there are
parameters, whose bounds make it the complementarity problem of :mod:`stribeck.multibody.complementarity`. (The seed's text
breaks off here.) D is Marquardt's diagonal for the parameters; a step that fails is shortened as well.

**Ratio by stages.** The estimation begins with a small :math:`\rho`, where states follow the samples and the problem is
nearly linear in the parameters, and raises it to the wanted value. Stages before the last stop early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stribeck.multibody.chain import eliminate
from stribeck.multibody.complementarity import bounded_minimum
from stribeck.multibody.mechanism import Array
from stribeck.multibody.problem import Linear, Point, Problem, Residuals, Samples

FIRST_DAMPING = 1e-3
LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e8
CONVERGED = 1e-6
"""Predicted relative decrease of the cost at which the last stage ends."""

NEAR = 1e-2
"""The same for the stages before."""

FEASIBLE = 1e-9
"""Gaps of the reactions that count as closed [m/s, rad/s]."""

WIDEST = 1.0
"""Gaps that no step may open [m/s, rad/s]."""

TRACE = 1e-14
"""Share of the parameters' own weight, states held, in their damping: directions that samples do not see stay where they are."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the optimisation ended.

    :param point: parameters and states.
    :param cost: half the weighted sum of squares.
    :param converged: whether the predicted decrease fell below :data:`CONVERGED`.
    :param history: ratio, cost, damping of each iteration.
    """

    point: Point
    cost: float
    converged: bool
    history: list[tuple[float, float, float]] = field(default_factory=list)


class Solver:
    """Finds the optimum of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.lower = problem.mechanism.parameters.lower
        self.upper = problem.mechanism.parameters.upper

    def solve(
        self,
        start: Point,
        samples: Samples,
        starts: Array,
        ratios: Sequence[float],
        *,
        most: int = 60,
        progress: Callable[[float, float], None] | None = None,
    ) -> Solution:
        """The optimum from a point, with the ratio raised by stages.

        :param start: its parameters are clipped into their bounds.
        :param starts: index of the first state of each run.
        :param ratios: of the stages; the last is the wanted one.
        :param most: iterations per stage.
        """
        history: list[tuple[float, float, float]] = []
        point = Point(np.clip(start.chi, self.lower, self.upper), start.q, start.v, start.reaction)
        damping, converged = FIRST_DAMPING, False
        residuals = self.problem.residuals(point, samples, starts, ratios[0])
        for stage, ratio in enumerate(ratios):
            tolerance = CONVERGED if stage == len(ratios) - 1 else NEAR
            residuals, converged = self.problem.residuals(point, samples, starts, ratio), False
            passed: list[tuple[float, float]] = []
            for _ in range(most):
                found = self._descend(point, samples, starts, ratio, residuals, damping, passed)
                if found is None:
                    damping = FIRST_DAMPING
                    break
                point, residuals, damping, predicted = found
                history.append((ratio, residuals.cost, damping))
                if progress is not None:
                    progress(ratio, residuals.cost)
                small = abs(predicted) <= tolerance * max(residuals.cost, 1e-300)
                converged = small and residuals.infeasible <= FEASIBLE
                if converged:
                    break
        return Solution(point, residuals.cost, converged, history)

    def _descend(
        self, point: Point, samples: Samples, starts: Array, ratio: float, before: Residuals, damping: float,
        passed: list[tuple[float, float]],
    ) -> tuple[Point, Residuals, float, float] | None:
        """A step forward, with damping and predicted decrease; ``None`` if no damping helps.

        A step is taken if no point passed so far has both a lower cost and narrower gaps (a filter, Fletcher and Leyffer,
        "Nonlinear programming without a penalty function", Math. Program. 91, 2002).

        :param passed: gaps and costs of the points of this stage; this one is added.
        """
        passed.append((max(before.infeasible, FEASIBLE), before.cost))
        linear = self.problem.linearize(point, samples, starts, ratio)
        system = eliminate(linear.rows)
        schur, size, length = system.schur, np.sum(linear.rows.parameters**2, axis=(0, 1)), 1.0
        while damping <= MOST_DAMPING:
            # Marquardt's diagonal: what parameters weigh once the states follow, and a trace of what they weigh alone.
            damped = schur + np.diag(damping * (np.diag(schur) + TRACE * size))
            change = bounded_minimum(damped, system.reduced, self.lower - point.chi, self.upper - point.chi)
            increments = system.states(change)
            trial = self.problem.moved(point, linear, change, increments, length)
            new = self.problem.residuals(trial, samples, starts, ratio)
            predicted = before.cost - _model_cost(linear, increments, change)
            gap = max(new.infeasible, FEASIBLE)
            if np.isfinite(new.cost) and all(
                gap <= 0.99 * other or (gap <= WIDEST and new.cost <= cost - 1e-4 * other * cost) for other, cost in passed
            ):
                gain = (before.cost - new.cost) / max(predicted, 1e-300)
                factor = 0.1 if gain > 0.7 else 1.0 if gain > 0.1 else 4.0
                if before.infeasible > 100.0 * FEASIBLE:
                    factor = 1.0  # the cost says little while gaps are open
                return trial, new, max(damping * factor, LEAST_DAMPING), predicted
            if np.isfinite(new.cost) and abs(predicted) <= 1e-9 * before.cost and gap <= FEASIBLE:
                return point, before, damping, predicted  # lower than rounding can tell
            damping, length = damping * 10.0, 0.5 * length
        return None


def _model_cost(linear: Linear, increments: Array, change: Array) -> float:
    """Half the sum of squares of the linear model after a step."""
    rows = linear.rows
    after = np.concatenate([increments[1:], increments[-1:]])
    found = rows.value + (rows.here @ increments[..., None] + rows.there @ after[..., None])[..., 0]
    found = found + rows.parameters @ change
    first = rows.first_value + (rows.first @ increments[rows.starts][..., None])[..., 0]
    first = first + rows.first_parameters @ change
    return 0.5 * float(np.sum(found * found) + np.sum(first * first))
