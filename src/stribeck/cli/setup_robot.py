"""``stribeck setup-robot``: the file of an arm, or of a servo on a bench, from recordings, with what each value was guessed from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stribeck.cli.options import option
from stribeck.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class SetupRobotOptions:
    """Options: the URDF of an arm or the name of a servo, recordings, and the file to write."""

    urdf: Path | None = option(
        "the arm; without it the recordings are of a servo on a pendulum bench", None, "FILE"
    )
    data: tuple[Path, ...] = option(
        "bags with joint states, or folders that hold them; of a servo also .csv, .txt, .mat and .npz",
        metavar="PATH",
    )
    actuator: str | None = option("the servo's name or YAML file, where the recordings are of a servo", None)
    joint: str | None = option("the servo's joint, of bags in which several move", None)
    output: Path | None = option(
        "the file (default: machine.yaml of an arm, bench.yaml of a servo)", None, "FILE"
    )


def run(options: SetupRobotOptions) -> int:
    """Survey, and write the file."""
    if options.urdf is None:
        from stribeck.cli.bench_setup import run_bench_setup

        return run_bench_setup(options)
    if options.actuator is not None or options.joint is not None:
        raise ConfigError(
            "--urdf is of an arm, --actuator and --joint of a servo on a bench: leave one of them out"
        )
    from stribeck.cli.machine_setup import run_setup_robot

    return run_setup_robot(options.urdf, options.data, options.output or Path("machine.yaml"))
