r"""Levenberg–Marquardt over all states and parameters, on the manifold, with bounds (seed 002, §3.4).

Each iteration minimises the quadratic model

.. math:: \tfrac12\delta^T(J^TJ + \lambda D)\,\delta + g^T\delta, \qquad l \le \chi + \delta_\chi \le u,

*exactly*: the states are eliminated along their chain, which leaves a problem of as many variables as there are
parameters, whose bounds make it the complementarity problem of :mod:`stribeck.multibody.complementarity`. (The seed's text
breaks off here.) D is Marquardt's diagonal for the parameters; states are damped as if each of them were observed
with standard deviation :math:`\sigma_0/\sqrt\lambda`.

**Ratio by stages.** The estimation begins with a small :math:`\rho`, where states follow the samples and the problem is
nearly linear in the parameters, and raises it to the wanted value. Stages before the last stop early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stribeck.multibody.block_tridiagonal import Eliminated, eliminate
from stribeck.multibody.complementarity import bounded_minimum
from stribeck.multibody.mechanism import Array
from stribeck.multibody.problem import Linear, Point, Problem, Samples

FIRST_DAMPING = 1e-3
LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e8
CONVERGED = 1e-6
"""Predicted relative decrease of the cost at which the last stage ends."""

NEAR = 1e-2
"""The same for the stages before."""

VELOCITY_SCALE = 10.0
"""Angular velocity that counts as much as an angle of 1 rad in the damping of states [rad/s]."""


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


@dataclass(frozen=True, eq=False)
class Normal:
    """Normal equations of a linearised problem (see :mod:`stribeck.multibody.block_tridiagonal`)."""

    diagonal: Array
    lower: Array
    border: Array
    corner: Array
    gradient: Array
    slope: Array

    @classmethod
    def of(cls, linear: Linear, starts: Array) -> Normal:
        """Of residuals and Jacobians."""
        A, N, P = linear.here, linear.there, linear.parameters
        At, Nt = A.transpose(0, 2, 1), N.transpose(0, 2, 1)
        value = np.concatenate([linear.residuals.impulses, linear.residuals.samples], axis=1)[..., None]
        diagonal, border = At @ A, At @ P
        gradient = (At @ value)[..., 0]
        diagonal[1:] += (Nt @ N)[:-1]
        border[1:] += (Nt @ P)[:-1]
        gradient[1:] += (Nt @ value)[:-1, :, 0]
        first, first_value = linear.first, linear.residuals.first[..., None]
        Ft = first.transpose(0, 2, 1)
        diagonal[starts] += Ft @ first
        border[starts] += Ft @ linear.first_parameters
        gradient[starts] += (Ft @ first_value)[..., 0]
        flat, flat_first = P.reshape(-1, P.shape[2]), linear.first_parameters.reshape(-1, P.shape[2])
        return cls(
            diagonal,
            Nt @ A,
            border,
            flat.T @ flat + flat_first.T @ flat_first,
            gradient,
            flat.T @ value.reshape(-1) + flat_first.T @ first_value.reshape(-1),
        )

    def eliminated(self, damping: float, damped: Array) -> Eliminated:
        """Without states; ``damped`` is the states' part of D (N, d, d)."""
        found = eliminate(
            self.diagonal + damping * damped, self.lower, self.border, self.corner, -self.gradient, -self.slope
        )
        found.schur[np.diag_indices(len(found.schur))] += damping * np.diag(self.corner)
        return found


class Solver:
    """Finds the optimum of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.lower = problem.mechanism.parameters.lower
        self.upper = problem.mechanism.parameters.upper

    def damped(self, linear: Linear) -> Array:
        """The states' part of D (N, d, d)."""
        per = np.tile([1.0 / self.problem.length] * 3 + [1.0] * 3, self.problem.bodies) / self.problem.noise
        scaled = np.stack([per, per / VELOCITY_SCALE])[None, :, :, None] * linear.scale
        blocks = scaled.transpose(0, 1, 3, 2) @ scaled
        half = blocks.shape[-1]
        result = np.zeros((len(blocks), 2 * half, 2 * half))
        result[:, :half, :half], result[:, half:, half:] = blocks[:, 0], blocks[:, 1]
        return result

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
        point = Point(np.clip(start.chi, self.lower, self.upper), start.q, start.v)
        damping, cost, converged = FIRST_DAMPING, np.inf, False
        for stage, ratio in enumerate(ratios):
            tolerance = CONVERGED if stage == len(ratios) - 1 else NEAR
            cost, converged = self.problem.residuals(point, samples, starts, ratio).cost, False
            for _ in range(most):
                found = self._descend(point, samples, starts, ratio, cost, damping)
                if found is None:
                    damping = FIRST_DAMPING
                    break
                point, new, damping, predicted = found
                history.append((ratio, new, damping))
                if progress is not None:
                    progress(ratio, new)
                converged = predicted <= tolerance * max(new, 1e-300)
                cost = new
                if converged:
                    break
        return Solution(point, cost, converged, history)

    def _descend(
        self, point: Point, samples: Samples, starts: Array, ratio: float, cost: float, damping: float
    ) -> tuple[Point, float, float, float] | None:
        """A step that lowers the cost, with cost, damping and predicted decrease; ``None`` if no damping helps."""
        linear = self.problem.linearize(point, samples, starts, ratio)
        normal, damped = Normal.of(linear, starts), self.damped(linear)
        while damping <= MOST_DAMPING:
            try:
                system = normal.eliminated(damping, damped)
            except np.linalg.LinAlgError:
                damping *= 10.0
                continue
            change = bounded_minimum(
                system.schur, system.reduced, self.lower - point.chi, self.upper - point.chi
            )
            increments = system.states(change)
            predicted = -0.5 * float(np.sum(normal.gradient * increments) + normal.slope @ change)
            trial = self.problem.moved(point, change, _unscaled(increments, linear.scale))
            new = self.problem.residuals(trial, samples, starts, ratio).cost
            if np.isfinite(new) and new <= cost:
                gain = (cost - new) / max(predicted, 1e-300)
                factor = 0.1 if gain > 0.7 else 1.0 if gain > 0.2 else 4.0
                return trial, new, max(damping * factor, LEAST_DAMPING), predicted
            if np.isfinite(new) and 0.0 <= predicted <= 1e-9 * cost:
                return point, cost, damping, predicted  # lower than rounding can tell
            damping *= 10.0
        return None


def _unscaled(increments: Array, scale: Array) -> Array:
    """Increments of states (N, d) from scaled ones."""
    half = increments.shape[1] // 2
    parts = [np.einsum("kij,kj->ki", scale[:, k], increments[:, k * half : (k + 1) * half]) for k in (0, 1)]
    return np.concatenate(parts, axis=1)
