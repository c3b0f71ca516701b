"""Every shell line of README, documentation, examples and help is executed, or stands in ``lines_not_run.py`` with its reason."""

import os
import re
import shlex
from functools import cache
from pathlib import Path

import matplotlib
import pytest

from documented import all_lines
from helpers import REPOSITORY
from line_files import furnish
from stribeck.cli.main import main
from usage import answers

pytest.importorskip("jax", reason="most commands need the fit: pip install '.[fit]'")

from lines_not_run import NOT_RUN

BEGINNINGS = tuple(start for starts in NOT_RUN.values() for start in starts)


@cache
def lines():
    """All lines with their places."""
    return {
        re.sub(r"^(?:\.venv/bin/|~/ros_venv/bin/)", "", line): place for line, place in all_lines().items()
    }


EXECUTED = [line for line in lines() if not line.startswith(BEGINNINGS)]


def test_a_reason_is_given_for_lines_that_are_there():
    """No beginning is left over from a line that is gone, and none is listed twice."""
    assert len(BEGINNINGS) == len(set(BEGINNINGS))
    unused = [start for start in BEGINNINGS if not any(line.startswith(start) for line in lines())]
    assert not unused


def test_reasons_name_tests_that_are_there():
    """Files and folders of tests, and programs, in the reasons."""
    named = [word for reason in NOT_RUN for word in re.findall(r"(?:test|\.ci)/[\w/.]+", reason)]
    assert len(named) > 5
    assert not [word for word in named if not (REPOSITORY / word).exists()]


PROGRAMS = [line for line in lines() if line.startswith(("python examples/", "python bench/"))]
"""Lines of programs, which run for minutes to hours."""


def program_of(line):
    return str(REPOSITORY / shlex.split(line, comments=True)[1])


@pytest.fixture(scope="module")
def helps():
    """What the programs print for --help."""
    for library in ("mujoco", "pinocchio"):
        pytest.importorskip(library)
    programs = sorted({program_of(line) for line in PROGRAMS})
    found = dict(zip(programs, answers([(program, ("--help",)) for program in programs]), strict=True))
    assert {code for code, _, _ in found.values()} == {0}, found
    return {program: text for program, (_, text, _) in found.items()}


@pytest.mark.parametrize("line", PROGRAMS)
def test_programs_have_the_options_of_their_lines(line, helps):
    """And the choices, where the line gives one as first argument."""
    words, text = shlex.split(line, comments=True)[2:], helps[program_of(line)]
    known = set(re.findall(r"--[a-z][a-z-]*", text))
    assert {word for word in words if word.startswith("--")} <= known
    choices = re.search(r"\n  \{([^}]*)\}", text)
    assert choices is None or words[0] in choices[1].split(",")


def test_most_lines_of_commands_are_executed():
    """What is executed is a command of ours, and names nothing that the reader has to fill in."""
    strange = [
        line for line in EXECUTED if not line.startswith("stribeck ") or re.search(r"[<>|&;\u2026]", line)
    ]
    assert not strange
    ours = [line for line in lines() if line.startswith("stribeck ")]
    assert len(EXECUTED) > 0.5 * len(ours)


def lines_of(*beginnings):
    """The parametrisation by lines of some commands; without a command, by those of all others."""
    kinds = (
        "identify servo --bayes",
        "identify arm --bayes",
        "identify servo",
        "identify fleet",
        "identify",
        "design",
        "export",
    )
    kind = {line: next((k for k in kinds if line.startswith(f"stribeck {k}")), "") for line in EXECUTED}
    return pytest.mark.parametrize("line", [line for line in EXECUTED if kind[line] in (beginnings or ("",))])


@pytest.fixture
def runs(tmp_path, monkeypatch, capsys):
    """Runs a line: exit code 0, or 2 where --strict asks for a verdict that small recordings do not earn; what it writes is there."""
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(line):
        furnish(line, tmp_path)
        words = [os.path.expanduser(word) for word in shlex.split(line)]
        code = main(words[1:])
        assert code == 0 or (code == 2 and "--strict" in words), capsys.readouterr().err[-2000:]
        for option in ("--output", "--json", "--report", "--diagram"):
            for k in [k for k, word in enumerate(words) if word == option]:
                assert Path(words[k + 1]).expanduser().exists(), words[k + 1]

    return run


@pytest.mark.slow
@lines_of("identify servo --bayes", "identify arm --bayes")
def test_lines_of_posteriors_run(line, runs):
    """`--bayes`."""
    runs(line)


@pytest.mark.slow
@lines_of("identify servo", "identify fleet")
def test_lines_of_servos_run(line, runs):
    """Fits of servos."""
    runs(line)


@pytest.mark.slow
@lines_of("identify")
def test_lines_of_other_identifications_run(line, runs):
    """Joints, arms, robots, mechanisms, transmissions, geometry."""
    runs(line)


@pytest.mark.slow
@lines_of("design")
def test_lines_of_designs_run(line, runs):
    """Trajectories, poses, sweeps."""
    runs(line)


@pytest.mark.slow
@lines_of("export")
def test_lines_of_exports_run(line, runs):
    """Each export is compared with the law by simulation."""
    runs(line)


@pytest.mark.slow
@lines_of()
def test_all_other_lines_run(line, runs):
    """Import, description, evaluation, replay, dry runs."""
    runs(line)
