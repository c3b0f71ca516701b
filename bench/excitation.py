"""Designed trajectories of real arms against the best of 2000 random ones, as whole commands from a cold start.

``python bench/excitation.py 0 1 2`` takes these seeds. 5 harmonics in 10 s, 20 rad/s^2, noise as the effort limits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("STRIBECK_DATA", ROOT.parent / "shared" / "data")) / "tx40"
CASES = (("tx40", "joint limits"), ("tx40", "floor and bodies"), ("panda", "floor and bodies"))


def measure(seeds: Sequence[int] = (0,), cases: Sequence[tuple[str, str]] = CASES) -> dict[str, object]:
    """Run cases with all seeds; the summaries with the wall time of the command."""
    print("excitation: log det of the information, whole commands")
    print(
        f"{'arm':>6} {'limits':>17} {'seed':>4} {'best':>8} {'random':>8} {'gain':>7} {'sigma':>6} {'wall [s]':>9}"
    )
    found: dict[str, object] = {}
    for robot, kind in cases:
        if robot == "tx40" and not DATA.is_dir():
            print(f"{robot:>6} {kind:>17}  its URDF is not at hand")
            continue
        for seed in seeds:
            found[f"{robot}, {kind}, seed {seed}"] = summary = one(robot, kind, seed)
            print(
                f"{robot:>6} {kind:>17} {seed:4d} {summary['log_det']:8.2f} {summary['random']['best_log_det']:8.2f} "
                f"{summary['gain']:+7.2f} {summary['median_sigma_ratio']:6.3f} {summary['wall_seconds']:9.1f}"
            )
    return found


def one(robot: str, kind: str, seed: int) -> dict:
    """One command; no violation may be left."""
    with tempfile.TemporaryDirectory() as folder:
        config, summary = Path(folder) / f"{robot}.yaml", Path(folder) / "summary.json"
        content = yaml.safe_load((ROOT / "config" / "robots" / f"{robot}.yaml").read_text(encoding="utf-8"))
        content["limits"]["acceleration"] = 20
        config.write_text(yaml.safe_dump(content), encoding="utf-8")
        options = ["--machine", str(config), "--seed", str(seed), "--json", str(summary), "--quiet"]
        options += ["--output", str(Path(folder) / "motion.yaml")]
        options += ["--data", str(DATA)] if robot == "tx40" else []
        options += ["--no-collisions"] if kind == "joint limits" else []
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "stribeck", "design", "trajectory", *options],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        wall = time.perf_counter() - begin
        found = json.loads(summary.read_text(encoding="utf-8"))
    assert not any(found["violations"].values()), found["violations"]  # noqa: S101
    return {**found, "wall_seconds": wall}


if __name__ == "__main__":
    measure([int(word) for word in sys.argv[1:]] or [0])
