"""Collects the latest goal of every joint from messages that may name only some of the joints."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array
from stribeck.servo.config import JointConfig


class JointGoals:
    """The latest goal of every joint.

    A joint that a message does not name keeps its previous goal and that goal's arrival time, so programs
    must name every joint they drive in every message. A NaN goal switches the torque of a joint off and never
    expires.

    :param joints: in the order of all arrays.
    """

    def __init__(self, joints: Sequence[JointConfig]) -> None:
        self._index = {joint.name: index for index, joint in enumerate(joints)}
        self._follows = [joint.servo.follows_position for joint in joints]
        self.forget()

    def forget(self) -> None:
        """Discard all goals."""
        self._goals = np.full(len(self._follows), math.nan)
        self._arrival = np.full(len(self._follows), -math.inf)

    def take(
        self, names: Sequence[str], positions: Sequence[float], efforts: Sequence[float], arrival: float
    ) -> str:
        """Store the goals of a message.

        :param positions: goals of joints in a position mode [rad].
        :param efforts: goals of joints in current or pwm mode: [A] or duty.
        :param arrival: when the message arrived, steady clock [s].
        :return: names of unknown joints, which are ignored; empty for none.
        :raises ConfigError: if a named joint has no goal or an infinite one; the whole message is then
            ignored.
        """
        goals = self._goals.copy()
        named, unknown = [], []
        for place, name in enumerate(names):
            index = self._index.get(name)
            if index is None:
                unknown.append(name)
                continue
            values, field = (positions, "position") if self._follows[index] else (efforts, "effort")
            if place >= len(values):
                raise ConfigError(
                    f"goal of joint {name!r}: {field} is missing: give it; NaN would switch torque off"
                )
            if math.isinf(values[place]):
                raise ConfigError(
                    f"goal of joint {name!r}: {field} is {values[place]:g}; valid: finite, or NaN"
                )
            goals[index] = values[place]
            named.append(index)
        self._goals = goals
        self._arrival[named] = arrival
        return ", ".join(unknown)

    @property
    def command(self) -> tuple[Array, float]:
        """Goals of all joints, and the arrival time of the oldest goal [s], infinity if there is none."""
        energised = ~np.isnan(self._goals)
        return self._goals.copy(), float(np.min(self._arrival, where=energised, initial=math.inf))
