"""Random damage to small valid files: they are read, or refused by an error of ours, never anything else.

Seeds are fixed, so that a failure comes back; the number in the test's name says which.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from helpers import REPOSITORY, assert_clear, bam_recording, full_log, write_json
from stribeck.errors import StribeckError
from stribeck.files.actuators import load_actuator, read_actuator
from stribeck.files.drives import read_drive
from stribeck.files.folders import shared_directory
from stribeck.recordings.bags.bag import read_bag, write_bag
from stribeck.recordings.bam_json import read_bam_json
from stribeck.recordings.signals.sources import load_signals

BATCHES, PER_BATCH = 10, 20


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, in one of the ways in which files break."""
    found = bytearray(content)
    way = rng.integers(5)
    place = int(rng.integers(len(found)))
    if way == 0:  # a few bits anywhere
        for index in rng.integers(len(found), size=rng.integers(1, 6)):
            found[index] ^= 1 << int(rng.integers(8))
    elif way == 1:  # a few bytes anywhere
        for index in rng.integers(len(found), size=rng.integers(1, 20)):
            found[index] = int(rng.integers(256))
    elif way == 2:  # a stretch of zeros, as a crashed file system leaves them
        found[place : place + 64] = bytes(len(found[place : place + 64]))
    elif way == 3:  # a stretch that is gone
        del found[place : place + int(rng.integers(1, 100))]
    else:  # a stretch that occurs twice
        found[place:place] = found[place : place + int(rng.integers(1, 100))]
    return bytes(found)


def read_or_refused(read: Callable[[], object], path: Path) -> bool:
    """Whether ``read`` succeeds; otherwise it raises an error of ours that names the file."""
    try:
        read()
    except StribeckError as error:
        assert_clear(error, path)
        return False
    return True


@pytest.fixture(scope="module")
def bags(tmp_path_factory) -> Path:
    """A small bag of each storage."""
    folder = tmp_path_factory.mktemp("bags")
    for storage in ("mcap", "sqlite3"):
        write_bag(folder / storage, [full_log(duration=1.1)], storage=storage)
    return folder


@pytest.mark.ci
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize(
    ("storage", "target"), [("mcap", "*.mcap"), ("sqlite3", "*.db3"), ("sqlite3", "metadata.yaml")]
)
def test_damaged_bags_are_read_or_refused(bags, tmp_path, storage, target, batch):
    """Damage to the storage file, and to the metadata of a bag that needs them."""
    bag = tmp_path / "bag"
    shutil.copytree(bags / storage, bag)
    (file,) = bag.glob(target)
    whole = file.read_bytes()
    rng = np.random.default_rng([batch, len(target)])
    for _ in range(PER_BATCH):
        file.write_bytes(damaged(whole, rng))
        read_or_refused(lambda: read_bag(bag), bag)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_damaged_json_recordings_are_read_or_refused(tmp_path, batch):
    """A flipped bit of a digit is another number, which may be valid; everything else is refused."""
    path = write_json(tmp_path / "run.json", bam_recording(entries=bam_recording()["entries"][:110]))
    whole = path.read_bytes()
    rng = np.random.default_rng(batch)
    for _ in range(PER_BATCH):
        path.write_bytes(damaged(whole, rng))
        read_or_refused(lambda: read_bam_json(path), path)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_damaged_parameter_files_are_read_or_refused(tmp_path, batch):
    """Short files: nearly every change hits a key or a number."""
    servo = load_actuator("xl330")
    content = json.dumps({**servo.published["m6"], "model": "m6", "actuator": "xl330"}, indent=1).encode()
    path = tmp_path / "m6.json"
    rng = np.random.default_rng(batch)
    refused = 0
    for _ in range(PER_BATCH):
        path.write_bytes(damaged(content, rng))
        refused += not read_or_refused(lambda: read_drive(path), path)
    assert refused > 0, "damage like this must be noticed now and then"


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize(
    ("name", "read"), [("actuators/xl330.yaml", read_actuator), ("signals.yaml", load_signals)]
)
def test_damaged_yaml_files_are_read_or_refused(tmp_path, name, read, batch):
    """Servo files and tables of signals, as people edit them."""
    whole = (shared_directory("config") / name).read_bytes()
    path = tmp_path / "file.yaml"
    rng = np.random.default_rng(batch)
    for _ in range(PER_BATCH // 2):
        path.write_bytes(damaged(whole, rng))
        read_or_refused(lambda: read(path), path)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", range(0, 100_000, 10_000))
def test_files_of_strangers_end_in_a_result_or_a_clear_error(tmp_path, first):
    """10⁵ bags, recordings, parameter, servo and signal files with bytes, numbers and nesting changed: no other exception, no
    file takes 5 s or 1 GB.
    """
    command = [sys.executable, str(REPOSITORY / "test" / "support" / "fuzzing_child.py"), str(tmp_path)]
    done = subprocess.run([*command, str(first), "10000"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    assert min(json.loads(done.stdout).values()) > 100
