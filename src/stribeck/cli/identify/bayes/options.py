"""``--bayes``: posterior of an arm or a servo from prior knowledge and few measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from stribeck.cli.options import (
    Count,
    Numbers,
    Positive,
    RecordingOptions,
    Seed,
    choices_of,
    group,
    option,
)
from stribeck.model.actuator import ISOTHERMAL_EFFECTS
from stribeck.model.law import LAWS

_arm, _servo = group("an arm"), group("a servo")
_sampling, _output = group("sampling"), group("output")


@dataclass(frozen=True, kw_only=True)
class ArmPosteriorOptions:
    """Options: an arm, prior knowledge of it, and measurements."""

    machine: str = _arm("a robot of config/robots by name, or its YAML file", metavar="NAME")
    model: Path | None = _arm("URDF (default: the one in the YAML file)", None, "FILE")
    prior: Literal["diffuse", "informed", "empirical", "cad"] = _arm(
        "prior of the links (default: cad, the URDF)", "cad"
    )
    table: Path | None = _arm(
        "table of link parameters of other robots (default: the included one)", None, "YAML"
    )
    total_mass: Positive | None = _arm(
        "total mass in the datasheet, including the base (default: as in the URDF)", None, "KG"
    )
    reach: Positive | None = _arm("reach of the arm (default: sum of the URDF's link lengths)", None, "M")
    rotors: Numbers | None = _arm(
        "inertias of the rotors at the joints [kg m^2]; required without recordings, and for all priors but cad",
        None,
        "LIST",
    )
    recordings: tuple[Path, ...] = option(
        "recordings with torques; without them the prior is sampled", (), "RECORDING", positional=True
    )
    inertias: Path | None = _arm(
        "table of measured inertias: in each row a pose [rad], the number of the axis (from 1) and the inertia [kg m²]",
        None,
        "CSV",
    )
    validate: tuple[Path, ...] = _arm("recordings for validation", (), "PATH")
    seconds: Numbers | None = _arm(
        "fit the first seconds of the recordings, predict the rest, and compare with weighted least squares",
        None,
        "LIST",
    )
    sampler: Literal["nuts", "metropolis"] = _arm("sampler (default: nuts)", "nuts")


@dataclass(frozen=True, kw_only=True)
class ServoPosteriorOptions(RecordingOptions):
    """Options: recordings of a servo, and the law whose posterior is sampled."""

    servo: str | None = _servo("servo by name, or a YAML file (default: as in the recordings)", None)
    law: Annotated[str, str.lower] = _servo("friction law (default: m3)", "m3", choices=tuple(LAWS))
    effects: Annotated[tuple[str, ...], choices_of(ISOTHERMAL_EFFECTS)] = _servo(
        f"effects that the published model lacks; valid: {','.join(ISOTHERMAL_EFFECTS)}", (), "LIST"
    )
    free: tuple[str, ...] = _servo("also sample the parameter of an effect", (), "NAME", repeated=True)
    set: tuple[str, ...] = _servo("fix a parameter to a value", (), "NAME=VALUE", repeated=True)
    hold_out_gain: Positive | None = _servo("use the runs with this gain for validation", None, "K")


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """Options: sampling, and output files."""

    independent: bool = _sampling(
        "also compute the posterior for statistically independent samples; its intervals are far too narrow",
        False,
    )
    draws: Count = _sampling("maximum number of draws per chain (default: 600)", 600, "N")
    effective: Count | None = _sampling(
        "stop when every parameter has this number of effective samples", None, "N"
    )
    seed: Seed = _sampling("random seed (default: 0)", 0, "N")
    netcdf: Path | None = _output("all draws, for ArviZ", None, "FILE")
    json: Path | None = _output("summary for scripts", None, "FILE")
    plot: Path | None = _output("folder for pictures", None, "DIR")
    quiet: bool = _output("no progress", False)


@dataclass(frozen=True, kw_only=True)
class ServoBayesOptions(SamplingOptions, ServoPosteriorOptions):
    """Options of the posterior of a servo."""

    output: Path | None = _output("parameter file with intervals", None, "FILE")


@dataclass(frozen=True, kw_only=True)
class ArmBayesOptions(SamplingOptions, ArmPosteriorOptions):
    """Options of the posterior of an arm."""

    output: Path | None = _output(
        "folder for URDFs and drives (mean and draws), torques with bands, and parameters of the compensation node",
        None,
        "DIR",
    )
