"""A folder of recordings beside which lies a folder that cannot be read, as of another user."""

import errno
import os
from pathlib import Path

import pytest

from helpers import refusal
from stribeck.recordings.tables.readers import find_tables


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A recording, a bag in a folder without metadata.yaml, and a folder that is another user's; the listed ones are noted."""
    (tmp_path / "a.csv").write_text("t,q\n0,1\n")
    for name in ("private", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "run" / "run_0.db3").write_bytes(b"")
    listed = []
    before = Path.iterdir

    def iterdir(path):
        listed.append(path.name)
        if path.name == "private":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return before(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    return tmp_path, listed


def test_other_folders_are_not_opened_for_tables(folder):
    """What happened: PermissionError with a traceback, though only bags are looked for in them."""
    path, listed = folder
    assert find_tables([path], [".csv"]) == [path / "a.csv"]
    assert listed == [path.name]


def test_what_can_be_read_is_found(folder):
    """Bags and tables are found beside a folder that cannot be read; if there is nothing else, it is named."""
    path, _ = folder
    assert find_tables([path]) == [path / "a.csv", path / "run" / "run_0.db3"]
    (path / "a.csv").unlink()
    (path / "run" / "run_0.db3").unlink()
    refusal(lambda: find_tables([path]), "no recordings", f"{path / 'private'} cannot be read")
