import jax
import jax.numpy as jnp
import numpy as np
import pytest

from furuta_made import STEP, furuta, recorded, run
from mechanisms import BLOCK, changed, mechanism
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.mechanism import rotation
from stribeck.identify.mechanism.dynamics import BodyState
from stribeck.identify.mechanism.estimation import MechanismEstimator
from stribeck.identify.mechanism.problem import EstimationProblem
from stribeck.identify.mechanism.recordings import MechanismRecording, on_grid
from stribeck.identify.mechanism.solver import _Step


@pytest.fixture(scope="module")
def estimator():
    return MechanismEstimator(furuta(), [run(0, 3.0)], STEP, 100.0)


@pytest.fixture(scope="module")
def solution(estimator):
    return estimator.solve(furuta().parameters.vector())


def along(estimator):
    """States along the recorded signals with parameters that are 10 % off."""
    return estimator.rollout.along(estimator.samples, 1.1 * furuta().parameters.vector(), estimator.path)


@pytest.mark.slow
def test_states_along_a_recording_show_its_signals(estimator):
    """Whatever the parameters are: within three counts of the encoders, behind the first step."""
    misfit = estimator.problem.signals(along(estimator), estimator.samples)[2:]
    assert np.sqrt(np.mean(misfit**2)) < 3 * 2 * np.pi / 4096


@pytest.mark.slow
def test_linear_model_is_that_of_finite_differences(estimator):
    """One step's derivatives by state, impulses and parameters, through friction, motor, constraints and tilt."""
    problem, samples = estimator.problem, estimator.samples
    point = along(estimator)
    chain = problem.linearize(point, samples, estimator.starts, 10.0, estimator.released)
    rng = np.random.default_rng(0)
    kicks = problem.kicks(point)

    @jax.jit
    def stepped(q, v, u, push, chi):
        physical = problem.mechanism.physical(chi)
        return problem.dynamics.step(physical, BodyState(q, v), u, STEP, push)

    def one(k, sign, dx, kick, change):
        with jax.enable_x64():
            q = rotation.plus(jnp.asarray(point.q[k]), sign * dx[:12].reshape(2, 6))
            chi = point.chi + sign * change
            push = problem.inertia(chi) * (kicks[k] + sign * kick)
            v = point.v[k] + sign * dx[12:].reshape(2, 6)
            return stepped(q, v, samples.voltage[k], push, problem.all_values(chi))

    for k in (7, 60, 200):
        step = 1e-6
        dx, kick, change = (
            step * rng.normal(size=24), step * rng.normal(size=2), step * point.chi * rng.normal(size=13)
        )  # fmt: skip
        there, back = one(k, 1.0, dx, kick, change), one(k, -1.0, dx, kick, change)
        with jax.enable_x64():
            place = np.asarray(rotation.minus(there.q, back.q)).reshape(-1)
        slope = np.concatenate([place, np.asarray(there.v - back.v).reshape(-1)]) / 2.0
        expected = chain.turn[k] @ dx + chain.push[k] @ kick + chain.drift[k] @ change
        np.testing.assert_allclose(slope, expected, atol=2e-4 * np.abs(expected).max())


@pytest.mark.slow
def test_true_states_need_no_impulse(estimator, solution):
    """At the true parameters nothing is unexplained but the encoders' steps, whose deviation is known."""
    residuals = estimator.problem.residuals(solution.point, estimator.samples, estimator.starts, 100.0)
    assert np.sqrt(np.mean(residuals.impulses**2)) < 0.1
    seen = residuals.samples[estimator.samples.count > 0]
    assert 0.9 < np.sqrt(np.mean(seen**2)) < 1.1


