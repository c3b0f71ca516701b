from dataclasses import replace

import numpy as np
import pytest
from furuta_made import STEP, displaced, furuta, run

from stribeck.multibody.estimation import Estimator, Simulator
from stribeck.multibody.sensitivity import correlation_time, long_run


@pytest.fixture(scope="module")
def estimator():
    return Estimator(furuta(), [run(0)], STEP, 100.0)


@pytest.fixture(scope="module")
def estimate(estimator):
    return estimator.finished(estimator.solve(displaced(0)))


def test_parameters_of_a_made_recording_come_back(estimate):
    """From a start that is off by up to 50 % in all thirteen, what is called identifiable is right within 2 %."""
    truth = furuta().parameters.values()
    assert estimate.solution.converged
    assert len(estimate.sensitivity.identifiable) >= 8
    for name in estimate.sensitivity.identifiable:
        assert estimate.mechanism.parameters[name].value == pytest.approx(truth[name], rel=0.02)


def test_what_cannot_be_told_is_named(estimate):
    """K_t, R and the arm's viscous friction show as K_t / R and K_t² / R + d alone."""
    told = set(estimate.sensitivity.identifiable)
    assert not told & {"kt", "resistance", "arm_viscous"}
    assert any({"kt", "resistance"} <= set(words.split()) for words in estimate.sensitivity.directions)


def test_estimated_parameters_predict_another_recording(estimate):
    """Simulated from the first sample over 10 s within two counts of the encoders."""
    errors = Simulator(estimate.mechanism, STEP, 1003).errors(run(1), estimate.solution.point.chi)
    assert errors["arm"]["rmse"] < 3e-3
    assert errors["pendulum"]["rmse"] < 3e-3


def test_bounds_hold(estimator):
    """With a bound between start and truth the estimate stops there, and says so."""
    mechanism = furuta()
    parameters = mechanism.parameters
    tight = [replace(p, upper=3.5e-4, value=3.0e-4) if p.name == "arm_inertia" else p for p in parameters]
    bounded = replace(mechanism, parameters=type(parameters)(tight))
    short = Estimator(bounded, [run(0, 3.0)], STEP, 10.0)
    found = short.finished(short.solve(bounded.parameters.vector()))
    assert np.all(found.solution.point.chi <= bounded.parameters.upper)
    assert found.sensitivity.at_bounds.get("arm_inertia") == "upper"
    assert "arm_inertia" not in found.sensitivity.intervals


def test_correlation_time_of_a_known_process():
    """A first-order process with coefficient a has (1 + a) / (1 - a); white noise 1."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=20000)
    process = np.zeros_like(noise)
    for k in range(1, len(noise)):
        process[k] = 0.8 * process[k - 1] + noise[k]
    assert correlation_time(process) == pytest.approx(9.0, rel=0.15)
    assert correlation_time(noise) == pytest.approx(1.0, abs=0.15)


def test_long_run_covariance_keeps_to_runs():
    """Lags reach over steps of one run, not over its end: by hand for four scores in two runs."""
    scores = np.array([[1.0], [2.0], [3.0], [5.0]])
    linked = np.array([True, False, True, False])
    assert long_run(scores, linked, 1)[0, 0] == pytest.approx(39.0)
    assert long_run(scores, linked, 2)[0, 0] == pytest.approx(39.0 + 0.5 * 2 * (2.0 + 15.0))
