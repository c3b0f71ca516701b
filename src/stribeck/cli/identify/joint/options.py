"""Options of ``stribeck identify joint``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from stribeck.api.choices import JOINT_TERMS, LAWS_OR_AUTO
from stribeck.cli.options import assigned, choices_of, declared, group, option

_data, _fit, _output = group("recordings"), group("what to fit"), group("output")


@declared
class IdentifyJointOptions:
    """Options: tables of one joint, what is known of it, and output files."""

    recordings: tuple[Path, ...] = option(
        "tables (CSV, MAT, NPZ, Parquet) or bags with time, position and torque of a joint", metavar="TABLE", positional=True
    )  # fmt: skip
    validate: tuple[Path, ...] = _data("recordings for validation", (), "TABLE")
    columns: str = _data(
        "columns and their units, if the names do not state them: position=q:deg,torque=i:A,velocity=none,…",
        "",
        "SIGNAL=COLUMN[:UNIT],…",
    )
    joint: str | None = _data(
        "the joint, for bags or arrays with several joints: its name, or its number from 1"
    )
    set: Annotated[dict[str, float], assigned] | None = _fit(
        "known values: kt (torque per current, at the joint) [N m/A], inertia [kg m²], gravity (torque with "
        "the link horizontal) [N m]; 0 removes the part from the model",
        metavar="NAME=VALUE",
    )
    law: str = _fit("the friction law (default: chosen by cross-validation)", "auto", choices=LAWS_OR_AUTO)
    terms: Annotated[tuple[str, ...], choices_of(JOINT_TERMS)] = _fit(
        f"terms that are always part of the law; valid: {','.join(JOINT_TERMS)}", (), "LIST"
    )
    output: Path | None = _output("parameter file for the live compensation")
    json: Path | None = _output("JSON file of parameters and errors")
    plot: Path | None = _output("picture of friction over velocity, and of torque over time")
    strict: bool = _output("exit code 2 if the verdict is not `usable`")
    quiet: bool = _output("no progress")
