"""``stribeck identify arm``: dynamics and friction of an arm from recorded motion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from stribeck.api.choices import ARM_FITS
from stribeck.cli.options import choices_of, declared, fraction, group, option
from stribeck.model.law import optional_parts

_data, _fit, _output = group("recordings"), group("what to fit"), group("output")


@declared
class IdentifyArmOptions:
    """Options: the machine, its recordings, what to fit, and output files."""

    machine: str | None = option(
        "machine by name, for example tx40, or its YAML file (default: a file is written, as by `stribeck data describe`)",
        metavar="NAME",
    )
    recordings: tuple[Path, ...] = option(
        "recordings: files, folders of them, or bags", metavar="RECORDING", positional=True
    )
    validate: tuple[Path, ...] = _data("recordings for validation", (), "PATH")
    hold_out: Annotated[float, fraction] | None = _data(
        "fraction at the end of each run that is used for validation (default: 0; 1/3 without --machine and --validate)",
        metavar="SHARE",
    )
    model: Path | None = _data(
        "URDF of the arm (default: as in the machine's file; required without --machine)"
    )
    payload: str | None = _data(
        "payload in all recordings: its mass [kg], or mass and centre of mass [m] in the frame of its link; or `identify`",
        metavar="M[,X,Y,Z]",
    )
    payload_link: str | None = _data(
        "link of the URDF that carries the payload (default: the last moving link)", metavar="LINK"
    )
    fits: Annotated[tuple[str, ...], choices_of(ARM_FITS)] | None = _fit(
        f"fits, separated by commas (default: all but generalised, robust, log-cholesky); valid: {','.join(ARM_FITS)}",
        metavar="LIST",
    )
    terms: Annotated[tuple[str, ...], choices_of(optional_parts())] = _fit(
        f"terms that are added to the friction law of the fit `full`; valid: {','.join(optional_parts())}",
        (),
        "LIST",
    )
    output: Path | None = _output(
        "folder for a new URDF, the file of drives, and parameters of the compensation node", metavar="DIR"
    )
    json: Path | None = _output("JSON file of parameters and errors")
    plot: Path | None = _output("folder for pictures of torques, errors and friction", metavar="DIR")
    base_parameters: bool = _output("print the base parameters as expressions")
    strict: bool = _output("exit code 2 if the verdict is not `usable`")
    quiet: bool = _output("no progress")
