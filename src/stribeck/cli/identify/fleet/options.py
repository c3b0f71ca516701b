"""``stribeck identify fleet``: fits several laws to the recordings of many servos."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from stribeck.cli.options import Count, option, whole


@dataclass(frozen=True, kw_only=True)
class IdentifyFleetOptions:
    """Options: a fleet, and where its fits run."""

    fleet: Path = option("servos, laws and options of their fits", metavar="FLEET.yaml", positional=True)
    output: Path | None = option("folder for the parameter files (default: as in the file)", None, "DIR")
    workers: Count | None = option("parallel processes (default: one per core)", None, "N")
    scheduler: str | None = option(
        "run on the Dask cluster at tcp://HOST:8786, or local: on one of --workers processes here",
        None,
        "ADDRESS",
    )
    retries: Annotated[int, whole] = option("number of retries of a fit that crashed (default: 2)", 2, "N")
    force: bool = option("repeat fits that are up to date", False)
    quiet: bool = option("no progress, only the summary and problems", False)


DECLARED = IdentifyFleetOptions
"""The options that the parser reads."""
