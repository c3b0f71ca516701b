"""``stribeck design poses``: the poses to measure next."""

from __future__ import annotations

from pathlib import Path

from stribeck.cli.options import Count, Seed, declared, group, option

_output = group("output")


@declared
class PosesOptions:
    """Options: the arm, poses to choose from, poses that are measured already, and output files."""

    recordings: tuple[Path, ...] = option(
        "measured poses; without --candidates the poses are chosen from these", (), "POSES", positional=True
    )
    machine: str = option("arm by name, for example irb120, or its YAML file", metavar="NAME")
    count: Count = option("number of poses to choose", 20)
    candidates: Path | None = option("file of joint positions from which to choose")
    seed: Seed = option("seed of the random choice to compare with (default: 0)", 0)
    set: tuple[str, ...] = option(
        "speed=RAD_S, acceleration=RAD_S2: limits between poses (default: 0.5, 1); rest=S: rest at each pose (default: 1.5); for an --output in .yaml",
        (),
        "NAME=VALUE",
        repeated=True,
    )
    model: Path | None = option("URDF for collision checks of the paths between poses")
    output: Path | None = _output(
        "file for the chosen poses; a name that ends in .yaml gives a trajectory for the excitation node"
    )
    json: Path | None = _output("JSON file of the chosen rows and their information")
