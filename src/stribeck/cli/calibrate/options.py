"""``stribeck calibrate``: arm geometry from measured poses, and selection of the next poses to measure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from stribeck.cli.options import Count, Seed, choices_of, group, option, row_range

FITS = ("nominal", "offsets", "full")
TERMS = ("none", "gain", "compliance", "eccentricity", "bending")

_poses, _fit = group("poses"), group("what to fit")
_choice, _output = group("choice of poses"), group("output")


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions:
    """Options: the arm, measured poses, what to fit or how many poses to choose, and output files."""

    config: str = option("arm by name, for example irb120, or its YAML file", metavar="NAME")
    data: tuple[Path, ...] = _poses("files, or folders that hold them", (), "PATH")
    validate: tuple[Path, ...] = _poses("poses for validation only", (), "PATH")
    train_rows: Annotated[tuple[int, int], row_range] | None = _poses(
        "fit rows A to B-1, validate the rest", None, "A:B"
    )
    train_every: Count | None = _poses("fit every Kth row, validate the rest", None, "K")
    train_poses: Count | None = _poses("fit N poses, validate the rest", None, "N")
    select_by: Literal["random", "d-optimal"] = _poses(
        "how --train-poses are chosen (default: random)", "random"
    )
    fits: Annotated[tuple[str, ...], choices_of(FITS)] | None = _fit(
        f"{','.join(FITS)} (default: the configuration's)", None, "LIST"
    )
    terms: Annotated[tuple[str, ...], choices_of(TERMS)] | None = _fit(
        "terms that cross-validation may add to the geometry; none for nothing (default: the configuration's)",
        None,
        "LIST",
    )
    seed: Seed = _fit("seed of splits and folds (default: 0)", 0, "N")
    select: Count | None = _choice("do not fit: choose N poses, D-optimal", None, "N")
    candidates: Path | None = _choice(
        "file of candidate joint positions; --data are then poses that are already measured (default: those of --data)",
        None,
        "FILE",
    )
    output: Path | None = _output("result file or folder; with --select the chosen poses", None, "P.json")
    json: Path | None = _output("errors and parameters for scripts", None, "FILE")
    plots: Path | None = _output("folder for pictures", None, "DIR")


DECLARED = CalibrateOptions
"""The options that the parser reads."""
