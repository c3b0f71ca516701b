"""Equally good minima, and the parameters on which they disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stribeck.identify.servo.incumbent import Incumbent
from stribeck.identify.servo.objective import EQUALLY_GOOD, equivalent_error
from stribeck.identify.servo.uncertainty import Uncertainty
from stribeck.model.arrays import Array
from stribeck.model.estimate import disagreements
from stribeck.model.parameters import ParameterSet
from stribeck.model.provenance import Minimum

DISTINCT = 1e-3
"""Points of the unit cube closer than this along every axis count as the same."""

MOST_MINIMA = 12
"""Largest number of minima kept."""


def equally_good(parameters: ParameterSet, best: Array, incumbent: Incumbent) -> tuple[Minimum, ...]:
    """The best point (n,) of the unit cube, then the other minima that fit as well, the better first.

    Searches that ran out of evaluations have no minima; then the result is the best point alone.
    """
    kept = [best]
    losses = [incumbent.loss]
    for loss, point in sorted(incumbent.minima, key=lambda found: found[0]):
        if loss > incumbent.loss * (1.0 + EQUALLY_GOOD) or len(kept) == MOST_MINIMA:
            break
        if np.min(np.max(np.abs(np.stack(kept) - point), axis=1)) > DISTINCT:
            kept.append(point)
            losses.append(loss)
    return tuple(
        Minimum(
            error=float(equivalent_error(loss)),
            values=dict(zip(parameters.free_names, parameters.from_unit(point).tolist(), strict=True)),
        )
        for loss, point in zip(losses, kept, strict=True)
    )


def with_minima(uncertainty: Uncertainty, parameters: ParameterSet, minima: Sequence[Minimum]) -> Uncertainty:
    """The uncertainty, with all parameters on which equally good minima disagree marked as doubtful.

    An interval around one minimum does not cover another one elsewhere.
    """
    bounds = {parameter.name: (parameter.lower, parameter.upper) for parameter in parameters.free}
    reasons = {
        name: f"minima with the same error lie between {lowest:.3g} and {highest:.3g} {parameters[name].unit}"
        for name, (lowest, highest) in disagreements(bounds, [minimum.values for minimum in minima]).items()
        if uncertainty.estimates[name].known
    }
    if not reasons:
        return uncertainty
    doubted = {name: uncertainty.estimates[name].doubted(reason) for name, reason in reasons.items()}
    listed = "; ".join(f"{name} ({reason})" for name, reason in reasons.items())
    return replace(
        uncertainty,
        estimates={**uncertainty.estimates, **doubted},
        statements=(*uncertainty.statements, f"Not determined, although the interval is narrow: {listed}."),
    )
