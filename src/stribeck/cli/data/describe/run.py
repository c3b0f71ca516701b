"""Runs ``stribeck data describe``: the file of an arm, or of a servo on a bench, from recordings, with what each value was guessed from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stribeck.cli.data.describe.options import DescribeOptions
from stribeck.cli.inputs import check_outputs
from stribeck.errors import ConfigError
from stribeck.recordings.sources import recordings_below
from stribeck.survey.sampling import samplings


def run(options: DescribeOptions) -> int:
    """Survey, write the file, and say how the recordings were sampled."""
    check_outputs([options.plot], [path for path in options.recordings if path.is_file()])
    if options.model is None:
        from stribeck.cli.data.describe.bench import run_bench_setup

        code = run_bench_setup(options)
    elif options.servo is not None or options.joint is not None:
        raise ConfigError(
            "--model describes an arm, --servo and --joint describe a servo on a bench: remove one or the other"
        )
    else:
        from stribeck.cli.data.describe.machine import run_setup_robot

        code = run_setup_robot(options.model, options.recordings, options.output or Path("machine.yaml"))
    _tell_sampling(options.recordings, options.plot)
    return code


def _tell_sampling(recordings: Sequence[Path], picture: Path | None) -> None:
    """Print rate and jitter of each recording, and draw the intervals."""
    paths = [path for given in recordings for path in recordings_below(given, tables=True)]
    found = samplings([path for path in paths if path.suffix != ".json"])
    print("sampling:", *(f"  {one.line()}" for one in found), sep="\n")
    if picture is not None:
        from stribeck.report.sampling import draw_sampling
        from stribeck.report.style import save

        save(draw_sampling(found), picture)
        print(picture)
