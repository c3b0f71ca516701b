r"""Estimated parameters: value, unit, confidence interval, and a status that says whether the data determine them.

One rule decides the status for all fits. It compares the half-width h of the interval with a scale s, the magnitude of
the value. Only a parameter that may have either sign, and is nominally zero, needs a scale that is not its value: its s is
at least :data:`RANGE_SHARE` of its search range, or what the caller states.

=================== =========================================================================================
fixed               not estimated
at bound            the optimum is held at a search bound (:func:`side_of`): intervals around it mean nothing
not determined      no interval, or h > :data:`LOOSE` · s, or an interval as wide as before the data
loosely determined  h > :data:`DETERMINED` · s
determined          all others
=================== =========================================================================================

Reasons for these limits: friction of one servo differs by a few per cent between recordings (temperature, load, wear),
so ±5 % is the best useful precision. Beyond ±50 % only the order of magnitude is known, and friction compensation with
the upper end of the interval would overcompensate by up to half of the friction. An interval as wide as the search
range or the prior means that the data added nothing, however narrow that range is. Intervals of parameters that
cannot be negative (whose search range starts at 0) end at 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

CONFIDENCE = 0.95
"""Level of all intervals."""

DETERMINED = 0.05
"""Largest half-width of the interval of a determined parameter, relative to its scale."""

LOOSE = 0.5
"""Largest half-width of the interval of a loosely determined parameter, relative to its scale."""

RANGE_SHARE = 0.05
"""The scale of a parameter that may have either sign is at least this share of its search range."""

AT_BOUND = 1e-9
"""A parameter closer to a search bound than this share of its range is at the bound: searches end there up to rounding."""

AS_WIDE = 0.9
"""From this ratio of interval widths after and before the data on, the data added nothing."""

Interval = tuple[float, float]
Side = Literal["lower", "upper"]
Status = Literal["fixed", "determined", "loosely determined", "not determined", "at bound"]


@dataclass(frozen=True)
class Estimate:
    """Estimate of one parameter. Holds plain JSON types only; ``files.schema`` reads it as declared here.

    :param value: in its unit.
    :param unit: SI unit, empty without one.
    :param status: whether the data determine it.
    :param confidence: level of the interval.
    :param interval: lower and upper end at the level ``confidence``; ``None`` without one.
    :param reason: why the status is not "determined", in words; empty for determined and fixed parameters.
    :param side: the bound at which an estimate "at bound" lies.
    """

    value: float
    unit: str
    status: Status
    interval: Interval | None = None
    confidence: float = CONFIDENCE
    reason: str = ""
    side: Side | None = None

    @property
    def known(self) -> bool:
        """Whether the data determine the parameter, at least loosely."""
        return self.status in ("determined", "loosely determined")

    def undetermined(self, reason: str) -> Estimate:
        """The estimate as not determined, for a reason that its interval does not show."""
        return replace(self, status="not determined", reason=reason)

    def to_json(self) -> dict[str, Any]:
        """Keys and values for JSON, without empty ones."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.interval is not None:
            content["interval"] = list(self.interval)
        return {name: item for name, item in content.items() if item not in (None, "") or name == "unit"}


def estimates_to_json(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, Any]]:
    """The block ``estimates`` of JSON files and of ``--json``."""
    return {name: estimate.to_json() for name, estimate in estimates.items()}


def fixed(value: float, unit: str) -> Estimate:
    """A parameter that was not estimated."""
    return Estimate(value, unit, "fixed")


def at_bound(value: float, unit: str, side: Side, bounds: Interval | None = None) -> Estimate:
    """A parameter whose optimum is a search bound."""
    bound = value if bounds is None else bounds[0 if side == "lower" else 1]
    reason = f"at its {side} search bound {_with_unit(f'{bound:g}', unit)}"
    return Estimate(value, unit, "at bound", reason=reason, side=side)


