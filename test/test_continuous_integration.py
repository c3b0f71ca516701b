"""What `.ci/run` does: the README's first command, alone and beside work, a slice of the slow tests, all others last."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import REPOSITORY

CI = REPOSITORY / ".ci"


@pytest.fixture(scope="module")
def slow():
    """The module that runs slices."""
    spec = importlib.util.spec_from_file_location("slow_slice", CI / "slow_slice.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["slow_slice"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["slow_slice"]


def table():
    """Times of slow tests [s]."""
    return json.loads((CI / "slow_seconds.json").read_text())


def test_the_times_are_of_tests_that_exist():
    """Each name is a file, or a function in it (of one set of parameters), and its time is positive."""
    for name, seconds in table().items():
        file, _, function = name.partition("[")[0].partition("::")
        assert (REPOSITORY / file).is_file(), name
        assert f"def {function}(" in (REPOSITORY / file).read_text() if function else True, name
        assert seconds > 0.0


def test_every_slow_test_is_in_one_slice_or_named_as_too_long(slow):
    """Over as many days as there are slices each test has its turn; no slice is filled beyond its share."""
    names = [f"test/a{k % 40}.py::test_{k}[{k}]" for k in range(300)]
    times = {f"test/a{k}.py": 13.0 * k + 1.0 for k in range(30)} | {"test/a39.py::test_39": 2000.0}
    units = slow.units_of(names, times)
    slices, too_long = slow.slices_of(units)
    placed = [test for units in (*slices, too_long) for unit in units for test in unit.tests]
    assert sorted(placed) == sorted(names)
    assert [unit.name for unit in too_long] == ["test/a39.py::test_39"]
    for one in slices:
        total = sum(unit.seconds for unit in one)
        assert total <= slow.FILLED * slow.LIMIT or len(one) == 1
    days = range(20780, 20780 + len(slices))
    assert {day % len(slices) for day in days} == set(range(len(slices)))


def test_a_test_without_a_time_is_put_somewhere(slow):
    """A new file counts a minute for each test."""
    (unit,) = slow.units_of(["test/new.py::test_a", "test/new.py::test_b[1]"], {})
    assert (unit.name, unit.seconds) == ("test/new.py", 2 * slow.UNKNOWN)


def test_parameters_of_one_function_are_distributed_apart_where_each_has_a_time(slow):
    """A name with parameters goes before the one without, and that before the file's."""
    names = [f"test/a.py::test_it[{one}]" for one in "abc"] + ["test/a.py::test_other"]
    units = slow.units_of(names, {names[0]: 600.0, "test/a.py::test_it": 700.0, "test/a.py": 5.0})
    assert [(unit.name, unit.tests, unit.seconds) for unit in units] == [
        (names[0], (names[0],), 600.0),
        ("test/a.py::test_it", tuple(names[1:3]), 700.0),
        ("test/a.py", (names[3],), 5.0),
    ]


def test_the_real_times_fill_few_slices_and_leave_nothing_out(slow):
    """The table as it is: every test has its turn.

    A slice lasts 15 minutes at most and is filled to 0.6 of that, so their number follows from the sum of the times,
    6.3 hours; six weeks is how long a test may wait for its turn.
    """
    units = [slow.Unit(name, (name,), seconds) for name, seconds in table().items()]
    slices, too_long = slow.slices_of(units)
    assert len(slices) <= 42, "six weeks"
    assert not too_long


def project(folder: Path, text: str) -> list[str]:
    """A project with slow tests; their node IDs."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow: slow\n")
    (folder / "test_it.py").write_text(text)
    return [f"test_it.py::{name}" for name in re.findall(r"def (test_\w+)", text)]


PASSES = "import pytest\npytestmark = pytest.mark.slow\n\n\ndef test_a():\n    pass\n\n\ndef test_b():\n    pytest.skip('no')\n"


def test_a_slice_that_passes_has_reached_everything(slow, tmp_path, capsys):
    """Passed and skipped tests are finished; nothing is listed."""
    tests = project(tmp_path, PASSES)
    outcome = slow.run(tests, 100.0, tmp_path)
    assert not outcome.failed
    assert set(outcome.reached) == set(tests)
    slow.report(tests, outcome)
    out = capsys.readouterr().out
    assert "2 of 2 finished" in out
    assert "NOT RUN" not in out


def test_a_case_that_is_slow_beside_the_first_one_is_run_without_it(slow, tmp_path):
    """Cases after the first are marked when all are collected; a slice collects some of them."""
    tests = project(tmp_path, PASSES.replace("pytestmark = pytest.mark.slow", ""))
    assert set(slow.run(tests[:1], 100.0, tmp_path).reached) == {"test_it.py::test_a"}


MARKED = """
import pytest

