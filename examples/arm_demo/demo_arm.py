"""A simulated Panda, from the design of its motion to its identified inertias: ``make demo-arm``.

python examples/arm_demo/demo_arm.py --output build/demo-arm
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from arm_figures_experiment import CostCurve, draw_costs
from experiment import Experiment, run_experiment
from simulation import SensorNoise, SimulatedArm
from stribeck.cli.main import exit_code
from stribeck.cli.options import seed
from stribeck.cli.table import print_table
from stribeck.files.folders import check_writable, write_atomically
from stribeck.files.robots import RobotConfig, read_robot
from stribeck.identify.arm.inertia import consistency
from stribeck.identify.arm.model import INERTIALS, load_arm
from stribeck.identify.arm.urdf import urdf_with_inertials
from stribeck.model.law import LAWS
from stribeck.report.style import save
from stribeck.session.excitation_file import read_excitation_file

ROBOT = "panda"
HARMONICS = 5
DURATION = 10.0
DESIGN_SECONDS = (50.0, 25.0)
"""Time for the design of the motion to identify from, and of another one to validate with [s]."""

NOISE = 0.01
"""Standard deviation of torque sensors, as a share of the effort limits."""

FRICTION = {"friction_base": 0.01, "friction_viscous": 0.01}
"""Coulomb friction as a share of the effort limits, viscous friction as such a share in a rad/s."""

ROTORS = 0.3
"""Inertia of the rotors [kg m^2]."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; an error is one line and exit code 1."""
    parser = argparse.ArgumentParser(
        description="a simulated arm: design of motion, simulation, identification"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("stribeck-demo-arm"),
        metavar="DIR",
        help="folder for the results (default: stribeck-demo-arm)",
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="(default: 0)")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    arguments = parser.parse_args(argv)
    return exit_code(lambda: run(arguments))


def run(arguments: argparse.Namespace) -> int:
    """Design, simulate, identify, write."""
    started = time.perf_counter()
    folder = arguments.output
    robot = read_robot(ROBOT)
    for name in ("training.yaml", f"{robot.name}.urdf", "summary.json"):
        check_writable(folder / name)
    print("1. The motion that tells most, within limits, above the floor, without collisions", flush=True)
    for name, number, seconds in zip(("training", "validation"), (0, 1), DESIGN_SECONDS, strict=True):
        code = _design(folder, name, number, seconds, quiet=arguments.quiet)
        if code:
            return code
    print("\n2. The arm follows it, with noise on its torques; four links of its URDF are wrong by 30 %")
    found = _experiment(robot, folder, arguments.seed)
    _tell(found)
    written = _write(robot, folder, found, arguments.seed)
    print(*written, sep="\n")
    print(f"{time.perf_counter() - started:.0f} s")
    return 0


def _design(folder: Path, name: str, number: int, seconds: float, quiet: bool) -> int:
    words = [
        "design",
        "trajectory",
        "--machine",
        ROBOT,
        "--harmonics",
        str(HARMONICS),
        "--duration",
        str(DURATION),
    ]
    words += ["--seconds", str(seconds), "--seed", str(number), "--output", str(folder / f"{name}.yaml")]
    words += ["--json", str(folder / f"{name}.json"), "--plot", str(folder / name)]
    if name != "training":
        words += ["--random", "100"]
    # A process of its own: its clock begins when it does.
    command = [sys.executable, "-m", "stribeck", *words, *["--quiet"] * quiet]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - our own program


def _experiment(robot: RobotConfig, folder: Path, noise_seed: int) -> Experiment:
    urdf = robot.find_urdf([])
    assert urdf is not None  # noqa: S101 - the file names one
    arm = load_arm(urdf, robot.joints)
    effort = np.array(robot.limit("effort", len(arm)))
    plant = SimulatedArm(
        arm,
        armature=np.full(len(arm), ROTORS),
        law=LAWS["m1"],
        friction={name: share * effort for name, share in FRICTION.items()},
    )
    training, validation = (
        read_excitation_file(folder / f"{name}.yaml").trajectory for name in ("training", "validation")
    )
    return run_experiment(
        plant, training.states, validation.states, DURATION, SensorNoise(torque=NOISE * effort), noise_seed
    )


def _tell(found: Experiment) -> None:
    rows = []
    for name, costs in (("training", found.training), ("validation", found.validation)):
        rows.append(
            [
                name,
                f"{costs.wrong:.2f}",
                f"{costs.result:.3f}",
                f"{costs.floor:.3f}",
                f"{100 * costs.excess:+.2f} %",
            ]
        )
    print(f"wrong about {', '.join(found.wrong)}")
    print_table(["cost per sample", "wrong URDF", "identified", "noise alone", "above it"], rows)
    inside = _inside(found)
    estimates = found.estimates
    print(
        f"{int(inside.sum())} of {len(inside)} base parameters lie within their 95 % interval; "
        f"smallest margin of a link: {consistency(found.fit.inertials.reshape(-1, INERTIALS)).min():.2g} (kg, kg m²)"
    )
    order = np.argsort(-np.abs((estimates.start - estimates.truth) / estimates.sigma))[:6]
    shown = [
        [
            _shortened(estimates.expressions[k]),
            *(f"{column[k]:.4f}" for column in (estimates.start, estimates.truth, estimates.values)),
            f"{estimates.sigma[k]:.4f}",
        ]
        for k in order
    ]
    print_table(["base parameter", "wrong URDF", "truth", "identified", "sigma"], shown)


def _inside(found: Experiment) -> npt.NDArray[np.bool_]:
    estimates = found.estimates
    return np.abs(estimates.values - estimates.truth) <= 1.959964 * estimates.sigma


def _write(robot: RobotConfig, folder: Path, found: Experiment, seed: int) -> Sequence[Path]:
    arm = found.start
    path = folder / f"{robot.name}.urdf"
    write_atomically(path, urdf_with_inertials(arm.path, arm.joints, found.fit.inertials))
    costs = {
        name: {"wrong": part.wrong, "result": part.result, "floor": part.floor}
        for name, part in (("training", found.training), ("validation", found.validation))
    }
    summary = {
        "schema": 1,
        "seed": seed,
        "wrong": list(found.wrong),
        "costs": costs,
        "inside_95": float(np.mean(_inside(found))),
    }
    write_atomically(folder / "summary.json", json.dumps(summary, indent=1) + "\n")
    curves = {
        name: CostCurve(part.iterations, part.floor)
        for name, part in (("training", found.training), ("validation", found.validation))
    }
    save(draw_costs(curves, f"{robot.title}: cost over the iterations"), folder / "costs.png")
    pictures = [folder / name / "trajectory.png" for name in ("training", "validation")]
    return [
        path,
        folder / "summary.json",
        *pictures,
        folder / "training" / "sigmas.png",
        folder / "costs.png",
    ]


def _shortened(text: str, longest: int = 44) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


if __name__ == "__main__":
    sys.exit(main())
