"""Firmware gain, supply voltage and temperature of servos, as telemetry reports them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from stribeck.live.friction import JointModel
from stribeck.model.arrays import Array

WAITING_TELEMETRY = 128
"""Largest number of telemetry messages per joint that wait for the states to which they apply."""

TELEMETRY_DELAY = 0.1
"""Telemetry applies to states stamped at least this much later [s], however fast it is read."""

LOWEST_SUPPLY = 0.5
"""Lowest plausible supply voltage of a servo that responds; lower readings are ignored [V]."""

FRICTION_PER_KELVIN = 0.01
"""Relative decrease of friction per kelvin, a cautious figure for greased gears [1/K]."""


def warmth(difference: float, per_kelvin: float | None = None) -> float:
    """Ratio of friction to the identified one for a joint warmer by ``difference`` [K], from 0.5 to 1.

    At most 1 for joints with more friction than identified.

    :param per_kelvin: identified coefficient of the effect ``temperature`` [1/K], else :data:`FRICTION_PER_KELVIN`.
    """
    if per_kelvin is not None:
        return min(max(math.exp(-per_kelvin * difference), 0.5), 1.0)
    return 1.0 - min(max(FRICTION_PER_KELVIN * difference, 0.0), 0.5)


class ServoStates:
    """Gain, supply and temperature of n servos, each applied from the right state on.

    :ivar kp: firmware gains, NaN where unknown, (n,).
    :ivar supply: supply voltages, nominal where unknown, (n,) [V].
    :ivar temperature: temperatures, NaN where unknown, (n,) [°C].
    :ivar warmth: ratio of the friction at the present temperature to the identified friction, (n,).
    """

    def __init__(self, joints: Sequence[JointModel]) -> None:
        self._names = [joint.name for joint in joints]
        self._identified = [(joint.temperature, joint.per_kelvin) for joint in joints]
        self.kp: Array = np.full(len(joints), np.nan)
        self.supply: Array = np.array([joint.actuator.supply.nominal for joint in joints])
        self.warmth: Array = np.ones(len(joints))
        self.temperature: Array = np.full(len(joints), np.nan)
        self._waiting: deque[tuple[float, str, float, float, float]] = deque()

    def take(
        self, joint: str, kp: float, supply: float, temperature: float, stamp: float | None, wait: bool
    ) -> None:
        """Store a message; values that are NaN or impossible are ignored.

        :param stamp: if ``None``, it applies at once.
        :param wait: whether it applies only to states stamped :data:`TELEMETRY_DELAY` after it.
        """
        if joint not in self._names:
            return
        if stamp is None or not math.isfinite(stamp):
            self._set(joint, kp, supply, temperature)
            return
        if self._waiting and stamp < self._waiting[-1][0]:
            self._waiting.clear()  # time jumped back
        self._waiting.append((stamp, joint, kp, supply, temperature))
        while self._waiting and (len(self._waiting) > WAITING_TELEMETRY * len(self._names) or not wait):
            self._next()

    def advance(self, stamp: float) -> None:
        """Apply all telemetry that is due for a state with this stamp [s]."""
        while self._waiting and self._waiting[0][0] + TELEMETRY_DELAY < stamp:
            self._next()

    def _next(self) -> None:
        self._set(*self._waiting.popleft()[1:])

    def _set(self, joint: str, kp: float, supply: float, temperature: float) -> None:
        k = self._names.index(joint)
        identified, per_kelvin = self._identified[k]
        if math.isfinite(temperature):
            self.temperature[k] = temperature
        if math.isfinite(temperature) and identified is not None:
            self.warmth[k] = warmth(temperature - identified, per_kelvin)
        if math.isfinite(kp) and kp >= 0.0:
            self.kp[k] = kp
        if math.isfinite(supply) and supply > LOWEST_SUPPLY:
            self.supply[k] = supply
