"""What all searches share: the problem, its budget, and the best point so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from stribeck.estimates.solver_status import SolverStatus

FloatArray = npt.NDArray[np.float64]

RUNNERS_UP = 8
"""Former best points kept in case the last one fails the check in float64."""


class Equations(Protocol):
    """Loss (S,), gradient (S, n) and Gauss-Newton matrix (S, n, n)."""

    @property
    def loss(self) -> FloatArray: ...  # noqa: D102
    @property
    def gradient(self) -> FloatArray: ...  # noqa: D102
    @property
    def hessian(self) -> FloatArray: ...  # noqa: D102


class SearchProblem(Protocol):
    """A loss on the unit cube with its derivatives; :class:`stribeck.fit.rollout.Rollout` is one."""

    @property
    def dimension(self) -> int:
        """Number of free parameters n."""

    def with_reset_period(self, reset_period: float | None) -> SearchProblem:
        """The problem whose simulations restart from the measurement after every period [s]."""

    def losses(self, unit: npt.ArrayLike) -> FloatArray:
        """Losses of points (C, n) -> (C,)."""

    def normal_equations(self, unit: npt.ArrayLike) -> Equations:
        """Local least squares around points (S, n)."""


class BudgetSpentError(Exception):
    """The search has used its evaluations."""


@dataclass
class Incumbent:
    """The best point so far, its budget and history.

    :param budget: evaluations allowed.
    :param evaluations: function that counts the evaluations done so far.
    :param on_progress: called after every batch.
    :param floor: a loss at which residuals are noise.
    :param converged: whether independent searches agreed, or residuals are noise.
    :param status: how the last descent by derivatives to the best point ended; ``None`` without one.
    :param history: evaluations and loss at every improvement.
    :param runners_up: the last few best points before this one, the latest last.
    :param minima: where independent searches ended over whole runs: losses and points (n,).
    """

    budget: int
    evaluations: Callable[[], int]
    on_progress: Callable[[Incumbent], None] = lambda incumbent: None
    floor: float = 0.0
    unit: FloatArray | None = None
    loss: float = np.inf
    converged: bool = False
    status: SolverStatus | None = None
    history: list[tuple[int, float]] = field(default_factory=list)
    runners_up: deque[FloatArray] = field(default_factory=lambda: deque(maxlen=RUNNERS_UP))
    minima: list[tuple[float, FloatArray]] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        """Evaluations left."""
        return self.budget - self.evaluations()

    @property
    def best_points(self) -> FloatArray:
        """The best point and those before it, the latest first (S, n)."""
        if self.unit is None:
            raise ValueError("nothing has been evaluated yet")
        return np.stack([self.unit, *reversed(self.runners_up)])

    def offer(self, points: FloatArray, losses: FloatArray) -> None:
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
        """Note the points (S, n) at which independent searches ended, and their losses (S,)."""
        self.minima += zip(np.asarray(losses).tolist(), np.array(points, dtype=np.float64), strict=True)


class Minima(NamedTuple):
    """Points (S, n) and their losses (S,), the best first, and how the search of the best one ended."""

    points: FloatArray
    losses: FloatArray
    status: SolverStatus = SolverStatus.LIMIT


def evaluate(
    problem: SearchProblem, incumbent: Incumbent, points: FloatArray, *, counts: bool = True
) -> FloatArray:
    """Losses of points (C, n), offered to the incumbent.

    :param counts: whether the losses are those of whole runs, not of a shorter horizon.
    :raises BudgetSpentError: if the budget does not allow so many.
    """
    if incumbent.remaining < len(points):
        raise BudgetSpentError
    losses = problem.losses(points)
    if counts:
        incumbent.offer(points, losses)
    else:
        incumbent.on_progress(incumbent)
    return losses
