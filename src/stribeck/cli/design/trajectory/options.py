"""``stribeck design trajectory``: the most informative trajectory for an arm's inertial parameters, within all its limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from stribeck.cli.options import Count, Positive, Seed, group, harmonics, period

_robot, _trajectory = group("robot"), group("trajectory")
_search, _output = group("search"), group("output")


@dataclass(frozen=True, kw_only=True)
class DesignTrajectoryOptions:
    """Options: the robot, form of the trajectory, search, and output files."""

    machine: str | None = _robot("a robot of config/robots by name, or a YAML file", None, "ROBOT")
    model: Path | None = _robot(
        "URDF (default: the one in the YAML file); sufficient without --machine", None, "FILE"
    )
    data: tuple[Path, ...] = _robot("folders in which to look for the URDF", (), "PATH")
    no_collisions: bool = _robot("ignore the floor and self-collision", False)
    harmonics: Annotated[int, harmonics] = _trajectory(
        "number of harmonics of the Fourier series (default: 5)", 5, "N"
    )
    duration: Annotated[float, period] = _trajectory(
        "duration of one period of the series (default: 10)", 10.0, "S"
    )
    seconds: Positive = _search("time limit of the search (default: 50)", 50.0, "S")
    starts: Count = _search("number of local searches (default: 8)", 8, "N")
    seed: Seed = _search("random seed (default: 0)", 0, "N")
    random: Count = _search(
        "number of random trajectories that are compared and used as starting points (default: 2000)",
        2000,
        "N",
    )
    output: Path = _output("file to write (default: excitation.yaml)", Path("excitation.yaml"), "FILE")
    joint_trajectory: Path | None = _output(
        "file for the points of the trajectory, YAML of a JointTrajectory", None, "FILE"
    )
    rate: Positive = _output("sampling rate of the points (default: 100)", 100.0, "HZ")
    json: Path | None = _output("summary for scripts", None, "FILE")
    plot: Path | None = _output("folder for pictures", None, "DIR")
    quiet: bool = _output("no progress", False)
