"""Implements ``stribeck identify mechanism``: estimation, simulation, files, figures and tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stribeck.api.mechanism import estimated, grid_runs, mechanism_model
from stribeck.cli.exit_codes import DONE, NOT_USABLE
from stribeck.cli.identify.mechanism.options import IdentifyMechanismOptions
from stribeck.cli.inputs import check_outputs, warn, warn_of_seen, write_json
from stribeck.cli.table import print_table
from stribeck.files.drives import write_drives
from stribeck.identify.mechanism.drives import mechanism_drives, motors_of
from stribeck.identify.mechanism.dynamics import BodyState
from stribeck.identify.mechanism.estimation import MechanismEstimate, MechanismEstimator, Simulator
from stribeck.identify.mechanism.model_file import MechanismModel
from stribeck.identify.mechanism.problem import EstimationProblem, GridRun, Point
from stribeck.identify.mechanism.verdict import judge_mechanism
from stribeck.model.arrays import Array
from stribeck.model.estimate import estimates_to_json


def run(options: IdentifyMechanismOptions) -> int:
    """Estimate, simulate, and write the results."""
    started = time.perf_counter()
    model = mechanism_model(options.mechanism, options.step, options.ratio, options.start, options.set)
    check_outputs([options.output, options.json], [*options.recordings, *options.validate, model.path])
    warn_of_seen(options.recordings, options.validate)
    step, mechanism = model.settings.step, model.mechanism
    fitted, others = (grid_runs(paths, model, warn) for paths in (options.recordings, options.validate))
    steps = sum(len(one.path) for one in fitted)
    _say(options, f"{len(fitted)} runs, {steps} steps of {step:g} s: compiling, which takes half a minute")
    estimator = MechanismEstimator(mechanism, fitted, step, model.settings.ratio)
    ready = time.perf_counter()
    estimation = estimated(estimator, not options.quiet, warn)
    searched = time.perf_counter()
    _say(options, f"{len(estimation.solution.history)} iterations in {searched - ready:.0f} s; simulating")
    simulator = Simulator(estimation.mechanism, step, max(len(one.path) for one in [*fitted, *others]))
    found = _Found(model, estimation, estimator, simulator, fitted, others)
    summary = _summary(found)
    verdict = judge_mechanism(estimation, *(_errors_of(summary, part) for part in ("fitted", "validated")))
    summary |= verdict.to_json([one.name for one in (*fitted, *others)]) | {
        "prepare_seconds": ready - started,
        "search_seconds": searched - ready,
        "wall_seconds": time.perf_counter() - started,
    }
    if options.output is not None:
        write_drives(
            options.output, mechanism_drives(model, estimation, verdict, [one.name for one in fitted])
        )
    write_json(options.json, _finite(summary), allow_nan=False)
    if options.plot is not None:
        _draw(options.plot, found)
    _print(model, estimation, summary)
    print(*verdict.lines(), sep="\n")
    return NOT_USABLE if options.strict and verdict.use != "usable" else DONE


class _Found(NamedTuple):
    model: MechanismModel
    estimation: MechanismEstimate
    estimator: MechanismEstimator
    simulator: Simulator
    fitted: Sequence[GridRun]
    others: Sequence[GridRun]


def _errors_of(summary: dict[str, Any], part: str) -> dict[str, Any]:
    """Errors of the motion simulated from the first sample, by run."""
    return {entry["run"]: entry["from_first_sample"] for entry in summary["errors"][part]}


def _say(options: IdentifyMechanismOptions, text: str) -> None:
    if not options.quiet:
        print(text, file=sys.stderr, flush=True)


def _summary(found: _Found) -> dict[str, Any]:
    """The content of the ``--json`` file."""
    model, estimation, estimator, simulator, fitted, others = found
    solution, sensitivity = estimation.solution, estimation.sensitivity
    chi = solution.point.chi
    states = [BodyState(solution.point.q[k], solution.point.v[k]) for k in estimator.starts]
    summary: dict[str, Any] = {
        "model": model.mechanism.name,
        "step": model.settings.step,
        "ratio": model.settings.ratio,
        "regularization": vars(model.mechanism.regularization),
        "status": solution.status.value,
        "converged": solution.converged,
        "kink": solution.kink,
        "iterations": len(solution.history),
        "cost": solution.cost,
        "parameters": estimation.mechanism.parameters.values(),
        "estimates": estimates_to_json(estimation.estimates),
        "intervals": {name: list(ends) for name, ends in sensitivity.intervals.items()},
        "identifiable": list(sensitivity.identifiable),
        "motors": {
            name: {key: {"interval": None, **one.to_json()} for key, one in quantities.items()}
            for name, quantities in motors_of(estimation).items()
        },
        "not_told": list(sensitivity.directions),
        "at_bounds": dict(sensitivity.at_bounds),
        "correlation_seconds": sensitivity.correlation_steps * model.settings.step,
        "errors": {
            part: [{"run": one.name, "from_first_sample": simulator.errors(one, chi)} for one in runs]
            for part, runs in (("fitted", fitted), ("validated", others))
        },
    }
    for entry, one, start in zip(summary["errors"]["fitted"], fitted, states, strict=True):
        entry["from_estimated_state"] = simulator.errors(one, chi, start)
    return summary


def _finite(value: Any) -> Any:
    """Replace non-finite numbers by ``null`` for JSON, such as the relative error of a zero signal."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _draw(folder: Path, found: _Found) -> None:
    from stribeck.report.estimate_figures import draw_convergence, draw_signals
    from stribeck.report.style import save

    model, estimation, estimator, simulator, fitted, others = found
    chi, problem = estimation.solution.point.chi, estimator.problem
    sensors = model.mechanism.sensors
    units = [model.mechanism.unit(sensor) for sensor in sensors]
    deviation = estimator.signal_deviation(estimation)
    names = [sensor.name for sensor in sensors]
    whole = estimation.solution.point
    for k, one in enumerate([*fitted, *others]):
        count = len(one.path)
        points, band = {"simulated": simulator.simulate(one, chi)}, np.zeros_like(one.path)
        if k < len(fitted):
            rows = slice(int(estimator.starts[k]), int(estimator.starts[k]) + count)
            points["estimated"] = Point(chi, whole.q[rows], whole.v[rows], whole.impulse[rows])
            band = deviation[rows]
        seen = one.samples.count > 0
        drawn = {
            word: (
                _predicted(problem, point, one),
                np.where(seen, problem.signals(point, one.samples), np.nan),
            )
            for word, point in points.items()
        }
        measured = np.where(seen, one.samples.value, np.nan)
        times = np.asarray(model.settings.step * np.arange(count), float)
        path = folder / f"{k}_{Path(one.name).stem}.png"
        save(draw_signals(one.name, times, names, units, measured, drawn, band), path)
    save(draw_convergence(estimation.solution.history), folder / "convergence.png")


