"""Goals of joints by name, as they come in messages, each with its age."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.servo.config import JointConfig

FloatArray = npt.NDArray[np.float64]


class JointGoals:
    """The last goal of every joint.

    A joint that a message does not name keeps its goal, which grows old: who drives a joint names it in
    every message. A goal of NaN switches the torque of a joint off, and never grows old.

    :param joints: in the order of all arrays.
    """

    def __init__(self, joints: Sequence[JointConfig]) -> None:
        self._index = {joint.name: index for index, joint in enumerate(joints)}
        self._follows = [joint.servo.follows_position for joint in joints]
        self.forget()

    def forget(self) -> None:
        """No joint has a goal."""
        self._goals = np.full(len(self._follows), math.nan)
        self._arrival = np.full(len(self._follows), -math.inf)

    def take(
        self, names: Sequence[str], positions: Sequence[float], efforts: Sequence[float], arrival: float
    ) -> str:
        """Take in a message.

        :param positions: [rad], of joints that follow a position.
        :param efforts: [A] or duty, of joints in current or pwm mode; the others' are not looked at.
        :param arrival: when it came, steady clock [s].
        :return: names of joints that are not ours, which changes nothing; empty for none.
        :raises ConfigError: for a message without a goal for a joint that it names, or with an infinite
            one; then nothing of it is taken.
        """
        goals = self._goals.copy()
        ours, unknown = [], []
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
            ours.append(index)
        self._goals = goals
        self._arrival[ours] = arrival
        return ", ".join(unknown)

    @property
    def command(self) -> tuple[FloatArray, float]:
        """Goals of all joints, and when the oldest of them came [s]; infinity if no joint has one."""
        energised = ~np.isnan(self._goals)
        return self._goals.copy(), float(np.min(self._arrival, where=energised, initial=math.inf))
