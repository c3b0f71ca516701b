"""One bad validation file stopped everything; filters refused runs without a name; progress filled log files with lines."""

import sys
from pathlib import Path

import pytest

from moving_arms import arm, low_pass, protocol, recording
from stribeck.api.stages import StageLine
from stribeck.errors import RecordingError, TooShortError
from stribeck.identify.arm.motion import motion_of
from stribeck.recordings.readable import read_usable


def read(paths):
    """Names of files, of which those called bad cannot be read."""
    for path in paths:
        if path.stem.startswith("bad"):
            raise RecordingError(f"{path}: no torques")
    return [path.stem for path in paths]


def test_a_bad_recording_of_several_is_left_out_and_named():
    told = []
    paths = [Path("a.csv"), Path("bad.csv"), Path("b.csv")]
    assert read_usable(paths, read, told.append) == ["a", "b"]
    assert told == ["bad.csv: no torques; it is not used"]


def test_recordings_that_are_all_bad_are_an_error():
    """With every cause; one alone is refused as it is."""
    told = []
    with pytest.raises(RecordingError, match=r"^bad\.csv: no torques; bad2\.csv: no torques$"):
        read_usable([Path("bad.csv"), Path("bad2.csv")], read, told.append)
    with pytest.raises(RecordingError, match=r"^bad\.csv: no torques$"):
        read_usable([Path("bad.csv")], read, told.append)
    assert told == []


def test_files_of_one_run_are_read_together():
    calls = []
    read_usable([Path("a.csv"), Path("b.csv")], lambda some: calls.append(len(some)) or ["run"], print)
    assert calls == [2]


def test_a_run_too_short_for_a_filter_is_named(tmp_path):
    run = recording(arm(tmp_path), name="third").between(0, 8)
    rules = protocol(position_filter=low_pass(1.8), effort_filter=low_pass(1.8), every=1)
    with pytest.raises(TooShortError, match=r"^third: 8 samples are too few for a filter"):
        motion_of(run, rules)


def test_progress_in_a_file_is_a_line_for_each_stage(capsys):
    """Iterations are no stages, and nothing is written over."""
    assert not sys.stderr.isatty()
    with StageLine() as line:
        line.tell("consistent")
        for iteration in range(500):
            line.tell(f"consistent: IPOPT iteration {iteration}")
        line.tell("full")
    told = capsys.readouterr().err
    assert "\r" not in told
    assert [text.rpartition(", ")[0] for text in told.splitlines()] == [
        "consistent",
        "consistent: IPOPT iteration 0",
        "full",
    ]
