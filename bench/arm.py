"""Identification of arms: assembling the regressor, and whole fits of the recordings that are here."""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from stribeck.cli.main import main as stribeck
from stribeck.files.robots import example_robots
from stribeck.identify.arm.model import load_arm

DATA = Path(os.environ.get("STRIBECK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SAMPLES = 45_000
WORK = {
    "emps": ["identify", "arm", str(DATA / "emps"), "--machine", "emps"],
    "tx40": ["identify", "arm", str(DATA / "tx40"), "--machine", "tx40"],
    "ur10e": ["identify", "arm", str(DATA / "ur10e" / "fourier_30s.csv"), "--machine", "ur10e"],
    "irb120": ["identify", "geometry", str(DATA / "irb120"), "--machine", "irb120", "--train-poses", "250"],
}


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure() -> dict[str, float]:
    """Seconds of each piece of work; what is not installed or not here is left out."""
    found: dict[str, float] = {}
    robots = example_robots("ur5_robot.urdf")
    if robots:
        arm = load_arm(robots[0])
        rng = np.random.default_rng(0)
        states = [rng.normal(size=(SAMPLES, len(arm))) for _ in range(3)]
        found["regressor_45000x6"] = min(seconds(lambda: arm.regressor(*states)) for _ in range(3))
    for name, words in WORK.items():
        if (DATA / name).is_dir():
            quiet = [*words, "--quiet"] if words[1] == "arm" else words
            with contextlib.redirect_stdout(io.StringIO()):
                found[name] = seconds(lambda words=quiet: stribeck(words))
    for name, value in found.items():
        print(f"{name:20s} {value:7.2f} s")
    return found


if __name__ == "__main__":
    measure()
