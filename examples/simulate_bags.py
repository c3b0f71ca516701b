"""How bags/xl330_simulated was made: a simulated XL330 on a bench, recorded as a servo would record it.

Run it with ``python examples/simulate_bags.py FOLDER``; the same seed gives the same recordings.
"""

import argparse
import sys
from itertools import product
from pathlib import Path

import numpy as np

from stribeck.files.actuators import load_actuator
from stribeck.model.law import law_named
from stribeck.model.log import Setup
from stribeck.model.trajectories import trajectory_named
from stribeck.recordings.bags.bag import write_bag

sys.path.append(str(Path(__file__).parent / "two_links"))
from virtual import Encoder, record

SERVO, LAW = "xl330", "m6"
LOADS = ((0.1, 0.1), (0.2, 0.1), (0.2, 0.15))  # kg, m: up to 60 % of the stall torque at 5 V
GAINS = (200.0, 400.0, 800.0)
TRAJECTORIES = ("sin_time_square", "sin_sin", "up_and_down", "lift_and_drop")
ROD_MASS = 0.02
SUPPLY = 5.0
VELOCITY_STEP = 0.229 * 2.0 * np.pi / 60.0  # the servo's unit, rad/s


def main() -> None:
    """Simulate all runs of one load, one bag per load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    servo = load_actuator(SERVO)
    truth = dict(servo.published[LAW])
    rng = np.random.default_rng(arguments.seed)
    encoder = Encoder(servo.resolution, noise=servo.resolution, velocity_resolution=VELOCITY_STEP)
    for mass, length in LOADS:
        plays = [
            (Setup(mass, length, ROD_MASS, SUPPLY, kp), trajectory_named(name))
            for kp, name in product(GAINS, TRAJECTORIES)
        ]
        logs = record(servo, law_named(LAW), truth, plays, encoder, rng)
        target = arguments.folder / f"m{mass:g}_l{length:g}"
        write_bag(target, logs)
        print(target)


if __name__ == "__main__":
    main()
