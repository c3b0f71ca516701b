import numpy as np
import pytest
from furuta_made import furuta, run

from stribeck.multibody.chain import eliminate
from stribeck.multibody.estimation import Estimator
from stribeck.multibody.problem import Problem


@pytest.fixture(scope="module")
def estimator():
    return Estimator(furuta(), [run(0, 0.6)], 0.01, 10.0)


def displaced_point(estimator):
    rng = np.random.default_rng(0)
    point = estimator.start(furuta().parameters.vector())
    linear = estimator.problem.linearize(point, estimator.samples, estimator.starts, 10.0)
    increments = 1e-3 * rng.normal(size=(len(point.q), 24))
    return estimator.problem.moved(point, linear, np.zeros(13), increments, 1.0)


def test_linear_model_is_that_of_finite_differences(estimator):
    """Residuals and gaps along a random direction of states, parameters and the reactions that go with them."""
    problem, samples, starts = estimator.problem, estimator.samples, estimator.starts
    point = displaced_point(estimator)
    rng = np.random.default_rng(1)
    linear = problem.linearize(point, samples, starts, 10.0)
    change = 0.1 * furuta().parameters.vector() * rng.normal(size=13)
    increments = rng.normal(size=(len(point.q), 24))
    after = np.concatenate([increments[1:], increments[-1:]])
    rows = linear.rows
    spring = rows.value - linear.residuals.rows  # what closing the gaps adds
    predicted = spring + (rows.here @ increments[..., None] + rows.there @ after[..., None])[..., 0]
    predicted += rows.parameters @ change
    step = 1e-6
    moved = problem.moved(point, linear, change, increments, step)
    back = problem.moved(point, linear, change, increments, -step)
    found = [problem.residuals(p, samples, starts, 10.0) for p in (moved, back)]
    slope = (found[0].rows - found[1].rows) / (2 * step)
    np.testing.assert_allclose(slope, predicted, atol=1e-4 * np.abs(predicted).max())
    gaps = (found[0].gap - found[1].gap) / (2 * step)
    np.testing.assert_allclose(gaps, -linear.residuals.gap, atol=1e-5)


def test_true_states_leave_no_impulse():
    """At the states of the simulation and the true parameters nothing is unexplained but the encoders' steps."""
    from furuta_made import STEP

    estimator = Estimator(furuta(), [run(0, 2.0)], STEP, 100.0)
    solution = estimator.solve(furuta().parameters.vector())
    residuals = estimator.problem.residuals(solution.point, estimator.samples, estimator.starts, 100.0)
    assert np.sqrt(np.mean(residuals.rows[:, :24] ** 2)) < 0.2
    assert 0.5 < np.sqrt(np.mean(residuals.rows[:, 24:] ** 2)) < 1.5
    assert residuals.infeasible < 1e-8


def test_weights_follow_from_step_and_ratio():
    """Ω^½ = m ℓ² σ₀ √h / ρ for rotations, by hand for the arm: 0.1 kg, 0.1 m, 0.44 mrad, 10 ms, ρ = 100."""
    found = Problem(furuta(), 0.01).impulse_deviation(100.0)
    assert found[3] == pytest.approx(0.1 * 0.1**2 * 0.00044 / 100.0 * 0.1)
    assert found[0] == pytest.approx(0.1 * 0.1 * 0.00044 / 100.0 * 0.1)


def test_gaps_are_bridged():
    """Half a second without samples changes the states there by less than a count of the encoder."""
    from furuta_made import STEP, recorded

    from stribeck.multibody.recordings import Recording, on_grid

    whole = recorded(0, 3.0)
    keep = (whole.time < 1.0) | (whole.time > 1.5)
    holey = Recording("holey", whole.time[keep], whole.signals[keep], whole.voltage[keep])
    mechanism = furuta()
    found = []
    for recording in (whole, holey):
        one = on_grid(recording, mechanism, STEP)
        if recording is holey:  # what was applied meanwhile is known
            one = type(one)(one.name, one.samples._replace(voltage=found[0][1]), one.path, one.start_rate)
        estimator = Estimator(mechanism, [one], STEP, 100.0)
        found.append((estimator.solve(mechanism.parameters.vector()).point, one.samples.voltage))
    assert np.abs(found[0][0].q - found[1][0].q).max() < 2 * np.pi / 4096


def test_scale_of_the_information_is_kept(estimator):
    """The Schur complement of the chain is positive: thirteen parameters, none of them rankless by rounding."""
    point = displaced_point(estimator)
    rows = estimator.problem.linearize(point, estimator.samples, estimator.starts, 10.0).rows
    assert np.all(np.linalg.eigvalsh(eliminate(rows).schur) > 0.0)
