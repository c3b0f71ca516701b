"""``stribeck report`` as a user meets it."""

import json

import pytest

from reporting import file_of, logs_of, provenance_of
from stribeck.cli.main import main
from stribeck.files.drives import write_drive
from stribeck.recordings.bags.bag import write_bag


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    write_bag(folder / "campaign", logs_of()[:4])
    return folder


@pytest.fixture
def params(tmp_path):
    path = tmp_path / "m3.json"
    write_drive(path, file_of("m3", provenance_of(logs_of()[:2])))
    return path


def command(params, bags, output):
    return ["report", "--params", str(params), "--logdir", str(bags), "--output", str(output)]


@pytest.mark.slow
def test_a_report_is_written_and_named(params, bags, tmp_path, capsys):
    """One line, with its size; runs that were not fitted are told from those that were."""
    output = tmp_path / "new" / "report.html"
    assert main(command(params, bags, output)) == 0
    assert capsys.readouterr().out.startswith(f"{output} (")
    text = output.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert any(
        words in text for words in ("about as well", "is less accurate for runs", "does not predict runs")
    )


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda p, b, o: command(p.with_name("none.json"), b, o), "no such file"),
        (lambda p, b, o: command(p, b / "none", o), "no such file or folder"),
        (lambda p, b, o: command(p, b, o.with_suffix(".pdf")), "HTML"),
        (lambda p, b, o: command(p, b, b / "campaign" / "report.html"), "recording"),
        (lambda p, b, o: command(other_servo(p), b, o), "'xl330', but the recordings are of 'mx106'"),
        (lambda p, b, o: command(wild(p), b, o), "SI units"),
    ],
)
def test_bad_input_gets_one_line_and_an_old_report_stays(params, bags, tmp_path, capsys, change, part):
    """Missing files, other formats, other servos, values that no simulation survives."""
    output = tmp_path / "report.html"
    output.write_text("the old one")
    assert main(change(params, bags, output)) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if "warning" not in line]
    assert len(lines) == 1
    assert part in lines[0]
    assert output.read_text() == "the old one"
    assert {path.name for path in tmp_path.iterdir()} <= {"report.html", "m3.json", "other.json", "wild.json"}


def other_servo(params):
    path = params.with_name("other.json")
    content = json.loads(params.read_text())
    del content["stribeck"]
    path.write_text(json.dumps({**content, "actuator": "xl330"}))
    return path


def wild(params):
    path = params.with_name("wild.json")
    path.write_text(json.dumps({**json.loads(params.read_text()), "kt": 1e6, "R": 1e-6}))
    return path


def test_a_simulation_that_is_not_that_of_the_fit_is_named(params, bags, tmp_path):
    """Errors of a second between resets look better than they are."""
    output = tmp_path / "report.html"
    assert main(command(params, bags, output)) == 0
    assert "simulated differently here" not in output.read_text()
    assert main([*command(params, bags, output), "--dt", "0.01", "--reset-period", "1"]) == 0
    text = output.read_text()
    assert (
        "M3 is simulated differently here than in its fit: here steps of 10 ms, reset every 1 s, in the fit steps of 5 ms, whole runs."
        in text
    )
    assert "reset to the measured state every 1 s: the errors are those of intervals" in text


def test_files_of_one_name_are_told_by_their_folders(params, bags, tmp_path, capsys):
    """As many folders as it takes; one file twice is refused."""
    paths = [tmp_path / f"seed_{k}" / "fit" / "m3.json" for k in (0, 1)]
    for path in paths:
        write_drive(path, file_of("m3", None))
    words = ["report", "--logdir", str(bags), "--output", str(tmp_path / "report.html"), "--params"]
    assert main([*words, *map(str, paths)]) == 0
    text = (tmp_path / "report.html").read_text()
    assert "seed_0/fit/m3 (M3)" in text
    assert "seed_1/fit/m3 (M3)" in text
    assert main([*words, str(params), str(params.parent / "." / params.name)]) == 1
    assert "twice" in capsys.readouterr().err
