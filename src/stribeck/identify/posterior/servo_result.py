"""The posterior of a servo as a parameter file and as the object of ``--json``, and what it leaves undetermined: its ridges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stribeck.files.versions import versions
from stribeck.identify.common.judging import Evidence, judge
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.posterior.diagnostics import Summary, summarise
from stribeck.identify.posterior.servo import ServoDraws
from stribeck.identify.servo.drive import LOSS, runs_of, simulation_of, supply_of, temperatures_of
from stribeck.identify.servo.identify import errors_of
from stribeck.identify.servo.objective import Split
from stribeck.identify.servo.result import Errors, FitSettings
from stribeck.identify.servo.uncertainty import one_load
from stribeck.identify.servo.verdict import position_misfits
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate, estimates_to_json, fixed
from stribeck.model.joint import Drive
from stribeck.model.log import Log
from stribeck.model.parameters import ParameterSet
from stribeck.model.provenance import ModelErrors, Provenance, SearchRecord
from stribeck.model.terms import CONSTANT_PARAMETERS, LOAD_PARAMETERS

STRONG = 0.6
"""Smallest absolute correlation of a ridge."""


@dataclass(frozen=True)
class Ridge:
    """Two parameters that the data determine only in combination.

    :param correlation: of their draws.
    """

    first: str
    second: str
    correlation: float

    @property
    def words(self) -> str:
        """Description in one sentence."""
        if self.correlation < 0.0:
            how = f"an increase of one is compensated by a decrease of the other (correlation {self.correlation:.2f}), so that only a sum of them is known"
        else:
            how = (
                "an increase of one is compensated by an increase of the other (correlation "
                f"{self.correlation:.2f}), so that only a difference of them is known"
            )
        return f"{self.first} and {self.second} cannot be distinguished: {how}."


def ridges(names: Sequence[str], draws: Array) -> list[Ridge]:
    """Pairs of parameters with strongly correlated draws (S, P), in decreasing order."""
    correlation = np.atleast_2d(np.corrcoef(draws.T))
    pairs = [
        Ridge(names[i], names[j], float(correlation[i, j]))
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if abs(correlation[i, j]) > STRONG
    ]
    return sorted(pairs, key=lambda ridge: -abs(ridge.correlation))


def pairs_to_show(names: Sequence[str], draws: Array, logs: Sequence[Log]) -> list[tuple[str, str]]:
    """Pairs to plot: ridges, and constant against load-dependent friction if all runs have the same load."""
    pairs = [(ridge.first, ridge.second) for ridge in ridges(names, draws)]
    pair = _constant_and_load(names)
    if one_load(logs) and pair is not None and pair not in pairs:
        pairs.insert(0, pair)
    return pairs[:6]


def statements(names: Sequence[str], draws: Array, logs: Sequence[Log]) -> list[str]:
    """Sentences that describe what the draws (S, P) leave undetermined."""
    sentences = [ridge.words for ridge in ridges(names, draws)]
    if one_load(logs) and not set(LOAD_PARAMETERS).isdisjoint(names):
        sentences.append(
            f"All runs have the same load ({logs[0].setup.load:.4g} kg m): the division of friction into constant and load-dependent parts depends on the "
            f"prior as much as on the data{_division(names, draws)}. Record a second mass or rod length."
        )
    return sentences


def _division(names: Sequence[str], draws: Array) -> str:
    """Sentence on the correlation of constant and load-dependent friction, if the law has both."""
    pair = _constant_and_load(names)
    if pair is None:
        return ""
    i, j = (names.index(name) for name in pair)
    plain, held = np.atleast_2d(np.corrcoef(draws.T))[i, j], held_correlation(draws)[i, j]
    return f" ({pair[0]} and {pair[1]}: correlation {plain:.2f}, partial correlation {held:.2f})"


def held_correlation(draws: Array) -> Array:
    r"""Partial correlations (P, P), :math:`-\Lambda_{ij}/\sqrt{\Lambda_{ii}\Lambda_{jj}}` with the inverse covariance Λ of
    draws (S, P).
    """
    inverse = np.linalg.inv(np.corrcoef(draws.T))
    size = np.sqrt(np.diag(inverse))
    correlation = -inverse / np.outer(size, size)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)


def _constant_and_load(names: Sequence[str]) -> tuple[str, str] | None:
    constant, load = (
        [name for name in names if name in terms] for terms in (CONSTANT_PARAMETERS, LOAD_PARAMETERS)
    )
    return (constant[0], load[0]) if constant and load else None


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
            p, value=values[p.name], lower=min(p.lower, values[p.name]), upper=max(p.upper, values[p.name])
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
