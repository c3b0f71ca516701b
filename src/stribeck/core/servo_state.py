"""Firmware gain, supply voltage and temperature of servos, as telemetry reports them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stribeck.core.compensation import JointModel

FloatArray = npt.NDArray[np.float64]

WAITING_TELEMETRY = 128
"""Telemetry per joint that may wait for the states it counts for."""

TELEMETRY_DELAY = 0.1
"""Telemetry counts for states stamped this much later [s], however fast it is read."""

LOWEST_SUPPLY = 0.5
"""A servo that answers has at least this supply voltage; anything below is a wrong reading [V]."""

FRICTION_PER_KELVIN = 0.01
"""Friction falls by this share per kelvin: a cautious figure for greased gears [1/K]."""


def warmth(difference: float) -> float:
    """Share of the identified friction that is left when a joint is warmer by ``difference`` [K], at least half.

    A colder joint has more friction, but nothing is promised of it.
    """
    return 1.0 - min(max(FRICTION_PER_KELVIN * difference, 0.0), 0.5)


class ServoStates:
    """Gain, supply and temperature of n servos, each value from the states on for which it counts.

    :ivar kp: firmware gains, NaN where unknown, (n,).
    :ivar supply: supply voltages, nominal where unknown, (n,) [V].
    :ivar warmth: share of the identified friction that the temperature leaves, (n,).
    """

    def __init__(self, joints: Sequence[JointModel]) -> None:
        self._names = [joint.name for joint in joints]
        self._identified = [joint.temperature for joint in joints]
        self.kp: FloatArray = np.full(len(joints), np.nan)
        self.supply: FloatArray = np.array([joint.actuator.supply.nominal for joint in joints])
        self.warmth: FloatArray = np.ones(len(joints))
        self._waiting: deque[tuple[float, str, float, float, float]] = deque()

    def take(
        self, joint: str, kp: float, supply: float, temperature: float, stamp: float | None, wait: bool
    ) -> None:
        """Take in a message; values that are NaN or impossible change nothing.

        :param stamp: without one it counts at once.
        :param wait: whether it waits for the states stamped :data:`TELEMETRY_DELAY` after it.
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
        """Let everything count that counts for a state with this stamp [s]."""
        while self._waiting and self._waiting[0][0] + TELEMETRY_DELAY < stamp:
            self._next()

    def _next(self) -> None:
        self._set(*self._waiting.popleft()[1:])

    def _set(self, joint: str, kp: float, supply: float, temperature: float) -> None:
        k = self._names.index(joint)
        identified = self._identified[k]
        if math.isfinite(temperature) and identified is not None:
            self.warmth[k] = warmth(temperature - identified)
        if math.isfinite(kp) and kp >= 0.0:
            self.kp[k] = kp
        if math.isfinite(supply) and supply > LOWEST_SUPPLY:
            self.supply[k] = supply
