"""`identify robot` on two runs of a Go2 asked whether its joints move: intervals need three recordings, which nothing said."""

from stribeck.identify.robot.verdict import few_runs
from stribeck.model.estimate import Estimate

OPEN = {"hip": {"friction_base": Estimate(0.2, "N m", "not determined")}}
KNOWN = {"hip": {"friction_base": Estimate(0.2, "N m", "determined", (0.19, 0.21))}}


def test_too_few_recordings_are_the_reason():
    """It names how many there are and how many are needed; with enough of them, or with intervals, there is none."""
    (reason,) = few_runs(2, OPEN)
    assert (reason.key, reason.use) == ("few_runs", "doubtful")
    assert "need at least 3 recordings, and 2 were fitted" in reason.text
    assert few_runs(3, OPEN) == []
    assert few_runs(2, KNOWN) == []
