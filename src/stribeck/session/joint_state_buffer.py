"""Buffer of the last valid measurement of every joint; values keep their time when samples are lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


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
