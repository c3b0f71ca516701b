"""The HTML report on drives and recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stribeck.api.servo_notes import check_actuators
from stribeck.errors import OutputError
from stribeck.evaluate.assessment import assess
from stribeck.evaluate.judgement import judge
from stribeck.files.folders import check_writable, write_atomically
from stribeck.files.versions import versions
from stribeck.model.joint import Drive
from stribeck.model.log import Log
from stribeck.model.step import Integrator
from stribeck.report.document import render

SUFFIXES = (".html", ".htm")


def check_report(path: Path) -> None:
    """Refuse a path that no report can have.

    :raises OutputError: for an ending other than :data:`SUFFIXES`.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"{path}: a report is an HTML file; name it *.html")
    check_writable(path)


def write_report(
    path: Path,
    files: Sequence[tuple[str, Path, Drive]],
    logs: Sequence[Log],
    step: float | None = None,
    reset_period: float | None = None,
    integrator: Integrator | None = None,
) -> Path:
    """Simulate every run with every drive, and write the report atomically.

    :param files: label, file and content of each.
    :raises OutputError: for another ending, or a file that cannot be written.
    :raises ParameterFileError: if a simulation diverges.
    """
    check_report(path)
    check_actuators(logs, [(label, drive) for label, _, drive in files])
    assessment = assess(files, logs, step, reset_period, integrator)
    write_atomically(path, render(assessment, judge(assessment), versions("numpy", "scipy")))
    return path
