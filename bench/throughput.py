"""Evaluations per second of the batched simulation on two CPU cores and, where JAX finds one, on a GPU.

One evaluation simulates all runs of 1201 steps with one candidate of law M6. Each device is measured in a
process of its own, chosen by ``JAX_PLATFORMS``; the one for the CPU is held to two cores, so that the ratio
means the same on every machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

RUNS = (12, 240, 2400)
CORES = 2
REPEATS = {12: 5, 240: 5, 2400: 2}
"""By number of runs: an evaluation of the most takes seconds and varies little."""
NO_DEVICE = 3
"""Exit code of a process that finds no such device."""


def measure() -> dict[str, dict[str, Any]]:
    """Evaluations per second on each device: its name and ``{runs: rate}``; prints a table."""
    print(f"\nlaw M6, 1201 steps: evaluations of all runs per second, CPU held to {CORES} cores")
    print(f"{'':30} " + " ".join(f"{runs:>6} runs" for runs in RUNS))
    found = {platform: told for platform in ("cpu", "cuda") if (told := _child(platform)) is not None}
    for told in found.values():
        print(f"{told['device']!s:30.30} " + " ".join(f"{rate:11.1f}" for rate in told["rates"].values()))  # type: ignore[attr-defined]
    if "cuda" in found:
        ratios = [found["cuda"]["rates"][str(runs)] / found["cpu"]["rates"][str(runs)] for runs in RUNS]
        print(f"{'GPU over two cores':30} " + " ".join(f"{ratio:11.1f}" for ratio in ratios))
    else:
        print("no GPU that JAX can use here")
    return found


def _child(platform: str) -> dict[str, Any] | None:
    """What a process of its own measured on ``platform``; None where JAX has no such device."""
    done = subprocess.run(
        [sys.executable, __file__, platform],
        env={**os.environ, "JAX_PLATFORMS": platform},
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    if done.returncode == NO_DEVICE:
        return None
    raise RuntimeError(f"measuring on {platform} failed:\n{done.stderr}")


def _rates(platform: str) -> dict[str, Any]:
    """Measure in this process."""
    if platform == "cpu":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    import jax
    import numpy as np

    from runs import CANDIDATES, LAW, SERVO, elapsed, simulated
    from stribeck.identify.servo.rollout import Rollout
    from stribeck.model.log import batch_of

    try:
        device = jax.devices(platform)[0]
    except (AssertionError, RuntimeError):  # JAX raises either, by its version
        sys.exit(NO_DEVICE)

    def rate(runs: int) -> float:
        rollout = Rollout(
            batch_of([log.resample(0.005) for log in simulated(runs)]), SERVO, LAW, SERVO.parameters(LAW)
        )
        points = np.random.default_rng(1).random((CANDIDATES, rollout.dimension))
        rollout.losses(points)  # compiles
        return CANDIDATES / float(
            np.median([elapsed(lambda: rollout.losses(points)) for _ in range(REPEATS[runs])])
        )

    name = device.device_kind if platform != "cpu" else _processor()
    return {
        "device": name,
        "cores": CORES if platform == "cpu" else None,
        "rates": {str(runs): rate(runs) for runs in RUNS},
    }


def _processor() -> str:
    """Name of the CPU; JAX calls all of them ``cpu``."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "cpu"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(_rates(sys.argv[1])))
    else:
        measure()
