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
