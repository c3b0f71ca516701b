r"""Estimated parameters: value, unit, confidence interval, and a status that says what the data determine.

One rule decides the status for all fits. With h the half-width of the interval and the scale s, the larger of the
value's size and :data:`RANGE_SHARE` of its search range (so that values next to zero need not be known infinitely well):

=================== =========================================================================================
fixed               not estimated
at bound            the optimum is a search bound: intervals around it mean nothing
not determined      no interval, or h > :data:`LOOSE` · s, or an interval as wide as before the data
loosely determined  h > :data:`DETERMINED` · s, or an objection such as an equally good optimum elsewhere
determined          all others
=================== =========================================================================================

Why these limits. Friction of one servo differs by a few per cent between recordings (temperature, load, wear), so
an interval of ±5 % is as good as the value will ever be. Beyond ±50 % the order of magnitude is all that is known:
cancelled by the upper end, friction would be driven by up to half of itself. An interval as wide as the search
range or the prior says that the data added nothing, however narrow that range is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

CONFIDENCE = 0.95
"""Level of all intervals."""

DETERMINED = 0.05
"""Largest half-width of the interval of a determined parameter, as a share of its scale."""

LOOSE = 0.5
"""Largest half-width of the interval of a loosely determined parameter, as a share of its scale."""

RANGE_SHARE = 0.05
"""The scale of a parameter is at least this share of its search range."""

AS_WIDE = 0.9
"""From this share of the width before the data on, the data added nothing."""

Interval = tuple[float, float]
Side = Literal["lower", "upper"]
Status = Literal["fixed", "determined", "loosely determined", "not determined", "at bound"]


@dataclass(frozen=True)
class Estimate:
    """One parameter as a fit leaves it. Plain JSON throughout; ``io.schema`` reads it as declared here.

    :param interval: lower and upper end at the level ``confidence``; ``None`` without one.
    :param reason: why the status is not "determined", in words; empty for determined and fixed parameters.
    :param side: the bound that an estimate at a bound sits at.
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
        """Whether the data determine the parameter, be it loosely."""
        return self.status in ("determined", "loosely determined")

    def doubted(self, reason: str) -> Estimate:
        """The estimate as not determined for a reason that its interval does not show."""
        return replace(self, status="not determined", reason=reason)

    def to_json(self) -> dict[str, Any]:
        """Keys and values for JSON; what is empty is left out."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.interval is not None:
            content["interval"] = list(self.interval)
        return {name: item for name, item in content.items() if item not in (None, "") or name == "unit"}


def estimates_to_json(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, Any]]:
    """The block ``estimates`` of JSON files and of ``--json``."""
    return {name: estimate.to_json() for name, estimate in estimates.items()}


def from_json(content: Mapping[str, Any]) -> Estimate:
    """An estimate from what :meth:`Estimate.to_json` wrote, already checked by the reader of the file."""
    interval = content.get("interval")
    return Estimate(**{**content, "interval": None if interval is None else (interval[0], interval[1])})


def fixed(value: float, unit: str) -> Estimate:
    """A parameter that was not estimated."""
    return Estimate(value, unit, "fixed")


def at_bound(value: float, unit: str, side: Side, bounds: Interval | None = None) -> Estimate:
    """A parameter whose optimum is a search bound."""
    bound = value if bounds is None else bounds[0 if side == "lower" else 1]
    reason = f"at its {side} search bound {_with_unit(f'{bound:g}', unit)}"
    return Estimate(value, unit, "at bound", reason=reason, side=side)


def estimate_of(
    value: float,
    unit: str,
    interval: Interval | None,
    *,
    bounds: Interval | None = None,
    prior: Interval | None = None,
    confidence: float = CONFIDENCE,
    reason: str = "no interval: the data leave it open",
) -> Estimate:
    """An estimate with the status that its interval gives it; see the module for the rule.

    :param bounds: search range, if there is one.
    :param prior: interval of the same confidence before the data, if there is one.
    :param reason: why there is no interval, for estimates without one.
    """
    if interval is None:
        return Estimate(value, unit, "not determined", None, confidence, reason)
    lower, upper = (float(end) for end in interval)
    half = 0.5 * (upper - lower)
    scale = scale_of(value, bounds)
    status: Status
    if bounds is not None:
        lower, upper = max(lower, bounds[0]), min(upper, bounds[1])
    between = f"between {lower:.3g} and {_with_unit(f'{upper:.3g}', unit)}"
    if bounds is not None and upper - lower >= AS_WIDE * confidence * (bounds[1] - bounds[0]):
        status, why = "not determined", f"could be anything within its search bounds, {between}"
    elif prior is not None and upper - lower >= AS_WIDE * (prior[1] - prior[0]):
        status, why = "not determined", f"as uncertain as before the data, {between}"
    elif not half <= LOOSE * scale:
        status, why = "not determined", between
    elif half > DETERMINED * scale:
        status, why = "loosely determined", f"loosely, {between}"
    else:
        status, why = "determined", ""
    return Estimate(value, unit, status, (float(interval[0]), float(interval[1])), confidence, why)


def scale_of(value: float, bounds: Interval | None = None) -> float:
    """What half-widths of intervals are compared with, in the parameter's unit.

    :param bounds: search range, if there is one.
    """
    return max(abs(value), 0.0 if bounds is None else RANGE_SHARE * (bounds[1] - bounds[0]))


def disagreements(
    bounds: Mapping[str, Interval | None], values: Sequence[Mapping[str, float]]
) -> dict[str, Interval]:
    """Lowest and highest value of the parameters about which equally good fits disagree.

    They disagree if half their spread exceeds the half-width of a determined parameter's interval.

    :param bounds: search range of each parameter to look at, ``None`` where it is not known.
    :param values: of each fit by name, the best fit first.
    """
    spreads = {}
    for name, bound in bounds.items():
        of_fits = [fit[name] for fit in values]
        lowest, highest = min(of_fits), max(of_fits)
        if 0.5 * (highest - lowest) > DETERMINED * scale_of(of_fits[0], bound):
            spreads[name] = (lowest, highest)
    return spreads


def _with_unit(number: str, unit: str) -> str:
    return number if unit in ("1", "") else f"{number} {unit}"
