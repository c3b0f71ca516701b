"""A recorder that is killed with ``kill -9`` in mid-recording: all but the last second comes back, everywhere."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bag_readers import READERS, mcap_file
from helpers import REPOSITORY, published, write_json
from recordings_made import PERIOD, RATE, TOPICS, run
from stribeck.cli.main import main
from stribeck.recordings.bags.bag import read_bag
from stribeck.recordings.bags.recorder import BagRecorder
from stribeck.recordings.sources import read_recordings

pytestmark = pytest.mark.real_time

SECONDS = 3.0


def started(bag: Path) -> subprocess.Popen[str]:
    """A child that records."""
    child = REPOSITORY / "test" / "support" / "recording_child.py"
    command = [sys.executable, str(child), str(bag)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def recorded_until(process: subprocess.Popen[str], sample: int) -> int:
    """Wait until the child has recorded a sample; the last that it told of."""
    for line in process.stdout:
        if int(line) >= sample:
            return int(line)
    raise AssertionError(f"the child ended before sample {sample}: {process.stderr.read()}")


def killed(bag: Path, sample: int) -> int:
    """Record into ``bag`` and kill the recorder after a sample; the last sample that it told of."""
    with started(bag) as process:
        recorded_until(process, sample)
        process.send_signal(signal.SIGKILL)
        told = [int(line) for line in process.stdout.read().split("\n")[:-1]]
        assert process.wait(100) == -signal.SIGKILL
    return told[-1] if told else sample


@pytest.fixture(scope="module")
def crash(tmp_path_factory) -> tuple[Path, int]:
    """A bag whose recorder was killed after 3 s, and the last sample that was recorded."""
    bag = tmp_path_factory.mktemp("crash") / "run_001"
    return bag, killed(bag, round(SECONDS * RATE))


@pytest.fixture(scope="module")
def copy(crash) -> Path:
    """Its finished copy."""
    read_bag(crash[0])
    return crash[0].with_name("run_001_recovered")


def test_all_but_the_last_second_comes_back(crash, copy):
    """Every sample up to then, none twice; the original stays unfinished."""
    bag, last = crash
    (log,) = read_bag(bag)
    times = (log.position.time * 1e9).round()
    assert list(times) == [k * PERIOD for k in range(len(times))]
    assert len(times) > last - RATE
    assert log.name == "first (cut off)"
    assert [path.name for path in bag.iterdir()] == ["run_001.mcap"]


@pytest.mark.parametrize("reader", READERS)
def test_the_finished_copy_opens_everywhere(crash, copy, reader):
    """In rosbags, mcap-ros2-support and @mcap/core."""
    counts = READERS[reader](copy)
    assert counts.pop("/bench") == 1
    assert len(counts) == len(TOPICS) - 1
    assert min(counts.values()) > crash[1] - RATE


def test_the_next_recording_starts_cleanly(crash, copy):
    """Beside the dead bag and its copy, with the next number; the folder then holds two runs."""
    folder = crash[0].parent
    with BagRecorder.numbered(folder, "run", TOPICS) as recorder:
        for message in run(1.5, "next"):
            recorder.write(*message)
    assert recorder.path == folder / "run_002"
    assert [log.name for log in read_recordings(folder)] == ["first (cut off)", "next"]


def test_a_killed_recording_goes_through_the_command_line(tmp_path, capsys):
    """``stribeck evaluate`` reads it, says so in one line on stderr, and finishes it."""
    bag = tmp_path / "bags" / "run_001"
    killed(bag, round(1.5 * RATE))
    parameters = write_json(
        tmp_path / "m1.json", {**published("xl330", "m1"), "model": "m1", "actuator": "xl330"}
    )
    output = tmp_path / "errors.json"
    arguments = ["evaluate", str(bag.parent), "--params", str(parameters), "--json", str(output)]
    assert main(arguments) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("stribeck: warning: ")
    assert "run_001_recovered" in line
    (result,) = json.loads(output.read_text())["results"]
    assert [entry["log"] for entry in result["per_log"]] == ["first (cut off)"]
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""


def test_a_stopped_recorder_is_not_dead(tmp_path):
    """SIGSTOP is no crash: its bag is left alone until the process is gone."""
    bag = tmp_path / "run_001"
    with started(bag) as process:
        recorded_until(process, round(1.5 * RATE))
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        notes: list[str] = []
        with pytest.raises(Exception, match="no usable recordings"):
            read_recordings(tmp_path, note=notes.append)
        assert "still being recorded" in notes[0]
        process.kill()
        process.communicate(timeout=100)
    assert [log.name for log in read_recordings(tmp_path)] == ["first (cut off)"]
    assert mcap_file(bag.with_name("run_001_recovered")).is_file()
