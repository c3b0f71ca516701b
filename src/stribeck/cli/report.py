"""``stribeck report``: parameter files on recordings, as one HTML file."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from pathlib import Path

import stribeck
from stribeck.cli.inputs import (
    check_actuators,
    check_distinct,
    display_name,
    parameter_files_of,
    recordings_of,
    warn_of_supply,
)
from stribeck.errors import ConfigError, OutputError
from stribeck.fit.assessment import assess
from stribeck.fit.judgement import judge
from stribeck.io.files import check_writable, write_atomically
from stribeck.report.document import render

SUFFIXES = (".html", ".htm")


def run(arguments: argparse.Namespace) -> int:
    """Simulate every run with every file, and lay out what comes of it."""
    output: Path = arguments.output
    if output.suffix.lower() not in SUFFIXES:
        raise OutputError(f"{output}: a report is an HTML file; name it *.html")
    check_distinct([output], arguments.params, arguments.logdir)
    check_writable(output)
    files = parameter_files_of(arguments)
    logs = recordings_of(arguments)
    check_actuators(logs, files)
    warn_of_supply(logs, files[0][1].actuator)
    paths = [path for path, _ in files]
    named = [(display_name(path, paths), path, file) for path, file in files]
    if len({path.resolve() for path in paths}) < len(paths) or len({name for name, _, _ in named}) < len(
        named
    ):
        raise ConfigError("--params names a file twice; name each once")
    assessment = assess(named, logs, arguments.dt, arguments.reset_period)
    content = render(assessment, judge(assessment), versions())
    write_atomically(output, content)
    print(f"{output} ({len(content) / 1e6:.1f} MB)")
    return 0


def versions() -> dict[str, str]:
    """Versions of what has a part in a report."""
    return {
        "stribeck": stribeck.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy")},
    }
