"""Logs refuse what is no recording, and come onto a grid without inventing anything."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from helpers import SETUP, full_log, log_of, refusal
from stribeck.model.log import LONGEST_GAP, MINIMUM_DURATION, Log, Series, Setup, batch_of

NAN, INF = float("nan"), float("inf")


def held(time, value) -> Series:
    """A command."""
    return Series(time, value, held=True)


def measured(time, value) -> Series:
    """A measurement."""
    return Series(time, value, held=False)


@pytest.mark.parametrize(
    ("time", "value", "parts"),
    [
        ([], [], ["(0,)", "at least one"]),
        ([0.0, 1.0], [1.0], ["(2,)", "(1,)"]),
        ([[0.0, 1.0]], [[1.0, 2.0]], ["(1, 2)"]),
        ([0.0, NAN], [1.0, 2.0], ["1 times", "sample 1", "nan"]),
        ([0.0, INF], [1.0, 2.0], ["1 times", "sample 1", "inf"]),
        ([0.0, 1.0, 2.0], [NAN, 2.0, NAN], ["2 values", "sample 0", "nan"]),
        ([0.0, 1.0], [2.0, -INF], ["1 values", "sample 1", "-inf"]),
        ([0.0, 1.0, 1.0], [0.0, 0.0, 0.0], ["sample 1", "1.000000 s", "sample 2"]),
        ([0.0, 2.0, 1.5], [0.0, 0.0, 0.0], ["sample 1", "2.000000 s", "sample 2", "1.500000 s"]),
    ],
)
def test_a_series_refuses_what_is_no_signal(time, value, parts):
    """Empty, uneven, not finite, not increasing: the message says where."""
    refusal(lambda: measured(time, value), *parts)


def test_a_series_is_frozen():
    """Neither its fields nor its arrays can be written, and it does not share memory with the caller."""
    time = np.array([0.0, 1.0])
    series = measured(time, [1, 2])
    with pytest.raises(FrozenInstanceError):
        series.value = time
    with pytest.raises(ValueError, match="read-only"):
        series.value[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        series.time[0] = 5.0
    time[0] = -9.0
    assert series.time[0] == 0.0
    assert series.value.dtype == np.float64


def test_commands_are_held_and_measurements_interpolated():
    """Between samples a command is the last one sent, a measurement lies on the line."""
    time, value, wanted = [0.0, 1.0, 3.0], [10.0, 20.0, 0.0], [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0]
    assert held(time, value).at(wanted).tolist() == [10.0, 10.0, 10.0, 20.0, 20.0, 0.0, 0.0]
    assert measured(time, value).at(wanted).tolist() == [10.0, 10.0, 15.0, 20.0, 10.0, 0.0, 0.0]


def test_a_grid_point_a_rounding_before_a_command_sees_that_command():
    """0.1 + 0.2 lies beside 0.3: what was sent there is valid there."""
    series = held([0.0, 0.1 + 0.2], [1.0, 2.0])
    assert series.at([0.3])[0] == 2.0
    assert series.at([0.3 - 1e-6])[0] == 1.0


@pytest.mark.parametrize("name", ["mass", "length", "arm_mass", "supply_voltage", "kp", "ki", "kd"])
@pytest.mark.parametrize("value", [-1.0, NAN, INF, -INF])
def test_a_setup_refuses_negative_and_infinite_numbers(name, value):
    """No mass, length, voltage or gain is negative or infinite."""
    refusal(lambda: replace(SETUP, **{name: value}), name, "finite", value)


@pytest.mark.parametrize("name", ["length", "supply_voltage"])
def test_a_setup_refuses_a_rod_or_supply_of_zero(name):
    """Without length there is no pendulum, without supply no torque."""
    refusal(lambda: replace(SETUP, **{name: 0.0}), name, "positive")


@pytest.mark.parametrize("name", ["kp", "ki", "kd", "arm_mass"])
def test_a_setup_accepts_zero_gains_and_a_rod_without_mass(name):
    """These zeros are real."""
    assert getattr(replace(SETUP, **{name: 0.0}), name) == 0.0


def test_a_setup_needs_a_load():
    """No load and no rod leave nothing that moves; either one is enough."""
    refusal(lambda: replace(SETUP, mass=0.0, arm_mass=0.0), "mass", "arm_mass")
    assert Setup(0.0, 0.2, 0.3, 5.0, 1.0).load == pytest.approx(0.03)
    assert Setup(2.0, 0.2, 0.3, 5.0, 1.0).load == pytest.approx(0.43)


def test_a_log_shorter_than_a_second_is_refused():
    """It counts from the first complete sample to the last position."""
    assert MINIMUM_DURATION == 1.0
    assert log_of(np.linspace(3.0, 4.0, 20)).duration == 1.0
    refusal(lambda: log_of(np.linspace(0.0, 0.99, 20), name="short"), "'short'", "0.990 s", "1 s")
    late_goal = held([5.5], [0.0])
    refusal(lambda: replace(log_of(np.linspace(5.0, 6.2, 20)), goal=late_goal), "'run'", "0.700 s")


def test_a_log_whose_commands_begin_after_its_measurements_end_is_refused():
    """Its duration is negative, which the message shows."""
    refusal(lambda: replace(log_of(np.linspace(0.0, 2.0, 20)), goal=held([3.0], [0.0])), "'run'", "-1.000 s")


@pytest.mark.parametrize("flag", [0.5, 2.0, -1.0])
def test_torque_flags_are_0_or_1(flag):
    """A flag in between is an interpolated one, which is no flag."""
    refusal(
        lambda: log_of(np.linspace(0.0, 2.0, 20), torque_enable=flag, name="flagged"),
        "'flagged'",
        "torque_enable",
    )


def test_a_log_starts_where_every_needed_signal_is_known():
    """The latest of the first samples of position, velocity, goal and flag; telemetry does not count."""
    time = np.linspace(0.0, 3.0, 31)
    log = log_of(time, supply_voltage=5.0)
    assert log.start == 0.0
    late = replace(
        log,
        torque_enable=held([0.25], [1.0]),
        goal=held([0.15], [0.0]),
        supply_voltage=measured([2.0], [5.0]),
    )
    assert late.start == 0.25
    assert late.duration == 2.75


def irregular(**changes) -> Log:
    """A run at uneven times, with a goal that steps and a drop."""
    time = np.array(
        [0.0, 0.03, 0.04, 0.11, 0.15, 0.2, 0.28, 0.33, 0.4, 0.49, 0.55, 0.6, 0.7, 0.8, 0.9, 1.0, 1.02]
    )
    return log_of(
        time,
        10.0 * time,
        velocity=-5.0 * time,
        goal=np.floor(time / 0.1 + 1e-9),
        torque_enable=(time < 0.5).astype(float),
        supply_voltage=5.0 + time,
        **changes,
    )


def test_resampling_holds_commands_and_flags_and_interpolates_measurements():
    """Lines stay lines; goals are only ever values that were sent, at or after the time they were sent."""
    samples = irregular().resample(0.05)
    np.testing.assert_allclose(samples.time, np.arange(21) * 0.05, atol=1e-15)
    np.testing.assert_allclose(samples.position, 10.0 * samples.time, atol=1e-12)
    np.testing.assert_allclose(samples.velocity, -5.0 * samples.time, atol=1e-12)
    np.testing.assert_allclose(samples.supply_voltage, 5.0 + samples.time, atol=1e-12)
    #                    0  .05 .1  .15 .2  .25 .3  .35 .4  .45 .5  .55 .6  .65 .7
    assert samples.goal[:15].tolist() == [0, 0, 0, 1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 6, 7]
    assert samples.torque_enable.tolist() == [1.0] * 11 + [0.0] * 10


def test_the_grid_never_passes_the_last_measurement():
    """The last position is at 1.02 s: on a grid of 0.05 s the last sample is at 1.0 s."""
    assert irregular().resample(0.05).time[-1] == pytest.approx(1.0)
    assert irregular().resample(0.02).time[-1] == pytest.approx(1.02)
    assert len(log_of(np.linspace(0.0, 6.0, 601)).resample(0.005).time) == 1201


def test_rounding_does_not_cost_the_last_sample():
    """(1.4 - 0.1) / 0.1 is a rounding below 13, and the grid of 14 samples still ends at the last one."""
    assert (1.4 - 0.1) / 0.1 < 13.0
    assert len(log_of([0.1, 1.0, 1.4]).resample(0.1).time) == 14


def test_the_grid_begins_at_the_first_complete_sample():
    """When position, velocity and command are all known."""
    log = replace(irregular(), goal=held([0.01], [3.0]))
    assert log.resample(0.005).time[0] == 0.01


def test_a_run_without_measured_supply_has_its_nominal_one():
    """What the set-up says, throughout."""
    assert set(log_of(np.linspace(0.0, 2.0, 20)).resample(0.01).supply_voltage) == {SETUP.supply_voltage}


def test_samples_inside_a_gap_of_the_measurement_do_not_count():
    """Between measurements more than 0.1 s apart nothing was measured; the two ends were."""
    assert LONGEST_GAP == 0.1
    time = np.concatenate([np.arange(0.0, 0.5, 0.01), np.arange(0.75, 1.5, 0.01)])
    samples = log_of(time).resample(0.01)
    inside = (samples.time > 0.49 + 1e-6) & (samples.time < 0.75 - 1e-6)
    assert np.array_equal(samples.valid, ~inside)
    assert np.count_nonzero(inside) == 25


def test_measurements_a_tenth_of_a_second_apart_still_count():
    """Below the limit the line between two measurements is taken for the motion."""
    assert np.all(log_of(np.arange(0.0, 2.0, 0.09)).resample(0.005).valid)
    assert not np.all(log_of(np.arange(0.0, 2.0, 0.11)).resample(0.005).valid)


def test_only_points_near_samples_of_a_slow_measurement_are_compared():
    """On a grid of 5 ms, one point of four of a measurement at 50 Hz counts, every one at 200 Hz or with 5.3 ms."""
    for interval, share in ((0.02, 0.25), (0.005, 1.0), (0.0053, 1.0)):
        batch = batch_of([log_of(np.arange(0.0, 2.0, interval)).resample(0.005)])
        assert np.mean(batch.weight > 0.0) == pytest.approx(share, abs=0.01)
        assert np.sum(batch.weight) == pytest.approx(1.0)


def test_resampling_leaves_the_log_as_it_was():
    """The raw recording stays what was recorded."""
    log = full_log()
    before = log.position.value.copy()
    samples = log.resample(0.01)
    samples.position[:] = 0.0
    assert np.array_equal(log.position.value, before)
    assert samples.log is log


@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_commands_hold_from_their_sample_also_with_seconds_since_1970(start):
    """Stamps of the day are rounded to 0.2 µs, which must not delay a command by a step of the grid."""
    times = start + 0.04 * np.arange(50)
    goal = Series(times, np.arange(50.0), held=True)
    grid = times[0] + 0.005 * np.arange(8 * 49 + 1)
    assert np.array_equal(goal.at(grid), np.repeat(np.arange(50.0), 8)[: len(grid)])
