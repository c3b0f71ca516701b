"""The result of a fit as a drive, for its file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stribeck.files.versions import versions
from stribeck.identify.servo.objective import Split
from stribeck.identify.servo.result import NO_UNCERTAINTY, FitResult, FitSettings
from stribeck.identify.servo.verdict import judge_result
from stribeck.model.joint import Drive
from stribeck.model.log import Log, TemperatureRange
from stribeck.model.provenance import ModelErrors, Provenance, Runs, SearchRecord, SimulationSettings, Spread
from stribeck.recordings.sources import digest_of, fingerprint

LOSS = "mean absolute position error, mean over runs"
"""What fits minimise, smoothed."""

MOST_IMPROVEMENTS = 200
"""Maximum number of improvements in the search history of a file."""


def fitted_drive(result: FitResult) -> Drive:
    """The identified servo, with its verdict and provenance."""
    uncertainty = result.uncertainty or NO_UNCERTAINTY
    settings, train, validation = result.settings, result.train, result.validation
    search = SearchRecord(
        settings.method,
        settings.seed,
        result.search.evaluations,
        result.search.outcome,
        result.search.status,
        uncertainty.clusters,
        result.search.minima,
        _thinned(result.search.history),
        {"trials": settings.trials, "prior_strength": settings.prior_strength},
    )
    return Drive(
        result.actuator,
        result.law,
        result.parameters.values(),
        stated=result.estimates,
        bounds={one.name: (one.lower, one.upper) for one in result.parameters.free},
        correlation=uncertainty.correlation,
        prediction=uncertainty.prediction,
        temperatures=temperatures_of(result.split.train),
        statements=uncertainty.statements,
        verdict=judge_result(result),
        loss=ModelErrors(LOSS, "rad", train.mean, validation.mean if validation else None),
        provenance=Provenance(
            runs_of(result.split),
            simulation_of(settings),
            search,
            result.selection,
            supply_of(result.split.train),
            versions("numpy", "jax", "cmaes", "optuna"),
        ),
    )


def runs_of(split: Split) -> Runs:
    """The recordings, with their digests."""
    logs = (*split.train, *split.validation)
    return Runs(
        split.rule,
        tuple(log.name for log in split.train),
        tuple(log.name for log in split.validation),
        {log.name: digest_of(log) for log in logs},
        fingerprint(logs),
    )


def simulation_of(settings: FitSettings) -> SimulationSettings:
    """How the fit simulated."""
    return SimulationSettings(settings.dt, settings.integrator, settings.reset_period, settings.dtype)


def temperatures_of(logs: Sequence[Log]) -> Spread | None:
    """Temperature of the servo [°C], if it is recorded."""
    measured = TemperatureRange.of(logs)
    return None if measured is None else Spread(**measured._asdict())


def supply_of(logs: Sequence[Log]) -> Spread | None:
    """Supply voltage [V]: mean of the nominal ones, extremes of the measured ones."""
    if not logs:
        return None
    measured = [log.supply_voltage.value for log in logs if log.supply_voltage is not None]
    extremes = [(float(np.min(one)), float(np.max(one))) for one in measured if len(one)]
    return Spread(
        nominal=float(np.mean([log.setup.supply_voltage for log in logs])),
        min=min((low for low, _ in extremes), default=None),
        max=max((high for _, high in extremes), default=None),
    )


def _thinned(history: Sequence[tuple[int, float]]) -> tuple[tuple[float, float], ...]:
    """The search history without the improvements that follow most closely on another; the last one stays."""
    if len(history) <= MOST_IMPROVEMENTS:
        return tuple(history)
    evaluations = np.log([max(count, 1) for count, _ in history])
    wanted = np.linspace(evaluations[0], evaluations[-1], MOST_IMPROVEMENTS)
    kept = np.unique(np.searchsorted(evaluations, wanted - 1e-9)).clip(max=len(history) - 1)
    return tuple(history[k] for k in sorted({*kept.tolist(), len(history) - 1}))
