"""``stribeck report``: an HTML report on parameter files and recordings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stribeck.cli.inputs import (
    check_actuators,
    check_outputs,
    display_name,
    parameter_files_of,
    recordings_of,
    warn_of_supply,
)
from stribeck.cli.options import ParameterFileOptions, RecordingOptions, SimulationOptions, option
from stribeck.errors import ConfigError, OutputError
from stribeck.files.folders import write_atomically
from stribeck.files.versions import versions

SUFFIXES = (".html", ".htm")


@dataclass(frozen=True, kw_only=True)
class ReportOptions(SimulationOptions, RecordingOptions, ParameterFileOptions):
    """Options: parameter files and recordings."""

    output: Path = option("the report, one file that opens offline", metavar="REPORT.html")


def run(options: ReportOptions) -> int:
    """Simulate every run with every file, and write the report."""
    from stribeck.evaluate.assessment import assess
    from stribeck.evaluate.judgement import judge
    from stribeck.report.document import render

    output = options.output
    if output.suffix.lower() not in SUFFIXES:
        raise OutputError(f"{output}: a report is an HTML file; name it *.html")
    check_outputs([output], options.params, options.logdir)
    files = parameter_files_of(options)
    logs = recordings_of(options, options.actuator)
    check_actuators(logs, files)
    warn_of_supply(logs, files[0][1].actuator)
    named = [(display_name(path, options.params), path, file) for path, file in files]
    if len({path.resolve() for path, _ in files}) < len(files) or len({name for name, *_ in named}) < len(
        named
    ):
        raise ConfigError("--params names a file twice; name each once")
    assessment = assess(named, logs, options.dt, options.reset_period, options.integrator)
    content = render(assessment, judge(assessment), versions("numpy", "scipy"))
    write_atomically(output, content)
    print(f"{output} ({len(content) / 1e6:.1f} MB)")
    return 0
