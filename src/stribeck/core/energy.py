r"""Energy tank that limits what compensation adds to joints without a goal.

A joint with friction :math:`B(v)` loses energy at every speed as long as :math:`\tau_{ff} \le B`. A lower bound
:math:`\tau_{sure}` of the friction is guaranteed. Torque beyond it draws energy from a tank,

.. math:: \dot E = -(|\tau_{ff}| - \tau_{sure})\,|v|,\quad E \le E_0,

which refills at standstill: a joint that came to rest did not run away. As the tank empties, the torque fades to
the guaranteed part, with which every joint comes to rest. This is the passivity observer of Hannaford and Ryu,
"Time-Domain Passivity Control of Haptic Interfaces", 2002, doi:10.1109/70.988969, with the guaranteed friction in
place of a measured force.
"""

from __future__ import annotations

import numpy as np

from stribeck.core.arrays import Array, Mask

STROKE = 1.5
"""Capacity of the tank: the work of the friction at rest over this distance [rad]."""

FADING = 0.3
"""Fill level below which the torque fades, as a fraction of the capacity."""


class EnergyTank:
    """Energy tanks of n joints with friction ``level`` at rest, (n,) [N m]."""

    def __init__(self, level: Array) -> None:
        self.capacity = STROKE * level
        self.content: Array = self.capacity.copy()

    def restart(self) -> None:
        """Refill the energy tanks."""
        self.content = self.capacity.copy()

    def update(self, torque: Array, sure: Array, velocity: Array, rests: Mask, dt: float) -> None:
        """Update with the energy added during a step.

        :param torque: applied friction torque [N m].
        :param sure: guaranteed friction [N m].
        :param velocity: measured velocity [rad/s].
        :param rests: joints that stand still or have a goal.
        """
        drawn = np.maximum(torque * velocity, 0.0) - np.abs(sure * velocity)
        left = self.content - np.maximum(drawn, 0.0) * dt
        self.content = np.where(rests, self.capacity, np.maximum(left, 0.0))

    @property
    def share(self) -> Array:
        """Remaining fraction of the torque beyond the guaranteed friction, in [0, 1], (n,)."""
        return np.minimum(self.content / (FADING * self.capacity), 1.0)
