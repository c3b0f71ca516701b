"""Compressed bags, as ``ros2 bag record --compression-mode`` writes them, are read as all others."""

import shutil
from pathlib import Path

import lz4.frame
import pytest
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from bags import STORE, one_run
from helpers import assert_same_log, refusal
from stribeck.recordings.bags.bag import read_bag
from stribeck.recordings.bags.storage import is_bag
from stribeck.recordings.sources import read_recordings

PLUGINS = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}


def packed(path: Path, storage: str, mode: str, form: str) -> Path:
    """The bag of one run, compressed by another program; LZ4 by hand, because rosbags writes Zstandard alone."""
    writer = Writer(path, version=9, storage_plugin=PLUGINS[storage])
    if form == "zstd":
        writer.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for time, topic, content in sorted(one_run().messages, key=lambda entry: entry[0]):
            kind = content.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
            data = bytes(STORE.serialize_cdr(content, kind))
            if (mode, form) == ("MESSAGE", "lz4"):
                data = lz4.frame.compress(data)
            writer.write(connections[topic], round(time * 1e9), data)
    metadata = path / "metadata.yaml"
    if form == "lz4":
        text = metadata.read_text()
        if mode == "FILE":
            (file,) = [file for file in path.iterdir() if file.suffix in (".mcap", ".db3")]
            (path / f"{file.name}.lz4").write_bytes(lz4.frame.compress(file.read_bytes()))
            file.unlink()
            text = text.replace(file.name, f"{file.name}.lz4")
        text = text.replace("compression_mode: ''", f"compression_mode: {mode}")
        metadata.write_text(text.replace("compression_format: ''", "compression_format: lz4"))
        assert mode in metadata.read_text()
    return path


@pytest.mark.parametrize("storage", PLUGINS)
@pytest.mark.parametrize("mode", ["FILE", "MESSAGE"])
@pytest.mark.parametrize("form", ["zstd", "lz4"])
def test_compressed_bags_are_read(tmp_path, storage, mode, form):
    """By file and by message, with their folder and as a storage file alone."""
    (wanted,) = read_bag(one_run().write(tmp_path / "plain"))
    path = packed(tmp_path / "bags" / "one", storage, mode, form)
    (found,) = read_recordings(tmp_path / "bags")
    assert_same_log(found, wanted)
    (file,) = [file for file in path.iterdir() if file.name != "metadata.yaml"]
    lone = Path(shutil.copy(file, tmp_path / file.name))
    assert is_bag(lone)
    assert_same_log(read_bag(lone)[0], wanted)


@pytest.mark.parametrize("mode", ["FILE", "MESSAGE"])
def test_a_damaged_compressed_bag_is_refused(tmp_path, mode):
    """In one line that names it."""
    path = packed(tmp_path / "one", "mcap", mode, "zstd")
    (file,) = [file for file in path.iterdir() if file.name != "metadata.yaml"]
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 3] ^= 0xFF
    file.write_bytes(whole[: len(whole) // 2])
    refusal(lambda: read_bag(path), path)
