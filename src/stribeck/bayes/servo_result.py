"""A servo's posterior as a parameter file and as an object for scripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stribeck.bayes.diagnostics import Summary, summarise
from stribeck.bayes.ridges import statements
from stribeck.bayes.servo import ServoDraws
from stribeck.core.log import Log
from stribeck.core.parameters import ParameterSet
from stribeck.estimates.estimate import estimate_of
from stribeck.fit.identify import errors_of
from stribeck.fit.objective import Split
from stribeck.fit.result import Errors, FitResult, FitSettings
from stribeck.fit.uncertainty import Uncertainty
from stribeck.io.parameter_file import ParameterFile

SCHEMA = 1


def summary_of(found: ServoDraws) -> Summary:
    """Marginals of all parameters and σ."""
    return summarise(found.posterior.names, found.values)


def parameter_file(found: ServoDraws, split: Split, settings: FitSettings) -> ParameterFile:
    """Posterior means, with 95 % intervals and what is not known; errors of the runs learnt from and of those held out."""
    rollout, summary = found.posterior.rollout, summary_of(found)
    parameters = _within(rollout.parameters, found.mean)
    names = found.posterior.names[:-1]
    searched = rollout.parameters
    estimates = {
        name: estimate_of(
            found.mean[name],
            searched[name].unit,
            (float(a), float(b)),
            bounds=(searched[name].lower, searched[name].upper),
        )
        for name, (a, b) in zip(names, summary.interval, strict=False)
    }
    counted = found.posterior.samples.mean()
    uncertainty = Uncertainty(
        estimates,
        tuple(statements(names, found.flat[:, :-1], split.train)),
        f"{counted:.3g} effective samples per run",
    )
    values = parameters.values()

    def missed(logs: tuple[Log, ...]) -> Errors:
        return errors_of(logs, rollout.actuator, rollout.law, values, settings.dt)

    result = FitResult(
        actuator=rollout.actuator,
        law=rollout.law,
        parameters=parameters,
        settings=replace(settings, method="posterior mean"),
        split=split,
        outcome="converged" if summary.converged else "budget spent",
        train=missed(split.train),
        validation=missed(split.validation) if split.validation else None,
        uncertainty=uncertainty,
        evaluations=0,
        compile_seconds=0.0,
        search_seconds=0.0,
        wall_seconds=0.0,
    )
    return result.parameter_file()


def _within(parameters: ParameterSet, values: Mapping[str, float]) -> ParameterSet:
    """Parameters with these values; a prior is not bound by search bounds, which widen as far as they must."""
    return ParameterSet(
        replace(
            p,
            value=values[p.name],
            lower=min(p.lower, values[p.name]),
            upper=max(p.upper, values[p.name]),
        )
        for p in parameters
    )


def as_json(found: ServoDraws, logs: tuple[Log, ...], seconds: float) -> dict[str, Any]:
    """The object of ``--json``."""
    summary = summary_of(found)
    names = found.posterior.names[:-1]
    return {
        "schema": SCHEMA,
        "kind": "servo",
        "actuator": found.posterior.rollout.actuator.name,
        "model": found.posterior.rollout.law.name,
        "effective_samples_per_run": [float(v) for v in found.posterior.samples],
        "converged": summary.converged,
        "parameters": summary.json,
        "statements": statements(names, found.flat[:, :-1], logs),
        "wall_seconds": seconds,
    }
