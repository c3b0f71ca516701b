"""What a fit says of its progress to programs."""

import json
import math

import pytest

pytest.importorskip("tqdm", reason="progress needs the fit extra: pip install '.[fit]'")

from recovery import truth_of, virtual_logs
from small_studies import TINY
from stribeck.cli import progress
from stribeck.cli.main import main
from stribeck.cli.progress import progress_of
from stribeck.recordings.bags.bag import write_bag
from virtual import Encoder


def lines(capsys):
    """What went to stderr, as objects."""
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_json_lines_tell_the_begin_and_the_end(capsys):
    """The error is null as long as there is none that is a number; the last state is always told."""
    with progress_of("json", "m6", 1000) as told:
        told.update(128, math.inf)
        told.update(900, 0.021)
    first, *_, last = lines(capsys)
    assert {**first, "seconds": None} == {
        "model": "m6",
        "evaluations": 0,
        "trials": 1000,
        "error": None,
        "seconds": None,
    }
    assert (last["evaluations"], last["error"]) == (900, 0.021)
    assert last["seconds"] >= first["seconds"] >= 0.0


def test_json_lines_do_not_flood(capsys, monkeypatch):
    """However often the fit tells, a line comes once in a period."""
    now = 0.0
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now)
    with progress_of("json", "m1", 1000) as told:
        for step in range(1, 1000):
            now = 0.001 * step
            told.update(step, 0.1)
    assert len(lines(capsys)) <= 3 + 1.0 / progress.JSON_PERIOD


@pytest.mark.ci
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--quiet"], marks=pytest.mark.slow),
        pytest.param(["--progress", "none"], marks=pytest.mark.slow),
        ["--progress", "json"],
    ],
)
def test_a_fit_shows_the_progress_that_is_asked_for(tmp_path, capsys, options):
    """Nothing, or lines that end with the error that the file has."""
    bag = tmp_path / "bag"
    write_bag(bag, virtual_logs(TINY, truth_of(TINY, "m1"), "m1", Encoder(0.0015)))
    quick = ["--trials", "500", "--integrator", "paper", "--dt", "0.005"]
    command = ["fit", "--model", "m1", "--logdir", bag, "--output", tmp_path / "m1.json", *quick, *options]
    assert main([str(word) for word in command]) == 0
    told = lines(capsys)
    assert bool(told) == ("json" in options)
    if told:
        assert told[0]["evaluations"] == 0
        assert 0 < told[-1]["evaluations"] <= 600
        assert told[-1]["error"] is not None
