"""``stribeck identify fleet``: fits several laws to the recordings of many servos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from stribeck.cli.options import Count, declared, option, whole


@declared
class IdentifyFleetOptions:
    """Options: a fleet, and where its fits run."""

    fleet: Path = option(
        "YAML file of the servos, their laws and the options of their fits",
        metavar="FLEET.yaml",
        positional=True,
    )
    output: Path | None = option(
        "folder for the parameter files (default: as in the YAML file)", metavar="DIR"
    )
    workers: Count | None = option("parallel processes (default: one per core)")
    scheduler: str | None = option(
        "Dask scheduler: tcp://HOST:8786, or local, which starts --workers processes on this computer",
        metavar="ADDRESS",
    )
    retries: Annotated[int, whole] = option("number of times that a crashed fit is repeated (default: 2)", 2)
    force: bool = option("also repeat fits that are up to date")
    quiet: bool = option("print only the summary and problems, no progress")
