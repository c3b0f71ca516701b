"""Runs one slice of the slow tests a day, so that all of them are run in turn: `make test-slice`.

The tests are distributed by how long they take (``slow_seconds.json``, by file or by test) to the smallest number of
slices that each fit into the time of a slice, on a machine that is a good deal slower than the one on which they were
timed. The day chooses the slice. Tests that a slice has not reached when its time is up are listed; they do not fail it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("slow_seconds.json")
MEASURED = REPOSITORY / "build" / "slow_seconds.json"

LIMIT = 15.0 * 60.0
"""Longest time of a slice [s]."""

FILLED = 0.6
"""Share of it that a slice is filled to."""

UNKNOWN = 60.0
"""Time of a test that is not in the table [s]."""

GRACE = 20.0
"""Time between the request to end and the kill signal [s]."""

DAY = 86400
REPORTS = "STRIBECK_SLOW_REPORTS"
"""Environment variable: file to which the tests' results are appended."""


@dataclass(frozen=True)
class Unit:
    """Tests that are run together: those of a file, or one test.

    :param name: path of the file, or node ID, with or without parameters.
    :param seconds: how long they take.
    """

    name: str
    tests: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """Results of a slice.

    :param failed: whether pytest failed for another reason than the end of the time.
    :param reached: seconds that each finished test took.
    """

    failed: bool
    reached: Mapping[str, float]


def units_of(tests: Sequence[str], table: Mapping[str, float]) -> list[Unit]:
    """Group node IDs by their names in the table (with parameters, without, by file); in the order of the tests."""
    groups: dict[str, list[str]] = {}
    for test in tests:
        file, function = test.partition("::")[0], test.partition("[")[0]
        name = next((one for one in (test, function) if one in table), file)
        groups.setdefault(name, []).append(test)
    return [Unit(name, tuple(of), table.get(name, UNKNOWN * len(of))) for name, of in groups.items()]


def slices_of(units: Sequence[Unit], limit: float = LIMIT) -> tuple[list[list[Unit]], list[Unit]]:
    """Distribute units to slices, longest first, each to the first with room; the units too long for any are apart."""
    room = FILLED * limit
    slices: list[list[Unit]] = []
    for unit in sorted(units, key=lambda unit: (-unit.seconds, unit.name)):
        if unit.seconds > limit:
            continue
        fitting = (one for one in slices if sum(u.seconds for u in one) + unit.seconds <= room)
        found = next(fitting, None)
        if found is None:
            slices.append([unit])
        else:
            found.append(unit)
    return slices, [unit for unit in units if unit.seconds > limit]


def collected(folder: Path = REPOSITORY) -> list[str]:
    """Node IDs of the slow tests, without those that CI runs for every change.

    :raises SystemExit: if pytest cannot collect them.
    """
    options = ["-q", "-m", "slow and not ci", "--collect-only", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    if done.returncode or not tests:
        raise SystemExit(f"slow tests cannot be collected:\n{done.stdout}{done.stderr}")
    return tests


def run(tests: Sequence[str], seconds: float, folder: Path = REPOSITORY) -> Outcome:
    """Run tests for at most some seconds; the process and its children are ended then."""
    with tempfile.TemporaryDirectory() as temporary:
        reports = Path(temporary) / "reports"
        reports.touch()
        own = str(Path(__file__).parent)
        path = os.pathsep.join(filter(None, [own, os.environ.get("PYTHONPATH", "")]))
        # Not `-m slow`: cases after the first of a test are slow only where the first one is collected, too.
        options = ["-q", "-p", Path(__file__).stem, "--durations=15", "--durations-min=10"]
        child = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=folder,
            # Programs as users compile them: see pytest_configure of the tests.
            env={"XLA_FLAGS": ""} | os.environ | {"PYTHONPATH": path, REPORTS: str(reports)},
            start_new_session=True,
        )
        in_time = _ended(child, seconds)
        reached = dict(json.loads(line) for line in reports.read_text().splitlines())
    return Outcome(in_time and child.returncode != 0, reached)


def _ended(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process ends by itself in time; it and its group are ended in any case."""
    in_time = True
    try:
        child.wait(max(seconds, 0.0))
    except subprocess.TimeoutExpired:
        in_time = False
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return in_time


def pytest_runtest_logreport(report: Any) -> None:
    """Hook of pytest in the process that runs the tests: append a finished test and its time."""
    finished = report.when == "call" or report.outcome == "skipped"
    if (finished or report.failed) and REPORTS in os.environ:
        with open(os.environ[REPORTS], "a") as file:
            file.write(json.dumps([report.nodeid, round(report.duration, 1)]) + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the slice of the day; exit code 1 if a test fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--day", type=int, default=int(time.time()) // DAY, help="day number (default: today's)"
    )
    parser.add_argument("--list", action="store_true", help="print all slices, run nothing")
    options = parser.parse_args(argv)
    slices, too_long = slices_of(units_of(collected(), json.loads(TABLE.read_text())))
    for unit in too_long:
        print(
            f"slow tests: {unit.name} takes {unit.seconds / 60.0:.0f} min, too long for a slice: make test-slow"
        )
    if options.list:
        for number, units in enumerate(slices, 1):
            print(f"slice {number}: {sum(unit.seconds for unit in units) / 60.0:.1f} min")
            for unit in units:
                print(f"    {unit.seconds:5.0f} s  {unit.name} ({len(unit.tests)})")
        return 0
    number = options.day % len(slices)
    tests = [test for unit in slices[number] for test in unit.tests]
    minutes = sum(unit.seconds for unit in slices[number]) / 60.0
    print(
        f"slow tests: slice {number + 1} of {len(slices)} (day {options.day}): {len(tests)} tests, about {minutes:.0f} min, "
        f"at most {LIMIT / 60.0:.0f}",
        flush=True,
    )
    outcome = run(tests, LIMIT)
    report(tests, outcome)
    return int(outcome.failed)


def report(tests: Sequence[str], outcome: Outcome) -> None:
    """Print which tests were not reached, and keep the times of the others."""
    missing = [test for test in tests if test not in outcome.reached]
    print(f"slow tests: {len(tests) - len(missing)} of {len(tests)} finished")
    if missing:
        print("slow tests NOT RUN to their end, raise their times in .ci/slow_seconds.json:")
        print("\n".join(f"    {test}" for test in missing))
    MEASURED.parent.mkdir(exist_ok=True)
    MEASURED.write_text(json.dumps(outcome.reached, indent=1, sort_keys=True) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
