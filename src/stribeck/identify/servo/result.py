"""The result of a fit, and its export to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.servo.objective import Split
from stribeck.identify.servo.uncertainty import Uncertainty
from stribeck.model.actuator import Actuator
from stribeck.model.estimate import CONFIDENCE, Estimate, estimates_to_json, fixed
from stribeck.model.law import FrictionLaw
from stribeck.model.log import TemperatureRange
from stribeck.model.parameters import Parameter, ParameterSet
from stribeck.model.provenance import LawChoice, Minimum
from stribeck.model.step import Integrator

SCHEMA = 1

Outcome = Literal["converged", "budget spent", "interrupted", "running"]


@dataclass(frozen=True)
class StudySettings:
    """Where Optuna stores the trials of a search.

    :param url: of the storage; ``None``: in memory.
    :param resume: continue the existing study.
    :param join: join the study if it exists, else create it.
    """

    url: str | None = None
    resume: bool = False
    join: bool = False


@dataclass(frozen=True)
class FitSettings:
    """How a law is fitted.

    :param method: see :data:`stribeck.identify.servo.METHODS`.
    :param trials: evaluations allowed; a derivative column counts as one.
    :param seed: seed of all random numbers.
    :param workers: number of processes that search in parallel.
    :param study: where the trials are stored.
    :param batch: trials that a worker evaluates and adds to a study at a time.
    :param dt: time step [s].
    :param refine: reduce the time step after the search until its error is small beside the intervals.
    :param reset_period: interval at which simulations are reset to the measurement [s].
    :param dtype: floating-point type of the compiled simulations.
    :param integrator: see :mod:`stribeck.model.step`.
    :param prior_strength: how strongly the prior counts in the loss, 1 for its statistical weight (:mod:`stribeck.identify.servo.prior`).
    """

    method: str = "hybrid"
    trials: int = 60_000
    seed: int = 0
    workers: int = 1
    study: StudySettings = field(default_factory=StudySettings)
    batch: int = 64
    dt: float = 0.005
    reset_period: float | None = None
    dtype: Literal["float32", "float64"] = "float32"
    refine: bool = True
    integrator: Integrator = "exponential"
    prior_strength: float = 1.0


@dataclass(frozen=True)
class Errors:
    """Mean absolute position errors in float64 [rad], by run."""

    by_run: Mapping[str, float]

    @property
    def mean(self) -> float:
        """Mean of the runs' errors [rad]."""
        return float(np.mean(list(self.by_run.values())))


@dataclass(frozen=True)
class FitSearch:
    """How a search went.

    :param evaluations: of the loss; a derivative column counts as one.
    :param compile_seconds: time that compilation took.
    :param search_seconds: search time without compilation.
    :param wall_seconds: wall time until the result.
    :param minima: the best point and the minima that fit as well.
    :param descent: status of the last descent by derivatives, if there was one.
    :param history: evaluations, and the constant error that has the loss [rad], at every improvement.
    """

    outcome: Outcome
    evaluations: int
    compile_seconds: float = 0.0
    search_seconds: float = 0.0
    wall_seconds: float = 0.0
    minima: tuple[Minimum, ...] = ()
    history: tuple[tuple[int, float], ...] = ()
    descent: SolverStatus | None = None

    @property
    def status(self) -> SolverStatus:
        """Solver status of the last descent by derivatives, or of the search if there was none."""
        if self.outcome in ("interrupted", "running") or (
            self.descent is None and self.outcome != "converged"
        ):
            return SolverStatus.LIMIT
        return self.descent or SolverStatus.CONVERGED


@dataclass(frozen=True)
class FitResult:
    """A law identified from recordings.

    :param parameters: all parameters with units, bounds and identified values.
    :param train: errors on the runs that were fitted.
    :param validation: errors on the runs that were held out, if any were.
    :param uncertainty: intervals, and statements about what the data do not determine; none for an interrupted fit.
    :param search: how it was searched for.
    :param selection: how the law was chosen and its error under new conditions, where laws were compared.
    """

    actuator: Actuator
    law: FrictionLaw
    parameters: ParameterSet
    settings: FitSettings
    split: Split
    search: FitSearch
    train: Errors
    validation: Errors | None
    uncertainty: Uncertainty | None = None
    selection: LawChoice | None = None

    @property
    def estimates(self) -> dict[str, Estimate]:
        """All parameters, including fixed ones."""
        unfinished = "its uncertainty is unknown: the fit was not finished"
        estimated = self.uncertainty.estimates if self.uncertainty is not None else {}
        measured = TemperatureRange.of(self.split.train)

        def of(p: Parameter) -> Estimate:
            if p.free:
                return estimated.get(p.name, Estimate(p.value, p.unit, "not determined", reason=unfinished))
            if p.name.endswith("_per_kelvin") and p.value == 0.0 and measured and not measured.varies:
                return Estimate(p.value, p.unit, "not determined", reason=measured.words)
            return fixed(p.value, p.unit)

        return {p.name: of(p) for p in self.parameters}

    def summary(self) -> dict[str, Any]:
        """The object printed by ``--json``; errors in rad, times in s."""
        uncertainty = self.uncertainty or NO_UNCERTAINTY
        return {
            "schema": SCHEMA,
            "model": self.law.name,
            "actuator": self.actuator.name,
            "method": self.settings.method,
            "seed": self.settings.seed,
            "evaluations": self.search.evaluations,
            "compile_seconds": self.search.compile_seconds,
            "search_seconds": self.search.search_seconds,
            "wall_seconds": self.search.wall_seconds,
            "outcome": self.search.outcome,
            "status": self.search.status,
            "train_mae": self.train.mean,
            "validation_mae": None if self.validation is None else self.validation.mean,
            "parameters": self.parameters.values(),
            "estimates": estimates_to_json(self.estimates),
            "intervals": {name: list(pair) for name, pair in uncertainty.intervals.items()},
            "confidence": CONFIDENCE,
            "dt": self.settings.dt,
            "integrator": self.settings.integrator,
            "step_errors": dict(uncertainty.step_errors),
            "not_determined": uncertainty.not_determined,
            "at_bounds": sorted(uncertainty.at_bounds),
            "statements": list(uncertainty.statements),
            "prior_strength": self.settings.prior_strength,
            "effects": sorted(self.actuator.active_effects),
            **(self.selection.to_json() if self.selection else {}),
        }


NO_UNCERTAINTY = Uncertainty(
    {}, ("The fit was not finished: the uncertainty of the values is unknown.",), "none"
)
