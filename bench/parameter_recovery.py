"""Known parameters of simulated servos: how close fits at default settings come, and what their intervals hold.

Each servo is simulated by another integrator in steps of 0.05 and 0.1 ms, whose error of first order is extrapolated to
zero, at gains up to the firmware's maximum, and measured by its encoder with noise. The step is the one with which
``stribeck identify servo`` ends; every repetition has noise of its own and is fitted by Levenberg-Marquardt from the truth. Columns:
step; parameters that are determined, and how many of those are within 1 % (the mounting offset, an angle without a scale of
its own, within one count of the encoder), or within their intervals; largest mean deviation of a determined parameter (a systematic error); share of
intervals that hold the truth; largest shift of a parameter at half the step, in half-widths of its interval.

    python bench/parameter_recovery.py [--servos NAME …] [--laws m1,m3,m4,m6] [--repetitions N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import paths  # noqa: F401
import jax
import numpy as np
import numpy.typing as npt

from recovery import Bench, estimate_at_points, refit
from stribeck.files.actuators import load_actuator
from stribeck.identify.servo.descent import polish
from stribeck.identify.servo.incumbent import BudgetSpentError, Incumbent
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.refinement import (
    BUDGET_OF_FINER_STEP,
    checked_point,
    problem_of,
    with_finer_step,
)
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.rollout import Inputs, Rollout
from stribeck.identify.servo.task import FitTask, task_for
from stribeck.identify.servo.uncertainty import estimate_uncertainty
from stribeck.model.actuator import Actuator
from stribeck.model.law import FrictionLaw, law_named
from stribeck.model.log import Log, Series, Setup, batch_of
from stribeck.model.parameters import ParameterSet
from stribeck.model.step import batch_for
from stribeck.model.trajectories import Trajectory
from virtual import Encoder, record

FloatArray = npt.NDArray[np.float64]

MOTIONS = ("sin_time_square", "up_and_down")

BENCHES = (
    Bench("xm430", (0.3, 0.9), 0.15, 0.05, (800.0, 3200.0, 16383.0), 12.0),
    Bench("xl330", (0.1, 0.35), 0.1, 0.02, (400.0, 1600.0, 16383.0), 5.0),
    Bench("sts3215", (0.2, 0.6), 0.12, 0.05, (32.0, 96.0, 254.0), 7.4),
    Bench("mx106", (0.5, 1.5), 0.15, 0.05, (32.0, 96.0, 254.0), 15.0),
)
"""Two loads, and gains up to the largest that the firmware takes."""

TRUE: dict[str, dict[str, float]] = {
    "xm430": {"kt": 1.5, "R": 5.0, "armature": 0.008, "q_offset": 0.01, "friction_base": 0.06, "friction_viscous": 0.03},
    "sts3215": {"q_offset": 0.01},
}  # fmt: skip
"""Values where none are published, of the size of the datasheet."""

FRICTION = {
    "friction_stribeck": 0.04,
    "load_friction_base": 0.12,
    "load_friction_stribeck": 0.08,
    "load_friction_motor": 0.15,
    "load_friction_external": 0.1,
    "load_friction_motor_stribeck": 0.06,
    "load_friction_external_stribeck": 0.08,
    "load_friction_motor_quad": 0.02,
    "load_friction_external_quad": 0.02,
    "dtheta_stribeck": 0.4,
    "alpha": 1.3,
}
"""Friction beside the Coulomb and viscous one, for laws without published values; torques relative to Coulomb friction."""

COUNTS = 0.5
"""Standard deviation of the noise, in counts of the encoder."""


class Row(NamedTuple):
    """What the fits of one servo and law gave."""

    servo: str
    law: str
    dt: float
    fits: int
    determined: int
    within: int
    within_or_held: int
    systematic: float
    intervals: int
    held: int
    halved: float


def truth_of(actuator: Actuator, law_name: str) -> ParameterSet:
    """Published values, or typical ones, at least 5 % of the search range away from its bounds."""
    parameters = actuator.parameters(law_named(law_name))
    known = {"q_offset": 0.0, **actuator.published.get(law_name, {})}
    if not actuator.published.get(law_name):
        known = {**actuator.published.get("m1", {}), **TRUE[actuator.name]}
        coulomb = known["friction_base"]
        known = {
            **{n: v * (coulomb if n == "friction_stribeck" else 1.0) for n, v in FRICTION.items()},
            **known,
        }
    unit = np.clip(parameters.to_unit([known[name] for name in parameters.free_names]), 0.05, 0.95)
    return parameters.with_vector(parameters.from_unit(unit))


def motion(
    logs: Sequence[Log], actuator: Actuator, law: FrictionLaw, truth: ParameterSet, dt: float
) -> FloatArray:
    """Positions (T, R) at the samples of runs that begin at rest at 0 rad, by the semi-implicit step, compiled in float64."""
    batch = batch_of([log.resample(dt) for log in logs])
    rollout = Rollout(batch, actuator, law, truth, dtype="float64", integrator="semi-implicit")
    with jax.enable_x64(True):
        inputs = {**rollout._inputs, "position": rollout._array(np.zeros_like(batch.position))}
        unit = truth.to_unit(truth.vector())[:, None]

        def run(unit: jax.Array, inputs: Inputs) -> jax.Array:
            first = rollout._initial(unit, inputs)
            return jax.lax.scan(rollout._advance(unit), first, inputs)[1]

        found = np.asarray(jax.jit(run)(unit, inputs))[..., 0]
    return np.asarray(found[:: round(logs[0].position.time[1] / dt)])


def exact_runs(
    actuator: Actuator, law: FrictionLaw, truth: ParameterSet, plays: Sequence[tuple[Setup, Trajectory]]
) -> list[Log]:
    """Runs of the truth, 2 x(0.05 ms) - x(0.1 ms) by the semi-implicit step, whose error is of first order."""
    logs = record(actuator, law, truth.values(), plays, Encoder(0.0), np.random.default_rng(0))
    exact = 2.0 * motion(logs, actuator, law, truth, 5e-5) - motion(logs, actuator, law, truth, 1e-4)
    return [replace(log, position=replace(log.position, value=exact[:, k])) for k, log in enumerate(logs)]


def measured(logs: Sequence[Log], actuator: Actuator, rng: np.random.Generator) -> list[Log]:
    """The runs as the encoder reports them."""
    step = actuator.resolution
    found = []
    for log in logs:
        noisy = log.position.value + COUNTS * step * rng.standard_normal(len(log.position.value))
        position = Series(log.position.time, np.round(noisy / step) * step, held=False)
        found.append(replace(log, position=position))
    return found


def refitted(
    task: FitTask, campaigns: Sequence[Sequence[Log]], truth: ParameterSet, dt: float
) -> tuple[Any, FloatArray, FloatArray]:
    """Simulations at a step, the fits from the truth (S, n), and what they fitted (S, T, R)."""
    rollout = replace(task, settings=replace(task.settings, dt=dt)).rollout()
    positions = np.stack([batch_for(logs, dt, task.settings.integrator).position for logs in campaigns])
    return rollout, refit(rollout, truth.to_unit(truth.vector()), positions, 8), positions


def chosen_step(task: FitTask, truth: ParameterSet) -> float:
    """The step with which ``stribeck identify servo`` ends [s]: from the truth, without the search."""
    rollout = task.rollout()
    incumbent = Incumbent(BUDGET_OF_FINER_STEP, lambda: rollout.meter.evaluations)
    with suppress(BudgetSpentError):
        polish(problem_of(task, rollout), incumbent, truth.to_unit(truth.vector()))
    unit, residual = checked_point(rollout, incumbent.best_points)
    uncertainty = estimate_uncertainty(rollout, unit, residual)
    return with_finer_step(task, rollout, unit, residual, uncertainty, incumbent)[0].settings.dt


def recover(bench: Bench, law_name: str, repetitions: int) -> Row:
    """Simulate, fit, and compare with the truth."""
    actuator, law = load_actuator(bench.actuator), law_named(law_name)
    truth, rng = truth_of(actuator, law_name), np.random.default_rng(1)
    plays = [play for play in bench.plays() if play[1].name in MOTIONS]
    exact = exact_runs(actuator, law, truth, plays)
    campaigns = [measured(exact, actuator, rng) for _ in range(repetitions)]
    task = task_for(split_runs(campaigns[0]), actuator, law, FitSettings())
    dt = chosen_step(task, truth)
    rollout, points, positions = refitted(task, campaigns, truth, dt)
    found = estimate_at_points(rollout, points, positions)
    few = min(repetitions, 3)
    _, finer, _ = refitted(task, campaigns[:few], truth, 0.5 * dt)
    true, width = dict(zip(truth.free_names, truth.vector(), strict=True)), truth.upper - truth.lower
    counts, deviations, halved = np.zeros(5, dtype=int), {name: [] for name in true}, 0.0  # type: ignore[var-annotated]
    for k, uncertainty in enumerate(found):
        for j, name in enumerate(truth.free_names):
            one = uncertainty.estimates[name]
            if one.interval is None:
                continue
            inside = one.interval[0] <= true[name] <= one.interval[1]
            counts[3:] += 1, inside
            half = max(one.interval[1] - one.value, one.value - one.interval[0])
            if k < few:
                halved = max(halved, abs(finer[k, j] - points[k, j]) * width[j] / half)
            if one.status == "determined":
                scale = abs(true[name]) if name != "q_offset" else 100.0 * actuator.resolution
                deviation = (one.value - true[name]) / scale
                deviations[name].append(deviation)
                counts[:3] += 1, abs(deviation) <= 0.01, inside or abs(deviation) <= 0.01
    most = max(
        (abs(float(np.mean(d))) for d in deviations.values() if len(d) > 0.5 * repetitions), default=0.0
    )
    determined, within, either, intervals, held = counts.tolist()
    return Row(
        bench.actuator, law_name, dt, repetitions, determined, within, either, most, intervals, held, halved
    )


def main() -> None:
    """Print the table, with all rows pooled at the end; write it as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--servos", nargs="*", default=[bench.actuator for bench in BENCHES])
    parser.add_argument("--laws", default="m1,m3,m4,m6")
    parser.add_argument("--repetitions", type=int, default=16)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    print(
        "servo    law  step/ms  determined  within 1 %  or held  systematic  intervals  hold  half the step"
    )
    for bench in BENCHES:
        for law in options.laws.split(",") if bench.actuator in options.servos else ():
            rows.append(row := recover(bench, law, options.repetitions))
            told(row)
            if options.json:
                options.json.write_text(json.dumps([one._asdict() for one in rows], indent=1) + "\n")
    if rows:
        pooled = [sum(values) for values in zip(*(row[4:7] for row in rows), strict=True)]
        intervals, held = sum(row.intervals for row in rows), sum(row.held for row in rows)
        systematic, halved = max(row.systematic for row in rows), max(row.halved for row in rows)
        told(
            Row(
                "all", "", np.nan, sum(row.fits for row in rows), *pooled, systematic, intervals, held, halved
            )
        )


def told(row: Row) -> None:
    """Print a row."""
    share = 100.0 / max(row.determined, 1)
    print(
        f"{row.servo:8} {row.law:3} {1e3 * row.dt:8.3g} {row.determined:11d} {share * row.within:9.1f} % "
        f"{share * row.within_or_held:6.1f} % {100 * row.systematic:9.2f} % {row.intervals:10d} "
        f"{100 * row.held / max(row.intervals, 1):5.1f} % {row.halved:10.3f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
