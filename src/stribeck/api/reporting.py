"""The HTML report on drives and recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stribeck.api.servo_notes import check_actuators
from stribeck.errors import OutputError
from stribeck.evaluate.assessment import assess
from stribeck.evaluate.draws import drive_friction
from stribeck.evaluate.judgement import judge
from stribeck.files.drives import Drives
from stribeck.files.folders import check_writable, write_atomically
from stribeck.files.versions import versions
from stribeck.identify.common.machine_motion import MachineMotion
from stribeck.model.joint import Drive
from stribeck.model.log import Log
from stribeck.model.step import Integrator
from stribeck.report.document import render
from stribeck.report.drives_page import render_drives

SUFFIXES = (".html", ".htm")


def check_report(path: Path) -> None:
    """Refuse a path that no report can have.

    :raises OutputError: for an ending other than :data:`SUFFIXES`.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"{path}: reports are HTML files: choose a name that ends in .html")
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


def write_drives_report(
    path: Path, source: Path, content: Drives, motions: Sequence[MachineMotion] = ()
) -> Path:
    """Write the report on a file of drives, of one joint or many, atomically.

    :param source: the file, as it is named in the report.
    :param motions: recordings that the file predicts.
    :raises OutputError: for another ending, or a file that cannot be written.
    """
    check_report(path)
    friction = {name: drive_friction(drive) for name, drive in content.joints.items()}
    write_atomically(path, render_drives(source, content, friction, versions("numpy"), motions))
    return path
