"""Converts the posterior of a servo to a parameter file and to the object of ``--json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stribeck.files.versions import versions
from stribeck.identify.common.judging import Evidence, judge
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.posterior.diagnostics import Summary, summarise
from stribeck.identify.posterior.ridges import statements
from stribeck.identify.posterior.servo import ServoDraws
from stribeck.identify.servo.drive import LOSS, runs_of, simulation_of, supply_of, temperatures_of
from stribeck.identify.servo.identify import errors_of
from stribeck.identify.servo.objective import Split
from stribeck.identify.servo.result import Errors, FitSettings
from stribeck.identify.servo.verdict import position_misfits
from stribeck.model.estimate import Estimate, estimates_to_json, fixed
from stribeck.model.joint import Drive
from stribeck.model.log import Log
from stribeck.model.parameters import ParameterSet
from stribeck.model.provenance import ModelErrors, Provenance, SearchRecord

SCHEMA = 1
PRIOR_DRAWS = 2000
"""Number of prior draws for the comparison with the posterior."""


def summary_of(drawn: ServoDraws) -> Summary:
    """Marginals of all parameters and σ."""
    return summarise(drawn.posterior.names, drawn.values)


def prior_draws(drawn: ServoDraws, seed: int) -> Any:
    """Draws of parameters and σ from the prior (S, P)."""
    posterior = drawn.posterior
    return posterior.natural(posterior.draw(np.random.default_rng(seed), PRIOR_DRAWS))


def estimates_of(drawn: ServoDraws) -> dict[str, Estimate]:
    """Posterior means with intervals and status, compared with search range and prior; σ included."""
    parameters, names = drawn.posterior.rollout.parameters, drawn.posterior.names
    units = [*(parameters[name].unit for name in names[:-1]), "rad"]
    bounds = {name: (parameters[name].lower, parameters[name].upper) for name in names[:-1]}
    return summary_of(drawn).estimates(units, prior_draws(drawn, 0), bounds)


def drawn_drive(drawn: ServoDraws, split: Split, settings: FitSettings) -> Drive:
    """Posterior means with 95 % intervals and status, and the errors on training and validation runs."""
    rollout, names = drawn.posterior.rollout, drawn.posterior.names[:-1]
    parameters = _within(rollout.parameters, drawn.mean)
    estimates = estimates_of(drawn)

    def errors(logs: tuple[Log, ...]) -> Errors:
        return errors_of(logs, rollout.actuator, rollout.law, parameters.values(), settings)

    train, validation = errors(split.train), errors(split.validation) if split.validation else None
    summary = summary_of(drawn)
    return Drive(
        rollout.actuator,
        rollout.law,
        parameters.values(),
        stated={p.name: estimates[p.name] if p.name in names else fixed(p.value, p.unit) for p in parameters},
        bounds={p.name: (p.lower, p.upper) for p in parameters.free},
        temperatures=temperatures_of(split.train),
        statements=tuple(statements(names, drawn.flat[:, :-1], split.train)),
        verdict=judge(
            Evidence(
                "position",
                position_misfits(split, train, validation),
                {"": {name: estimates[name] for name in names}},
                status=SolverStatus.CONVERGED if summary.converged else SolverStatus.LIMIT,
            )
        ),
        loss=ModelErrors(LOSS, "rad", train.mean, validation.mean if validation else None),
        provenance=Provenance(
            runs_of(split),
            simulation_of(settings),
            SearchRecord(
                method="posterior mean",
                seed=settings.seed,
                outcome="converged" if summary.converged else "budget spent",
                clusters=f"{drawn.posterior.samples.mean():.3g} effective samples per run",
            ),
            supply_voltage=supply_of(split.train),
            versions=versions("numpy", "jax", "blackjax"),
        ),
    )


def _within(parameters: ParameterSet, values: Mapping[str, float]) -> ParameterSet:
    """Set values, widening search bounds where needed, because a prior is not limited by them."""
    return ParameterSet(
        replace(
            p,
            value=values[p.name],
            lower=min(p.lower, values[p.name]),
            upper=max(p.upper, values[p.name]),
        )
        for p in parameters
    )


def as_json(drawn: ServoDraws, logs: tuple[Log, ...], seconds: float) -> dict[str, Any]:
    """The object of ``--json``."""
    summary, posterior = summary_of(drawn), drawn.posterior
    return {
        "schema": SCHEMA,
        "kind": "servo",
        "actuator": posterior.rollout.actuator.name,
        "model": posterior.rollout.law.name,
        "effective_samples_per_run": [float(v) for v in posterior.samples],
        "converged": summary.converged,
        "parameters": summary.json,
        "estimates": estimates_to_json(estimates_of(drawn)),
        "statements": statements(posterior.names[:-1], drawn.flat[:, :-1], logs),
        "wall_seconds": seconds,
    }
