"""Samplers, diagnostics and checks of posteriors."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from rank_calibration import calibrate
from stribeck.identify.common.autoregressive import effective_samples
from stribeck.identify.common.correlation import effective_samples_of_runs
from stribeck.identify.posterior import metropolis, nuts
from stribeck.identify.posterior.diagnostics import arviz, summarise, write_netcdf
from stribeck.identify.posterior.measures import cosine_similarity, mae, rmse, total_variation, within
from stribeck.identify.posterior.sampling import Target
from stribeck.identify.posterior.servo_result import held_correlation, ridges

COVARIANCE = np.array([[1.0, 0.9], [0.9, 1.0]])
MEANS = np.array([[0.0, 1.0], [3.0, -2.0]])


def _normal() -> Target:
    """Two posteriors that differ in their mean: a correlated normal."""
    precision = np.linalg.inv(COVARIANCE) - 0.01 * np.eye(2)

    def prior(x):
        return -0.005 * jnp.sum((x) ** 2)

    def likelihood(x, mean):
        away = x - mean
        return -0.5 * away @ precision @ away - 0.005 * jnp.sum(mean**2 - 2.0 * x * mean)

    return Target(2, prior, likelihood, MEANS)


@pytest.mark.parametrize("sampler", [pytest.param("nuts", marks=pytest.mark.slow), "metropolis"])
def test_samplers_draw_the_normal_they_are_asked_for(sampler):
    """Mean and covariance of two posteriors side by side, from starts far away."""
    start = 10.0 * np.random.default_rng(0).standard_normal((2, 64, 2))
    if sampler == "nuts":
        found = nuts.sample(_normal(), start[:, :4], 1000, 1)
    else:
        found = metropolis.sample(metropolis.batched(_normal(), 64), start, 60, 1, thin=12)
    flat = found.x.reshape(2, -1, 2)
    assert flat.mean(axis=1) == pytest.approx(MEANS, abs=0.12)
    for own in flat:
        assert np.cov(own.T) == pytest.approx(COVARIANCE, abs=0.15)


@pytest.mark.slow
def test_the_same_seed_draws_the_same():
    """Everything random takes the seed."""
    start = np.random.default_rng(0).standard_normal((2, 16, 2))
    target = metropolis.batched(_normal(), 16)
    first, second = (metropolis.sample(target, start, 5, 3).x for _ in range(2))
    assert np.array_equal(first, second)


def test_summaries_tell_chains_that_disagree(tmp_path):
    """R-hat is one for equal chains and large for chains of different means; NetCDF files lead back."""
    rng = np.random.default_rng(0)
    same = rng.standard_normal((4, 500, 1))
    apart = same + np.arange(4.0)[:, None, None]
    found = summarise(("a", "b"), np.concatenate([same, apart], axis=-1))
    assert found.rhat[0] < 1.01 < 1.5 < found.rhat[1]
    assert not found.converged
    json.dumps(found.json)
    path = tmp_path / "draws.nc"
    write_netcdf(path, {"a": same[..., 0]})
    assert arviz.from_netcdf(str(path)).posterior["a"].values == pytest.approx(same[..., 0])
    assert [p.name for p in tmp_path.iterdir()] == ["draws.nc"]


def test_effective_samples_of_white_and_of_smooth_residuals():
    """White noise counts whole, a first-order autoregressive one by (1 - a)/(1 + a)."""
    rng = np.random.default_rng(0)
    white = rng.standard_normal(4000)
    assert effective_samples(white) == pytest.approx(4000, rel=0.15)
    smooth = np.zeros(20_000)
    for k in range(1, len(smooth)):
        smooth[k] = 0.95 * smooth[k - 1] + rng.standard_normal()
    assert effective_samples(smooth) == pytest.approx(20_000 * 0.05 / 1.95, rel=0.3)
    time = np.arange(1200) * 0.005
    runs = np.sin(2.0 * np.pi * time)[:, None] * np.ones(3)
    assert effective_samples_of_runs(runs, 0.005) / 3 < 30


def test_runs_that_repeat_each_other_count_once():
    """Four runs with one error say as much as one; four different ones four times as much; a constant error says one thing."""
    noise = np.random.default_rng(0).standard_normal((1200, 4))
    one = effective_samples_of_runs(noise[:, :1], 0.005)
    assert effective_samples_of_runs(np.repeat(noise[:, :1], 4, axis=1), 0.005) == pytest.approx(one)
    assert effective_samples_of_runs(noise, 0.005) > 3.0 * one
    assert effective_samples_of_runs(noise[:, :1] + 5.0, 0.005) == 2.0


def test_correlation_with_all_else_held():
    """Two parameters that a third one moves together are a ridge only with that one held."""
    rng = np.random.default_rng(0)
    third, apart = rng.standard_normal((2, 4000))
    draws = np.stack(
        [third + 0.1 * apart, third - 0.1 * apart, third + 0.001 * rng.standard_normal(4000)], axis=1
    )
    assert np.corrcoef(draws.T)[0, 1] > 0.9
    assert held_correlation(draws)[0, 1] < -0.9


def test_calibration_sees_posteriors_that_are_too_narrow():
    """Ranks of exact posteriors are uniform; of posteriors half as wide they are not."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((400, 3))
    data = truth + rng.standard_normal((400, 3))
    noise = rng.standard_normal((400, 199, 3)) * np.sqrt(0.5)
    exact = calibrate(("a", "b", "c"), truth, 0.5 * data[:, None] + noise)
    narrow = calibrate(("a", "b", "c"), truth, 0.5 * data[:, None] + 0.5 * noise)
    assert exact.uniform
    assert 0.93 < exact.pooled_coverage < 0.97
    assert not narrow.uniform
    assert narrow.pooled_coverage < 0.8


def test_measures_by_hand():
    """The seed's measures at points that can be computed by hand."""
    assert mae(np.array([1.0, 3.0]), np.array([2.0, 2.0])) == pytest.approx(50.0)
    assert cosine_similarity(np.array([1.0, 0.0]), np.array([1.0, 1.0])) == pytest.approx(np.sqrt(0.5))
    assert rmse(np.array([1.1, 0.9]), np.array([1.0, 1.0])) == pytest.approx(10.0)
    assert total_variation(np.zeros(10), np.ones(10)) == pytest.approx(1.0)
    assert total_variation(np.arange(100.0), np.arange(100.0)) == 0.0
    draws = np.stack([np.linspace(0.0, 1.0, 101), np.linspace(2.0, 4.0, 101)], axis=1)
    assert within(draws, np.array([0.5, 3.0])) == (2, 2)
    assert within(draws, np.array([0.5, 3.96])) == (1, 2)


def test_a_ridge_is_named_with_its_sign():
    """Two parameters whose sum alone is known."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(500)
    draws = np.stack([a, -a + 0.1 * rng.standard_normal(500), rng.standard_normal(500)], axis=1)
    found = ridges(("x", "y", "z"), draws)
    assert [(ridge.first, ridge.second) for ridge in found] == [("x", "y")]
    assert "only a sum of them is known" in found[0].words
