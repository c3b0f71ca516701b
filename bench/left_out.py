"""What benchmarks on conditions left out share: the conditions of servos, robots, and fits that are kept in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import stribeck as sb
from stribeck.files.drives import read_drive
from stribeck.identify.robot.recordings import RobotRun, read_runs
from stribeck.identify.robot.tree import RobotTree, load_tree
from stribeck.model.joint import Drive

DATA = Path(os.environ.get("STRIBECK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SERVOS = ("xl330", "sts3250")
ROBOTS = {
    "go2": ("go2.xml", "rx_run*.npz", [], 3),
    "so101": ("model/so101_new_calib.xml", "*.npz", ["gripper"], 2),
}
"""Model, recordings, joints that are not identified, and how many runs there are to each that is left out."""


def conditions(name: str, data: Path) -> Iterator[tuple[str, list[Path], list[Path]]]:
    """Each gain of the XL330, each trajectory of the STS3250: recordings that are fitted, and that are left out."""
    files = sorted((data / name).glob("kp*.json" if name == "xl330" else "*.json"))
    of = {path: path.stem.split("_")[0] if name == "xl330" else path.stem for path in files}
    for one in sorted(set(of.values())):
        yield one, [path for path in files if of[path] != one], [path for path in files if of[path] == one]


def fitted(
    runs: sb.Recordings, law: str, folder: Path | None, key: str, fixed: Mapping[str, float] | None = None
) -> Drive:
    """The drive of a servo with a law; read from the folder where it is there, otherwise identified and written to it.

    :param key: name of the file, without its ending.
    """
    path = None if folder is None else folder / f"{key}.json"
    if path is not None and path.exists():
        return read_drive(path)
    fit = sb.identify_servo(runs, law=law, fixed=fixed, step=0.005, progress=False)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        fit.save(path)
    return next(iter(fit.drives.values()))


def robot(name: str, data: Path) -> tuple[RobotTree, list[str], list[RobotRun], list[RobotRun]]:
    """Model, joints that are not identified, runs that are fitted and runs that are left out."""
    model, pattern, excluded, every = ROBOTS[name]
    tree = load_tree(data / name / model)
    runs = [run for run in read_runs(sorted((data / name).glob(pattern)), tree, excluded) if not run.flaw]
    test = runs[1::every]
    return tree, excluded, [run for run in runs if not any(run is other for other in test)], test
