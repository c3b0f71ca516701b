import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from stribeck.identify.mechanism import complementarity
from stribeck.identify.mechanism.complementarity import bounded_minimum, dry_friction, solve

PIVOT = jax.jit(complementarity.pivot)
SOLVE = jax.jit(solve)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64():
        yield


def problem(rng, n, skew=0.0):
    """A P-matrix with positively scaled columns, and constants that put indices on all sides."""
    root = rng.normal(size=(n, n))
    W = (root @ root.T + 0.1 * np.eye(n)) * rng.uniform(0.1, 10.0, n) + skew * np.triu(
        rng.normal(size=(n, n)), 1
    )
    return W, rng.normal(size=n) * 5.0


def enumerated(W, c, lower, upper):
    """All solutions found by trying every assignment of sides."""
    n, found = len(c), []
    for sides in itertools.product((-1, 0, 1), repeat=n):
        side = np.array(sides)
        x = np.where(side < 0, lower, np.where(side > 0, upper, 0.0))
        free = side == 0
        if free.any():
            x[free] = np.linalg.solve(W[np.ix_(free, free)], -(c + W @ x)[free])
        w = W @ x + c
        tight = 1e-9
        if (
            np.all(x >= lower - tight)
            and np.all(x <= upper + tight)
            and np.all(w[side < 0] >= -tight)
            and np.all(w[side > 0] <= tight)
        ):
            found.append(x)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_pivoting_finds_what_enumeration_finds(n):
    """On random problems every assignment of sides that solves the problem gives the pivoted solution."""
    rng = np.random.default_rng(n)
    for _ in range(60):
        W, c = problem(rng, n)
        lower, upper = -rng.uniform(0, 1, n), rng.uniform(0, 1, n)
        expected = enumerated(W, c, lower, upper)
        assert expected
        np.testing.assert_allclose(SOLVE(W, c, lower, upper), expected[0], atol=1e-8)


def test_standard_problem_without_upper_bounds():
    """With l = 0, u = ∞ it is the linear complementarity problem."""
    W, c = problem(np.random.default_rng(7), 4)
    x = np.asarray(SOLVE(W, c, np.zeros(4), np.full(4, np.inf)))
    w = W @ x + c
    assert np.all(x >= 0)
    assert np.all(w >= -1e-9)
    assert abs(x @ w) < 1e-9


@pytest.mark.slow
def test_derivative_is_that_of_finite_differences():
    """In W, c and the bounds, where no index is near a kink."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        W, c = problem(rng, 3)
        lower, upper = -rng.uniform(0.2, 1, 3), rng.uniform(0.2, 1, 3)
        tangents = [rng.normal(size=np.shape(a)) for a in (W, c, lower, upper)]
        _, found = jax.jvp(solve, (W, c, lower, upper), tuple(tangents))
        step = 1e-6
        ahead, behind = (
            SOLVE(*(a + s * step * t for a, t in zip((W, c, lower, upper), tangents, strict=True)))
            for s in (1, -1)
        )
        np.testing.assert_allclose(found, (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-6)


def test_derivative_at_a_kink_is_the_one_sided_one_of_the_free_side():
    """W = 1, c = -1, u = 1: for smaller -c the solution is -c, for larger it stays at 1."""
    W, lower, upper = np.array([[1.0]]), np.array([-1.0]), np.array([1.0])

    def slope(at):
        return float(jax.jacfwd(lambda c: solve(W, c, lower, upper))(jnp.array([at]))[0, 0])

    assert slope(-1.0) == pytest.approx(-1.0)
    assert slope(-1.0 + 1e-6) == pytest.approx(-1.0)
    assert slope(-1.0 - 1e-6) == 0.0


def test_inverse_friction_agrees_with_the_forward_problem():
    """μ = clip(-v / v_s) solves v + v_s μ ⊥ [-1, 1], with the sticking side's derivative at |v| = v_s."""
    slip = 0.01
    for v in (-0.5, -0.01, -0.004, 0.0, 0.004, 0.5):
        forward = SOLVE(np.array([[slip]]), np.array([v]), np.array([-1.0]), np.array([1.0]))
        assert float(dry_friction(jnp.array(v), slip)) == pytest.approx(float(forward[0]), abs=1e-12)
    assert float(jax.grad(lambda v: dry_friction(v, slip))(slip)) == pytest.approx(-1.0 / slip)
    assert float(jax.grad(lambda v: dry_friction(v, slip))(slip * 1.001)) == 0.0


def test_bounded_minimum_is_that_of_scipy():
    """The same quadratic within bounds, by SciPy's bounded least squares."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        A, y = rng.normal(size=(8, 5)), rng.normal(size=8)
        lower, upper = -rng.uniform(0, 0.3, 5), rng.uniform(0, 0.3, 5)
        found = bounded_minimum(A.T @ A, A.T @ y, lower, upper)
        np.testing.assert_allclose(found, lsq_linear(A, y, (lower, upper), tol=1e-14).x, atol=1e-6)
