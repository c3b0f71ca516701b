"""``stribeck design trajectory``: the most informative trajectory for an arm's inertial parameters, within all its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from stribeck.cli.options import Count, Positive, Seed, declared, group, harmonics, period

_robot, _trajectory = group("robot"), group("trajectory")
_search, _output = group("search"), group("output")


@declared
class DesignTrajectoryOptions:
    """Options: the robot, form of the trajectory, search, and output files."""

    machine: str | None = _robot("a robot of config/robots by name, or a YAML file", metavar="ROBOT")
    model: Path | None = _robot("URDF (default: the one in the YAML file); sufficient without --machine")
    data: tuple[Path, ...] = _robot("folders in which to look for the URDF", (), "PATH")
    no_collisions: bool = _robot("ignore the floor and self-collision")
    harmonics: Annotated[int, harmonics] = _trajectory(
        "number of harmonics of the Fourier series (default: 5)", 5
    )
    duration: Annotated[float, period] = _trajectory(
        "duration of one period of the series (default: 10)", 10.0, "S"
    )
    seconds: Positive = _search("time limit of the search (default: 50)", 50.0, "S")
    starts: Count = _search("number of local searches (default: 8)", 8)
    seed: Seed = _search("random seed (default: 0)", 0)
    random: Count = _search(
        "number of random trajectories that are compared and used as starting points (default: 2000)", 2000
    )
    output: Path = _output("file to write (default: excitation.yaml)", Path("excitation.yaml"))
    joint_trajectory: Path | None = _output(
        "file for the points of the trajectory, YAML of a JointTrajectory"
    )
    rate: Positive = _output("sampling rate of the points (default: 100)", 100.0, "HZ")
    json: Path | None = _output("summary for scripts")
    plot: Path | None = _output("folder for pictures", metavar="DIR")
    quiet: bool = _output("no progress")
