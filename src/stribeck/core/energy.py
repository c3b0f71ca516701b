r"""The account of what compensation puts into joints that no goal leads.

A joint with friction :math:`B(v)` loses energy at every speed as long as :math:`\tau_{ff} \le B`. Of a part of the
identified friction that is certain. What is added beyond it is drawn from a tank,

.. math:: \dot E = -(|\tau_{ff}| - \tau_{sure})\,|v|,\quad E \le E_0,

which standstill fills again: a joint that comes to rest did not run away. As the tank empties the torque fades to
what is certain, with which every joint comes to rest. This is the passivity observer of Hannaford and Ryu,
"Time-Domain Passivity Control of Haptic Interfaces", 2002, doi:10.1109/70.988969, with what friction surely takes in
place of a measured force.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

STROKE = 1.5
"""The tank holds the friction at rest along so much motion [rad]."""

FADING = 0.3
"""Below this share of its content the torque fades."""


class EnergyTank:
    """Of n joints.

    :param level: friction of each joint at rest (n,) [N m].
    """

    def __init__(self, level: FloatArray) -> None:
        self.capacity = STROKE * level
        self.content: FloatArray = self.capacity.copy()

    def restart(self) -> None:
        """Full again."""
        self.content = self.capacity.copy()

    def update(
        self, torque: FloatArray, sure: FloatArray, velocity: FloatArray, rests: BoolArray, dt: float
    ) -> None:
        """Take in what was added during a step.

        :param torque: friction torque that acts [N m].
        :param sure: what friction takes in any case [N m].
        :param velocity: measured [rad/s].
        :param rests: joints that stand still, or that a goal leads.
        """
        drawn = np.maximum(torque * velocity, 0.0) - np.abs(sure * velocity)
        left = self.content - np.maximum(drawn, 0.0) * dt
        self.content = np.where(rests, self.capacity, np.maximum(left, 0.0))

    @property
    def share(self) -> FloatArray:
        """What is left of the torque beyond what is certain, in [0, 1], (n,)."""
        return np.minimum(self.content / (FADING * self.capacity), 1.0)
