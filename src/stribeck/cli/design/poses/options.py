"""``stribeck design poses``: the poses to measure next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stribeck.cli.options import Count, Seed, group, option

_output = group("output")


@dataclass(frozen=True, kw_only=True)
class PosesOptions:
    """Options: the arm, poses to choose from, poses that are measured already, and output files."""

    recordings: tuple[Path, ...] = option(
        "measured poses; without --candidates they are also those to choose from",
        (),
        "POSES",
        positional=True,
    )
    machine: str = option("arm by name, for example irb120, or its YAML file", metavar="NAME")
    count: Count = option("number of poses to choose", 20, "N")
    candidates: Path | None = option("file of joint positions to choose from", None, "FILE")
    seed: Seed = option("seed of the random choice to compare with (default: 0)", 0, "N")
    model: Path | None = option("URDF for collision checks of the paths between poses", None, "FILE")
    output: Path | None = _output(
        "file of the chosen poses; as .yaml it is a trajectory for the excitation node", None, "FILE"
    )
    json: Path | None = _output("rows and information for scripts", None, "FILE")


DECLARED = PosesOptions
"""The options that the parser reads."""
