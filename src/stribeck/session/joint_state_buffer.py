"""The last good measurement of every joint of a session: what is lost leaves what was known, and its age."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class JointStateBuffer:
    """What is known of joints, (J,) each, NaN until somebody tells.

    An index is whatever numpy takes for one: a joint's number, or a mask of joints.

    :param joints: how many there are.
    :ivar position: [rad].
    :ivar velocity: [rad/s].
    :ivar temperature: [°C].
    :ivar voltage: supply [V].
    :ivar gain: firmware gain.
    :ivar torque: 1 where torque is on, else 0.
    """

    def __init__(self, joints: int) -> None:
        self.position = np.full(joints, math.nan)
        self.velocity = np.full(joints, math.nan)
        self.temperature = np.full(joints, math.nan)
        self.voltage = np.full(joints, math.nan)
        self.gain = np.full(joints, math.nan)
        self.torque = np.full(joints, math.nan)
        self._time = np.full(joints, -math.inf)

    def move(self, index: Any, time: Any, position: Any, velocity: Any) -> None:
        """Take in a motion.

        :param time: when it was measured, or came, steady clock [s].
        """
        self.position[index] = position
        self.velocity[index] = velocity
        self._time[index] = time

    def tell(self, index: Any, **values: Any) -> None:
        """Take in what a servo says beside its motion, by the names of the attributes."""
        for name, value in values.items():
            getattr(self, name)[index] = value

    def age(self, now: float) -> float:
        """How long ago the oldest motion was measured [s], infinite while one is missing."""
        return float(now - self._time.min())

    def arguments(self, now: float) -> dict[str, Any]:
        """Keyword arguments of :meth:`stribeck.session.session.Session.update`."""
        return {
            "positions": self.position,
            "velocities": self.velocity,
            "temperatures": self.temperature,
            "gains": None if np.isnan(self.gain).all() else self.gain,
            "torque": self.torque,
            "state_age": self.age(now),
        }
