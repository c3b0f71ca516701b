"""`stribeck design poses --set`: speed, acceleration and rest of a visit."""

import numpy as np
import pytest

from stribeck.cli.main import main
from stribeck.session.poses import PosesFile


@pytest.fixture
def candidates(tmp_path):
    """Positions of an IRB 120 [deg]."""
    path = tmp_path / "candidates.txt"
    np.savetxt(path, np.random.default_rng(0).uniform(-60.0, 60.0, (40, 6)))
    return path


def test_a_visit_is_as_it_was_asked_for(candidates, tmp_path):
    """Speed and rest from the command line, the usual acceleration."""
    words = ["design", "poses", "--machine", "irb120", "--candidates", candidates, "--count", 12]
    words += ["--set", "speed=2", "--set", "rest=0.5", "--output", tmp_path / "poses.yaml"]
    assert main([str(word) for word in words]) == 0
    found = PosesFile.read(tmp_path / "poses.yaml")
    assert (len(found.poses), found.speed, found.acceleration, found.rest) == (12, 2.0, 1.0, 0.5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "speed=2"], "--set describes a visit: name its file with --output FILE.yaml"),
        (["--set", "sped=2", "--output", "a.yaml"], "unknown name 'sped'; valid: speed, acceleration, rest"),
        (["--set", "rest=-1", "--output", "a.yaml"], "--set rest: expected a positive number, found -1"),
        (["--set", "rest=long", "--output", "a.yaml"], "--set rest: expected a number, found 'long'"),
    ],
)
def test_what_is_no_visit_is_refused(candidates, tmp_path, monkeypatch, capsys, words, said):
    """One line, and no file."""
    monkeypatch.chdir(tmp_path)
    assert main(["design", "poses", "--machine", "irb120", "--candidates", str(candidates), *words]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "a.yaml").exists()
