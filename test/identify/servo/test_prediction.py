"""Bands of predicted motions and suggestions of the next recording."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from recovery import Bench, truth_of, virtual_logs
from stribeck.evaluate.assessment import Stepping
from stribeck.evaluate.suggestion import suggest
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.identify.servo.drive import fitted_drive
from stribeck.identify.servo.identify import identify
from stribeck.identify.servo.objective import Split
from stribeck.identify.servo.prediction import QUANTILE, coverage_of, factor_of_one_more, half_widths
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.task import task_for
from stribeck.model.law import law_named
from stribeck.model.log import Series
from stribeck.model.step import batch_for, simulate
from virtual import Encoder

STEP = 2.0 * np.pi / 4096.0
BENCH = Bench("mx106", (0.5, 1.5), 0.15, 0.05, (8.0, 16.0, 32.0), 15.0)


def disturbed(log, rng, deviation=0.02, correlation_time=0.5):
    """A run with an autoregressive model error in its positions."""
    time = log.position.time
    memory = np.exp(-np.mean(np.diff(time)) / correlation_time)
    noise = rng.standard_normal(len(time)) * deviation * np.sqrt(1.0 - memory**2)
    error = lfilter([1.0], [1.0, -memory], noise)
    return replace(log, position=Series(time, log.position.value + error, held=False))


def fitted(train, law="m1", left_out=None):
    task = task_for(
        Split(tuple(train), (), "some"),
        load_actuator("mx106"),
        law_named(law),
        FitSettings(trials=1000, refine=False),
    )
    return fitted_drive(identify(task, left_out=left_out))


def covered(file, logs):
    batch = batch_for(logs, 0.005, "exponential")
    motion = simulate(batch, file.actuator, file.law, file.values).position
    return coverage_of(motion - batch.position, half_widths(file, batch, "exponential", None), batch)


@pytest.fixture(scope="module")
def logs():
    clean = virtual_logs(BENCH, truth_of(BENCH, "m1"), "m1", Encoder(STEP, STEP))
    rng = np.random.default_rng(3)
    return [disturbed(log, rng) for log in clean]


@pytest.fixture(scope="module")
def file(logs):
    return fitted([log for log in logs if log.setup.kp != 16.0 and log.setup.mass == 0.5])


@pytest.mark.slow
def test_bands_cover_runs_left_out_with_an_autoregressive_error(logs, file):
    """A gain and a load that were not fitted lie in their 90 % bands for about 90 % of the samples.

    Sixteen runs of twelve correlation times each: the share scatters by 0.03.
    """
    left_out = [log for log in logs if log.setup.kp == 16.0 or log.setup.mass == 1.5]
    assert 0.82 <= np.mean(covered(file, left_out)) <= 0.97
    prediction = file.prediction
    assert prediction.deviation == pytest.approx(0.02, rel=0.3)
    assert prediction.correlation_time == pytest.approx(0.5, rel=0.5)


@pytest.mark.slow
def test_bands_widen_with_the_errors_of_whole_fits_without_a_condition(logs, file):
    """Fits without each gain that hold nowhere widen the bands at a new gain, and leave those at recorded ones."""
    train = [log for log in logs if log.setup.kp != 16.0 and log.setup.mass == 0.5]
    wrong = np.full((2, len(file.prediction.names)), 0.9)
    wide = fitted(train, left_out={"gain": [wrong, wrong]}).prediction.factors
    known = file.prediction.factors
    assert wide["gain"] > 5.0 * known["gain"]
    assert wide["recorded"] == pytest.approx(known["recorded"])
    assert wide["trajectory"] == pytest.approx(known["trajectory"])


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 6])
@pytest.mark.parametrize("scatter", [0.0, 0.25, 0.5])
def test_bands_cover_one_more_condition_whose_errors_scatter_as_the_known_ones(count, scatter):
    """Normal errors with a log-normal deviation in each condition: on average 86 to 95 % of a new one's samples."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(100):
        deviations = np.exp(rng.normal(0.0, scatter, count + 1))
        *known, new = np.abs(rng.standard_normal((count + 1, 300))) * deviations[:, None]
        shares.append(np.mean(new <= factor_of_one_more(known, known) * QUANTILE))
    assert 0.86 <= np.mean(shares) <= 0.95


@pytest.mark.parametrize("count", [2, 3, 6])
def test_errors_left_out_count_as_those_of_a_fit_to_one_condition_more(count):
    """A mean of L offsets misses one more by the deviation sqrt(1 + 1/L); one without an offset by sqrt(1 + 1/(L-1))."""
    offsets = np.random.default_rng(0).standard_normal((2000, count + 1))
    known, new = offsets[:, :count], offsets[:, count]
    within = np.abs(known - np.mean(known, axis=1, keepdims=True)).T
    missed = within * count / (count - 1)
    expected = np.abs(new - np.mean(known, axis=1))
    factor = factor_of_one_more(list(missed), list(within))
    assert factor == pytest.approx(factor_of_one_more([expected] * count, [expected] * count), rel=0.04)


@pytest.mark.slow
def test_the_prediction_survives_its_parameter_file(file, tmp_path):
    """Bands of a file that was written and read are those of the fit."""
    write_drive(tmp_path / "m1.json", file)
    again = read_drive(tmp_path / "m1.json")
    assert again.prediction == file.prediction


def test_a_run_that_is_suggested_narrows_the_spread_and_the_best_has_a_new_load(logs, file):
    """With one load recorded, another load comes first; every run leaves less spread than none."""
    found = suggest(file, [log for log in logs if log.setup.mass == 0.5], Stepping())
    assert all(one.spread <= found.spread and one.information >= 0.0 for one in found.runs)
    assert "load" in found.runs[0].new


@pytest.mark.slow
def test_bands_cover_nine_tenths_over_many_campaigns(logs):
    """Each gain left out in turn of four campaigns with autoregressive errors: 85 to 95 % of all samples in the bands."""
    clean = virtual_logs(BENCH, truth_of(BENCH, "m1"), "m1", Encoder(STEP, STEP))
    shares = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        campaign = [disturbed(log, rng) for log in clean]
        for kp in (8.0, 16.0, 32.0):
            left_out = [log for log in campaign if log.setup.kp == kp]
            shares += covered(fitted([log for log in campaign if log.setup.kp != kp]), left_out)
    assert 0.85 <= np.mean(shares) <= 0.95
