"""All benchmarks: tables on the terminal, and build/bench.json.

Each part runs in a process of its own. ``python bench/run.py --part fits --part bus`` runs some of them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "build" / "bench.json"

PARTS = {
    "compensation": "compensation node: time in the node, round trip, CPU",
    "loop": "Compensator.torque of the Python interface in a loop",
    "controllers": "an update in C++, and in Python",
    "guard": "share of a core of the guard",
    "bus": "cycles of the servo bus",
    "emulator": "processor time of eight emulated servos",
    "joints_in_mujoco": "controllers in MuJoCo",
    "exported_c": "a call of the exported C header",
    "closed_loop": "closed loops against plants with other friction, quick form",
    "fits": "evaluations, searches and whole commands of stribeck identify servo",
    "throughput": "evaluations per second on two cores and on a GPU",
    "fleet": "8 fits by stribeck identify fleet, and as single commands",
    "arm": "regressor and identification of arms",
    "excitation": "designed trajectories of arms",
    "multibody": "joint estimation of a simulated Furuta pendulum",
}
"""Modules of this folder, each with a function ``measure`` that prints a table and returns its figures."""


QUICK = {"multibody": {"shooting": False}, "excitation": {"cases": [("panda", "floor and bodies")]}}
"""Arguments that keep parts short; ``python bench/multibody.py`` and ``python bench/excitation.py`` measure all."""


def main() -> None:
    """Run the chosen parts one after another; figures of the others stay in the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", action="append", choices=PARTS, help="one of them, may be repeated")
    parser.add_argument("--json", type=Path, default=TARGET, help="figures (default: build/bench.json)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        figures = importlib.import_module(options.part[0]).measure(**QUICK.get(options.part[0], {}))
        options.json.write_text(json.dumps(figures), encoding="utf-8")
        return
    found = json.loads(options.json.read_text(encoding="utf-8")) if options.json.is_file() else {}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    for part in options.part or PARTS:
        print(f"\n== {part}: {PARTS[part]}", flush=True)
        found[part] = in_own_process(part)
        print(f"({found[part]['seconds']:.0f} s, {found[part]['cpu_seconds']:.0f} s of CPU)", flush=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"\n{options.json}, {time.perf_counter() - begin:.0f} s in all")


def in_own_process(part: str) -> dict[str, object]:
    """Figures of a part and the time that it took [s]."""
    begin, spent = time.perf_counter(), cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        command = [sys.executable, __file__, "--here", "--part", part, "--json", str(figures)]
        subprocess.run(command, check=True, cwd=ROOT)
        times = {"seconds": time.perf_counter() - begin, "cpu_seconds": cpu_seconds() - spent}
        return {**json.loads(figures.read_text(encoding="utf-8")), **times}


def cpu_seconds() -> float:
    """CPU time of all ended child processes [s]."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