def _predicted(problem: EstimationProblem, point: Point, run: GridRun) -> Array:
    """Signals of a trajectory at all steps (N, ns), sampled or not; angles are unwrapped like the recorded ones."""
    everywhere = run.samples._replace(
        value=run.path, place=np.zeros_like(run.path), count=np.ones_like(run.path)
    )
    return np.asarray(run.path + problem.signals(point, everywhere))


def _print(model: MechanismModel, estimation: MechanismEstimate, summary: dict[str, Any]) -> None:
    print(f"{model.title}: {summary['iterations']} iterations, {summary['search_seconds']:.1f} s")
    rows = []
    for parameter in estimation.mechanism.parameters.free:
        estimate = estimation.estimates[parameter.name]
        low, high = estimate.interval or (float("nan"),) * 2
        status = "" if estimate.status == "determined" else estimate.status
        rows.append(
            [parameter.name, f"{parameter.value:.5g}", f"{low:.5g}", f"{high:.5g}", parameter.unit, status]
        )
    print_table(["parameter", "value", "from", "to", "unit", ""], rows, left=1)
    for direction in estimation.sensitivity.directions:
        print(f"not determined by the samples: {direction}")
    for name, quantities in motors_of(estimation).items():
        for quantity, one in quantities.items():
            ends = one.interval
            interval = f"from {ends[0]:.5g} to {ends[1]:.5g}" if ends else "not determined by the samples"
            print(f"{name}: {quantity.replace('_', ' ')} {one.value:.5g} {one.unit}, {interval}")
    rows = [
        [part, entry["run"], name, f"{error['rmse']:.4g}", f"{100 * error['rel']:.2f}"]
        for part, entries in summary["errors"].items()
        for entry in entries
        for name, error in entry["from_first_sample"].items()
    ]
    print("simulated from the first sample")
    print_table(["runs", "run", "signal", "RMSE", "rel [%]"], rows, left=3)
