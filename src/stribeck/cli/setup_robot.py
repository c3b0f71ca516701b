"""``stribeck setup-robot``: a machine's file from its URDF and recordings, with what each value was guessed from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stribeck.cli.options import option


@dataclass(frozen=True, kw_only=True)
class SetupRobotOptions:
    """Options: the URDF, recordings, and the file to write."""

    urdf: Path = option("the arm", metavar="FILE")
    data: tuple[Path, ...] = option("bags with joint states, or folders that hold them", metavar="PATH")
    output: Path = option("the machine's file (default: machine.yaml)", Path("machine.yaml"), "FILE")


def run(options: SetupRobotOptions) -> int:
    """Survey, and write the file."""
    from stribeck.cli.machine_setup import run_setup_robot

    return run_setup_robot(options)
