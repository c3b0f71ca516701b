"""``stribeck identify servo``: identifies a parameter file from recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from stribeck.cli.options import (
    Count,
    RecordingOptions,
    Seed,
    SimulationOptions,
    TimeStep,
    choices_of,
    declared,
    fraction,
    group,
)
from stribeck.identify.servo import METHODS
from stribeck.model.actuator import EFFECTS
from stribeck.model.law import LAWS, optional_terms

FLEET_OPTIONS = (
    "servo", "joint", "signals", "bench", "arm_mass", "terms", "effects", "set", "free", "hold_out_gain", "hold_out",
    "method", "trials", "seed", "float64", "step", "reset_period", "integrator",
)  # fmt: skip
"""Options that affect the result, which a fleet file may therefore set."""

_law, _search, _output = group("what to fit"), group("search"), group("output")


@declared
class IdentifyServoOptions(SimulationOptions, RecordingOptions):
    """Options: what to fit, how to search, and output files."""

    step: TimeStep | None = group("simulation")(
        "time step (default: 0.005, or less if its error is not small compared with the intervals)",
        metavar="S",
    )
    servo: str | None = _law("servo by name, or a YAML file (default: as in the recordings)")
    law: Annotated[str, str.lower] = _law(
        "friction law (default: auto, chosen by cross-validation)", "auto", choices=("auto", *LAWS, "all")
    )
    terms: Annotated[tuple[str, ...], choices_of(optional_terms())] = _law(
        f"terms that are added to the law; valid: {','.join(optional_terms())}", (), "LIST"
    )
    effects: Annotated[tuple[str, ...], choices_of(EFFECTS)] = _law(
        f"effects that the published model lacks (default: chosen by cross-validation with --law auto, none with other laws); valid: {','.join(EFFECTS)}",
        (),
        "LIST",
    )
    set: tuple[str, ...] = _law("fix a parameter to a value", (), "NAME=VALUE", repeated=True)
    free: tuple[str, ...] = _law(
        "also identify the parameter of an effect; rejected unless it lowers the error at every left-out gain",
        (),
        "NAME",
        repeated=True,
    )
    hold_out_gain: float | None = _law("use the runs with this gain for validation", metavar="K")
    validate: tuple[Path, ...] = _law("runs for validation", (), "PATH")
    hold_out: Annotated[float, fraction] | None = _law(
        "use this share of the runs for validation", metavar="SHARE"
    )
    method: str = _search("search method (default: hybrid)", "hybrid", choices=METHODS)
    trials: Count = _search(
        "maximum number of evaluations per law; in a shared study, of all workers together (default: 60000)",
        60_000,
    )
    workers: Count = _search("parallel search processes (default: 1)", 1)
    seed: Seed = _search("random seed (default: 0)", 0)
    study: str | None = _search(
        "Optuna storage of a study: sqlite:///FILE, journal:FILE, postgresql://USER@HOST/DATABASE",
        metavar="URL",
    )
    resume: bool = _search("continue the study")
    join: bool = _search(
        "take part in a shared study, which the first worker creates: run the same command on each computer"
    )
    batch: Count = _search("number of trials that a worker evaluates at a time (default: 64)", 64)
    load_study: str | None = _search("the same as --study URL --resume", metavar="URL", hidden=True)
    float64: bool = _search("search in double precision")
    output: Path | None = _output("parameter file; a folder with --law all")
    json: Path | None = _output("summary for scripts")
    strict: bool = _output("exit code 2 if the verdict is not `usable`")
    progress: str = _output(
        "progress on stderr: a bar, or JSON lines for programs (default: bar)",
        "bar",
        choices=("bar", "json", "none"),
        constant=("--quiet", "none", "no progress: --progress none"),
    )
    wandb: bool = _output(
        "log to Weights & Biases, configured by its own environment variables (WANDB_MODE=offline, …)"
    )
    wandb_project: str = _output("project in Weights & Biases (default: stribeck)", "stribeck", "NAME")
    eval: bool = _output("do not fit, but evaluate the existing file given as --output", hidden=True)

    @property
    def decisive(self) -> dict[str, Any]:
        """The options that affect the result."""
        return {name: getattr(self, name) for name in FLEET_OPTIONS}

    @property
    def laws(self) -> list[str]:
        """The laws to fit."""
        return list(LAWS) if self.law in ("all", "auto") else [self.law]
