"""Late, held, repeated, lost and returned packets at every place of an exchange: no wrong value is ever accepted."""

import pytest

from bus_sweep import CYCLES, LAYOUTS, TASKS, drawn, run, sweep
from bus_sweep import LONGEST_DELAY as LONGEST
from stribeck.servo.lengths import LONGEST_DELAY

QUICK, SLOW, PART = 500, 20_000, 100
"""Trials in ``make test``, in the slow suite, and in one test of it."""

ENOUGH = 0.99
"""Share of the trials with delays of at most 50 ms, with a probability of at most 0.1, that have to connect."""


@pytest.mark.ci
def test_no_disturbance_makes_the_bus_accept_a_wrong_value() -> None:
    """500 random trials: what is accepted is what the servos hold, torque off is confirmed for servos without torque."""
    summary = sweep(range(QUICK))
    assert summary.trials == QUICK
    assert not summary.wrong, "\n".join(trial.text for trial in summary.wrong[:5])
    assert summary.connected >= ENOUGH, summary
    assert summary.mild > 50
    assert LONGEST == LONGEST_DELAY


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, QUICK + SLOW, PART))
def test_no_disturbance_in_many_trials(first: int) -> None:
    """The same, 20 000 times."""
    summary = sweep(range(first, first + PART))
    assert not summary.wrong, "\n".join(trial.text for trial in summary.wrong[:5])
    assert summary.connected >= ENOUGH, summary


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("task", TASKS)
def test_without_disturbance_every_task_succeeds(layout: str, task: str) -> None:
    """The trials are what they claim to be: nothing is wrong and nothing fails where there is no fault."""
    trial, rng = drawn(1, layout, task)
    trial.faults.clear()
    if task == "torque off":
        trial.mild = True
    run(trial, rng)
    assert trial.wrong == []
    if task != "torque off":  # whose servo may be cut off
        assert trial.fault == ""


def test_the_trials_are_long_enough() -> None:
    """A cyclic read of a trial lasts longer than a stall, within the longest delay of the assumption."""
    assert 0.3 <= CYCLES / 200.0 <= LONGEST_DELAY
