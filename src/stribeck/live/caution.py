"""Cautious cancellation of friction: its torques at a low quantile of their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import NormalDist

from stribeck.errors import ParameterFileError
from stribeck.model.joint import Drive
from stribeck.model.law import friction_budget
from stribeck.model.terms import COULOMB_PARAMETERS, PAIRS, with_sign

LEAST_LEFT = 0.25
"""Share of the identified friction below which caution is worth a remark [1]."""

SPEED = 0.5
"""Speed at which that share is taken [rad/s or m/s]."""


def share_left(content: Drive, cautious: Mapping[str, float]) -> float:
    """Ratio of the friction of cautious values to the identified one, unloaded, at :data:`SPEED` [1]; 1 for a law without friction there."""
    whole, left = (
        float(friction_budget(content.law, values, 0.0, 0.0, SPEED, 0.0)[0])
        for values in (content.values, cautious)
    )
    return left / whole if whole > 0.0 else 1.0


def cautious_values(content: Drive, quantile: float) -> dict[str, float]:
    """Values for cautious cancellation of friction: its torques at a low quantile of their intervals.

    :param quantile: 0.5 keeps the values. Lower quantiles reduce all friction torques and load terms, treated as
        normally distributed with the file's intervals; values without an interval stay. All terms are lowered at once and their
        correlation is ignored, which is more cautious than a quantile of their sum (:func:`share_left`). A term without fixed sign (``torque_offset``) stays. A negative
        Stribeck term shrinks with its Coulomb term, and the load terms of motor and external torque, whose
        difference counts, shrink by the same factor. Friction thus never increases or becomes negative at any velocity
        and load.
    :raises ParameterFileError: for a file without intervals.
    """
    values = dict(content.values)
    if quantile == 0.5:
        return values
    if not content.intervals:
        raise ParameterFileError(
            "friction_quantile below 0.5 needs a parameter file with intervals: identify again, or leave it at 0.5"
        )
    normal = NormalDist()
    for name, (lower, upper) in content.intervals.items():
        level = 0.5 * (1.0 + content.stated[name].confidence)
        share = normal.inv_cdf(quantile) / (2.0 * normal.inv_cdf(level))
        torque = name in with_sign("nonnegative", "static")
        if name in values and torque and values[name] > 0.0:
            width = max(upper - lower, 2.0 * (upper - values[name]))  # intervals of magnitudes end at 0
            values[name] = max(values[name] + share * width, 0.0)
    for pair in PAIRS:
        _shrink_alike(values, content.values, pair)
    _keep_dissipative(values, content.values)
    return values


def _share_left(values: Mapping[str, float], whole: Mapping[str, float], names: Iterable[str]) -> float:
    return min((values[name] / whole[name] for name in names if whole.get(name, 0.0) > 0.0), default=1.0)


def _shrink_alike(values: dict[str, float], whole: Mapping[str, float], names: Iterable[str]) -> None:
    """Scale coefficients by the smallest ratio of new to original value among them."""
    share = min(_share_left(values, whole, names), 1.0)
    for name in names:
        if name in values and share < 1.0:
            values[name] = share * whole[name]


def _keep_dissipative(values: dict[str, float], whole: Mapping[str, float]) -> None:
    r"""Shrink terms that may be negative together with the Coulomb terms that they are subtracted from.

    A Stribeck term stays if it is positive. If it is negative, :math:`0 \le K_c' + sK_c^{s\prime} \le K_c + sK_c^s` holds for all weights s in [0, 1] if it holds at both ends.
    """
    bases = [name for name in COULOMB_PARAMETERS if name in values]
    share = min(_share_left(values, whole, bases), 1.0)
    for fading in with_sign("static"):
        if values.get(fading, 0.0) < 0.0 and share < 1.0:
            values[fading] = share * whole[fading]
            for name in bases:
                values[name] = max(min(values[name], whole[name] + (1.0 - share) * whole[fading]), 0.0)
