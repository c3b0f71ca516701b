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

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.multibody import block_tridiagonal, complementarity
from stribeck.multibody.dynamics import State
from stribeck.multibody.mechanism import Array
from stribeck.multibody.problem import Linear, Problem, Samples

FIRST_DAMPING = 1e-3
LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e8
CONVERGED = 1e-7
"""Predicted relative decrease of the cost at which the last stage ends."""

NEAR = 1e-2
"""The same for the stages before."""

UNFUSED = {"xla_disable_hlo_passes": "fusion"}
"""Thousands of products of numbers share their factors; fused, XLA computes these again and again: 100 times slower."""

VELOCITY_SCALE = 10.0
"""Angular velocity that counts as much as an angle of 1 rad in the damping of states [rad/s]."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the optimisation ended.

    :param chi: free parameters (p,).
    :param states: all states (N, …).
    :param cost: half the weighted sum of squares.
    :param converged: whether the predicted decrease fell below :data:`CONVERGED`.
    :param history: ratio, cost, damping of each iteration.
    """

    chi: Array
    states: State
    cost: float
    converged: bool
    history: list[tuple[float, float, float]] = field(default_factory=list)


class Solver:
    """Compiled functions of one problem; shapes of samples that were met before need no compilation."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.lower = problem.mechanism.parameters.lower
        self.upper = problem.mechanism.parameters.upper
        self.cost = jax.jit(problem.cost)
        self.linearize = jax.jit(problem.linearize, compiler_options=UNFUSED)
        self.factorize = jax.jit(self._factorize)
        self.bounded = jax.jit(_bounded_minimum)
        self.apply = jax.jit(self._apply)

    def _factorize(self, linear: Linear, damping: Any) -> block_tridiagonal.Factors:
        nb, length = len(self.problem.mechanism.bodies), self.problem.mechanism.regularization.length
        per = np.tile([1.0 / length] * 3 + [1.0] * 3, nb) / self.problem.noise
        weights = np.stack([per, per / VELOCITY_SCALE])
        scaled = weights[None, :, :, None] * linear.scale
        blocks = jnp.einsum("kaij,kail->kajl", scaled, scaled)
        half = blocks.shape[-1]
        extra = jnp.zeros_like(linear.diagonal)
        extra = extra.at[:, :half, :half].set(blocks[:, 0]).at[:, half:, half:].set(blocks[:, 1])
        factors = block_tridiagonal.factorize(
            linear.diagonal + damping * extra,
            linear.lower,
            linear.border,
            linear.corner,
            -linear.gradient,
            -linear.slope,
        )
        return factors._replace(schur=factors.schur + damping * jnp.diag(jnp.diag(linear.corner)))

    def _apply(self, linear: Linear, factors: Any, chi: Any, change: Any, states: State) -> Any:
        increment = block_tridiagonal.states_for(factors, change)
        half = increment.shape[1] // 2
        by = jnp.concatenate(
            [
                jnp.einsum("kij,kj->ki", linear.scale[:, 0], increment[:, :half]),
                jnp.einsum("kij,kj->ki", linear.scale[:, 1], increment[:, half:]),
            ],
            axis=1,
        )
        slope = jnp.sum(linear.gradient * increment) + linear.slope @ change
        return chi + change, jax.vmap(self.problem.moved)(states, by), -0.5 * slope

    def solve(
        self,
        chi: Array,
        states: State,
        samples: Samples,
        starts: Array,
        ratios: tuple[float, ...],
        *,
        most: int = 60,
        progress: Callable[[float, float], None] | None = None,
    ) -> Solution:
        """The optimum from a point, with the ratio raised by stages.

        :param chi: free parameters at the start (p,), within their bounds.
        :param states: all states at the start (N, …).
        :param starts: index of the first state of each run.
        :param ratios: of the stages; the last is the wanted one.
        :param most: iterations per stage.
        """
        history: list[tuple[float, float, float]] = []
        damping, converged, cost = FIRST_DAMPING, False, np.inf
        with jax.enable_x64():
            fixed = (samples, jnp.asarray(starts))
            at = (jnp.asarray(np.clip(chi, self.lower, self.upper)), states)
            for ratio in ratios:
                tolerance = CONVERGED if ratio == ratios[-1] else NEAR
                at, cost, damping, converged = self._stage(
                    at, fixed, ratio, damping, tolerance, most, history, progress
                )
        return Solution(np.asarray(at[0]), at[1], cost, converged, history)

    def _stage(
        self,
        at: Any,
        fixed: Any,
        ratio: float,
        damping: float,
        tolerance: float,
        most: int,
        history: list[tuple[float, float, float]],
        progress: Callable[[float, float], None] | None,
    ) -> Any:
        cost = float(self.cost(*at, *fixed, ratio))
        for _ in range(most):
            linear = self.linearize(*at, *fixed, ratio)
            found = self._descend(linear, at, fixed, ratio, cost, damping)
            if found is None:
                return at, cost, FIRST_DAMPING, False
            at, new, damping, predicted = found
            history.append((ratio, new, damping))
            if progress is not None:
                progress(ratio, new)
            small = predicted <= tolerance * max(new, 1e-300)
            cost = new
            if small:
                return at, cost, damping, True
        return at, cost, damping, False

    def _descend(
        self, linear: Linear, at: Any, fixed: Any, ratio: float, cost: float, damping: float
    ) -> Any:
        """A step that lowers the cost, or one that has no need to; ``None`` if no damping helps."""
        while damping <= MOST_DAMPING:
            factors = self.factorize(linear, damping)
            change = self.bounded(factors.schur, factors.reduced, self.lower - at[0], self.upper - at[0])
            *trial, predicted = self.apply(linear, factors, at[0], change, at[1])
            new, hoped = float(self.cost(*trial, *fixed, ratio)), float(predicted)
            if np.isfinite(new) and new <= cost:
                gain = (cost - new) / max(hoped, 1e-300)
                factor = 0.1 if gain > 0.7 else 1.0 if gain > 0.2 else 4.0
                return trial, new, max(damping * factor, LEAST_DAMPING), hoped
            if np.isfinite(new) and 0.0 <= hoped <= 1e-9 * cost:
                return at, cost, damping, hoped  # lower than rounding can tell
            damping *= 10.0
        return None


def _bounded_minimum(schur: Any, reduced: Any, lower: Any, upper: Any) -> Any:
    r"""Minimum of :math:`\tfrac12\delta^TS\delta - b^T\delta` within bounds (p,)."""
    size = jnp.sqrt(jnp.maximum(jnp.diag(schur), 1e-300))
    scaled = schur / size[:, None] / size[None, :] + 1e-13 * jnp.eye(len(size))
    return complementarity.solve(scaled, -reduced / size, lower * size, upper * size) / size
