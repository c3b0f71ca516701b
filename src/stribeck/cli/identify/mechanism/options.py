"""``stribeck identify mechanism``: parameters of a mechanism from its recorded motion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from stribeck.cli.options import Positive, TimeStep, assigned, declared, group, option

_data, _fit, _output = group("recordings"), group("estimation"), group("output")


@declared
class IdentifyMechanismOptions:
    """Options: the mechanism, its recordings, the estimation, and output files."""

    mechanism: str = option("mechanism by name, for example furuta_motor, or its YAML file", metavar="NAME")
    recordings: tuple[Path, ...] = option(
        "recordings: CSV or MAT files, bags, or folders of them", metavar="RECORDING", positional=True
    )
    validate: tuple[Path, ...] = _data("recordings for validation", (), "PATH")
    step: TimeStep | None = _fit("time step (default: as in the model)", metavar="S")
    ratio: Positive | None = _fit(
        "weight of the dynamics relative to the samples (default: as in the model)", metavar="R"
    )
    start: Path | None = _fit("parameter file with the initial values")
    set: Annotated[dict[str, float], assigned] | None = _fit(
        "fix a parameter at a known value", metavar="NAME=VALUE,…"
    )
    output: Path | None = _output("parameter file")
    json: Path | None = _output("summary for scripts")
    plot: Path | None = _output("folder for pictures of states, residuals and convergence", metavar="DIR")
    strict: bool = _output("exit code 2 if the verdict is not `usable`")
    quiet: bool = _output("no progress")
