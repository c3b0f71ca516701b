r"""Minimisers within a box, by damped normal equations that the caller assembles (Levenberg-Marquardt).

Each step solves :math:`(H + \lambda\,\mathrm{diag}\,H)\,s = -g` for the coordinates not held at a bound; λ falls after a step
that lowers the cost, and rises after any other. Source: Nocedal and Wright, "Numerical Optimization", 2nd ed., ch. 10.3.

- :func:`minimise` and :func:`minimise_blocks`: costs that come along with their derivatives, so that one damping is tried at a
  time; of one sum of squares, or of several independent ones that one evaluation serves.
- :func:`minimise_batch`: many searches in one compiled program, where costs are cheap beside derivatives, so that many dampings
  are tried at once.

Apart stay the search of a mechanism, whose states lie on a manifold and are eliminated along their chain
(:mod:`stribeck.identify.mechanism.solver`), IPOPT for the nonlinear constraints of consistent inertias
(:mod:`stribeck.identify.arm.consistent`), searches without derivatives (CMA-ES of servos, the simplex method for the few shapes of
a joint's law), and linear problems with bounds, for which SciPy has exact methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg

from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.arrays import Array, Mask

IntArray = npt.NDArray[np.int_]

ITERATIONS = 100
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-12, 1e12
FACTOR = 5.0
"""Factor between successive dampings."""

LEAST_GAIN = 1e-6
"""Two successive steps that gain less than this share of the cost end the search."""

PARALLEL = 0.99
"""Least cosine of the angle between two successive steps in one direction."""

NARROWEST, WIDEST, RAISED = 1e-6, 1e6, 1e3
"""Least and largest common factor of the dampings of a batch, and by how much it rises where none lowered the cost."""

HOPELESS = 1e4
"""A search of a batch ends if no step lowered its cost with this common factor."""


class DenseEquations(NamedTuple):
    """Value and derivatives of a sum of squares at a point.

    :param cost: half the sum of squares.
    :param gradient: (p,).
    :param hessian: Gauss-Newton approximation, or the exact one (p, p).
    """

    cost: float
    gradient: Array
    hessian: Array


class BlockEquations(NamedTuple):
    """The same of B independent sums of squares, each with its own coordinates.

    :param costs: half the sums of squares (B,).
    :param gradient: (p,).
    :param hessian: only elements whose coordinates belong to the same sum are used (p, p).
    """

    costs: Array
    gradient: Array
    hessian: Array


class NormalEquations(NamedTuple):
    """Weighted least-squares problems of S searches, in the unit cube of the free parameters.

    :param loss: (S,); the contributions of R runs are (S, R).
    :param gradient: of the loss, (S, n) or (S, R, n).
    :param hessian: Gauss-Newton matrix of iteratively reweighted least squares, (S, n, n) or (S, R, n, n).
    """

    loss: Array
    gradient: Array
    hessian: Array


class BoxMinimum(NamedTuple):
    """Result of a search.

    :param point: (p,).
    :param cost: half the sum of squares there.
    :param iterations: evaluated steps.
    """

    point: Array
    cost: float
    status: SolverStatus
    iterations: int


class BlockMinimum(NamedTuple):
    """Result of the searches of B sums: point (p,), costs (B,), how each ended, and evaluated steps."""

    point: Array
    costs: Array
    statuses: list[SolverStatus]
    iterations: int


class BatchMinimum(NamedTuple):
    """Result of a batch.

    :param points: (S, n).
    :param losses: costs there (S,).
    :param ended: whether the searches ended before the limit of iterations.
    :param promised: decrease relative to the cost that derivatives predict where the last iteration of a search found none (S,).
    """

    points: Array
    losses: Array
    ended: bool
    promised: Array


def minimise(
    equations: Callable[[Array], DenseEquations],
    start: Array,
    lower: Array,
    upper: Array,
    size: Array,
    iterations: int = ITERATIONS,
    damping: float = FIRST_DAMPING,
    least_gain: float = LEAST_GAIN,
) -> BoxMinimum:
    """Find a local minimum of a sum of squares within a box.

    :param equations: function that returns the normal equations at a point.
    :param start, lower, upper: (p,); the start is clipped into the box.
    :param size: largest change of each coordinate in one step (p,).
    :param damping: damping of the first step; small for nearly linear problems.
    :param least_gain: see :data:`LEAST_GAIN`.
    """

    def one(point: Array) -> BlockEquations:
        found = equations(point)
        return BlockEquations(np.array([found.cost]), found.gradient, found.hessian)

    box = np.array([lower, upper, size])
    found = minimise_blocks(one, start, box, np.zeros(len(start), int), iterations, least_gain, damping)
    return BoxMinimum(found.point, float(found.costs[0]), found.statuses[0], found.iterations)


def minimise_blocks(
    equations: Callable[[Array], BlockEquations],
    start: Array,
    box: Array,
    block: IntArray,
    iterations: int = ITERATIONS,
    least_gain: float = LEAST_GAIN,
    damping: float = FIRST_DAMPING,
) -> BlockMinimum:
    """Find a local minimum of each of several independent sums of squares, each with its own damping.

    One evaluation serves all sums. None of them rises; one without finite derivatives at the start stays there.

    :param box: lower and upper bound and largest change of each coordinate in one step (3, p).
    :param block: the sum that each coordinate belongs to (p,); coordinates of a negative one stay.
    """
    lower, upper, _ = box
    point = np.clip(start, lower, upper)
    first = equations(point)
    searches = [
        _BlockSearch(np.flatnonzero(block == index), box, damping, least_gain)
        for index in range(len(first.costs))
    ]
    for index, search in enumerate(searches):
        search.begin(point, first, index)
    taken = 0
    while taken < iterations and any(search.status is None for search in searches):
        taken += 1
        trial = point.copy()
        for search in searches:
            search.propose(point, trial)
        found = equations(trial)
        for index, search in enumerate(searches):
            search.answer(point, trial, found, index)
    costs = np.array([search.cost for search in searches])
    return BlockMinimum(point, costs, [search.status or SolverStatus.LIMIT for search in searches], taken)


class _BlockSearch:
    """The search for the minimum of one sum of squares among others."""

    def __init__(self, own: npt.NDArray[np.intp], box: Array, damping: float, least_gain: float) -> None:
        self.own, self.damping, self.least_gain = own, damping, least_gain
        self.lower, self.upper, self.size = box[:, own]
        self.idle, self.status = 0, SolverStatus.CONVERGED if not len(own) else None
        self.before: Array | None = None
        self.stretched, self.wait, self.waited = False, 1, 0

    def begin(self, point: Array, found: BlockEquations, index: int) -> None:
        """Take the equations at the start."""
        self.here = self._part(found, index)
        self.cost = self.here.cost
        if self.status is None and not self._finite(self.here):
            self.status = SolverStatus.DIVERGED

    def propose(self, point: Array, trial: Array) -> None:
        """Set the coordinates of the next step, stretched if it follows one in the same direction."""
        if self.status is not None:
            return
        here = point[self.own]
        trial[self.own] = self._moved(here, self.damping)
        factor = self._stretch((trial[self.own] - here) / self.size)
        self.stretched = factor > 1.0
        if self.stretched:
            trial[self.own] = np.clip(here + factor * (trial[self.own] - here), self.lower, self.upper)

    def answer(self, point: Array, trial: Array, found: BlockEquations, index: int) -> None:
        """Take the step if it lowered the cost, and change the damping."""
        if self.status is not None:
            return
        there = self._part(found, index)
        if not there.cost < self.cost or not self._finite(there):
            self.before = None
            if self.stretched:  # the step itself is tried next
                self.wait, self.waited = 2 * self.wait, 0
                return
            self.damping *= FACTOR
            if self.damping > MOST_DAMPING:
                self.status = self._standstill(point[self.own])
            return
        gain = (self.cost - there.cost) / max(abs(self.cost), 1e-300)
        self.idle = self.idle + 1 if gain < self.least_gain else 0
        self.damping = max(self.damping / FACTOR, LEAST_DAMPING)
        self.wait, self.waited = (1, 0) if self.stretched else (self.wait, self.waited + 1)
        self.before = None if self.stretched else (trial[self.own] - point[self.own]) / self.size
        self.here, self.cost, point[self.own] = there, there.cost, trial[self.own]
        if self.idle == 2:
            self.status = SolverStatus.CONVERGED

    def _stretch(self, step: Array) -> float:
        r"""Factor :math:`1/(1-\rho)` of a step that is \rho times the one before and has its direction, within ``size``; else 1.

        So far a sequence of steps goes that shrinks by this ratio (Aitken's process). Gauss-Newton steps are such where they
        take a curvature for much larger than it is. After one that failed, twice as many steps are taken before the next.
        """
        if self.before is None or self.waited < self.wait:
            return 1.0
        length, former = linalg.norm(step), linalg.norm(self.before)
        if not 0.5 * former < length < former or step @ self.before < PARALLEL * length * former:
            return 1.0
        return float(min(former / (former - length), 1.0 / max(np.abs(step).max(), 1e-300)))

    def _part(self, found: BlockEquations, index: int) -> DenseEquations:
        own = self.own
        return DenseEquations(
            float(found.costs[index]), found.gradient[own].copy(), found.hessian[np.ix_(own, own)]
        )

    @staticmethod
    def _finite(found: DenseEquations) -> bool:
        return bool(
            np.isfinite(found.cost) and np.isfinite(found.gradient).all() and np.isfinite(found.hessian).all()
        )

    def _moved(self, point: Array, damping: float) -> Array:
        step = _step(self.here, point, self.lower, self.upper, self.size, damping)
        return np.asarray(np.clip(point + step, self.lower, self.upper))

    def _standstill(self, point: Array) -> SolverStatus:
        """Solver status when no step lowers the cost: a kink if the derivatives still predict a gain."""
        step = self._moved(point, 0.0) - point
        promised = -float(self.here.gradient @ step + 0.5 * step @ self.here.hessian @ step)
        return SolverStatus.CONVERGED if promised <= LEAST_GAIN * abs(self.cost) else SolverStatus.KINK


def _step(
    here: DenseEquations, point: Array, lower: Array, upper: Array, size: Array, damping: float
) -> Array:
    """Damped step of the coordinates not held at a bound, limited to ``size``."""
    held = ((point <= lower) & (here.gradient > 0.0)) | ((point >= upper) & (here.gradient < 0.0))
    free = np.flatnonzero(~held)
    step = np.zeros_like(point)
    if not len(free):
        return step
    unit = size[free]
    hessian = here.hessian[np.ix_(free, free)] * np.outer(unit, unit)
    diagonal = np.abs(np.diag(hessian))
    diagonal = diagonal + 1e-8 * diagonal.max(initial=1e-300)
    while True:
        try:
            factor = linalg.cho_factor(hessian + damping * np.diag(diagonal))
            break
        except linalg.LinAlgError:  # an exact Hessian need not be positive definite
            damping = max(3.0 * damping, 1e-6)
    scaled = -linalg.cho_solve(factor, here.gradient[free] * unit)
    step[free] = unit * scaled / max(1.0, np.abs(scaled).max())
    return step


def minimise_batch(
    equations: Callable[[Array, IntArray], NormalEquations],
    losses: Callable[[Array, IntArray], Array],
    points: Array,
    start_losses: Array,
    *,
    iterations: int,
    dampings: Array,
    tolerance: float,
    together: bool = False,
    rounding: float = 1e-300,
    scatter: Callable[[NormalEquations, IntArray], Array] | None = None,
    lowest: Callable[[IntArray], tuple[Array, Array]] | None = None,
    may_go_on: Callable[[], bool] = lambda: True,
) -> BatchMinimum:
    """Search from many points of the unit cube in parallel.

    Every iteration tries several dampings for each search and keeps the best. A coordinate at a bound stays there if the
    gradient pushes it outwards.

    :param equations: of points (A, n) that belong to the searches (A,).
    :param losses: the costs of points (C, n) that belong to the searches (C,).
    :param points, start_losses: where the searches begin, and the costs there (S, n), (S,).
    :param dampings: tried in each iteration, relative to the last successful one of the search (D,).
    :param tolerance: a search ends with an iteration that gains less than this share of the cost.
    :param together: all searches go on as long as one of them gains.
    :param rounding: costs below this are rounding errors, and gains are relative to it.
    :param scatter: changes (A, T, n) added to damped steps, for T more trial points in each iteration.
    :param lowest: points (A, n) and costs (A,) from which the searches (A,) go on; by default their own best trial points.
    :param may_go_on: asked before each iteration; ``False`` ends the searches.
    """
    points, best_losses = points.copy(), start_losses.copy()
    scale, active, promised = np.ones(len(points)), np.arange(len(points)), np.zeros(len(points))
    for _ in range(iterations):
        if not may_go_on():
            return BatchMinimum(points, best_losses, False, promised)
        here = equations(points[active], active)
        steps = damped_steps(here, points[active], scale[active, None] * dampings)
        undamped, factors = steps[:, 0], dampings
        if scatter is not None:
            steps, factors = _scattered(steps, dampings, scatter(here, active))
        candidates = np.clip(points[active, None] + steps, 0.0, 1.0)
        best, reached, costs = _best_tried(losses, candidates, active)
        if lowest is not None:
            reached, costs = lowest(active)
        gain = _gain(best_losses[active], costs, rounding)
        better = gain > 0.0
        hoped = _promised(here, points[active], undamped, best_losses[active])
        promised[active] = np.where(better, 0.0, hoped)
        points[active[better]], best_losses[active[better]] = reached[better], costs[better]
        # Centre the dampings on the last successful one; increase them where none was successful.
        wanted = np.where(better, scale[active] * factors[best], scale[active] * RAISED)
        scale[active] = np.clip(wanted, NARROWEST, WIDEST)
        goes_on = (gain > tolerance) | (~better & (scale[active] < HOPELESS))
        if together:
            goes_on[:] = not np.max(gain) < tolerance
        active = active[goes_on]
        if not len(active):
            return BatchMinimum(points, best_losses, True, promised)
    return BatchMinimum(points, best_losses, False, promised)


def _best_tried(
    losses: Callable[[Array, IntArray], Array], candidates: Array, active: IntArray
) -> tuple[IntArray, Array, Array]:
    """Of candidates (A, D, n) of searches (A,) the best of each: its index, point and cost."""
    count = candidates.shape[1]
    tried = losses(candidates.reshape(-1, candidates.shape[2]), np.repeat(active, count))
    tried = tried.reshape(-1, count)
    rows, best = np.arange(len(active)), np.argmin(tried, axis=1)
    return best, candidates[rows, best], tried[rows, best]


def _scattered(steps: Array, dampings: Array, changes: Array) -> tuple[Array, Array]:
    """The damped steps (A, D, n) and these with changes (A, T, n) added, and the damping that each one counts as (D + T,)."""
    around = np.arange(changes.shape[1]) % len(dampings)
    return (
        np.concatenate([steps, steps[:, around] + changes], axis=1),
        np.concatenate([dampings, np.ones(changes.shape[1])]),
    )


def _gain(before: Array, after: Array, rounding: float) -> Array:
    """Relative gains (A,); a cost that is not finite gains everything."""
    finite = np.where(np.isfinite(before), before, 0.0)
    gain = (finite - after) / np.maximum(finite, rounding)
    return np.where(np.isfinite(before), gain, np.where(np.isfinite(after), 1.0, np.nan))


def _promised(here: NormalEquations, points: Array, steps: Array, losses: Array) -> Array:
    """Predicted relative decrease of the costs (A,) by steps (A, n) within the cube."""
    steps = np.clip(points + steps, 0.0, 1.0) - points
    change = np.einsum("ai,ai->a", here.gradient, steps) + 0.5 * np.einsum(
        "ai,aij,aj->a", steps, here.hessian, steps
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(-change / losses))


def damped_steps(equations: NormalEquations, points: Array, damping: Array) -> Array:
    """Steps (S, D, n) of the damped normal equations; parameters pushed against a bound are held.

    The equations are scaled to unit curvature, so that the search also progresses along directions that are a million
    times flatter than others.
    """
    n = points.shape[1]
    gradient = np.where(np.isfinite(equations.gradient), equations.gradient, 0.0)
    hessian = np.where(np.isfinite(equations.hessian), equations.hessian, 0.0)
    held: Mask = ((points <= 0.0) & (gradient > 0.0)) | ((points >= 1.0) & (gradient < 0.0))
    diagonal = np.einsum("sii->si", hessian)
    scale = np.sqrt(np.maximum(diagonal, 1e-14 * np.max(diagonal, axis=1, keepdims=True) + 1e-30))
    free = ~held / scale
    gradient = gradient * free
    hessian = hessian * free[:, :, None] * free[:, None, :]
    matrices = hessian[:, None] + (damping[:, :, None, None] + held[:, None, :, None] + 1e-9) * np.eye(n)
    steps = np.linalg.solve(matrices, np.broadcast_to(gradient[:, None, :, None], (*damping.shape, n, 1)))
    return np.asarray(-steps[..., 0] * free[:, None, :])
