"""Simulated runs and a stop watch that benchmarks share."""

import time
from collections.abc import Callable
from itertools import islice, product

import paths  # noqa: F401
import numpy as np

from stribeck.files.actuators import load_actuator
from stribeck.model.law import law_named
from stribeck.model.log import Log, Setup
from stribeck.model.trajectories import trajectory_named
from virtual import Encoder, record

LAW = law_named("m6")
SERVO = load_actuator("xl330")
CANDIDATES = 128
"""Points evaluated at a time."""


def simulated(runs: int) -> list[Log]:
    """So many runs of 1201 steps of an XL330 with law M6."""
    gains, names = (
        np.linspace(100.0, 800.0, 12),
        ("sin_time_square", "sin_sin", "up_and_down", "lift_and_drop"),
    )
    masses = np.linspace(0.2, 0.5, max(5, -(-runs // (len(gains) * len(names)))))
    plays = [
        (Setup(float(mass), 0.1, 0.0, 7.4, float(kp)), trajectory_named(name))
        for mass, kp, name in islice(product(masses, gains, names), runs)
    ]
    rng = np.random.default_rng(0)
    return record(SERVO, LAW, SERVO.published["m6"], plays, Encoder(SERVO.resolution), rng)


def elapsed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
