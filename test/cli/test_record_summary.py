"""What ``stribeck record`` says at the end of a session."""

from types import SimpleNamespace

import pytest

from stribeck.cli.record import _finish
from stribeck.errors import ServoError
from stribeck.servo.answers import Counters
from stribeck.session.bags import Outcome


@pytest.mark.parametrize("late", [True, False])
def test_a_session_that_ends_late_says_what_to_do(late):
    """Less load or more time, and for an emulator simulated time; of other ends nothing of the kind is said."""
    driver = SimpleNamespace(counters=Counters(answers=100, timeouts=3, retries=3, longest_gap=0.083))
    driver.config = SimpleNamespace(silence_timeout=0.075)
    outcome = Outcome((), "failed", "run 6 (sin_sin, gain 400): too late", late=late)
    with pytest.raises(ServoError) as told:
        _finish(outcome, driver, quiet=False)
    text = str(told.value)
    assert text.startswith("run 6 (sin_sin, gain 400): too late")
    named = ("end other programs", "silence_timeout", "watchdog", "emulate --simulated")
    assert [word in text for word in named] == [late] * 4


@pytest.mark.parametrize("lost", [0, 3])
def test_the_summary_says_whether_the_bags_suffer_from_lost_answers(lost, capsys):
    """Only if there were any: they are not in the bags."""
    driver = SimpleNamespace(counters=Counters(answers=100, timeouts=lost, longest_gap=0.02))
    driver.config = SimpleNamespace(silence_timeout=0.075)
    _finish(Outcome((), "finished"), driver, quiet=False)
    said = capsys.readouterr().out
    assert f"100 answers, {lost} late or lost" in said
    assert ("are not in the bags" in said) == bool(lost)
    assert ("more than 75 ms is marked as disturbed" in said) == bool(lost)
