"""Recordings of eight simulated servos and the fleet file that fits them all.

::

    python examples/simulate_fleet.py build/fleet
    stribeck identify fleet build/fleet/fleet.yaml
    python examples/simulate_fleet.py build/fleet --check

The last line compares the friction that was fitted with what was simulated. The same seed gives the same
recordings; ``--damage`` adds a ninth servo with a bag that is cut off, and cuts off a bag of the first one.
"""

import argparse
import json
import sys
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.model.joint import Drive
from stribeck.model.law import friction_budget, law_named
from stribeck.model.log import Log, Setup
from stribeck.model.trajectories import trajectory_named
from stribeck.recordings.bags.bag import write_bag

sys.path.append(str(Path(__file__).parent / "two_links"))
from virtual import Encoder, record

TRAJECTORIES = ("sin_time_square", "sin_sin", "up_and_down", "lift_and_drop")
GRAVITY = 9.81


class Bench(NamedTuple):
    """One servo on its bench.

    :param law: of the published parameters that are the truth.
    :param wear: factor of the published Coulomb friction and of its share that fades with velocity.
    :param masses, length, rod: of the load [kg, m, kg].
    :param supply: [V].
    """

    actuator: str
    law: str
    wear: float
    masses: tuple[float, float]
    length: float
    rod: float
    gains: tuple[float, float]
    supply: float


FLEET = {
    "left_ankle": Bench("xl330", "m6", 1.0, (0.1, 0.2), 0.15, 0.02, (200.0, 800.0), 5.0),
    "right_ankle": Bench("xl330", "m6", 1.5, (0.1, 0.2), 0.15, 0.02, (200.0, 800.0), 5.0),
    "gripper": Bench("xl320", "m4", 1.0, (0.08, 0.2), 0.1, 0.01, (16.0, 64.0), 7.5),
    "elbow": Bench("mx64", "m3", 1.0, (0.5, 1.2), 0.15, 0.05, (8.0, 32.0), 12.0),
    "wrist": Bench("mx64", "m5", 1.0, (0.5, 1.2), 0.15, 0.05, (8.0, 32.0), 12.0),
    "shoulder": Bench("mx106", "m1", 1.0, (0.5, 1.5), 0.15, 0.05, (8.0, 32.0), 12.0),
    "hip": Bench("erob80_50", "m5", 1.0, (3.1, 14.6), 0.5, 0.8, (25.0, 100.0), 48.0),
    "torso": Bench("erob80_100", "m4", 1.0, (3.1, 14.6), 0.5, 0.8, (25.0, 100.0), 48.0),
}


def main() -> None:
    """Simulate the fleet, or compare what was fitted."""
    parser = argparse.ArgumentParser(
        description="Recordings of eight simulated servos, and their fleet file."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=20_000, help="of each fit (default: 20000)")
    parser.add_argument("--damage", action="store_true", help="cut off two bags")
    parser.add_argument("--check", action="store_true", help="compare the fits with what was simulated")
    arguments = parser.parse_args()
    if arguments.check:
        check(arguments.folder)
    else:
        simulate_fleet(arguments.folder, arguments.seed, arguments.trials, arguments.damage)
        print(arguments.folder / "fleet.yaml")


def simulate_fleet(folder: Path, seed: int = 0, trials: int = 20_000, damage: bool = False) -> None:
    """Write bags, the truth as parameter files, and ``fleet.yaml``."""
    rng = np.random.default_rng(seed)
    names = list(FLEET)
    for name, bench in FLEET.items():
        truth = truth_of(bench)
        write_drive(folder / "truth" / f"{name}.json", truth)
        for mass, kp in product(bench.masses, bench.gains):
            write_bag(folder / "bags" / name / f"m{mass:g}_kp{kp:g}", recorded(bench, truth, mass, kp, rng))
    if damage:
        names.append("spare")
        source = next((folder / "bags" / "hip").glob("*/*.mcap"))
        (folder / "bags" / "spare").mkdir()
        (folder / "bags" / "spare" / "cut_off.mcap").write_bytes(source.read_bytes()[:20_000])
        first = sorted((folder / "bags" / names[0]).glob("*/*.mcap"))[0]
        first.write_bytes(first.read_bytes()[:20_000])
    servos = "".join(f"  - name: {name}\n    logdir: bags/{name}\n" for name in names)
    head = f"output: fits\ndefaults:\n  trials: {trials}\n  validation_fraction: 0.25\n"
    (folder / "fleet.yaml").write_text(f"{head}servos:\n{servos}", encoding="utf-8")


def truth_of(bench: Bench) -> Drive:
    """The published parameters, worn."""
    servo = load_actuator(bench.actuator)
    values = {"q_offset": 0.0, "R": 1.0, **servo.published[bench.law]}
    parameters = servo.parameters(law_named(bench.law))
    for name in ("friction_base", "friction_stribeck"):
        if name in values:
            values[name] *= bench.wear
    return Drive(servo, law_named(bench.law), {name: values[name] for name in parameters.values()})


def recorded(bench: Bench, truth: Drive, mass: float, kp: float, rng: np.random.Generator) -> list[Log]:
    """Runs of one load and gain, as an encoder with noise of one step sees them."""
    setup = Setup(mass, bench.length, bench.rod, bench.supply, kp)
    plays = [(setup, trajectory_named(name)) for name in TRAJECTORIES]
    encoder = Encoder(truth.actuator.resolution, noise=truth.actuator.resolution)
    return record(truth.actuator, truth.law, truth.values, plays, encoder, rng)


def check(folder: Path) -> None:
    """Print how far the fitted friction is from the simulated one, for the law that was simulated and the best."""
    best = json.loads((folder / "fits" / "fleet.json").read_text(encoding="utf-8"))["best"]
    for name, bench in FLEET.items():
        truth = read_drive(folder / "truth" / f"{name}.json")
        errors = {
            law: friction_error(bench, truth, read_drive(folder / "fits" / name / f"{law}.json"))
            for law in dict.fromkeys([bench.law, best[name]])
        }
        text = ", ".join(f"{law.upper()} {100 * error:.1f} %" for law, error in errors.items())
        print(f"{name:12} {bench.actuator:10} simulated with {bench.law.upper()}, friction off by: {text}")


def friction_error(bench: Bench, truth: Drive, found: Drive) -> float:
    """Root mean square of the difference of the friction torques over that of the truth's.

    Over steady motion at 0.2 to 3 rad/s in both directions, against up to 80 % of the heaviest load.
    """
    largest = 0.8 * max(bench.masses) * bench.length * GRAVITY
    velocity, external = np.meshgrid(np.linspace(0.2, 3.0, 15), np.linspace(-largest, largest, 41))
    motor = -external
    for _ in range(50):  # what the motor gives is friction and load
        motor = friction_budget(truth.law, truth.values, motor, external, velocity)[0] - external
    right = friction_budget(truth.law, truth.values, motor, external, velocity)[0]
    ours = friction_budget(found.law, found.values, motor, external, velocity)[0]
    return float(np.sqrt(np.mean((ours - right) ** 2) / np.mean(right**2)))


if __name__ == "__main__":
    main()
