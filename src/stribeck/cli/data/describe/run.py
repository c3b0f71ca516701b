"""Runs ``stribeck data describe``: the file of an arm, or of a servo on a bench, from recordings, with what each value was guessed from."""

from __future__ import annotations

from pathlib import Path

from stribeck.cli.data.describe.options import DescribeOptions
from stribeck.errors import ConfigError


def run(options: DescribeOptions) -> int:
    """Survey, and write the file."""
    if options.model is None:
        from stribeck.cli.data.describe.bench import run_bench_setup

        return run_bench_setup(options)
    if options.servo is not None or options.joint is not None:
        raise ConfigError(
            "--model is of an arm, --servo and --joint of a servo on a bench: leave one of them out"
        )
    from stribeck.cli.data.describe.machine import run_setup_robot

    return run_setup_robot(options.model, options.recordings, options.output or Path("machine.yaml"))
