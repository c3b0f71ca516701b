"""Telemetry for the compensation, shared by the node and bag replay."""

from __future__ import annotations

import math
from collections.abc import Mapping

from stribeck.files.cdr import Stamp
from stribeck.live.handover import Compensating
from stribeck.live.setup import CompensatedJoint

PERIOD = 200_000_000
"""Period at which gain, supply and temperature are read [ns]; they change slowly and decoding takes time."""


class RateLimiter:
    """Passes the first message of every :data:`PERIOD`, by stamp only, so that results do not depend on playback speed."""

    def __init__(self) -> None:
        self._period: int | None = None

    def passes(self, stamp: Stamp) -> bool:
        """Whether to read the message with this stamp."""
        before, self._period = self._period, stamp.nanoseconds // PERIOD
        return before != self._period


def apply_telemetry(
    compensator: Compensating, joint: CompensatedJoint, values: Mapping[str, float], stamp: float
) -> None:
    """Set gain, supply and temperature of a joint in a compensator, unless its parameters fix them.

    :param values: telemetry by interface name.
    """
    compensator.on_telemetry(
        joint.model.name,
        kp=math.nan if joint.p_gain else values.get("p_gain", math.nan),
        supply_voltage=math.nan if joint.supply_voltage else values.get("voltage", math.nan),
        temperature=values.get("temperature", math.nan),
        stamp=stamp,
    )
