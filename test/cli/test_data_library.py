"""`stribeck data library`: drives from public recordings, with origin and spread."""

import json
import statistics

import pytest

from helpers import REPOSITORY
from library import page
from stribeck.cli.main import main
from stribeck.files.drives import read_drives
from stribeck.files.library import drives_of, entries, friction_of, spread_of


@pytest.mark.parametrize("name", entries())
def test_every_set_of_drives_is_there_with_its_origin(name, capsys):
    """Its file is read, all friction parameters are printed, and its recordings are named."""
    assert main(["data", "library", name]) == 0
    said = capsys.readouterr().out
    entry, drives = entries()[name], drives_of(name)
    assert entry.source in said
    assert entry.licence in said
    for joint, drive in drives.joints.items():
        assert joint in said
        assert friction_of(drive)
        assert all(parameter in said for parameter in friction_of(drive))
    assert all(joint in drives.joints for joints in entry.kinds.values() for joint in joints)


def test_a_set_is_copied_and_listed(tmp_path, capsys):
    """The copy is the file; without a name all are listed; JSON says the same."""
    copy, told = tmp_path / "go2.json", tmp_path / "told.json"
    assert main(["data", "library", "go2", "--output", str(copy), "--json", str(told)]) == 0
    assert len(read_drives(copy).joints) == 12
    assert set(json.loads(told.read_text())["entries"]) == {"go2"}
    capsys.readouterr()
    assert main(["data", "library"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in entries())


def test_what_is_not_there_is_refused_in_one_line(tmp_path, capsys):
    """Unknown names with the valid ones; a copy of none or of two."""
    assert main(["data", "library", "go3"]) == 1
    assert "go2" in capsys.readouterr().err
    for names in ([], ["go2", "tx40"]):
        assert main(["data", "library", *names, "--output", str(tmp_path / "x.json")]) == 1
        assert "--output" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_spread_is_that_of_equal_drives():
    """Of the four calves of the Go2: standard deviation over mean of their Coulomb friction, 5 to 20 %."""
    entry, drives = entries()["go2"], drives_of("go2")
    values = [drives.joints[joint].values["friction_base"] for joint in entry.kinds["calf"]]
    found = spread_of(entry, drives)["calf"]["friction_base"]
    assert (found.count, found.mean) == (4, pytest.approx(statistics.fmean(values)))
    assert found.share == pytest.approx(statistics.stdev(values) / statistics.fmean(values))
    assert 0.05 < found.share < 0.2


def test_the_page_is_that_of_the_files():
    """`python bench/library.py --page` has been run."""
    assert (REPOSITORY / "docs" / "library.md").read_text() == page()
