"""Drives of an SO-101 from every second run; the others are simulated from their goals alone."""

import argparse
from pathlib import Path

import numpy as np

from stribeck.identify.robot.identify import identify_robot
from stribeck.identify.robot.recordings import read_runs
from stribeck.identify.robot.tree import load_tree


def main(folder: Path) -> None:
    """Fit, print the drives, and the errors of the runs that were not fitted."""
    tree = load_tree(folder / "model" / "so101_new_calib.xml")
    runs = read_runs([folder], tree, ["gripper"])
    fit = identify_robot(tree, runs[::2], runs[1::2], excluded=["gripper"], polish=False, note=print)
    for joint, estimates in fit.estimates.items():
        print(joint, {name: f"{each.value:.4g} {each.unit}" for name, each in estimates.items()})
    for score in fit.validation:
        print(f"{score.run.name}: {1e3 * np.sqrt(score.squares.mean()):.1f} mrad")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="with model/so101_new_calib.xml and the recordings"
    )
    main(**vars(parser.parse_args()))
