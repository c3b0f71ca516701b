"""``stribeck report``: an HTML report on parameter files and recordings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stribeck.cli.inputs import check_outputs, check_recorded, display_name, parameter_files_of, recordings_of
from stribeck.cli.options import ParameterFileOptions, RecordingOptions, SimulationOptions, option
from stribeck.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ReportOptions(SimulationOptions, RecordingOptions, ParameterFileOptions):
    """Options: parameter files and recordings."""

    output: Path = option("the report, one file that opens offline", metavar="REPORT.html")


def run(options: ReportOptions) -> int:
    """Simulate every run with every file, and write the report."""
    from stribeck.api.reporting import check_report, write_report

    output = options.output
    check_report(output)
    check_outputs([output], options.params, options.logdir)
    files = parameter_files_of(options)
    logs = recordings_of(options, options.actuator)
    check_recorded(logs, files)
    named = [(display_name(path, options.params), path, file) for path, file in files]
    if len({path.resolve() for path, _ in files}) < len(files) or len({name for name, *_ in named}) < len(
        named
    ):
        raise ConfigError("--params names a file twice; name each once")
    write_report(output, named, logs, options.dt, options.reset_period, options.integrator)
    print(f"{output} ({output.stat().st_size / 1e6:.1f} MB)")
    return 0
