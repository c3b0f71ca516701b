"""Options of ``stribeck estimate``."""

from __future__ import annotations

import argparse
from pathlib import Path

from stribeck.cli.options import positive, time_step


def estimate(parser: argparse.ArgumentParser) -> None:
    """Options of ``stribeck estimate``."""
    parser.add_argument(
        "--model", required=True, metavar="NAME", help="mechanism by name, as furuta_motor, or its YAML file"
    )
    data = parser.add_argument_group("recordings")
    data.add_argument(
        "--data",
        type=Path,
        nargs="+",
        required=True,
        metavar="PATH",
        help="CSV, MAT, bags, or folders of them",
    )
    data.add_argument("--validate", type=Path, nargs="+", metavar="PATH", help="runs that are predicted only")
    fit = parser.add_argument_group("estimation")
    fit.add_argument("--step", type=time_step, metavar="S", help="time step (default: that of the model)")
    fit.add_argument(
        "--ratio",
        type=positive,
        metavar="R",
        help="weight of the dynamics against samples (default: that of the model)",
    )
    fit.add_argument(
        "--start", type=Path, metavar="FILE", help="parameter file with the values to start from"
    )
    fit.add_argument("--hold", type=held, metavar="NAME=VALUE,…", help="parameters that are known")
    fit.add_argument("--compare", action="store_true", help="the same by single shooting, side by side")
    output = parser.add_argument_group("output")
    output.add_argument("--output", type=Path, metavar="FILE", help="parameter file")
    output.add_argument("--json", type=Path, metavar="FILE", help="summary for scripts")
    output.add_argument(
        "--plots", type=Path, metavar="DIR", help="pictures of states, residuals, convergence"
    )
    output.add_argument("--quiet", action="store_true", help="no progress")


def held(text: str) -> dict[str, float]:
    """Values by names: ``mass=0.1,length=0.2``."""
    found = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {part!r}")
        found[name.strip()] = float(value)
    return found
