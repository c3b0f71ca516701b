"""One evaluation of 16 simulated runs x 6 s: ours, and that of the method's published program, in the same process.

    git clone https://github.com/Rhoban/bam && pip install colorama
    python bench/reference.py bam [--dt 0.005] [--json FILE]

The published program simulates all runs in one array, one candidate at a time, which is its fastest form; ours simulates
128 candidates at a time. Both follow the same goals of 1201 steps of 5 ms with law M6. ``--dt`` is the step of ours alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from runs import CANDIDATES, LAW, SERVO, elapsed, simulated
from stribeck.identify.servo.rollout import Rollout
from stribeck.model.log import Batch, batch_of

RUNS, STEP, REPEATS = 16, 0.005, 7


def batch_log(batch: Batch) -> dict[str, Any]:
    """The runs as the published program stores them: one dictionary of arrays per sample."""
    setups = [log.setup for log in batch.logs]
    keys = {"mass": "mass", "arm_mass": "arm_mass", "length": "length", "kp": "kp", "vin": "supply_voltage"}
    head = {key: np.array([getattr(setup, name) for setup in setups]) for key, name in keys.items()}
    columns = (batch.position, batch.velocity, batch.goal, batch.torque_enable)
    names = ("position", "speed", "goal_position", "torque_enable")
    return {
        **head,
        "dt": batch.dt,
        "entries": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
    }


def published_call(checkout: Path, batch: Batch) -> Callable[[], float]:
    """A function that evaluates all runs once with the published program."""
    sys.path.insert(0, str(checkout.resolve()))
    model = import_module("bam.model").models[LAW.name]()
    model.set_actuator(import_module("bam.actuators").actuators[SERVO.name]())
    for name, parameter in model.get_parameters().items():
        parameter.value = SERVO.published[LAW.name].get(name, parameter.value)
    simulator, log = import_module("bam.simulate").Simulator(model), batch_log(batch)

    def evaluate() -> float:
        positions, _, _ = simulator.rollout_log(log, simulate_control=True)
        return float(np.mean(np.abs(np.array(positions) - batch.position)))

    return evaluate


def measure(checkout: Path, dt: float = STEP) -> dict[str, float]:
    """Seconds of an evaluation of both, alternating, and their ratio."""
    logs = simulated(RUNS)
    rollout = Rollout(batch_of([log.resample(dt) for log in logs]), SERVO, LAW, SERVO.parameters(LAW))
    points = np.random.default_rng(1).random((CANDIDATES, rollout.dimension))
    rollout.losses(points)  # compiles
    published = published_call(checkout, batch_of([log.resample(STEP) for log in logs]))
    error = published()
    times = [(elapsed(published), elapsed(lambda: rollout.losses(points))) for _ in range(REPEATS)]
    theirs, ours = np.median(times, axis=0) / (1.0, CANDIDATES)
    print(
        f"published program: {1e3 * theirs:.1f} ms, error {1e3 * error:.2f} mrad at its published parameters"
    )
    print(
        f"ours, step {1e3 * dt:g} ms: {1e3 * ours:.3f} ms; {theirs / ours:.0f} times the published program's rate"
    )
    return {"dt": dt, "published_s": float(theirs), "ours_s": float(ours), "ratio": float(theirs / ours)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="folder of a clone of github.com/Rhoban/bam")
    parser.add_argument("--dt", type=float, default=STEP, help="time step of ours [s] (default: 0.005)")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    figures = measure(options.checkout, options.dt)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
