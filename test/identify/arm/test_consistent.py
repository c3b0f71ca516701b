"""The physically consistent problem: near the truth, within its neighbourhood, two solvers alike."""

import numpy as np
import pytest

from moving_arms import JOINTS, NEAR, arm, protocol, recording
from stribeck.identify.arm import consistent
from stribeck.identify.arm.config import Neighbourhood
from stribeck.identify.arm.consistent import fit_consistent, fit_log_cholesky
from stribeck.identify.arm.inertia import about_com, consistency
from stribeck.identify.arm.least_squares import fit_linear
from stribeck.identify.arm.motion import motion_of
from stribeck.identify.arm.regressor import machine_of
from stribeck.identify.arm.residuals import scores
from stribeck.identify.common.minimise import DenseEquations, minimise
from stribeck.identify.common.solver_status import SolverStatus

RULES = protocol()


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """Noisy torques of the true arm, and a machine whose URDF is wrong."""
    true = arm(tmp_path_factory.mktemp("arm"))
    wrong = true.with_inertials(true.inertials * np.repeat([1.3, 0.75, 1.25], 10))
    motion = motion_of(recording(true, noise=0.3), RULES)
    machine = machine_of(JOINTS, wrong, {})
    return true, machine, motion, fit_linear(machine, [motion], RULES, "weighted")


@pytest.mark.ci
@pytest.mark.parametrize("solve", [fit_consistent, fit_log_cholesky])
def test_it_is_as_good_as_least_squares_and_physical(problem, solve):
    """At most 1 % worse than what knows no physics, with margins, and better than the URDF."""
    _, machine, motion, free = problem
    found = solve(machine, [motion], RULES, NEAR, free.noise)
    errors = [scores([motion], [fit.predict(motion)])["every_row"]["all"] for fit in (free, found)]
    assert errors[1] < 1.01 * errors[0]
    assert (consistency(found.inertials) > 0.0).all()
    assert (found.values[[0, 1, 2, 4, 5, 6]] >= 0.0).all()


def test_both_solvers_agree(problem):
    """In what torques can tell, to a fraction of its uncertainty."""
    _, machine, motion, free = problem
    one, other = (
        solve(machine, [motion], RULES, NEAR, free.noise) for solve in (fit_consistent, fit_log_cholesky)
    )
    values = [free.base.values(np.concatenate([fit.inertials.ravel(), fit.values])) for fit in (one, other)]
    assert np.abs((values[0] - values[1]) / free.sigma).max() < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "least", "most"), [(0.3, 1.0, 1.0002), (20.0, 1.0005, 1.01)])
def test_log_cholesky_finds_the_global_minimum(problem, monkeypatch, noise, least, most):
    """The cost is convex in the inertial parameters, and the coordinates are one-to-one: from random links, the search ends where it ends
    from the URDF. With little noise that is the optimum of least squares, with much noise a consistent one.

    :param least, most: limits of the error in relation to that of least squares on base parameters.
    """
    true, machine, _, _ = problem
    motion = motion_of(recording(true, noise=noise), RULES)
    free = fit_linear(machine, [motion], RULES, "weighted")
    rng, ends = np.random.default_rng(0), []

    def moved(equations, first, lower, upper, units, iterations):
        start = first + (rng.uniform(-1.0, 1.0, len(first)) * units if ends else 0.0)
        return minimise(equations, np.clip(start, lower, upper), lower, upper, units, iterations=iterations)

    monkeypatch.setattr(consistent, "minimise", moved)
    for _ in range(4):
        fit = fit_log_cholesky(machine, [motion], RULES, NEAR, free.noise)
        assert fit.status is SolverStatus.CONVERGED
        assert (consistency(fit.inertials) > 0.0).all()
        ends.append(fit.predict(motion))
        np.testing.assert_allclose(ends[-1], ends[0], atol=1e-3 * free.noise.max())
    errors = [scores([motion], [torque])["every_row"]["all"] for torque in (free.predict(motion), ends[0])]
    assert least < errors[1] / errors[0] < most


def test_a_narrow_neighbourhood_binds(problem):
    """Masses, centres and inertias stay where they may be."""
    _, machine, motion, free = problem
    near = Neighbourhood(mass=0.05, com=0.01, inertia=0.1)
    found = fit_consistent(machine, [motion], RULES, near, free.noise)
    mass, com, _ = about_com(found.inertials)
    mass0, com0, _ = about_com(machine.inertials.reshape(-1, 10))
    assert (np.abs(mass / mass0 - 1) < 0.0501).all()
    assert (np.linalg.norm(com - com0, axis=1) < 0.0101).all()


def test_levenberg_marquardt_finds_the_corner_of_a_box():
    """A parabola whose minimum lies outside of one bound, with an indefinite Hessian far away."""

    def equations(x):
        cost = 0.5 * (x[0] - 2.0) ** 2 + 0.25 * x[1] ** 4 - x[1] ** 2
        hessian = np.diag([1.0, 3.0 * x[1] ** 2 - 2.0])
        return DenseEquations(cost + 10.0, np.array([x[0] - 2.0, x[1] ** 3 - 2.0 * x[1]]), hessian)

    found = minimise(
        equations, np.array([0.0, 0.1]), np.full(2, -np.inf), np.array([1.5, np.inf]), np.ones(2)
    )
    assert found.point == pytest.approx([1.5, 2.0**0.5], abs=1e-3)
