"""What the whole covariance Σ of the joints' torques changes in fits and designs: ``python bench/whole_covariance.py --data tx40 --machine tx40``.

Fits: the weighted and the generalised one predict ``--validate``, or the last third of each recording from the first two; with ``--folds``, each
of so many parts of the recordings from the rest. Designs: two motions within the
limits of the joints, with the diagonal of Σ and with Σ from the residuals of the weighted fit, from the same random ones; both are judged by
log det of the information with Σ.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from stribeck.excitation.criterion import Criterion
from stribeck.excitation.search import Clock, search
from stribeck.excitation.section import excitation_section
from stribeck.excitation.task import task_of
from stribeck.files.robots import RobotConfig, read_robot
from stribeck.identify.arm.config import Protocol, identification_config
from stribeck.identify.arm.least_squares import fit_linear
from stribeck.identify.arm.model import ArmModel, load_arm
from stribeck.identify.arm.motion import motion_of, segments
from stribeck.identify.arm.recordings import ArmRecording, read_arm_recordings
from stribeck.identify.arm.regressor import Machine, machine_of, structural_base
from stribeck.model.arrays import Array

BLOCKS = 10
"""Parts of each recording that is predicted, over all folds."""


def main() -> None:
    """Fit, design twice, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="recordings, or their folder")
    parser.add_argument("--validate", type=Path, nargs="*", default=[], help="recordings to predict")
    parser.add_argument("--folds", type=int, help="parts of each recording, each predicted from the rest")
    parser.add_argument("--machine", required=True, help="a robot of config/robots by name, or a YAML file")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="search time of each design (default: 60); 0: none"
    )
    options = parser.parse_args()
    robot = read_robot(options.machine)
    config = identification_config(robot)
    folders = [one if one.is_dir() else one.parent for one in options.data]
    arm = load_arm(robot.find_urdf(folders), robot.joints)
    machine = machine_of(arm.joints, arm, config.couplings)
    first, rest = (
        [
            part
            for run in read_arm_recordings(paths, config.recording, machine.joints, robot.units)
            for part in segments(run, config.protocol)
        ]
        if paths
        else []
        for paths in (options.data, options.validate)
    )
    folds = options.folds or 3
    splits = [split(first, fold / folds, (fold + 1) / folds) for fold in range(folds)]
    if rest:
        splits = [(first, rest)]
    elif options.folds is None:
        splits = splits[-1:]
    spread = fitted(machine, splits, config.protocol)
    if options.seconds:
        designed(robot, arm, spread, options.seconds)


def split(
    runs: Sequence[ArmRecording], start: float, end: float
) -> tuple[list[ArmRecording], list[ArmRecording]]:
    """The recordings without a part, and that part, between two shares of the samples."""
    rest, part = [], []
    for run in runs:
        cuts = [0, *(round(share * len(run.time)) for share in (start, end)), len(run.time)]
        before, within, after = (run.between(a, b) if b > a else None for a, b in pairwise(cuts))
        rest += [one for one in (before, after) if one is not None]
        part += [within] if within is not None else []
    return rest, part


def fitted(
    machine: Machine,
    splits: Sequence[tuple[Sequence[ArmRecording], Sequence[ArmRecording]]],
    protocol: Protocol,
) -> Array:
    """Print the errors of both fits on the parts that are not fitted, and their difference over blocks; returns the last Σ (n, n)."""
    base = structural_base(machine, protocol.rest, "symmetric")
    squares: list[list[float]] = [[], []]
    whole, p_values, shares = 0.0, [], []
    for split in splits:
        first, rest = ([motion_of(part, protocol) for part in parts] for parts in split)
        fits = [
            fit_linear(machine, first, protocol, weighting, base=base)
            for weighting in ("weighted", "generalised")
        ]
        p_values.append(f"{fits[1].hausman_p:.2g}")
        shares.append(float(np.median(fits[1].sigma / fits[0].sigma)))
        whole += sum(float(np.sum(motion.torque[motion.moving] ** 2)) for motion in rest)
        for fit, found in zip(fits, squares, strict=True):
            for motion in rest:
                away = np.where(motion.moving, motion.torque - fit.predict(motion), 0.0) ** 2
                found += [
                    block.sum() for block in np.array_split(away.sum(axis=1), max(BLOCKS // len(splits), 1))
                ]
    errors = [100.0 * np.sqrt(np.sum(found) / whole) for found in squares]
    apart = np.subtract(squares[1], squares[0])
    shift = apart.mean() / (apart.std(ddof=1) / np.sqrt(len(apart))) if apart.any() else 0.0
    print(
        f"weighted {errors[0]:.2f} %, generalised {errors[1]:.2f} %: {shift:+.1f} standard errors over {len(apart)} blocks"
    )
    print(f"standard deviations times {np.mean(shares):.2f}; p of Hausman's test {', '.join(p_values)}")
    return fits[0].spread


def designed(robot: RobotConfig, arm: ArmModel, spread: Array, seconds: float) -> None:
    """Print log det of both designs."""
    deviation = np.sqrt(np.diag(spread))
    section = excitation_section(robot, len(arm))
    whole = task_of(robot, section, arm, harmonics=3, duration=6.0, collisions=False)
    found = {}
    judge = Criterion(replace(whole, noise=spread))
    for name, noise in (("diagonal", deviation), ("whole", spread)):
        criterion = Criterion(replace(whole, noise=noise))
        result = search(criterion, Clock(seconds), starts=1, random=200, seed=0)
        found[name] = judge.score(result.climbs[0].z).log_det
        finished = "finished" if result.climbs[0].finished else "time ran out"
        print(f"designed with the {name} covariance: log det {found[name]:.2f} ({finished})")
    share = np.abs(spread / np.outer(deviation, deviation))[~np.eye(len(spread), dtype=bool)].max()
    print(f"largest correlation {share:.2f}; gained {found['whole'] - found['diagonal']:+.2f} of log det")


if __name__ == "__main__":
    main()
