"""Many runs on one grid: padding counts for nothing, and every run counts the same."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import SETUP, log_of, published, refusal
from stribeck.files.actuators import load_actuator
from stribeck.model.law import LAWS
from stribeck.model.log import batch_of, common_actuator
from stribeck.model.step import simulate


def ramp(duration: float, slope: float = 1.0, gap: float = 0.0, **changes):
    """A run of the position slope * t at 100 Hz, with a gap in the measurement from 0.5 s on."""
    time = np.arange(round(duration * 100) + 1) / 100
    time = time[(time <= 0.5) | (time >= 0.5 + gap)]
    return log_of(time, slope * time, goal=-slope * time, **changes)


def test_shorter_runs_are_padded_with_their_last_sample():
    """Signals of a run of 1 s beside one of 2 s hold after its end, and do not count there."""
    batch = batch_of([ramp(2.0).resample(0.01), ramp(1.0, 3.0).resample(0.01)])
    assert batch.position.shape == (201, 2)
    assert batch.lengths == (201, 101)
    np.testing.assert_allclose(batch.time, np.arange(201) * 0.01)
    assert np.all(batch.position[101:, 1] == batch.position[100, 1])
    assert np.all(batch.goal[101:, 1] == batch.goal[100, 1])
    assert np.all(batch.weight[101:, 1] == 0.0)
    assert np.all(batch.weight[:101, 1] > 0.0)


def test_every_run_weighs_the_same_however_long_it_is():
    """Weights of a run sum to 1 / R: a weighted sum of errors is the mean over runs of each run's mean."""
    batch = batch_of([ramp(2.0).resample(0.01), ramp(1.0).resample(0.01), ramp(1.5, gap=0.3).resample(0.01)])
    np.testing.assert_allclose(batch.weight.sum(axis=0), 1 / 3)
    assert batch.weight[0, 0] == pytest.approx(1 / (3 * 201))
    assert batch.weight[0, 1] == pytest.approx(1 / (3 * 101))
    # Of the 151 samples of the third run, those from 0.51 s to 0.79 s lie in its gap.
    assert batch.weight[0, 2] == pytest.approx(1 / (3 * (151 - 29)))
    assert np.all(batch.weight[51:80, 2] == 0.0)


def test_mean_absolute_errors_count_each_runs_own_samples():
    """Errors of 1, 2 and 3 rad everywhere, and 100 rad in padding and gap, are means of 1, 2 and 3."""
    batch = batch_of([ramp(2.0).resample(0.01), ramp(1.0).resample(0.01), ramp(1.5, gap=0.3).resample(0.01)])
    wrong = batch.position + np.where(batch.weight > 0.0, [1.0, -2.0, 3.0], 100.0)
    np.testing.assert_allclose(batch.mean_absolute_errors(wrong), [1.0, 2.0, 3.0])
    assert np.sum(batch.weight * np.abs(wrong - batch.position)) == pytest.approx(2.0)


def test_a_mean_absolute_error_is_what_one_computes_by_hand():
    """An error of 0.1 rad on the second half of 201 samples."""
    batch = batch_of([ramp(2.0).resample(0.01)])
    wrong = batch.position.copy()
    wrong[100:] += 0.1
    assert batch.mean_absolute_errors(wrong)[0] == pytest.approx(0.1 * 101 / 201)


def test_loads_gains_and_supplies_stay_with_their_runs():
    """One number per run, in the order of the runs."""
    other = replace(SETUP, mass=0.7, length=0.2, arm_mass=0.01, supply_voltage=7.4, kp=400.0, ki=1.0, kd=2.0)
    batch = batch_of([ramp(1.0).resample(0.01), ramp(1.0, setup=other).resample(0.01)])
    assert batch.pendulum.mass.tolist() == [0.5, 0.7]
    assert batch.pendulum.length.tolist() == [0.1, 0.2]
    assert batch.pendulum.arm_mass.tolist() == [0.05, 0.01]
    assert [gain.tolist() for gain in batch.gains] == [[200.0, 400.0], [0.0, 1.0], [0.0, 2.0]]
    assert batch.nominal_supply.tolist() == [5.0, 7.4]


def test_the_supply_is_the_nominal_or_the_measured_one():
    """As asked, in one shape."""
    batch = batch_of([ramp(1.0, supply_voltage=4.7).resample(0.01), ramp(1.5).resample(0.01)])
    assert np.all(batch.supply(measured=False) == 5.0)
    assert np.all(batch.supply(measured=True)[:, 0] == 4.7)
    assert batch.supply(measured=False).shape == batch.supply(measured=True).shape == (151, 2)


def test_padding_does_not_change_what_a_run_simulates():
    """A short run beside a long one moves as it does alone, to the last bit."""
    servo, values = load_actuator("xl330"), published("xl330", "m1")
    alone = simulate(batch_of([ramp(1.0, 0.5).resample(0.01)]), servo, LAWS["m1"], values)
    beside = simulate(
        batch_of([ramp(1.0, 0.5).resample(0.01), ramp(2.0).resample(0.01)]), servo, LAWS["m1"], values
    )
    assert np.array_equal(beside.position[:101, 0], alone.position[:, 0])


@pytest.mark.parametrize(
    ("period", "indices"),
    [
        (None, []),
        (0.5, [50, 100, 150, 200]),
        (0.501, [50, 100, 150, 200]),
        (1e-6, list(range(1, 201))),
        (9.0, []),
    ],
)
def test_resets_come_every_period_but_not_at_the_start(period, indices):
    """Periods are rounded to steps, at least one."""
    assert sorted(batch_of([ramp(2.0).resample(0.01)]).reset_indices(period)) == indices


@pytest.mark.parametrize(("length", "steps"), [(1.0, 101), (0.5, 51), (2.0, 201), (99.0, 201), (0.7, 67)])
def test_blocks_divide_a_run_into_equal_parts(length, steps):
    """201 samples in round(2.01 s / length) blocks, at least one, the last perhaps a little shorter."""
    batch = batch_of([ramp(2.0).resample(0.01)])
    assert batch.block_steps(length) == steps
    blocks = -(-201 // steps)
    assert 0 <= blocks * steps - 201 <= blocks


def test_batches_refuse_no_runs_and_different_grids():
    """Neither can be stacked."""
    refusal(lambda: batch_of([]), "no runs")
    refusal(lambda: batch_of([ramp(1.0).resample(0.01), ramp(1.0).resample(0.005)]), "0.005", "0.01")


def test_a_run_without_a_single_measured_sample_on_the_grid_is_refused():
    """Positions two seconds apart: every grid point lies in the gap, so that nothing can be compared."""
    sparse = replace(
        ramp(2.0),
        position=log_of([-0.0005, 2.0005]).position,
        velocity=log_of([-0.0005, 2.0005]).velocity,
    )
    refusal(lambda: batch_of([sparse.resample(0.01)]), "'run'")


def test_logs_of_one_servo_say_which_and_mixed_ones_are_refused():
    """A fit is of one servo; the message names those that were found."""
    one = ramp(1.0)
    assert common_actuator([one, one]) == "xl330"
    refusal(lambda: common_actuator([one, ramp(1.0, actuator="mx64")]), "xl330", "mx64")
