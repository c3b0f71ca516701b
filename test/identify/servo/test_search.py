"""The searches find known minima, keep their budgets, and do not depend on luck."""

from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pytest

from stribeck.identify.common.minimise import NormalEquations
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.servo.descent import levenberg_marquardt, polish, random_steps
from stribeck.identify.servo.incumbent import BudgetSpentError, Incumbent, Minima
from stribeck.identify.servo.search import SEARCHES, PopulationCMA, fold


class Local(NamedTuple):
    loss: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray


class Valley:
    """A least-squares problem with a second, worse minimum; the best is at ``best``."""

    def __init__(self, best, trap=None):
        self.best = np.asarray(best, dtype=float)
        self.trap = trap
        self.count = 0
        self.dimension = len(self.best)

    def with_reset_period(self, reset_period):
        return self

    def _residuals(self, points):
        wide = np.linspace(1.0, 10.0, self.dimension)
        return (points - self.best) * wide

    def losses(self, unit):
        points = np.asarray(unit)
        self.count += len(points)
        near = np.sum(self._residuals(points) ** 2, axis=1)
        if self.trap is None:
            return near + 1.0
        return np.minimum(near, 0.3 + 30.0 * np.sum((points - self.trap) ** 2, axis=1)) + 1.0

    def normal_equations(self, unit):
        points = np.asarray(unit)
        self.count += len(points) * (self.dimension + 1)
        wide = np.linspace(1.0, 10.0, self.dimension)
        gradient = 2.0 * self._residuals(points) * wide
        hessian = np.broadcast_to(np.diag(2.0 * wide**2), (len(points), self.dimension, self.dimension))
        return Local(np.sum(self._residuals(points) ** 2, axis=1) + 1.0, gradient, hessian)


def searched(method, problem, budget, seed=0):
    incumbent = Incumbent(budget, lambda: problem.count)
    with suppress(BudgetSpentError):
        SEARCHES[method](problem, incumbent, np.random.default_rng(seed))
    return incumbent


@pytest.mark.parametrize("method", list(SEARCHES))
@pytest.mark.parametrize("best", [(0.3, 0.7, 0.2, 0.9), (0.0, 1.0, 0.5, 0.5)], ids=["inside", "at bounds"])
def test_the_minimum_is_found(method, best):
    """Inside the cube and at its faces."""
    problem = Valley(best)
    incumbent = searched(method, problem, 40_000)
    np.testing.assert_allclose(incumbent.unit, best, atol=2e-2)
    assert incumbent.loss < 1.001
    assert incumbent.converged


@pytest.mark.parametrize("seed", range(5))
def test_cmaes_leaves_a_trap_whatever_the_seed(seed):
    """A wide worse minimum holds single runs; restarts and agreement do not end there."""
    problem = Valley((0.15, 0.85, 0.2), trap=np.array([0.7, 0.3, 0.7]))
    assert searched("cmaes", problem, 40_000, seed).loss < 1.01


@pytest.mark.parametrize("method", list(SEARCHES))
@pytest.mark.parametrize("budget", [300, 1_000, 4_000])
def test_a_budget_is_kept_and_used(method, budget):
    """No evaluation more than allowed, and even a small budget ends with a point of whole runs."""
    problem = Valley((0.3, 0.7, 0.2, 0.9, 0.4, 0.6))
    incumbent = searched(method, problem, budget)
    assert problem.count <= budget
    assert incumbent.unit is not None


