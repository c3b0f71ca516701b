"""``stribeck identify geometry``: arm geometry from measured poses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from stribeck.cli.options import Count, Seed, choices_of, declared, group, option, row_range

FITS = ("nominal", "offsets", "full")
TERMS = ("none", "gain", "compliance", "eccentricity", "bending")

_poses, _fit = group("poses"), group("what to fit")
_output = group("output")


@declared
class IdentifyGeometryOptions:
    """Options: the arm, measured poses, what to fit, and output files."""

    recordings: tuple[Path, ...] = option(
        "measured poses: files, or folders of them", metavar="POSES", positional=True
    )
    machine: str = option("arm by name, for example irb120, or its YAML file", metavar="NAME")
    validate: tuple[Path, ...] = _poses("poses for validation only", (), "PATH")
    train_rows: Annotated[tuple[int, int], row_range] | None = _poses(
        "fit rows A to B-1, and use the other rows for validation", metavar="A:B"
    )
    train_every: Count | None = _poses(
        "fit every K-th row, and use the other rows for validation", metavar="K"
    )
    train_poses: Count | None = _poses("fit N poses, and use the others for validation")
    select_by: Literal["random", "d-optimal"] = _poses(
        "how --train-poses are chosen (default: random)", "random"
    )
    fits: Annotated[tuple[str, ...], choices_of(FITS)] | None = _fit(
        f"fits, separated by commas (default: as in the configuration); valid: {','.join(FITS)}",
        metavar="LIST",
    )
    terms: Annotated[tuple[str, ...], choices_of(TERMS)] | None = _fit(
        "terms that are added to the geometry if cross-validation favours them; or none (default: as in the configuration)",
        metavar="LIST",
    )
    seed: Seed = _fit("seed of splits and folds (default: 0)", 0)
    output: Path | None = _output("result file or folder", metavar="P.json")
    json: Path | None = _output("JSON file of errors and parameters")
    plot: Path | None = _output("folder for pictures", metavar="DIR")
