"""Fits of servos: one evaluation, the overhead of a search, and whole commands from a cold start.

Every ratio stands beside its two figures, measured in the same run. "numpy loop" is this project's own time step in
numpy, all runs in one array, one candidate at a time.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

from runs import CANDIDATES, LAW, SERVO, elapsed, simulated
from stribeck.identify.servo.identify import search
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.rollout import Rollout
from stribeck.identify.servo.task import task_for
from stribeck.model.log import Batch, Log, batch_of
from stribeck.model.step import simulate
from stribeck.recordings.bags.bag import write_bag
from stribeck.recordings.sources import read_recordings

ROOT = Path(__file__).resolve().parents[1]
RECORDINGS = Path(os.environ.get("STRIBECK_DATA", ROOT.parent / "shared" / "data")) / "xl330"
RUNS = (16, 240)
REPEATS = 15
TRIALS = 20_000
RATE_TRIALS = 6000
"""Enough for times per evaluation."""


def measure() -> dict[str, object]:
    """All figures of fits."""
    device = jax.devices()[0].device_kind
    print(f"JAX on {device}, {os.cpu_count()} cores")
    logs = recordings()
    return {"device": device, **evaluation_times(), **overhead(logs), **cold_fits(logs)}


def recordings() -> list[Log]:
    """Twelve real recordings where they are at hand, twelve bundled simulated ones elsewhere."""
    if RECORDINGS.is_dir():
        print("fits on the 12 recordings of a real XL330")
        return read_recordings(RECORDINGS, arm_mass=0.0)
    print("fits on 12 bundled simulated runs (no real recordings at hand)")
    return read_recordings(ROOT / "bags" / "xl330_simulated")[:12]


def evaluation_times() -> dict[str, object]:
    """One evaluation of all runs [ms], amortised over a population, beside the numpy loop."""
    print(f"\nlaw M6, {CANDIDATES} candidates, 1201 steps: one evaluation of all runs")
    print(f"{'runs':>5} {'ours [ms]':>10} {'numpy loop [ms]':>16} {'ratio':>7}")
    found: dict[str, dict[str, float]] = {"eval_ms": {}, "numpy_ms": {}}
    for runs in RUNS:
        ours, loop = evaluation_time(batch_of([log.resample(0.005) for log in simulated(runs)]))
        print(f"{runs:5d} {ours:10.3f} {loop:16.0f} {loop / ours:7.0f}")
        found["eval_ms"][str(runs)] = ours
        found["numpy_ms"][str(runs)] = loop
    return dict(found)


def evaluation_time(batch: Batch) -> tuple[float, float]:
    """One evaluation of all runs of a batch [ms]: ours, and the numpy loop's."""
    rollout = Rollout(batch, SERVO, LAW, SERVO.parameters(LAW))
    points = np.random.default_rng(1).random((CANDIDATES, rollout.dimension))
    rollout.losses(points)
    ours = np.median([elapsed(lambda: rollout.losses(points)) for _ in range(REPEATS)]) / CANDIDATES
    loop = np.median([elapsed(lambda: simulate(batch, SERVO, LAW, SERVO.published["m6"])) for _ in range(3)])
    return 1e3 * float(ours), 1e3 * float(loop)


def overhead(logs: list[Log]) -> dict[str, object]:
    """What a search costs beside its simulations."""
    settings = FitSettings(trials=RATE_TRIALS)
    task = task_for(split_runs(logs), SERVO, LAW, settings)
    rollout = task.rollout()
    begin = time.perf_counter()
    incumbent = search(task, rollout, 0, RATE_TRIALS, lambda incumbent: None)
    meter = rollout.meter
    seconds = time.perf_counter() - begin - meter.compile_seconds
    beside = seconds - meter.simulation_seconds
    trials = incumbent.evaluations()
    print(
        f"\noverhead of a hybrid search beside its simulations: {1e6 * beside / trials:.1f} us per trial, "
        f"{100 * beside / seconds:.1f} % of {seconds:.2f} s ({trials} evaluations)"
    )
    return {"overhead_us_per_trial": 1e6 * beside / trials, "overhead_share": beside / seconds}


def cold_fits(logs: list[Log]) -> dict[str, object]:
    """Whole commands from a cold start, reading bags included."""
    with tempfile.TemporaryDirectory() as folder:
        bags = Path(folder) / "bags"
        for log in logs:
            write_bag(bags / log.name, [log])
        print("\nwhole commands, cold start, 12 runs, law M6:")
        hybrid = command(bags, Path(folder) / "hybrid.json", "--trials", str(TRIALS))
        cmaes = command(bags, Path(folder) / "cmaes.json", "--method", "cmaes", "--trials", str(RATE_TRIALS))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024.0
    batch = batch_of([log.resample(0.005) for log in logs])
    values = SERVO.published["m6"]
    loop = float(np.median([elapsed(lambda: simulate(batch, SERVO, LAW, values)) for _ in range(5)]))
    per_trial = cmaes["search_seconds"] / cmaes["evaluations"]
    print(
        f"cmaes: {1e3 * per_trial:.3f} ms per evaluation, numpy loop beside it {1e3 * loop:.0f} ms: {loop / per_trial:.0f} times"
    )
    print(f"peak memory of a fit: {peak:.0f} MB")
    return {
        "m6_search_seconds": hybrid["search_seconds"],
        "m6_wall_seconds": hybrid["total_seconds"],
        "m6_train_mae": hybrid["train_mae"],
        "cmaes_ms_per_evaluation": 1e3 * per_trial,
        "cmaes_numpy_ms": 1e3 * loop,
        "peak_mb": peak,
    }


def command(bags: Path, summary: Path, *options: str) -> dict[str, float]:
    """Run ``stribeck identify servo`` in a fresh process; its summary with the time that it took in all."""
    arguments = [
        "identify",
        "servo",
        str(bags),
        "--servo",
        "xl330",
        "--law",
        "m6",
        "--json",
        str(summary),
        "--quiet",
    ]
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "stribeck", *arguments, *options],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - begin
    found = json.loads(summary.read_text())
    print(
        f"{found['method']:>7}: {1e3 * found['train_mae']:.2f} mrad, {found['evaluations']} evaluations, "
        f"search {found['search_seconds']:.2f} s, compilation {found['compile_seconds']:.2f} s, in all {seconds:.2f} s"
    )
    return {**found, "total_seconds": seconds}


if __name__ == "__main__":
    measure()
