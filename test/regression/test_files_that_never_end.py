"""Devices, pipes, foreign study files and names that the locale cannot decode: each a line, or done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import REPOSITORY, assert_clear, published
from stribeck.cli.main import main
from stribeck.errors import ConfigError, RecordingError, StudyError
from stribeck.files.schema import read_yaml
from stribeck.recordings.bags.storage import read_messages
from stribeck.recordings.signals.sources import SignalFile
from stribeck.recordings.sources import recorded_runs
from stribeck.recordings.tables.readers import read_table
from stribeck.strict import check_regular


@pytest.mark.parametrize("suffix", [".json", ".csv", ".mcap", ".npz"])
def test_a_pipe_that_nobody_writes_is_refused(tmp_path, suffix):
    """What happened: reading hung. What must happen: one line, for recordings and for settings."""
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    reader = {".mcap": read_messages, ".json": recorded_runs}.get(suffix, read_table)
    with pytest.raises(RecordingError) as caught:
        reader(pipe)
    assert_clear(caught.value, str(pipe), "pipe", "name the file")
    with pytest.raises(RecordingError):
        recorded_runs(tmp_path) if suffix in (".json", ".mcap") else reader(pipe)
    with pytest.raises(ConfigError) as caught:
        read_yaml(pipe, SignalFile)
    assert_clear(caught.value, str(pipe), "pipe")


def test_a_device_without_an_end_is_refused(capsys):
    """What happened: `--params /dev/zero` filled the memory."""
    assert main(["diagram", "--params", "/dev/zero", "--max-torque", "1", "--output", "x.png"]) == 1
    assert "/dev/zero is a device" in capsys.readouterr().err


def test_a_file_above_the_limit_is_refused(tmp_path):
    (tmp_path / "large.csv").write_bytes(b"0" * 2_000_001)
    with pytest.raises(ConfigError) as caught:
        check_regular(tmp_path / "large.csv", ConfigError, 1_000_000)
    assert_clear(caught.value, "large.csv has 2 MB", "at most 1")


def test_a_file_of_one_byte_is_no_study(tmp_path):
    """What happened: SQLite took it for an empty database, and its content was lost."""
    pytest.importorskip("optuna", reason="studies need Optuna: pip install '.[fit]'")
    from stribeck.identify.servo.study import open_study

    path = tmp_path / "notes.db"
    path.write_text("x")
    with pytest.raises(StudyError) as caught:
        open_study(f"sqlite:///{path}", "m1", {}, 10)
    assert_clear(caught.value, "notes.db is not an SQLite database")
    assert path.read_text() == "x"


@pytest.mark.ci
def test_names_that_the_locale_cannot_decode(tmp_path):
    """What happened: a traceback of matplotlib, and another one in printing. What must happen: figure and exit 0."""
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install '.[fit]'")
    from stribeck.files.actuators import load_actuator
    from stribeck.files.drives import write_drive
    from stribeck.model.joint import Drive
    from stribeck.model.law import law_named

    file = Drive(load_actuator("xl330"), law_named("m1"), published("xl330", "m1"))
    write_drive(tmp_path / "größe.json", file)
    environment = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "MPLCONFIGDIR": str(tmp_path),
    }
    environment |= {"PYTHONPATH": str(REPOSITORY / "src"), "PATH": os.environ["PATH"]}
    words = ["evaluate", "--params", "größe.json", "--max-torque", "1", "--diagram", "öl.svg"]
    done = subprocess.run(
        [sys.executable, "-m", "stribeck", *words],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(tmp_path / "öl.svg").is_file()


def test_a_byte_order_mark_is_no_damage(tmp_path):
    """What happened: JSON and YAML saved by an editor on Windows were "not valid JSON"."""
    (tmp_path / "signals.yaml").write_bytes(
        b"\xef\xbb\xbfposition: {column: q}\ngoal: {column: g}\ntorque_enable: {constant: 1}\n"
    )
    assert read_yaml(tmp_path / "signals.yaml", SignalFile).position.column == "q"
