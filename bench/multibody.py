"""Estimation of a simulated Furuta pendulum: compilation, time by samples, and single shooting from the same start."""

from __future__ import annotations

import time

import paths  # noqa: F401

from furuta_made import STEP, displaced, furuta, run
from shooting import Shooting
from stribeck.identify.mechanism.estimation import MechanismEstimator

RATIO, REPEATS = 100.0, 3
SHARES = (0.5, 0.1, 0.02, 0.005)
"""How far off parameters are at most where both searches begin."""


def measure(shooting: bool = True) -> dict[str, float]:
    """Seconds: the first estimation less a later one is the compilation."""
    found: dict[str, float] = {}
    for name, length in (("10s", 10.0), ("20s", 20.0)):
        began = time.perf_counter()
        estimator = MechanismEstimator(furuta(), [run(0, length)], STEP, RATIO)
        estimator.solve(displaced(0))
        first, times, iterations = time.perf_counter() - began, [], 0
        for _ in range(REPEATS):
            began = time.perf_counter()
            iterations = len(estimator.solve(displaced(0)).history)
            times.append(time.perf_counter() - began)
        found |= {f"estimate_{name}": min(times), f"compile_{name}": first - min(times)}
        found[f"per_iteration_{name}"] = min(times) / iterations
    found["twice_the_samples"] = found["estimate_20s"] / found["estimate_10s"]
    found["twice_the_samples_per_iteration"] = found["per_iteration_20s"] / found["per_iteration_10s"]
    if shooting:
        search, ours = Shooting(furuta(), [run(0)], STEP), MechanismEstimator(furuta(), [run(0)], STEP, RATIO)
        ours.solve(displaced(0))
        for share in SHARES:
            start, word = displaced(0, share), f"{100 * share:g}%"
            shot, began = search.solve(start), time.perf_counter()
            cost = ours.solve(start).cost
            found |= {
                f"from_{word}": time.perf_counter() - began,
                f"from_{word}_cost": cost,
                f"shooting_from_{word}": shot.seconds,
                f"shooting_from_{word}_cost": shot.cost,
            }
    for name, value in found.items():
        print(f"{name:34s} {value:10.3f}")
    return found


if __name__ == "__main__":
    measure()