def test_the_search_says_how_it_ended(estimator, solution, monkeypatch):
    """Converged; out of iterations; without finite cost; at a kink that promises much or next to nothing."""
    solver, chi = estimator.solver, furuta().parameters.vector()
    assert solution.status == SolverStatus.CONVERGED
    assert solver.solve(1.2 * chi, 100.0, most=1).status == SolverStatus.LIMIT
    for promised, status in ((0.01, SolverStatus.CONVERGED), (1.0, SolverStatus.KINK)):
        monkeypatch.setattr(
            solver,
            "_descend",
            lambda point, ratio, cost, damping, promised=promised: _Step(
                point, cost, damping, promised * solver.cost_deviation(cost), kink=True
            ),
        )
        found = solver.solve(chi, 100.0)
        assert found.kink
        assert found.status == status
    monkeypatch.setattr(solver, "cost", lambda point, ratio: np.inf)
    assert solver.solve(chi, 100.0).status == SolverStatus.DIVERGED


def test_every_estimated_state_is_the_steppers(estimator, solution):
    """(3.1): simulated again from the first state with the estimated impulses it is the same trajectory."""
    point = solution.point
    gain = np.zeros((*point.impulse.shape, 24))
    again = estimator.rollout.near(
        estimator.samples, point, point.chi, BodyState(point.q, point.v), point.impulse, gain
    )
    np.testing.assert_allclose(again.q, point.q, atol=1e-7)


def test_first_states_obey_the_constraints(estimator, solution):
    """(3.14), (3.15): neither deviation nor velocity across the constraints."""
    point = solution.point
    found = estimator.problem.functions.violation(*estimator.problem._first(point, estimator.starts))
    assert np.abs(found).max() < 1e-9


def test_weights_follow_from_step_and_ratio():
    """ω = σ₀ √h / ρ by hand: 0.44 mrad, 10 ms, ρ = 100; twice the ratio, half of it; times ℓ along a slide."""
    found = EstimationProblem(furuta(), 0.01).kick_deviation(100.0)
    assert found == pytest.approx([0.00044 / 100.0 * 0.1] * 2)
    slide = changed(BLOCK, sensors={"place": {"joint": "slide", "deviation": 0.001}})
    assert EstimationProblem(mechanism(slide), 0.01).kick_deviation(10.0)[0] == pytest.approx(
        0.1 * 0.01 / 10.0 * 0.1
    )


def test_inertia_that_a_joint_feels():
    """A block on a slide weighs its mass; an arm with a pendulum that may swing less than with one that is held."""
    assert EstimationProblem(mechanism(BLOCK), 0.01).inertia(np.array([5.0]))[0] == pytest.approx(
        2.0, rel=1e-6
    )
    found = EstimationProblem(furuta(), 0.01).inertia(furuta().parameters.vector())
    held = 4e-4 + 0.1 * 0.05**2 + 1e-5 + 0.03 * 0.1**2
    swinging = held - (0.03 * 0.1 * 0.07) ** 2 / (5e-5 + 0.03 * 0.07**2)
    assert found[0] == pytest.approx(swinging, rel=1e-6)


@pytest.mark.slow
def test_gaps_are_bridged(estimator, solution):
    """Half a second without samples changes the states there by less than a count of the encoder."""
    whole = recorded(0, 3.0)
    keep = (whole.time < 1.0) | (whole.time > 1.5)
    signals = np.where(keep[:, None], whole.signals, np.nan)
    holey = MechanismRecording("holey", whole.time, signals, whole.voltage)
    one = on_grid(holey, estimator.problem.mechanism, STEP)
    assert np.sum(one.samples.count == 0) > 90
    estimator.use([one])
    found = estimator.solve(furuta().parameters.vector())
    estimator.use([run(0, 3.0)])
    assert found.converged
    assert np.abs(found.point.q - solution.point.q).max() < 2 * np.pi / 4096


@pytest.mark.slow
def test_runs_are_independent_of_their_order(estimator):
    """Two recordings have a first state each: swapped, they have the same cost and lead to the same parameters."""
    runs, chi, found = [run(0, 1.0), run(1, 1.98)], furuta().parameters.vector(), []
    for order in (runs, runs[::-1]):
        estimator.use(order)
        point = estimator.rollout.along(estimator.samples, chi, estimator.path)
        cost = estimator.solver.cost(point, 1.0)
        found.append((cost, estimator.solver._descend(point, 1.0, cost, 1e-3)[0].chi))
    estimator.use([run(0, 3.0)])
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4)
