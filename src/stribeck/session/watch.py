"""Monitoring of a session: measurements and their buffer, alarms, persistent errors, detection of rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from stribeck.model.arrays import Array, Mask
from stribeck.session.limits import SessionJoint


@dataclass(frozen=True, eq=False)
class Measurement:
    """State of all joints, (J,) each; NaN where unknown.

    :param position: [rad].
    :param velocity: [rad/s].
    :param temperature: [°C].
    :param age: age of the state [s].
    :param torque: 1 where the servo reports that torque is on, else 0.
    :param source_age: time since anything came from the source of the states [s]; NaN where unknown.
    :param gain: firmware gains; ``None`` if no servo reports them.
    """

    position: Array
    velocity: Array
    temperature: Array
    age: Array
    torque: Array
    source_age: float
    gain: Array | None

    @classmethod
    def of(
        cls,
        joints: int,
        signals: Sequence[npt.ArrayLike | None],
        source_age: float,
        gain: npt.ArrayLike | None,
    ) -> Measurement:
        """Of so many joints: position, velocity, temperature, age and torque are arrays, or one number for all joints."""

        def array(value: npt.ArrayLike | None) -> Array:
            filled = math.nan if value is None else value
            return np.array(np.broadcast_to(np.asarray(filled, dtype=np.float64), (joints,)))

        position, velocity, temperature, age, torque = map(array, signals)
        known = None if gain is None else array(gain)
        return cls(position, velocity, temperature, age, torque, source_age, known)

    def complete(self, timeout: float) -> bool:
        """Whether all positions are known and no older than ``timeout`` [s]."""
        return bool((self.age <= timeout).all() and np.isfinite(self.position).all())


def lateness(
    measured: Measurement, joints: Sequence[SessionJoint], timeout: float, interval: float
) -> str | None:
    """What disturbs the timing, or ``None``: a loop that stood still, states late at their source, or lost states.

    States are late at their source if it has sent nothing; if it has, those of single joints are lost.

    :param timeout: maximum age of states and maximum interval [s].
    :param interval: time since the previous cycle [s].
    """
    if interval > timeout:
        return f"the control loop was interrupted for {interval:.3g} s"
    late = ~(measured.age <= timeout)
    if not late.any():
        return None
    oldest = float(np.max(measured.age))
    if not late.all() or measured.source_age <= timeout:
        names = ", ".join(repr(joint.name) for joint, old in zip(joints, late, strict=True) if old)
        return f"the states of joint {names} were lost: none for {oldest:.3g} s, although their source is running; the limit is {timeout:g} s"
    return f"all joint states are {oldest:.3g} s old, so they are late at their source; the limit is {timeout:g} s"


def alarm(measured: Measurement, joints: Sequence[SessionJoint], margin: float) -> str | None:
    """Reason why a session must stop at once, or ``None``: not finite, out of limits, too hot.

    :param margin: how far beyond its limits a joint may be [rad].
    """
    for joint, position, velocity, temperature in zip(
        joints, measured.position, measured.velocity, measured.temperature, strict=True
    ):
        limits = joint.limits
        if not math.isfinite(position) or math.isinf(velocity):
            return f"joint {joint.name!r} reports impossible values: position {position:g} rad, velocity {velocity:g} rad/s"
        if not limits.position_lower - margin <= position <= limits.position_upper + margin:
            return f"joint {joint.name!r} is at {position:.3g} rad, outside its limits of {limits.position_lower:g} to {limits.position_upper:g} rad"
        if temperature > limits.temperature:
            return (
                f"joint {joint.name!r} is at {temperature:g} °C, above its limit of {limits.temperature:g} °C"
            )
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


class Trusted:
    """Measurements to use, in place of those that a corrupt packet has spoilt.

    :param margin: how far beyond its limits a joint may be [rad].
    :param patience: an alarm that lasts longer is not due to corrupt packets [s].
    """

    def __init__(self, joints: Sequence[SessionJoint], margin: float, patience: float) -> None:
        self._joints, self._margin = joints, margin
        self._lasting = Debounce(patience)
        self._good: Measurement | None = None
        self._good_time = math.nan

    def update(self, now: float, measured: Measurement) -> tuple[Measurement | None, str | None]:
        """The last valid measurement, ``None`` before the first one, and an alarm that has lasted too long."""
        text = alarm(measured, self._joints, self._margin)
        if self._lasting.update(now, np.array([text is not None])) is not None:
            return None, text
        if text is None:
            self._good, self._good_time = measured, now
        elif self._good is not None:
            return replace(self._good, age=np.maximum(measured.age, now - self._good_time)), None
        return self._good, None


class Recovery:
    """Detects when the timing is in order again after a disturbance.

    :param wanted: states must have been in time for this long [s].
    :param timeout: longest time to wait for that [s].
    """

    def __init__(self, wanted: float, timeout: float) -> None:
        self._wanted, self._timeout = wanted, timeout
        self._began = self._since = math.nan
        self._reason = ""

    def start(self, now: float, reason: str) -> None:
        """Start after a disturbance, with its reason."""
        self._began, self._since, self._reason = now, math.nan, reason

    def update(self, now: float, in_time: bool) -> str | None:
        """Take in whether the timing is in order now; the reason to give up, or ``None``."""
        if not in_time:
            self._since = math.nan
        elif math.isnan(self._since):
            self._since = now
        if math.isnan(self._since) and now - self._began > self._timeout:
            return f"{self._reason}; not recovered within {self._timeout:g} s"
        return None

    def complete(self, now: float) -> bool:
        """Whether the timing has been in order for long enough."""
        return now - self._since >= self._wanted


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


class JointStateBuffer:
    """State of J joints, arrays (J,), NaN while unknown. ``index`` is any numpy index such as a number or a mask.

    :ivar position: [rad].
    :ivar velocity: [rad/s].
    :ivar temperature: [°C].
    :ivar voltage: supply [V].
    :ivar gain: firmware gain.
    :ivar torque: 1 where torque is on, else 0.
    """

    def __init__(self, joints: int) -> None:
        self.position, self.velocity, self.temperature, self.voltage, self.gain, self.torque = (
            np.full(joints, math.nan) for _ in range(6)
        )
        self._time = np.full(joints, -math.inf)
        self._source_time = -math.inf

    def source_alive(self, time: float) -> None:
        """Note that the source of the states has sent something, with or without values of a joint.

        :param time: steady clock [s].
        """
        self._source_time = time

    def move(self, index: Any, time: Any, position: Any, velocity: Any) -> None:
        """Store positions and velocities.

        :param time: of measurement or arrival, steady clock [s].
        """
        self.position[index] = position
        self.velocity[index] = velocity
        self._time[index] = time

    def tell(self, index: Any, **values: Any) -> None:
        """Store other signals by attribute name."""
        for name, value in values.items():
            getattr(self, name)[index] = value

    def arguments(self, now: float) -> dict[str, Any]:
        """Keyword arguments of :meth:`stribeck.session.session.Session.update`."""
        return {
            "positions": self.position,
            "velocities": self.velocity,
            "temperatures": self.temperature,
            "gains": None if np.isnan(self.gain).all() else self.gain,
            "torque": self.torque,
            "state_age": now - self._time,
            "source_age": now - self._source_time,
        }
