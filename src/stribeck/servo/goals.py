"""Latest goal of every joint, collected from messages that name joints."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.servo.config import JointConfig

FloatArray = npt.NDArray[np.float64]


class JointGoals:
    """The latest goal of every joint.

    A joint that a message does not name keeps its goal, which ages: programs that drive a joint must name it in
    every message. A goal of NaN switches the torque of a joint off and never ages.

    :param joints: in the order of all arrays.
    """

    def __init__(self, joints: Sequence[JointConfig]) -> None:
        self._index = {joint.name: index for index, joint in enumerate(joints)}
        self._follows = [joint.servo.follows_position for joint in joints]
        self.forget()

    def forget(self) -> None:
        """Drop all goals."""
        self._goals = np.full(len(self._follows), math.nan)
        self._arrival = np.full(len(self._follows), -math.inf)

    def take(
        self, names: Sequence[str], positions: Sequence[float], efforts: Sequence[float], arrival: float
    ) -> str:
        """Take over a message.

        :param positions: [rad], of joints that follow a position.
        :param efforts: [A] or duty, of joints in current or pwm mode.
        :param arrival: when it arrived, steady clock [s].
        :return: names of unknown joints, which are ignored; empty for none.
        :raises ConfigError: for a message that names a joint without a goal for it, or with an infinite one;
            then the whole message is ignored.
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
                raise ConfigError(f"goal of joint {name!r}: no {field}; NaN would switch its torque off")
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
    def command(self) -> tuple[FloatArray, float]:
        """Goals of all joints, and the arrival of the oldest of them [s]; infinity if no joint has one."""
        energised = ~np.isnan(self._goals)
        return self._goals.copy(), float(np.min(self._arrival, where=energised, initial=math.inf))
