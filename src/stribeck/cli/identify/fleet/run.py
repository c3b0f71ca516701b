"""Runs ``stribeck identify fleet``: fits several laws to the recordings of many servos."""

from __future__ import annotations

from importlib.util import find_spec

from stribeck.cli.identify.fleet.options import IdentifyFleetOptions
from stribeck.errors import MissingDependencyError

NEEDED = ("jax", "scipy", "optuna", "cmaes", "tqdm")


def run(options: IdentifyFleetOptions) -> int:
    """Run the missing fits, and print a summary."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"stribeck identify fleet needs {', '.join(missing)}: pip install 'stribeck[fit]'"
        )
    from stribeck.cli.identify.fleet.fleet import run_fleet

    return run_fleet(options)
