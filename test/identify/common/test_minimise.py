"""The dense Levenberg-Marquardt: minima within boxes, and how it says it ended."""

import numpy as np
import pytest

from stribeck.identify.common.minimise import DenseEquations, minimise
from stribeck.identify.common.solver_status import SolverStatus

FREE = (np.full(2, -np.inf), np.full(2, np.inf))


def least_squares(residual, jacobian):
    def equations(x):
        r, j = residual(x), jacobian(x)
        return DenseEquations(0.5 * float(r @ r), j.T @ r, j.T @ j)

    return equations


ROSENBROCK = least_squares(
    lambda x: np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]),
    lambda x: np.array([[-20.0 * x[0], 10.0], [-1.0, 0.0]]),
)


def test_the_minimum_of_a_curved_valley():
    found = minimise(ROSENBROCK, np.array([-1.2, 1.0]), *FREE, np.ones(2))
    assert found.point == pytest.approx([1.0, 1.0], abs=1e-4)
    assert found.status is SolverStatus.CONVERGED


def test_a_bound_that_holds():
    """The optimum of what is left free, exactly on the bound."""
    upper = np.array([0.5, np.inf])
    found = minimise(ROSENBROCK, np.zeros(2), FREE[0], upper, np.ones(2))
    assert found.point == pytest.approx([0.5, 0.25], abs=1e-4)
    assert found.point[0] == 0.5
    assert found.status is SolverStatus.CONVERGED


def test_the_limit_of_iterations_is_no_success():
    found = minimise(ROSENBROCK, np.array([-1.2, 1.0]), *FREE, np.ones(2), iterations=3)
    assert (found.status, found.iterations) == (SolverStatus.LIMIT, 3)


def test_a_blow_up_is_no_success():
    """A cost that is not a number at the start; the point comes back as it was."""
    nothing = DenseEquations(float("nan"), np.full(2, np.nan), np.eye(2))
    found = minimise(lambda x: nothing, np.zeros(2), *FREE, np.ones(2))
    assert found.status is SolverStatus.DIVERGED
    assert not found.point.any()


def test_a_kink_is_said():
    """Derivatives of one side of |x| promise what no step keeps."""

    def equations(x):
        slope = np.where(x >= 0.0, 1.0, -1.0)
        return DenseEquations(1.0 + float(np.abs(x).sum()), slope, 1e-3 * np.eye(2))

    assert minimise(equations, np.zeros(2), *FREE, np.ones(2)).status is SolverStatus.KINK


def test_every_status_has_words():
    assert len({status.words for status in SolverStatus}) == len(SolverStatus) == 4


def test_a_curvature_taken_for_much_larger_than_it_is_costs_few_steps():
    """Gauss-Newton steps of 1/50 of the way each, which would need some hundreds, and a minimum that is met all the same."""
    goal, evaluated = np.array([3.0, -2.0]), []

    def equations(x):
        evaluated.append(x.copy())
        return DenseEquations(1.0 + 0.5 * float((x - goal) @ (x - goal)), x - goal, 50.0 * np.eye(2))

    found = minimise(equations, np.zeros(2), *FREE, 10.0 * np.ones(2))
    assert found.status is SolverStatus.CONVERGED
    assert found.point == pytest.approx(goal, abs=1e-3)
    assert len(evaluated) < 20


def test_stretched_steps_that_fail_cost_few_evaluations_and_no_damping():
    """Steps shrink evenly towards a wall, behind which the cost jumps: the steps themselves are taken before and after."""

    def equations(x):
        jump = 100.0 if x[0] > 2.5 else 0.0
        return DenseEquations(1.0 + jump + 0.5 * float((x[0] - 3.0) ** 2), x - 3.0, 20.0 * np.eye(1))

    ends = (np.full(1, -np.inf), np.full(1, np.inf))
    found = minimise(equations, np.zeros(1), *ends, np.ones(1) * 10.0, iterations=60)
    assert 2.49 < found.point[0] <= 2.5
