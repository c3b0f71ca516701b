"""One study in a journal, worked on by one process on one core and by two on a core each.

Run it by itself: ``python bench/studies.py``. Both searches spend the
same number of trials on 240 runs; every worker asks, evaluates and tells in batches of 64. Time runs from the
moment at which all have compiled until the last one is done.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
RUNS = int(os.environ.get("STRIBECK_BENCH_RUNS", "240"))
TRIALS = int(os.environ.get("STRIBECK_BENCH_TRIALS", "25600"))
SEEDS = tuple(int(text) for text in os.environ.get("STRIBECK_BENCH_SEEDS", "0 1 2").split())
METHOD = "cmaes"


def measure() -> list[dict[str, object]]:
    """Time and error of one worker and of two, for some seeds."""
    import paths  # noqa: F401

    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("studies: fewer than two cores here")
        return []
    print(f"\none study in a journal, {METHOD}, law M6, {RUNS} runs, {TRIALS} trials in batches of 64")
    print(f"load before: {' '.join(f'{load:.2f}' for load in os.getloadavg())}")
    print(f"{'seed':>4} {'workers':>8} {'search [s]':>11} {'error [mrad]':>13} {'trials':>7} {'ratio':>6}")
    found = []
    for seed in SEEDS:
        for count in (1, 2):
            with TemporaryDirectory() as folder:
                result = race(f"journal:{folder}/study.log", cores[:count], seed)
            ratio = "" if count == 1 else f"{found[-1]['seconds'] / result['seconds']:6.2f}"
            print(
                f"{seed:4d} {count:8d} {result['seconds']:11.2f} {1e3 * result['error']:13.4f} "
                f"{result['trials']:7d} {ratio}",
                flush=True,
            )
            found.append({"seed": seed, "workers": count, **result})
    return list(found)


def race(url: str, cores: list[int], seed: int) -> dict[str, float]:
    """Workers on a core each, from the moment that all are ready until the last one is done."""
    command = [sys.executable, __file__, "--work", url, str(seed)]
    workers = [
        subprocess.Popen([*command, str(core)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for core in cores
    ]
    try:
        for worker in workers:
            worker.stdout.readline()  # ready
        begin = time.perf_counter()
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        results = [json.loads(worker.communicate()[0]) for worker in workers]
        seconds = time.perf_counter() - begin
    finally:
        for worker in workers:
            worker.kill()
    if len({result["error"] for result in results}) > 1:
        raise SystemExit(f"the workers of one study differ on its best point: {results}")
    return {"seconds": seconds, **results[0]}


def work(url: str, seed: int, core: int) -> None:
    """One worker: reads its runs and compiles, says that it is ready, and searches when told to."""
    os.sched_setaffinity(0, {core})
    import numpy as np

    from runs import LAW, SERVO, simulated
    from stribeck.identify.servo.identify import open_for, search
    from stribeck.identify.servo.objective import equivalent_error, split_runs
    from stribeck.identify.servo.result import FitSettings, StudySettings
    from stribeck.identify.servo.task import task_for

    settings = FitSettings(method=METHOD, trials=TRIALS, seed=seed, study=StudySettings(url, join=True))
    task = task_for(split_runs(simulated(RUNS)), SERVO, LAW, settings)
    open_for(task).close()
    rollout = task.rollout()
    rollout.losses(np.full((1, rollout.dimension), 0.5))
    print("ready", flush=True)
    sys.stdin.readline()
    incumbent = search(task, rollout, seed, TRIALS, lambda incumbent: None)
    print(json.dumps({"error": float(equivalent_error(incumbent.loss)), "trials": incumbent.evaluations()}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        measure()