def side_of(value: float, bounds: Interval) -> Side | None:
    """The search bound at which a value is, by :data:`AT_BOUND`; an infinite range has a tolerance of zero."""
    lower, upper = bounds
    near = AT_BOUND * (upper - lower) if math.isfinite(upper - lower) else 0.0
    return "lower" if value <= lower + near else "upper" if value >= upper - near else None


def estimate_of(
    value: float,
    unit: str,
    interval: Interval | None,
    *,
    bounds: Interval | None = None,
    prior: Interval | None = None,
    scale: float = 0.0,
    confidence: float = CONFIDENCE,
    reason: str = "no interval: the data do not determine it",
    held: bool = True,
) -> Estimate:
    """An estimate with the status that follows from its value and interval by the rule of this module.

    :param bounds: search range, if there is one; a value at one of them has no interval, if it is held there.
    :param prior: interval of the same confidence before the data, if there is one.
    :param scale: the least scale s, of parameters that are nominally zero [unit of the value].
    :param reason: why there is no interval, for estimates without one.
    :param held: whether a value at a search bound is held there by it. Without the bound, the optimum of a value that is not
        would be beyond it by no more than chance explains: its interval means what those of others do.
    """
    if bounds is not None and held and (side := side_of(value, bounds)) is not None:
        return at_bound(value, unit, side, bounds)
    if interval is None:
        return Estimate(value, unit, "not determined", None, confidence, reason)
    lower, upper = (float(end) for end in interval)
    half, scale = 0.5 * (upper - lower), max(scale_of(value, bounds), scale)
    ends = (max(lower, 0.0), upper) if bounds is not None and bounds[0] >= 0.0 else (lower, upper)
    status: Status
    if bounds is not None:
        lower, upper = max(lower, bounds[0]), min(upper, bounds[1])
    between = f"between {ends[0]:.3g} and {_with_unit(f'{ends[1]:.3g}', unit)}"
    if bounds is not None and upper - lower >= AS_WIDE * confidence * (bounds[1] - bounds[0]):
        within = f"between {lower:.3g} and {_with_unit(f'{upper:.3g}', unit)}"
        status, why = "not determined", f"may have any value within its search bounds, {within}"
    elif prior is not None and upper - lower >= AS_WIDE * (prior[1] - prior[0]):
        status, why = "not determined", f"no better known than before the data, {between}"
    elif not half <= LOOSE * scale:
        status, why = "not determined", between
    elif half > DETERMINED * scale:
        status, why = "loosely determined", f"loosely, {between}"
    else:
        status, why = "determined", ""
    return Estimate(value, unit, status, ends, confidence, why)


def scale_of(value: float, bounds: Interval | None = None) -> float:
    """Scale s, in the parameter's unit, relative to which half-widths are judged.

    :param bounds: search range, if there is one; it counts only if the parameter may have either sign.
    """
    width = bounds[1] - bounds[0] if bounds is not None and bounds[0] < 0.0 < bounds[1] else 0.0
    return max(abs(value), RANGE_SHARE * width if math.isfinite(width) else 0.0)


def disagreements(
    bounds: Mapping[str, Interval | None], values: Sequence[Mapping[str, float]], share: float = DETERMINED
) -> dict[str, Interval]:
    """Lowest and highest value of the parameters on which equally good fits disagree.

    They disagree if half their spread exceeds ``share`` of the scale, by default the largest half-width of a determined parameter.

    :param bounds: search range of each parameter to compare, ``None`` if unknown.
    :param values: values by name of each fit, the best fit first.
    """
    spreads = {}
    for name, bound in bounds.items():
        of_fits = [fit[name] for fit in values]
        lowest, highest = min(of_fits), max(of_fits)
        if 0.5 * (highest - lowest) > share * scale_of(of_fits[0], bound):
            spreads[name] = (lowest, highest)
    return spreads


def _with_unit(number: str, unit: str) -> str:
    return number if unit in ("1", "") else f"{number} {unit}"
