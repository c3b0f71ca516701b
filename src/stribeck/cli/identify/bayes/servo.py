"""``stribeck identify servo --bayes``: friction law and motor constants of a servo."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stribeck.api.servo_notes import actuator_for, control_notes, supply_notes
from stribeck.cli.identify.bayes.options import ServoBayesOptions
from stribeck.cli.identify.bayes.print import SamplerProgress, print_summary
from stribeck.cli.inputs import as_number, assignments, recordings_of, warn, write_json
from stribeck.files.drives import write_drive
from stribeck.identify.posterior.diagnostics import write_netcdf
from stribeck.identify.posterior.metropolis import POPULATION
from stribeck.identify.posterior.servo import (
    ServoDraws,
    ServoPosterior,
    independent_samples,
    mean_position,
    sample_servo,
)
from stribeck.identify.posterior.servo_priors import ServoPrior, servo_prior
from stribeck.identify.posterior.servo_result import (
    as_json,
    drawn_drive,
    estimates_of,
    pairs_to_show,
    prior_draws,
    summary_of,
)
from stribeck.identify.servo.objective import Split, split_runs
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.task import FitTask, task_for
from stribeck.model.arrays import Array
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.model.log import Log
from stribeck.report.bayes_figures import draw_densities, draw_pairs
from stribeck.report.style import save_all

THIN = 40
SHORTEST = 20
"""Minimum number of draws per chain; there is one chain for each member of the population."""

WARNING = "the intervals are far too narrow unless the law is exact"


def run_servo(options: ServoBayesOptions) -> int:
    """Read, sample, and write the results."""
    started = time.perf_counter()
    logs = recordings_of(options, options.servo)
    actuator = actuator_for(options.servo, logs).with_effects(options.effects)
    for text in (*supply_notes(logs, actuator), *control_notes(logs, actuator)):
        warn(text)
    fixed = {n: as_number(v, f"--set {n}") for n, v in assignments(options.set, "--set").items()}
    settings = FitSettings(method="posterior", seed=options.seed)
    split = split_runs(logs, validation_kp=options.hold_out_gain)
    task = task_for(split, actuator, law_named(options.law), settings, fixed=fixed, freed=options.free)
    prior = servo_prior(task.actuator, task.law, task.parameters)
    draws = _sampled(options, task, prior, discrepancy=True)
    beside = _sampled(options, task, prior, discrepancy=False) if options.independent else None
    content = as_json(draws, split.train, time.perf_counter() - started)
    if split.validation:
        content["validation_mae"] = _held_out(draws, task)
    if beside is not None:
        independent = as_json(beside, split.train, content["wall_seconds"])
        content["independent"] = {"parameters": independent["parameters"]}
        if split.validation:
            content["independent"]["validation_mae"] = _held_out(beside, task)
    drive = drawn_drive(draws, split, settings)
    if drive.verdict is not None:
        content |= drive.verdict.to_json()
    _write(options, draws, beside, drive, split, content)
    _tell(task, draws, beside, content)
    if drive.verdict is not None:
        print(*drive.verdict.lines(), sep="\n")
    return 0


def _sampled(
    options: ServoBayesOptions, task: FitTask, prior: ServoPrior, *, discrepancy: bool
) -> ServoDraws:
    rollout = task.rollout()
    first = ServoPosterior(rollout, prior, independent_samples(rollout))
    watch = SamplerProgress(options.quiet, first.natural, options.effective)
    return sample_servo(
        rollout,
        prior,
        options.seed,
        discrepancy=discrepancy,
        draws=max(SHORTEST, -(-8 * options.draws // POPULATION)),
        thin=THIN,
        progress=watch,
        enough=watch.enough,
    )


def _held_out(draws: ServoDraws, task: FitTask) -> float:
    """Mean absolute error of the predictive mean on the held-out runs [rad]."""
    rollout = replace(task.rollout(), batch=task.batch(task.split.validation))
    return float(rollout.batch.mean_absolute_errors(mean_position(draws, rollout)).mean())


def _tell(task: FitTask, draws: ServoDraws, beside: ServoDraws | None, content: Mapping[str, Any]) -> None:
    counted = draws.posterior.samples
    print(
        f"{task.law.name.upper()} ({task.law.title}), {task.actuator.title}: {len(counted)} runs, each with "
        f"the information of {counted.mean():.3g} independent samples"
    )
    print_summary(summary_of(draws), estimates_of(draws), content["wall_seconds"])
    if "validation_mae" in content:
        print(f"{task.split.rule}: predicted with a mean error of {1e3 * content['validation_mae']:.1f} mrad")
    for statement in content["statements"]:
        print(f"- {statement}")
    if beside is None:
        return
    samples = beside.posterior.samples.mean()
    print(f"\nFor comparison, if all {samples:.0f} samples of a run were independent ({WARNING}):")
    print_summary(summary_of(beside), estimates_of(beside), content["wall_seconds"])
    if "validation_mae" in content["independent"]:
        print(
            f"{task.split.rule}: predicted with a mean error of {1e3 * content['independent']['validation_mae']:.1f} mrad"
        )


def _write(
    options: ServoBayesOptions,
    draws: ServoDraws,
    beside: ServoDraws | None,
    drive: Drive,
    split: Split,
    content: Mapping[str, Any],
) -> None:
    names, prior = draws.posterior.names, prior_draws(draws, options.seed)
    if options.output is None:
        warn("without --output the parameters are printed but not saved")
    else:
        write_drive(options.output, drive)
    write_json(options.json, content)
    if options.netcdf is not None:
        before = {name: prior[None, :, k] for k, name in enumerate(names)}
        write_netcdf(options.netcdf, {name: draws.values[..., k] for k, name in enumerate(names)}, before)
    if options.plot is not None:
        _draw(options.plot, draws, beside, prior, split.train)


def _draw(
    folder: Path, draws: ServoDraws, beside: ServoDraws | None, prior: Array, logs: tuple[Log, ...]
) -> None:
    names, parameters = draws.posterior.names, draws.posterior.rollout.parameters
    titles = [f"{name} [{'rad' if name == 'sigma' else parameters[name].unit}]" for name in names]
    independent = None if beside is None else beside.flat
    figures = {"posterior": draw_densities(titles, prior, draws.flat, independent)}
    pairs = pairs_to_show(names[:-1], draws.flat[:, :-1], logs)
    if pairs:
        title_of = dict(zip(names, titles, strict=True))
        before, after = (dict(zip(titles, flat.T, strict=True)) for flat in (prior, draws.flat))
        figures["ridges"] = draw_pairs([(title_of[a], title_of[b]) for a, b in pairs], before, after)
    print(*save_all(figures, folder), sep="\n")