@pytest.mark.parametrize("method", list(SEARCHES))
def test_one_seed_gives_one_answer(method):
    """The same seed gives the same point and the same path to it, to the last bit."""
    first, again = (searched(method, Valley((0.3, 0.7, 0.2)), 3_000, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.unit, again.unit)
    assert first.history == again.history


def test_another_seed_takes_another_path():
    """The seed really reaches the random numbers."""
    one, two = (searched("cmaes", Valley((0.3, 0.7, 0.2)), 3_000, seed) for seed in (1, 2))
    assert one.history != two.history


def test_levenberg_marquardt_solves_least_squares_at_once():
    """A quadratic needs very few steps, also from a start where the bound is in the way."""
    problem = Valley((0.2, 0.8))
    incumbent = Incumbent(10_000, lambda: problem.count)
    start = np.array([[1.0, 0.0], [0.5, 0.5]])
    found = levenberg_marquardt(problem, incumbent, Minima(start, problem.losses(start)), iterations=6)
    np.testing.assert_allclose(found.points, [[0.2, 0.8]] * 2, atol=1e-3)
    assert found.status is SolverStatus.CONVERGED


class Kink(Valley):
    """Its derivatives are those of one side of the minimum: no step keeps what they promise."""

    def losses(self, unit):
        points = np.asarray(unit)
        self.count += len(points)
        return np.sum(np.abs(points - self.best), axis=1) + 1.0

    def normal_equations(self, unit):
        points = np.asarray(unit)
        size = self.dimension
        hessian = np.broadcast_to(0.1 * np.eye(size), (len(points), size, size))
        return Local(np.ones(len(points)), np.ones((len(points), size)), hessian)


class Explosion(Valley):
    """No simulation stays finite."""

    def losses(self, unit):
        self.count += len(unit)
        return np.full(len(unit), np.inf)


@pytest.mark.parametrize(
    ("problem", "iterations", "budget", "status"),
    [
        (Valley((0.2, 0.8)), 30, 10_000, SolverStatus.CONVERGED),
        (Valley((0.2, 0.8)), 1, 10_000, SolverStatus.LIMIT),
        (Valley((0.2, 0.8)), 30, 5, SolverStatus.LIMIT),
        (Kink((0.5, 0.5)), 30, 10_000, SolverStatus.KINK),
        (Explosion((0.5, 0.5)), 30, 10_000, SolverStatus.DIVERGED),
    ],
)
def test_a_descent_says_how_it_ended(problem, iterations, budget, status):
    """Only what gains nothing any more where derivatives agree counts as converged."""
    incumbent = Incumbent(budget, lambda: problem.count)
    start = np.array([0.5, 0.5])
    with suppress(BudgetSpentError), np.errstate(invalid="ignore"):
        polish(problem, incumbent, start, iterations)
    assert incumbent.status is status


def test_infinite_losses_do_not_stop_a_population():
    """Candidates whose simulation left all bounds only count as bad."""
    search = PopulationCMA(np.full(3, 0.5), 0.3, 16, seed=1)
    for _ in range(30):
        points = search.ask_population()
        losses = np.sum((fold(points) - 0.4) ** 2, axis=1)
        search.tell_population(points, np.where(np.arange(16) % 3 == 0, np.inf, losses))
    assert search.best_loss < 0.01


def test_folding_mirrors_into_the_cube():
    """1.2 is 0.8, -0.2 is 0.2, points inside stay."""
    np.testing.assert_allclose(fold(np.array([1.2, -0.2, 0.4, 2.3])), [0.8, 0.2, 0.4, 0.3])


def test_from_a_given_start_the_search_leaves_a_worse_minimum_and_ends():
    """A start in the trap: wide searches around it find the best minimum, another one confirms it."""
    problem = Valley((0.3, 0.6, 0.4), trap=np.array([0.5, 0.4, 0.6]))
    incumbent = Incumbent(40_000, lambda: problem.count, start=np.array([0.5, 0.4, 0.6]))
    SEARCHES["hybrid"](problem, incumbent, np.random.default_rng(0))
    assert incumbent.converged
    np.testing.assert_allclose(incumbent.unit, problem.best, atol=2e-2)


def test_random_steps_raise_the_loss_by_a_given_share_on_average():
    """The quadratic model of the loss rises by the share, also where curvatures differ by a factor of 100."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    hessian = axes @ np.diag([100.0, 10.0, 1.0]) @ axes.T
    equations = NormalEquations(np.array([2.0]), np.zeros((1, 3)), hessian[None])
    steps = random_steps(equations, 20_000, 0.3, rng)[0]
    rises = 0.5 * np.einsum("ki,ij,kj->k", steps, hessian, steps)
    assert np.mean(rises) == pytest.approx(0.3 * 2.0, rel=0.02)
