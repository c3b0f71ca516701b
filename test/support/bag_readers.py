"""Bags as three programs that are not ours see them: ``rosbags``, ``mcap-ros2-support``, ``@mcap/core`` (npm)."""

import json
import os
import shutil
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.rosbag2 import Reader

from bags import STORE
from helpers import REPOSITORY

Counts = dict[str, int]
"""Messages by topic."""


def mcap_file(bag: Path) -> Path:
    """The storage file of a bag."""
    (file,) = bag.glob("*.mcap")
    return file


def counted_by_rosbags(bag: Path) -> Counts:
    """Through folder, metadata.yaml and index; every message is decoded."""
    counts: Counter[str] = Counter()
    with Reader(bag) as reader:
        for connection, _, data in reader.messages():
            STORE.deserialize_cdr(data, connection.msgtype)
            counts[connection.topic] += 1
        told = {connection.topic: connection.msgcount for connection in reader.connections}
    assert {topic: count for topic, count in told.items() if count} == dict(counts)
    return dict(counts)


def counted_by_mcap_ros2(bag: Path) -> Counts:
    """Through the index; every message is decoded by the definition that the file gives."""
    counts: Counter[str] = Counter()
    with mcap_file(bag).open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
        for _, channel, _, _ in reader.iter_decoded_messages():
            counts[channel.topic] += 1
    return dict(counts)


def counted_by_javascript(bag: Path) -> Counts:
    """Through the index, and once more as a stream, without any decompressor."""
    script = REPOSITORY / "test" / "recordings" / "count_messages.cjs"
    command = ["node", str(script), str(_javascript_folder()), str(mcap_file(bag))]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    (found,) = json.loads(result.stdout)
    assert found["indexed"] == found["streamed"]
    counts: Counts = found["indexed"]
    return counts


READERS = {
    "rosbags": counted_by_rosbags,
    "mcap_ros2": counted_by_mcap_ros2,
    "javascript": counted_by_javascript,
}


def _javascript_folder() -> Path:
    """A folder with ``node_modules/@mcap/core``: that of STRIBECK_MCAP_JS, or one that npm fills."""
    folder, reason = _find_javascript()
    if reason:
        pytest.skip(reason)
    return folder


@cache
def _find_javascript() -> tuple[Path, str]:
    folder = Path(os.environ.get("STRIBECK_MCAP_JS", REPOSITORY / "build" / "mcap_js"))
    package = folder / "node_modules" / "@mcap" / "core" / "package.json"
    if shutil.which("node") is None:
        return folder, "node is not installed, so @mcap/core cannot be tried"
    if package.is_file():
        return folder, ""
    if "STRIBECK_MCAP_JS" in os.environ:
        raise FileNotFoundError(f"STRIBECK_MCAP_JS={folder} has no node_modules/@mcap/core")
    if shutil.which("npm") is None:
        return folder, "npm is not installed, and STRIBECK_MCAP_JS names no folder with @mcap/core"
    folder.mkdir(parents=True, exist_ok=True)
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "@mcap/core@2"]
    try:
        done = subprocess.run(install, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return folder, "npm did not get @mcap/core within two minutes"
    if done.returncode != 0 or not package.is_file():
        return folder, f"npm could not get @mcap/core: {' '.join(done.stderr.split())[-200:]}"
    return folder, ""
