"""Common parts of all searches: the problem, its budget, and the best point so far (the incumbent)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from stribeck.identify.common.minimise import NormalEquations
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.arrays import Array

RUNNERS_UP = 8
"""Number of earlier best points kept, in case the latest fails the check in float64."""


class SearchProblem(Protocol):
    """Loss on the unit cube with derivatives, as in :class:`stribeck.identify.servo.rollout.Rollout`."""

    @property
    def dimension(self) -> int:
        """Number of free parameters n."""

    def with_reset_period(self, reset_period: float | None) -> SearchProblem:
        """The problem with simulations that are reset to the measurement at this interval [s]."""

    def losses(self, unit: npt.ArrayLike) -> Array:
        """Losses of points (C, n), shape (C,)."""

    def normal_equations(self, unit: npt.ArrayLike) -> NormalEquations:
        """Local least-squares problems at points (S, n)."""


class BudgetSpentError(Exception):
    """The evaluation budget is spent."""


@dataclass
class Incumbent:
    """The best point so far, with the budget and history of the search.

    :param budget: evaluations allowed.
    :param evaluations: function that returns the number of evaluations so far.
    :param on_progress: called after every batch.
    :param floor: loss below which residuals are noise.
    :param converged: whether independent searches agreed, or residuals are noise.
    :param status: status of the last descent by derivatives to the best point; ``None`` without one.
    :param history: evaluations and loss at every improvement.
    :param runners_up: the last few earlier best points, the latest last.
    :param minima: end points of independent searches over whole runs: losses and points (n,).
    :param start: a good point to start from (n,).
    """

    budget: int
    evaluations: Callable[[], int]
    on_progress: Callable[[Incumbent], None] = lambda incumbent: None
    floor: float = 0.0
    unit: Array | None = None
    loss: float = np.inf
    converged: bool = False
    status: SolverStatus | None = None
    history: list[tuple[int, float]] = field(default_factory=list)
    runners_up: deque[Array] = field(default_factory=lambda: deque(maxlen=RUNNERS_UP))
    minima: list[tuple[float, Array]] = field(default_factory=list)
    start: Array | None = None

    @property
    def remaining(self) -> int:
        """Evaluations left."""
        return self.budget - self.evaluations()

    @property
    def best_points(self) -> Array:
        """The best point and its predecessors, the latest first (S, n)."""
        if self.unit is None:
            raise ValueError("nothing has been evaluated yet")
        return np.stack([self.unit, *reversed(self.runners_up)])

    def offer(self, points: Array, losses: Array) -> None:
        """Update the best point with evaluated points (C, n)."""
        best = int(np.argmin(losses))
        if losses[best] < self.loss:
            if self.unit is not None:
                self.runners_up.append(self.unit)
            self.loss = float(losses[best])
            self.unit = np.array(points[best], dtype=np.float64)
            self.history.append((self.evaluations(), self.loss))
        self.on_progress(self)

    def settle(self, points: npt.ArrayLike, losses: npt.ArrayLike) -> None:
        """Record the end points (S, n) of independent searches and their losses (S,)."""
        self.minima += zip(np.asarray(losses).tolist(), np.array(points, dtype=np.float64), strict=True)


class Minima(NamedTuple):
    """Points (S, n) and losses (S,), the best first, and the status of the search that found the best one."""

    points: Array
    losses: Array
    status: SolverStatus = SolverStatus.LIMIT


def evaluate(problem: SearchProblem, incumbent: Incumbent, points: Array, *, counts: bool = True) -> Array:
    """Evaluate points (C, n), offer them to the incumbent, and return their losses (C,).

    :param counts: whether the losses are of whole runs, not of a shorter horizon.
    :raises BudgetSpentError: if the points exceed the budget.
    """
    if incumbent.remaining < len(points):
        raise BudgetSpentError
    losses = problem.losses(points)
    if counts:
        incumbent.offer(points, losses)
    else:
        incumbent.on_progress(incumbent)
    return losses
