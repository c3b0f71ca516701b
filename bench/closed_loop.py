"""Friction compensation in closed loop against plants that are not Stribeck's own law, and against rivals.

    python bench/closed_loop.py [--quick] [--part joints|wide|light|disturbed|arm|coast|hand|contact] [--methods a,b] [--seed N]
        [--keep FOLDER] [--json FILE]

Figures are ratios to no compensation of the same condition unless they say otherwise; the method ``none``
therefore always runs. With ``--keep`` what has been simulated is kept in a folder, and the same command goes on where it was ended.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from plants.arm import ArmClosedLoop, arms
from plants.baselines import METHODS
from plants.conditions import PARTS, SECONDS
from plants.friction import FloatArray
from plants.loop import ClosedLoop
from plants.table import ROWS, label, printed

CHOICES = {
    "joints": ("tracking",),
    "wide": ("wide",),
    "light": ("light",),
    "disturbed": ("disturbed",),
    "arm": ("arm",),
    "hand": ("hand", "guided"),
    "coast": ("coast", "released"),
    "contact": ("wall", "hold"),
}
"""What ``--part`` stands for."""

ALL_PARTS: dict[str, Callable[..., list[Any]]] = {**PARTS, "arm": arms}
DURATIONS = {**SECONDS, "arm": 8.0}
KINDS: dict[str, Any] = {"arm": ArmClosedLoop}
"""What simulates a part, where it is not single joints."""

STANDARD = [name for name in METHODS if name != "ours_silent"]
"""Without commands the present compensator does what it does with efforts alone."""

LANES = 1600
"""Lanes of one simulation: beyond, its arrays no longer fit the cache."""

DRAWN = ("wide", "light")
"""Parts that ``make bench`` leaves out."""

SEEDED = ("tracking", "wide")
"""Parts of which another seed makes other runs."""

Job = tuple[str, list[int], list[Any], list[str], float]


def simulated(job: Job, keep: Path | None = None) -> tuple[str, list[int], dict[str, FloatArray]]:
    """One group of runs; what the folder ``keep`` has of it is read, else it is written there."""
    part, indices, conditions, methods, seconds = job
    kept = None if keep is None else keep / f"{part}_{sha256(repr(job).encode()).hexdigest()[:16]}.npz"
    if kept is not None and kept.exists():
        with np.load(kept) as stored:
            return part, indices, dict(stored)
    chosen = {name: METHODS[name] for name in methods}
    figures = KINDS.get(part, ClosedLoop)(conditions, chosen, seconds).run()
    if kept is not None:
        half = kept.with_suffix(".part.npz")
        np.savez(half, allow_pickle=False, **figures)
        half.replace(kept)
    return part, indices, figures


def jobs(
    parts: list[str], methods: list[str], quick: bool, seed: int = 0
) -> tuple[list[Job], dict[str, list[Any]]]:
    """Groups of one sample rate each, the longest first."""
    found: list[Job] = []
    conditions = {
        part: ALL_PARTS[part](quick, seed) if part in SEEDED else ALL_PARTS[part](quick) for part in parts
    }
    for part, every in conditions.items():
        for rate in sorted({c.rate for c in every}):
            chosen = [k for k, c in enumerate(every) if c.rate == rate]
            pieces = 4 if part == "arm" else -(-len(chosen) * len(methods) // LANES)
            for n in range(pieces):
                own = chosen[n::pieces]
                found.append((part, own, [every[k] for k in own], methods, DURATIONS[part]))
    return sorted(found, key=lambda job: -job[4] * len(job[1]) * (8 if job[0] == "arm" else 1)), conditions


def measured(
    parts: list[str], methods: list[str], quick: bool, workers: int, seed: int = 0, keep: Path | None = None
) -> tuple[dict[str, dict[str, FloatArray]], dict[str, list[Any]]]:
    """Every figure (methods, conditions) by part and name."""
    work, conditions = jobs(parts, methods, quick, seed)
    figures: dict[str, dict[str, FloatArray]] = {part: {} for part in parts}
    with ProcessPoolExecutor(workers) as pool:
        for part, indices, found in pool.map(partial(simulated, keep=keep), work):
            for name, values in found.items():
                shape = (len(methods), len(conditions[part]), *values.shape[2:])
                figures[part].setdefault(name, np.full(shape, np.nan))[:, indices] = values
    return figures, conditions


def measure() -> dict[str, Any]:
    """Rows of every part on the quick set: a rival, ours, and no compensation."""
    print(
        "\nClosed loops of plants with LuGre and Maxwell slip: errors and forces as ratios to no compensation"
    )
    methods = ["none", "momentum", "ours"]
    chosen = [part for name, parts in CHOICES.items() if name not in DRAWN for part in parts]
    figures, conditions = measured(chosen, methods, True, 2)
    found = {part: ROWS[part](methods, conditions[part], figures[part]) for part in chosen}
    for part, rows in found.items():
        print(printed(f"{part}: {len(conditions[part])} runs per method", rows), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=[*CHOICES, "all"], default="all", help="which runs")
    parser.add_argument("--methods", default=",".join(STANDARD), help=f"some of {', '.join(METHODS)}")
    parser.add_argument("--quick", action="store_true", help="500 Hz alone, fewer plants")
    parser.add_argument("--json", type=Path, help="write rows and figures of every run here")
    parser.add_argument("--seed", type=int, default=0, help=f"of the runs of {', '.join(SEEDED)}")
    parser.add_argument("--keep", type=Path, help="folder of what has been simulated; go on from it")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    methods = ["none", *(name for name in arguments.methods.split(",") if name != "none")]
    unknown = sorted(set(methods) - set(METHODS))
    if unknown:
        raise SystemExit(f"unknown method {', '.join(unknown)}; valid: {', '.join(METHODS)}")
    chosen = [part for name, parts in CHOICES.items() if arguments.part in ("all", name) for part in parts]
    start = time.perf_counter()
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    figures, conditions = measured(
        chosen, methods, arguments.quick, arguments.workers, arguments.seed, arguments.keep
    )
    written: dict[str, Any] = {"methods": methods, "seed": arguments.seed}
    for part in chosen:
        rows = ROWS[part](methods, conditions[part], figures[part])
        print(printed(f"\n{part}: {len(conditions[part])} runs per method", rows), flush=True)
        written[part] = {
            "rows": rows,
            "conditions": [vars(c) | {"label": label(c)} for c in conditions[part]],
            "figures": {name: values.tolist() for name, values in figures[part].items()},
        }
    written["seconds"] = time.perf_counter() - start
    print(f"\n{written['seconds']:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
