"""A fleet of four simulated servos and two laws, beside the same fits as commands one after another."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
SERVOS = ("left_ankle", "right_ankle", "elbow", "shoulder")
"""Of the example's eight servos."""

LAWS = ("m1", "m6")
SINGLE = "left_ankle"
"""Servo whose fits are measured as single commands, too; their time is scaled to all."""

TRIALS = 5000


def measure() -> dict[str, float]:
    """Seconds of the fleet, and of the commands of one servo, scaled to all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run("examples/simulate_fleet.py", str(folder), "--trials", str(TRIALS))
        file = folder / "fleet.yaml"
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        content["defaults"]["laws"] = list(LAWS)
        content["servos"] = [servo for servo in content["servos"] if servo["name"] in SERVOS]
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        fleet = run("-m", "stribeck", "identify", "fleet", str(file), "--quiet")
        again = run("-m", "stribeck", "identify", "fleet", str(file), "--quiet")
        part = sum(
            run(*["-m", "stribeck", "identify", "servo"], str(folder / "bags" / SINGLE),
                *f"--quiet --trials {TRIALS} --hold-out 0.25 --law {law}".split(), "--output", str(folder / "one" / f"{law}.json"))
            for law in LAWS
        )  # fmt: skip
    commands, fits = len(SERVOS) * part, len(SERVOS) * len(LAWS)
    print(f"{len(SERVOS)} servos x {len(LAWS)} laws, {TRIALS} trials, {os.cpu_count()} cores:")
    print(
        f"identify fleet {fleet:.0f} s, once more {again:.1f} s; {fits} commands one after another {commands:.0f} s"
        f" ({part:.0f} s for those of one servo, scaled): {commands / fleet:.1f} times"
    )
    return {"fit_all_s": fleet, "up_to_date_s": again, "commands_s": commands, "commands_measured_s": part}


def run(*words: str) -> float:
    """Seconds that a program takes."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


if __name__ == "__main__":
    measure()
