"""``stribeck posterior --logdir``: friction law and motor constants of a servo."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

import jax
import numpy as np

from stribeck.bayes.diagnostics import write_netcdf
from stribeck.bayes.metropolis import POPULATION
from stribeck.bayes.servo import ServoDraws, ServoPosterior, independent_samples, sample_servo
from stribeck.bayes.servo_priors import servo_prior
from stribeck.bayes.servo_result import as_json, parameter_file, summary_of
from stribeck.cli.inputs import as_number, assignments, recordings_of, warn, warn_of_supply
from stribeck.cli.posterior import Array, Watch, print_summary
from stribeck.core.friction import law_named
from stribeck.core.log import Log, common_value
from stribeck.errors import ConfigError
from stribeck.fit.identify import Task, task_for
from stribeck.fit.objective import split_runs
from stribeck.fit.result import Settings
from stribeck.io.actuators import load_actuator
from stribeck.io.files import write_atomically
from stribeck.io.parameter_file import write_parameter_file
from stribeck.report.bayes_figures import draw_densities, save

THIN = 40
SHORTEST = 20
"""Draws of each chain at least: there are as many chains as a population has members."""


def run_servo(arguments: argparse.Namespace) -> int:
    """Read, sample, write."""
    started = time.perf_counter()
    logs = _logs(arguments)
    actuator = load_actuator(arguments.actuator or common_value(logs, "actuator"))
    actuator = actuator.with_effects(arguments.effects)
    warn_of_supply(logs, actuator)
    fixed = {n: as_number(v, f"--set {n}") for n, v in assignments(arguments.set, "--set").items()}
    settings = Settings(method="posterior", seed=arguments.seed)
    task = task_for(
        split_runs(logs), actuator, law_named(arguments.model), settings, fixed=fixed, freed=arguments.free
    )
    found, prior = _sampled(arguments, task)
    seconds = time.perf_counter() - started
    content = as_json(found, tuple(logs), seconds)
    _write(arguments, found, prior, tuple(logs), settings, content)
    counted = found.posterior.samples
    print(
        f"{task.law.name.upper()} ({task.law.title}), {actuator.title}: {len(logs)} runs, {counted.mean():.3g} samples count in each"
    )
    if arguments.independent:
        print(
            "every sample counted as independent: intervals are far too narrow where the law is not quite true"
        )
    print_summary(summary_of(found), seconds)
    for statement in content["statements"]:
        print(f"- {statement}")
    return 0


def _logs(arguments: argparse.Namespace) -> list[Log]:
    logs = recordings_of(arguments)
    if arguments.kp is None:
        return logs
    chosen = [log for log in logs if log.setup.kp in arguments.kp]
    if not chosen:
        gains = ", ".join(f"{kp:g}" for kp in sorted({log.setup.kp for log in logs}))
        raise ConfigError(f"--kp: no run has one of these gains; there are {gains}")
    return chosen


def _sampled(arguments: argparse.Namespace, task: Task) -> tuple[ServoDraws, Array]:
    """Draws of the posterior, and of the prior (S, P)."""
    rollout = task.rollout()
    prior = servo_prior(task.actuator, task.law, task.parameters)
    first = ServoPosterior(rollout, prior, independent_samples(rollout))

    def natural(x: Array) -> Array:
        with jax.enable_x64():
            return np.asarray(first.values(x))

    watch = Watch(arguments.quiet, natural, arguments.effective)
    found = sample_servo(
        rollout,
        prior,
        arguments.seed,
        discrepancy=not arguments.independent,
        draws=max(SHORTEST, -(-8 * arguments.draws // POPULATION)),
        thin=THIN,
        progress=watch,
        enough=watch.enough,
    )
    return found, natural(first.draw(np.random.default_rng(arguments.seed), 2000))


def _write(
    arguments: argparse.Namespace,
    found: ServoDraws,
    prior: Array,
    logs: Sequence[Log],
    settings: Settings,
    content: object,
) -> None:
    names = found.posterior.names
    if arguments.output is None:
        warn("without --output the parameters are printed, not saved")
    else:
        write_parameter_file(arguments.output, parameter_file(found, tuple(logs), settings))
    if arguments.json is not None:
        write_atomically(arguments.json, json.dumps(content, indent=1) + "\n")
    if arguments.netcdf is not None:
        before = {name: prior[None, :, k] for k, name in enumerate(names)}
        write_netcdf(arguments.netcdf, {name: found.values[..., k] for k, name in enumerate(names)}, before)
    if arguments.plots is not None:
        print(save(draw_densities(names, prior, found.flat), arguments.plots / "posterior.png"))
