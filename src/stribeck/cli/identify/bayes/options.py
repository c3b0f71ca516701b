"""``--bayes``: posterior of an arm or a servo from prior knowledge and few measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from stribeck.cli.options import (
    Count,
    Numbers,
    Positive,
    RecordingOptions,
    Seed,
    choices_of,
    declared,
    group,
    option,
)
from stribeck.model.actuator import ISOTHERMAL_EFFECTS
from stribeck.model.law import LAWS

_arm, _servo = group("an arm"), group("a servo")
_sampling, _output = group("sampling"), group("output")


@declared
class ArmPosteriorOptions:
    """Options: an arm, prior knowledge of it, and measurements."""

    machine: str = _arm("a robot of config/robots by name, or its YAML file", metavar="NAME")
    model: Path | None = _arm("URDF (default: the one in the YAML file)")
    prior: Literal["diffuse", "informed", "empirical", "cad"] = _arm(
        "prior of the links (default: cad, the URDF)", "cad"
    )
    table: Path | None = _arm(
        "table of link parameters of other robots (default: the included one)", metavar="YAML"
    )
    total_mass: Positive | None = _arm(
        "total mass in the datasheet, including the base (default: as in the URDF)", metavar="KG"
    )
    reach: Positive | None = _arm("reach of the arm (default: sum of the URDF's link lengths)", metavar="M")
    rotors: Numbers | None = _arm(
        "inertias of the rotors at the joints [kg m^2]; required without recordings, and for all priors but cad",
        metavar="LIST",
    )
    recordings: tuple[Path, ...] = option(
        "recordings with torques; without them the prior is sampled", (), "RECORDING", positional=True
    )
    inertias: Path | None = _arm(
        "table of measured inertias: in each row a pose [rad], the number of the axis (from 1) and the inertia [kg m²]",
        metavar="CSV",
    )
    validate: tuple[Path, ...] = _arm("recordings for validation", (), "PATH")
    seconds: Numbers | None = _arm(
        "fit the first seconds of the recordings, predict the rest, and compare with weighted least squares",
        metavar="LIST",
    )
    sampler: Literal["nuts", "metropolis"] = _arm("sampler (default: nuts)", "nuts")


@declared
class ServoPosteriorOptions(RecordingOptions):
    """Options: recordings of a servo, and the law whose posterior is sampled."""

    servo: str | None = _servo("servo by name, or a YAML file (default: as in the recordings)")
    law: Annotated[str, str.lower] = _servo("friction law (default: m3)", "m3", choices=tuple(LAWS))
    effects: Annotated[tuple[str, ...], choices_of(ISOTHERMAL_EFFECTS)] = _servo(
        f"effects that the published model lacks; valid: {','.join(ISOTHERMAL_EFFECTS)}", (), "LIST"
    )
    free: tuple[str, ...] = _servo("also sample the parameter of an effect", (), "NAME", repeated=True)
    set: tuple[str, ...] = _servo("fix a parameter to a value", (), "NAME=VALUE", repeated=True)
    hold_out_gain: Positive | None = _servo("use the runs with this gain for validation", metavar="K")


@declared
class SamplingOptions:
    """Options: sampling, and output files."""

    independent: bool = _sampling(
        "also compute the posterior for statistically independent samples; its intervals are far too narrow"
    )
    draws: Count = _sampling("maximum number of draws per chain (default: 600)", 600)
    effective: Count | None = _sampling("stop when every parameter has this number of effective samples")
    seed: Seed = _sampling("random seed (default: 0)", 0)
    netcdf: Path | None = _output("all draws, for ArviZ")
    json: Path | None = _output("summary for scripts")
    plot: Path | None = _output("folder for pictures", metavar="DIR")
    quiet: bool = _output("no progress")


@declared
class ServoBayesOptions(SamplingOptions, ServoPosteriorOptions):
    """Options of the posterior of a servo."""

    output: Path | None = _output("parameter file with intervals")


@declared
class ArmBayesOptions(SamplingOptions, ArmPosteriorOptions):
    """Options of the posterior of an arm."""

    output: Path | None = _output(
        "folder for URDFs and drives (mean and draws), torques with bands, and parameters of the compensation node",
        metavar="DIR",
    )
