"""Writing never loses what was there, and the project's own folders are found."""

import os
import stat
from pathlib import Path

import pytest

from helpers import REPOSITORY, refusal
from stribeck.errors import OutputError
from stribeck.files import folders as files
from stribeck.files.folders import check_writable, replace_keeping, shared_directory, write_atomically


def test_a_file_is_written_whole(tmp_path):
    """Text and bytes, into folders that are made, over an old file."""
    path = tmp_path / "new" / "deep" / "file.json"
    write_atomically(path, "grün\n")
    assert path.read_bytes() == "grün\n".encode()
    write_atomically(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(path.parent.iterdir()) == [path]


def test_readers_never_see_half_a_file(tmp_path, monkeypatch):
    """Until the very rename the old file is there, whole, and the new one lies complete beside it."""
    path = tmp_path / "file"
    path.write_text("old")
    seen = []
    rename = os.replace

    def watched(source: str, target: Path) -> None:
        seen.append((path.read_text(), Path(source).read_text(), Path(source).parent == path.parent))
        rename(source, target)

    monkeypatch.setattr(os, "replace", watched)
    write_atomically(path, "new")
    assert seen == [("old", "new", True)]
    assert path.read_text() == "new"


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    """The temporary file's private mode would shut colleagues out."""
    (tmp_path / "plain").write_text("")
    write_atomically(tmp_path / "file", "")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )


def test_what_cannot_be_written_is_refused_and_leaves_nothing_behind(tmp_path):
    """A folder in the way, a file where a folder should be: the message names the target."""
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "folder", tmp_path / "file" / "below"):
        refusal(lambda path=path: write_atomically(path, "new"), path)
        refusal(lambda path=path: check_writable(path), path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "mine"


def test_checking_does_not_touch_anything(tmp_path):
    """Neither the file nor the folders above it."""
    (tmp_path / "old").write_text("mine")
    check_writable(tmp_path / "old")
    check_writable(tmp_path / "a" / "b" / "c.json")
    assert [entry.name for entry in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "mine"


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (PermissionError(13, "Permission denied"), "no permission"),
        (OSError(30, "Read-only file system"), "Read-only file system"),
    ],
)
def test_places_that_cannot_be_written_are_refused_before_the_work_begins(
    tmp_path, monkeypatch, problem, reason
):
    """What the system says when a file is tried beside is what counts (a superuser may write anywhere)."""

    def refuse(**_: object) -> None:
        raise problem

    monkeypatch.setattr(files.tempfile, "mkstemp", refuse)
    refusal(lambda: check_writable(tmp_path / "new"), tmp_path / "new", reason)


def test_a_write_protected_file_is_refused_before_the_work_begins(tmp_path, monkeypatch):
    """Renaming over it would succeed, but its owner said no."""
    (tmp_path / "old").write_text("mine")
    monkeypatch.setattr(files.os, "access", lambda path, mode: Path(path) != tmp_path / "old")
    refusal(lambda: check_writable(tmp_path / "old"), tmp_path / "old", "write-protected")
    assert (tmp_path / "old").read_text() == "mine"


def test_the_folders_of_the_project_are_found_in_a_source_tree():
    """Here the package lies under src/, beside config/."""
    assert shared_directory("config") == REPOSITORY / "config"


def test_the_folders_of_an_installation_are_found_under_share(tmp_path, monkeypatch):
    """pip and colcon put them under share/stribeck of the prefix that holds the package."""
    module = tmp_path / "lib" / "python3" / "site-packages" / "stribeck" / "files" / "folders.py"
    (tmp_path / "share" / "stribeck" / "config").mkdir(parents=True)
    monkeypatch.setattr(files, "__file__", str(module))
    assert shared_directory("config") == tmp_path / "share" / "stribeck" / "config"
    refusal(lambda: shared_directory("nothing"), "'nothing'")


@pytest.mark.parametrize("name", ["config"])
def test_a_folder_called_like_ours_in_another_project_is_not_taken_for_ours(tmp_path, monkeypatch, name):
    """Only beside a package.xml, which marks the top of a source tree."""
    (tmp_path / name).mkdir()
    monkeypatch.setattr(files, "__file__", str(tmp_path / "src" / "stribeck" / "files" / "folders.py"))
    refusal(lambda: shared_directory(name), repr(name))


def test_what_was_there_is_kept_with_a_number(tmp_path):
    """The first result replaces nothing; every further one leaves the one before, in order."""
    path = tmp_path / "m6.json"
    kept = []
    for number in range(3):
        new = tmp_path / "new"
        new.write_text(str(number))
        kept.append(replace_keeping(new, path))
    assert kept == [None, tmp_path / "m6_001.json", tmp_path / "m6_002.json"]
    assert {found.name: found.read_text() for found in tmp_path.iterdir()} == {
        "m6.json": "2",
        "m6_001.json": "0",
        "m6_002.json": "1",
    }


def test_results_are_kept_where_files_cannot_have_two_names(tmp_path, monkeypatch):
    """On a file system without links a copy is made."""

    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "new").write_text("new")
    (tmp_path / "m6.json").write_text("old")
    kept = replace_keeping(tmp_path / "new", tmp_path / "m6.json")
    assert (kept.read_text(), (tmp_path / "m6.json").read_text()) == ("old", "new")


def test_a_result_that_is_not_there_replaces_nothing(tmp_path):
    """One line, and the old file stays."""
    (tmp_path / "m6.json").write_text("old")
    with pytest.raises(OutputError, match="cannot write"):
        replace_keeping(tmp_path / "missing", tmp_path / "m6.json")
    assert (tmp_path / "m6.json").read_text() == "old"
