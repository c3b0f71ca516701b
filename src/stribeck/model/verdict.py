"""Verdict on a fit: whether its result may be used, and the reasons against it.

A reason is ``doubtful`` if the result may be right but should be examined first, and ``unusable`` if it cannot be right.
The verdict is that of the gravest reason, and ``usable`` without any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

CARRIES_OVER, FAILS = 1.25, 2.0
"""Ratio of held-out to fitted error up to which a law generalises, and the ratio from which it fails."""


Use = Literal["usable", "doubtful", "unusable"]

LARGEST_ERROR = 0.5
"""Largest relative error of a model that may be used."""

ZERO_WIDTH = 1e-9
"""Intervals narrower than this share of the value count as zero ..."""

EXACT = 1e-6
"""... unless the relative error is below this, as in simulations without noise."""


@dataclass(frozen=True)
class Reason:
    """A reason against a result.

    :param key: short name for programs.
    :param use: how far the result may be used in spite of it.
    :param text: what was found, and what to do.
    """

    key: str
    use: Use
    text: str


@dataclass(frozen=True)
class Verdict:
    """Whether a result may be used."""

    reasons: tuple[Reason, ...] = field(default=())

    @property
    def use(self) -> Use:
        """The verdict of the gravest reason."""
        uses = {reason.use for reason in self.reasons}
        return "unusable" if "unusable" in uses else "doubtful" if "doubtful" in uses else "usable"

    def to_json(self) -> dict[str, Any]:
        """The keys ``verdict`` and ``reasons`` of ``--json``."""
        return {"verdict": self.use, "reasons": [vars(reason) for reason in self.reasons]}

    def lines(self) -> list[str]:
        """The verdict in words, one line for each reason."""
        return [f"verdict: {self.use}", *(f"  {reason.use}: {reason.text}" for reason in self.reasons)]


def error_reason(error: float, of: str) -> list[Reason]:
    """A reason if the relative error exceeds :data:`LARGEST_ERROR`, or is not a number.

    :param of: the quantity and the runs, as in ``torque, validation runs``.
    """
    if error <= LARGEST_ERROR:
        return []
    text = f"relative error of {of}: {100.0 * error:.3g} %, more than {100.0 * LARGEST_ERROR:g} %: the model does not hold"
    return [Reason("large_error", "unusable", text)]


def interval_reason(values: Sequence[float], sigma: Sequence[float], error: float) -> list[Reason]:
    """A reason if all standard deviations are zero although residuals are not.

    :param values, sigma: estimates and their standard deviations.
    :param error: relative error of the fit.
    """
    sizes = np.abs(np.asarray(values, dtype=np.float64))
    narrow = np.asarray(sigma, dtype=np.float64) <= ZERO_WIDTH * np.maximum(sizes, 1e-12)
    if len(sizes) == 0 or not narrow.all() or error < EXACT:
        return []
    text = "all intervals have the width zero although residuals remain: they say nothing about the precision"
    return [Reason("zero_intervals", "unusable", text)]
