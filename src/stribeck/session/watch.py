"""Monitoring of a session: measurements, alarms, persistent errors, detection of rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stribeck.core.arrays import Array, Mask
from stribeck.session.limits import SessionJoint


@dataclass(frozen=True, eq=False)
class Measurement:
    """State of all joints, (J,) each; NaN where unknown.

    :param position: [rad].
    :param velocity: [rad/s].
    :param temperature: [°C].
    :param age: age of the state [s].
    :param gain: firmware gains; ``None`` if no servo reports them.
    :param torque: 1 where the servo reports that torque is on, else 0.
    """

    position: Array
    velocity: Array
    temperature: Array
    age: float
    gain: Array | None
    torque: Array

    def complete(self, timeout: float) -> bool:
        """Whether all positions are known and no older than ``timeout`` [s]."""
        return bool(self.age <= timeout and np.isfinite(self.position).all())


def alarm(measured: Measurement, joints: Sequence[SessionJoint], margin: float) -> str | None:
    """Reason why a session must stop at once, or ``None``: not finite, out of limits, too hot.

    :param margin: how far beyond its limits a joint may be [rad].
    """
    for joint, position, velocity, temperature in zip(
        joints, measured.position, measured.velocity, measured.temperature, strict=True
    ):
        limits = joint.limits
        if not math.isfinite(position) or math.isinf(velocity):
            return f"joint {joint.name!r} reports position {position:g} rad, velocity {velocity:g} rad/s"
        if not limits.position_lower - margin <= position <= limits.position_upper + margin:
            return (
                f"joint {joint.name!r} is at {position:.3g} rad, its limits are {limits.position_lower:g} to "
                f"{limits.position_upper:g} rad"
            )
        if temperature > limits.temperature:
            return f"joint {joint.name!r} is at {temperature:g} °C, its limit is {limits.temperature:g} °C"
    return None


class Debounce:
    """Reports a joint whose condition has been true without interruption for longer than ``patience`` [s]."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._since: Array | None = None

    def update(self, now: float, wrong: Mask) -> int | None:
        """Index of the first joint to report, or ``None``.

        :param wrong: condition of each joint (J,).
        """
        before = math.inf if self._since is None else self._since
        self._since = np.where(wrong, np.minimum(before, now), math.inf)
        late = np.flatnonzero(now - self._since > self.patience)
        return int(late[0]) if late.size else None


class RestDetector:
    """Measures how long all joints have been at rest; without velocities, from the positions alone.

    :param speed: a joint below this speed is at rest [rad/s].
    :param distance: if it also stays within a range of this width [rad].
    """

    def __init__(self, speed: float, distance: float) -> None:
        self.speed, self.distance = speed, distance
        self._since = self._now = math.nan
        self._lower = self._upper = np.empty(0)

    def restart(self) -> None:
        """Restart with the next measurement."""
        self._since = math.nan

    def update(self, now: float, measured: Measurement) -> None:
        """Add a measurement."""
        self._now = now
        if not math.isnan(self._since):
            self._lower = np.minimum(self._lower, measured.position)
            self._upper = np.maximum(self._upper, measured.position)
            moves = np.abs(measured.velocity) > self.speed
            if not np.any(moves | (self._upper - self._lower > self.distance)):
                return
        self._since = now
        self._lower = self._upper = measured.position

    def lasts(self, wanted: float) -> bool:
        """Whether all joints have been at rest for ``wanted`` [s] until now."""
        return self._now - self._since >= wanted
