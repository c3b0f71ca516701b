"""``stribeck identify fleet``: fits several laws to the recordings of many servos."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from stribeck.cli.options import Count, option, whole


@dataclass(frozen=True, kw_only=True)
class IdentifyFleetOptions:
    """Options: a fleet, and where its fits run."""

    fleet: Path = option(
        "YAML file of the servos, their laws and the options of their fits",
        metavar="FLEET.yaml",
        positional=True,
    )
    output: Path | None = option("folder for the parameter files (default: as in the YAML file)", None, "DIR")
    workers: Count | None = option("parallel processes (default: one per core)", None, "N")
    scheduler: str | None = option(
        "Dask scheduler: tcp://HOST:8786, or local, which starts --workers processes on this computer",
        None,
        "ADDRESS",
    )
    retries: Annotated[int, whole] = option(
        "number of times that a crashed fit is repeated (default: 2)", 2, "N"
    )
    force: bool = option("also repeat fits that are up to date", False)
    quiet: bool = option("print only the summary and problems, no progress", False)
