"""One search in several processes: points are kept, also those of processes that die."""

import pytest

from stribeck.errors import StribeckError
from stribeck.identify.servo.workers import search_in_processes
from unruly import all_killed, all_refuse, half_killed


def test_the_point_of_a_killed_worker_counts():
    """Its last report is the best; the search has not converged in all workers, and evaluations add up."""
    seen = []
    found, seconds = search_in_processes(half_killed, 2, 10, lambda one: seen.append(one.loss))
    assert found.loss == 1.0
    assert found.unit.tolist() == [0.0, 0.0]
    assert (found.evaluations(), found.converged, seconds) == (10, False, 0.5)
    assert [loss for loss, _ in found.minima] == [2.0]
    assert seen[-1] == 1.0


@pytest.mark.parametrize(
    ("search", "words"), [(all_killed, "killed by SIGKILL"), (all_refuse, "^no such gain$")]
)
def test_without_any_point_the_reason_is_said(search, words):
    """Of the first worker that failed."""
    with pytest.raises(StribeckError, match=words):
        search_in_processes(search, 2, 10, lambda one: None)
