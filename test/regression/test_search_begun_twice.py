"""Ctrl-C in the moment in which the search for a trajectory was handed to its thread: it was begun twice, and its first result lost."""

import signal
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from stribeck.excitation import search
from stribeck.identify.common.solver_status import SolverStatus


@pytest.fixture
def begun(monkeypatch):
    """How often a search whose parts take no time has been begun."""
    count = []
    baseline = SimpleNamespace(z=np.zeros((1, 3)), log_det=np.array([1.0]))
    climb = search.Climb(0, 1.0, 2.0, np.ones(3), 1, finished=False, status=SolverStatus.LIMIT)
    monkeypatch.setattr(search, "random_baseline", lambda *_: count.append(1) or baseline)
    monkeypatch.setattr(search, "_climb", lambda *_: climb)
    # A program that was started in the background ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield count
    signal.signal(signal.SIGINT, before)


def found():
    criterion = SimpleNamespace(prepare=lambda: None)
    return search.search(criterion, search.Clock(60.0), starts=1, random=1, seed=0)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_once_or_twice_while_the_search_is_handed_over(begun, monkeypatch, times):
    """It is called off, and begun once; Ctrl-C raises again afterwards."""
    begin = ThreadPoolExecutor.submit

    def submit(*arguments):
        future = begin(*arguments)
        if arguments[1] is not search._climb:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return future

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    result = found()
    assert result.interrupted
    assert begun == [1]
    assert result.climbs[0].log_det == 2.0
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_that_is_ignored_stays_ignored(begun, monkeypatch):
    """As in a program that was started in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    begin = ThreadPoolExecutor.submit

    def submit(*arguments):
        signal.raise_signal(signal.SIGINT)
        return begin(*arguments)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    assert not found().interrupted
    assert begun == [1]
