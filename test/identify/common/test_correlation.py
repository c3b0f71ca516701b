"""Correlation times and long-run covariances against processes whose figures are known."""

import numpy as np
import pytest
from scipy import signal

from stribeck.identify.common.correlation import correlation_time, long_run_covariance

WINDOWS = ("first zero", "self-consistent")


def autoregressive(coefficient, size, seed=0):
    return signal.lfilter([1.0], [1.0, -coefficient], np.random.default_rng(seed).standard_normal(size))


@pytest.mark.parametrize("window", WINDOWS)
def test_correlation_time_of_a_first_order_process(window):
    """With the coefficient a it is (1 + a) / (1 - a); of white noise 1; of nothing 0."""
    for coefficient in (0.0, 0.8, 0.95):
        expected = (1.0 + coefficient) / (1.0 - coefficient)
        found = correlation_time(autoregressive(coefficient, (8, 20_000)), window)
        assert found == pytest.approx(expected, rel=0.15)
    assert correlation_time(np.zeros((2, 100)), window) == 0.0
    assert correlation_time([], window) == 0.0


def test_runs_of_one_signal_count_as_one():
    """Runs of different lengths, and the same samples in one run."""
    series = autoregressive(0.8, 30_000)
    together = correlation_time(np.split(series, [5_000, 12_000]), "self-consistent")
    assert together == pytest.approx(correlation_time([series], "self-consistent"), rel=0.05)


def test_what_is_constant_in_a_run_counts_only_if_asked():
    """A run that is off by a constant is correlated over its whole length, about its mean it is white."""
    run = 3.0 + np.random.default_rng(1).standard_normal(2_000)
    assert correlation_time([run]) == pytest.approx(1.0, abs=0.2)
    assert correlation_time([run], centred=False) > 500.0


def test_negative_correlation_is_seen_by_the_self_consistent_window():
    """Differences of white noise have next to no long-run variance."""
    change = np.diff(np.random.default_rng(2).standard_normal(20_000))
    assert correlation_time([change], "self-consistent") == 1.0


def test_long_run_covariance_keeps_to_runs():
    """Lags reach over samples of one run, not over its end: by hand for four scores in two runs."""
    scores, runs = np.array([[1.0], [2.0], [3.0], [5.0]]), [slice(0, 2), slice(2, 4)]
    assert long_run_covariance(scores, runs, [1, 1])[0, 0] == pytest.approx(39.0)
    assert long_run_covariance(scores, runs, [2, 1])[0, 0] == pytest.approx(39.0 + 0.5 * 2 * 2.0)
    assert long_run_covariance(scores, runs, [2, 2])[0, 0] == pytest.approx(39.0 + 0.5 * 2 * (2.0 + 15.0))


def test_long_run_covariance_of_an_autoregressive_mean():
    """The mean of an AR(1) process varies by its long-run variance; that of independent samples would promise a third."""
    coefficient, size = 0.8, 2_000
    series = autoregressive(coefficient, (300, size))
    found = [long_run_covariance(run[:, None], [slice(0, size)], [60])[0, 0] / size**2 for run in series]
    assert np.mean(found) == pytest.approx(np.var(series.mean(axis=1)), rel=0.2)
    hits = np.abs(series.mean(axis=1)) <= 1.96 * np.sqrt(found)
    assert 0.90 <= np.mean(hits) <= 0.97
