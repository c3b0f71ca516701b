"""Drives of a Go2 from six runs; the seventh is simulated from its goals alone."""

import argparse
from pathlib import Path

import numpy as np

from stribeck.identify.robot.identify import identify_robot
from stribeck.identify.robot.recordings import read_runs
from stribeck.identify.robot.tree import load_tree


def main(folder: Path) -> None:
    """Fit, print the drives, and the errors of the runs that were not fitted."""
    tree = load_tree(folder / "go2.xml")
    *train, last = read_runs(sorted(folder.glob("rx_run*.npz")), tree)
    fit = identify_robot(tree, train, [last], note=print)
    for joint, estimates in fit.estimates.items():
        print(joint, {name: f"{each.value:.4g} {each.unit}" for name, each in estimates.items()})
    (score,) = fit.validation
    print(f"{last.name}: {1e3 * np.sqrt(score.squares.mean()):.2f} mrad, motion {score.simulated.shape}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="with go2.xml and rx_run*.npz")
    main(**vars(parser.parse_args()))
