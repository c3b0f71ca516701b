"""``stribeck report``: an HTML report on parameter files and recordings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stribeck.cli.inputs import check_outputs, check_recorded, display_name, parameter_files_of, recordings_of
from stribeck.cli.options import ParameterFileOptions, RecordingOptions, SimulationOptions, group, option
from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drives


@dataclass(frozen=True, kw_only=True)
class ReportOptions(SimulationOptions, RecordingOptions, ParameterFileOptions):
    """Options: parameter files and recordings."""

    logdir: Path | None = group("recordings")(  # type: ignore[assignment]
        "folder with bags or BAM JSON recordings, or one of them; without: a report on the file alone",
        None,
        "BAGS",
    )
    output: Path = option("the report, one file that opens offline", metavar="REPORT.html")


def run(options: ReportOptions) -> int:
    """Simulate every run with every file, and write the report."""
    from stribeck.api.reporting import check_report, write_drives_report, write_report

    output = options.output
    check_report(output)
    check_outputs([output], options.params, options.logdir)
    if options.logdir is None:
        if len(options.params) != 1:
            raise ConfigError(
                "a report without recordings is on one file: name one, or recordings with --logdir"
            )
        (path,) = options.params
        servo = None if options.actuator is None else load_actuator(options.actuator)
        write_drives_report(output, path, read_drives(path, servo))
        print(f"{output} ({output.stat().st_size / 1e6:.1f} MB)")
        return 0
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