@pytest.mark.ci
@pytest.mark.parametrize("case", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a(case): pass

@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("case", [0, 1])
def test_b(case): pass

def test_c(): pass
"""


def test_what_ci_runs_for_every_change_is_slow_and_what_is_slow_beside_it_is_not_run(tmp_path):
    """The marks of `test/conftest.py`: `ci` concerns the cases that are not slow without it, and makes them slow."""
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    slow\n    ci\n    one_case_is_quick\ntimeout = 60\n"
    )
    (tmp_path / "conftest.py").write_text((REPOSITORY / "test" / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(MARKED)
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-m"]
    found = {}
    for chosen in ("not slow", "ci", "slow and not ci"):
        done = subprocess.run([*command, chosen], cwd=tmp_path, capture_output=True, text=True)
        found[chosen] = set(re.findall(r"test_[abc]\S*", done.stdout.replace("test_it.py::", "")))
    assert found == {
        "not slow": {"test_c"}, "ci": {"test_a[0]", "test_b[0]"}, "slow and not ci": {"test_a[1]", "test_b[1]"}
    }  # fmt: skip


@pytest.mark.parametrize("body", ["assert False", "raise SystemExit(3)"])
def test_a_test_that_fails_fails_the_slice(slow, tmp_path, body):
    """And one that ends the process."""
    tests = project(tmp_path, PASSES + f"\n\ndef test_c():\n    {body}\n")
    assert slow.run(tests, 100.0, tmp_path).failed


def test_a_slice_without_time_left_lists_what_was_not_reached(slow, tmp_path, capsys):
    """It is ended, does not fail, and names each test that has not finished; a test that waits forever among them."""
    waits = "\n\ndef test_c():\n    import signal\n    open('begun', 'w').close()\n    signal.pause()\n"
    tests = project(tmp_path, PASSES + waits)
    outcome = slow.run(tests, 0.0, tmp_path)
    assert not outcome.failed
    assert "test_it.py::test_c" not in outcome.reached
    slow.report(tests, outcome)
    out = capsys.readouterr().out
    assert "NOT RUN to their end" in out
    assert "    test_it.py::test_c\n" in out


def commands(folder: Path, make: str) -> dict[str, str]:
    """An environment in which the programs of `.ci/run` only write down that they were called."""
    programs = folder / "programs"
    programs.mkdir()
    bodies = {
        "make": make,
        "apt-get": "exit 0",
        "chromium": "exit 0",
        "yes": f'echo $$ >> "{folder}/busy"; exec sleep 1000',
    }
    for name, body in bodies.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    return os.environ | {"PATH": f"{programs}:/usr/bin:/bin"}


@pytest.mark.real_time
@pytest.mark.parametrize("fails", [False, True])
def test_ci_runs_the_demo_twice_and_leaves_nothing_busy(tmp_path, fails):
    """In this order; a demo that fails beside two busy processes ends the run, and they end with it."""
    calls, busy = tmp_path / "calls", tmp_path / "busy"
    # The second demo waits until both busy processes are there.
    make = f"""echo "$@" >> "{calls}"
        if [ "$(grep -c '^demo' "{calls}")" = 2 ] && [ "$1" = demo ]; then
            until [ "$(wc -l < "{busy}" 2>/dev/null)" = 2 ]; do :; done
            exit {int(fails)}
        fi"""
    done = subprocess.run(
        ["sh", str(CI / "run")], env=commands(tmp_path, make), capture_output=True, timeout=60
    )
    expected = (
        ["lint", "demo", "demo"] if fails else ["lint", "demo", "demo", "test-slice", "test-ci", "test"]
    )
    assert calls.read_text().split() == expected
    assert done.returncode == int(fails)
    for pid in busy.read_text().split():
        assert not Path(f"/proc/{pid}").exists()


def test_the_tests_come_last():
    """pytest's closing line ends the log."""
    lines = [line for line in (CI / "run").read_text().splitlines() if line.strip()]
    assert lines[-1] == "make test"
