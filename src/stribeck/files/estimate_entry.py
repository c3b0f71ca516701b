"""An estimated parameter in JSON files, also as early versions wrote it."""

from __future__ import annotations

from collections.abc import Mapping

from stribeck.files.schema import Schema
from stribeck.model.estimate import CONFIDENCE, Estimate, Interval, Side, Status

_STATUS: Mapping[bool | None, Status] = {None: "fixed", True: "determined", False: "not determined"}


class ParameterEntry(Schema):
    """One parameter; early files have ``identifiable`` instead of ``status``.

    :param value: the estimate.
    :param unit: its unit.
    :param interval: lower and upper end of its interval.
    :param identifiable: in files of version 0.1: whether the recordings determine the value.
    :param status: whether the recordings determine it.
    :param confidence: probability with which the interval contains the value.
    :param reason: why it has this status.
    :param side: the bound of the search at which it lies.
    """

    value: float
    unit: str
    interval: Interval | None = None
    identifiable: bool | None = None
    status: Status | None = None
    confidence: float = CONFIDENCE
    reason: str = ""
    side: Side | None = None

    @property
    def estimate(self) -> Estimate:
        """Convert to an estimate, deriving the status of early files."""
        status = self.status or _STATUS[self.identifiable]
        return Estimate(self.value, self.unit, status, self.interval, self.confidence, self.reason, self.side)
