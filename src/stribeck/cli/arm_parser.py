"""Options of the verbs for robot arms."""

from __future__ import annotations

import argparse
from pathlib import Path

from stribeck.cli.options import (
    choices_of,
    count,
    harmonics,
    positive,
    row_range,
    seed,
)


def excite(parser: argparse.ArgumentParser) -> None:
    """Options of ``stribeck excite``."""
    robot = parser.add_argument_group("robot")
    robot.add_argument(
        "--config", required=True, metavar="ROBOT", help="a robot of config/robots by name, or a YAML file"
    )
    robot.add_argument(
        "--urdf", type=Path, metavar="FILE", help="its URDF, where the one of the YAML is not found"
    )
    robot.add_argument(
        "--data",
        type=Path,
        nargs="+",
        default=[],
        metavar="PATH",
        help="folders or files that lie beside the URDF",
    )
    robot.add_argument("--no-collisions", action="store_true", help="leave floor and self-collision aside")
    series = parser.add_argument_group("trajectory")
    series.add_argument(
        "--harmonics", type=harmonics, default=5, metavar="N", help="of the Fourier series (default: 5)"
    )
    series.add_argument(
        "--duration", type=positive, default=10.0, metavar="S", help="one period of the series (default: 10)"
    )
    search = parser.add_argument_group("search")
    search.add_argument("--seconds", type=positive, default=50.0, metavar="S", help="at most (default: 50)")
    search.add_argument("--starts", type=count, default=8, metavar="N", help="searches to make (default: 8)")
    search.add_argument("--seed", type=seed, default=0, metavar="N", help="(default: 0)")
    search.add_argument(
        "--random",
        type=count,
        default=2000,
        metavar="N",
        help="random trajectories to compare with and to start from (default: 2000)",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        type=Path,
        default=Path("excitation.yaml"),
        metavar="FILE",
        help="the trajectory (default: excitation.yaml)",
    )
    output.add_argument(
        "--joint-trajectory", type=Path, metavar="FILE", help="its points as YAML of a JointTrajectory"
    )
    output.add_argument(
        "--rate", type=positive, default=100.0, metavar="HZ", help="of these points (default: 100)"
    )
    output.add_argument("--json", type=Path, metavar="FILE", help="summary for scripts")
    output.add_argument("--plots", type=Path, metavar="DIR", help="folder for pictures")
    output.add_argument("--quiet", action="store_true", help="no progress")


def identify_arm(parser: argparse.ArgumentParser) -> None:
    """Options of ``stribeck identify-arm``."""
    parser.add_argument(
        "--config", required=True, metavar="NAME", help="machine by name, as tx40, or its YAML file"
    )
    data = parser.add_argument_group("recordings")
    data.add_argument(
        "--data",
        type=Path,
        nargs="+",
        required=True,
        metavar="PATH",
        help="files, folders that hold them, or bags",
    )
    data.add_argument("--validate", type=Path, nargs="+", metavar="PATH", help="runs that are predicted only")
    data.add_argument(
        "--urdf", type=Path, metavar="FILE", help="the arm (default: the one that the configuration names)"
    )
    fit = parser.add_argument_group("what to fit")
    fit.add_argument(
        "--fits",
        type=choices_of(("ols", "asymmetric", "weighted", "robust", "consistent", "log-cholesky", "full")),
        metavar="LIST",
        help="of ols,asymmetric,weighted,robust,consistent,log-cholesky,full (default: all but robust, log-cholesky)",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", type=Path, metavar="DIR", help="new URDF, and a parameter file for each joint"
    )
    output.add_argument("--json", type=Path, metavar="FILE", help="parameters and errors for programs")
    output.add_argument("--plots", type=Path, metavar="DIR", help="pictures of torques, errors and friction")
    output.add_argument(
        "--base-parameters", action="store_true", help="print what torques can tell, as expressions"
    )
    output.add_argument("--quiet", action="store_true", help="no progress bar")


def calibrate(parser: argparse.ArgumentParser) -> None:
    """Options of ``stribeck calibrate``."""
    parser.add_argument(
        "--config", required=True, metavar="NAME", help="arm by name, as irb120, or its YAML file"
    )
    data = parser.add_argument_group("poses")
    data.add_argument(
        "--data", type=Path, nargs="+", default=[], metavar="PATH", help="files, or folders that hold them"
    )
    data.add_argument(
        "--validate", type=Path, nargs="+", metavar="PATH", help="other poses, to validate with"
    )
    data.add_argument(
        "--train-rows", type=row_range, metavar="A:B", help="fit rows A to B-1, validate the rest"
    )
    data.add_argument("--train-every", type=count, metavar="K", help="fit every Kth row, validate the rest")
    data.add_argument("--train-poses", type=count, metavar="N", help="fit N poses, validate the rest")
    data.add_argument(
        "--select-by",
        choices=("random", "d-optimal"),
        default="random",
        help="how --train-poses are chosen (default: random)",
    )
    fit = parser.add_argument_group("what to fit")
    fit.add_argument(
        "--fits",
        type=choices_of(("nominal", "offsets", "full")),
        metavar="LIST",
        help="nominal,offsets,full (default: the configuration's)",
    )
    fit.add_argument(
        "--terms",
        type=choices_of(("none", "gain", "compliance", "eccentricity", "bending")),
        metavar="LIST",
        help="what cross-validation may add to the geometry; none for nothing (default: the configuration's)",
    )
    fit.add_argument("--seed", type=seed, default=0, metavar="N", help="of splits and folds (default: 0)")
    choice = parser.add_argument_group("choice of poses")
    choice.add_argument("--select", type=count, metavar="N", help="do not fit: choose N poses, D-optimal")
    choice.add_argument(
        "--candidates",
        type=Path,
        metavar="FILE",
        help="joint positions to choose from; --data then counts as measured (default: those of --data)",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", type=Path, metavar="P.json", help="result file or folder; with --select the chosen poses"
    )
    output.add_argument("--json", type=Path, metavar="FILE", help="errors and parameters for scripts")
    output.add_argument("--plots", type=Path, metavar="DIR", help="folder for pictures")
