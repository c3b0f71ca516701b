"""What `stribeck simulate` lost or ignored without a word: tables of the same name, options, the bench of a second file."""

import csv
import json
from pathlib import Path

import pytest

from helpers import published
from stribeck.cli.main import main

BENCH = "mass=0.1,length=0.1,kp=400,supply_voltage=5"
GOALS = "time,goal\n" + "".join(f"{0.01 * k:.2f},{0.002 * k:.3f}\n" for k in range(200))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Two parameter files of one name, and two tables of goals of one name."""
    monkeypatch.chdir(tmp_path)
    for name, factor in (("a", 1.0), ("b", 3.0)):
        Path(name).mkdir()
        values = {**published("xl330", "m4"), "q_offset": 0.0}
        values["friction_base"] *= factor
        Path(f"{name}/m4.json").write_text(json.dumps({**values, "model": "m4", "actuator": "xl330"}))
        Path(f"{name}/goals.csv").write_text(GOALS)
    return tmp_path


def refused(capsys, *words):
    """The one line with which a command is refused."""
    assert main(["simulate", *words]) == 1
    error = capsys.readouterr().err
    assert error.startswith("stribeck: ")
    assert error.count("\n") == 1
    return error


def ends(path):
    """The last row of a table."""
    with Path(path).open() as text:
        return [*csv.DictReader(text)][-1]


def test_files_of_one_name_have_a_table_each(capsys):
    """What happened: steps_m4.csv was written twice and printed twice, and held the second file alone."""
    given = ("steps", "--params", "a/m4.json", "b/m4.json", "--bench", BENCH, "--output", "out")
    assert main(["simulate", *given]) == 0
    assert {path.name for path in Path("out").iterdir()} == {"steps_a_m4.csv", "steps_b_m4.csv"}
    assert ends("out/steps_a_m4.csv") != ends("out/steps_b_m4.csv")


def test_a_file_named_twice_is_refused(capsys):
    """What happened: one of two equal columns was lost."""
    words = ("steps", "--params", "a/m4.json", "a/m4.json", "--bench", BENCH)
    assert "--params names a file twice" in refused(capsys, *words)


@pytest.mark.parametrize("words", [("a/goals.csv", "b/goals.csv"), ("steps", "steps")])
def test_trajectories_of_one_name_are_refused(capsys, words):
    """What happened: the table and the picture of one took the place of the other's."""
    said = refused(capsys, *words, "--params", "a/m4.json", "--bench", BENCH, "--output", "out")
    assert "two trajectories have the same name" in said
    assert not Path("out").exists()


def test_tables_overwrite_neither_each_other_nor_an_input(capsys):
    """What happened: names were checked as motion.csv, whatever they were, and tables of goals were no inputs."""
    Path("x_a.csv").write_text(GOALS)
    Path("x.csv").write_text(GOALS)
    Path("a/a_m4.json").write_text(Path("a/m4.json").read_text())
    both = ("--params", "a/m4.json", "b/m4.json", "a/a_m4.json", "--bench", BENCH, "--output", "out")
    assert "another output" in refused(capsys, "x.csv", *both)
    Path("x_m4.csv").write_text(GOALS)
    alone = ("--params", "a/m4.json", "--bench", BENCH, "--output", ".")
    assert "an input of this command" in refused(capsys, "x.csv", "x_m4.csv", *alone)
    assert Path("x_m4.csv").read_text() == GOALS


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "s.json"),
        ("--plot", "p"),
        ("--bench", BENCH),
        ("--integrator", "paper"),
        ("--servo", "xl330"),
    ],
)
def test_a_mechanism_refuses_what_it_would_ignore(capsys, words):
    """What happened: nothing was drawn or written, with exit code 0."""
    said = refused(capsys, "--mechanism", "furuta_lund", *words)
    assert f"remove {words[0]}" in said


def test_trajectories_refuse_a_duration(capsys):
    """What happened: `--seconds` had no effect."""
    words = ("steps", "--params", "a/m4.json", "--bench", BENCH, "--seconds", "1")
    assert "--seconds" in refused(capsys, *words)


def test_each_file_has_the_supply_of_its_own_servo():
    """What happened: the second file was simulated at the nominal voltage of the first one's servo."""
    values = {**published("mx64", "m4"), "q_offset": 0.0}
    Path("other.json").write_text(json.dumps({**values, "model": "m4", "actuator": "mx64"}))
    bench = ("--bench", "mass=0.1,length=0.1,kp=32")
    found = {}
    for order in (["a/m4.json", "other.json"], ["other.json", "a/m4.json"], ["other.json"]):
        assert main(["simulate", "steps", "--params", *order, *bench, "--json", "s.json"]) == 0
        found[tuple(order)] = {
            row["params"]: row for row in json.loads(Path("s.json").read_text())["results"]
        }
    first, second, alone = found.values()
    assert first == second
    assert first["other"] == alone["other"]
