"""Where goals lead joints: the direction of the motion that is wanted, reversals foreseen."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

LED_TIME = 0.1
"""Time constant with which a goal that rests ceases to lead [s]."""

LEADING = 0.1
"""A goal that moves with this share of the command velocity leads fully."""

ARRIVAL_TIME = 1.0
"""A joint that is still behind leads on for so long after its goal has come to rest [s]."""

HOLD_TIME = 60.0
"""Time constant with which a joint at rest at its goal loses the torque it came with [s]."""

CONFLICT_TIME = 0.01
"""Time constant with which a motion against the goal's takes over from it [s]."""


class GoalPath:
    r"""Direction in which goals lead n joints, as friction would turn round along the goals' own path.

    :math:`z \to s + (z - s)\,e^{-|\Delta\theta_d|/\ell}`, :math:`s = sign(\Delta\theta_d)`: after a reversal friction turns
    round within the presliding length :math:`\ell` (P. R. Dahl, "A Solid Friction Model", 1968). Goals have no
    noise, so this direction is there before the joint has moved, and does not depend on what is measured.
    """

    def __init__(self, joints: int) -> None:
        self._joints = joints
        self.restart()

    def restart(self) -> None:
        """Forget the path."""
        self.direction: FloatArray = np.zeros(self._joints)
        self.led: FloatArray = np.zeros(self._joints)
        self.leads = np.zeros(self._joints, dtype=np.bool_)
        """Where a goal moves, or its joint has not arrived yet."""
        self._goal: FloatArray = np.full(self._joints, np.nan)
        self._resting: FloatArray = np.full(self._joints, np.inf)
        self._conflict: FloatArray = np.zeros(self._joints)

    def update(
        self,
        goal: FloatArray,
        rate: FloatArray,
        behind: FloatArray,
        motion: FloatArray,
        dt: float,
        presliding: Any,
        command_velocity: Any,
    ) -> None:
        r"""Take in a goal.

        :param goal: :math:`\theta_d` (n,) [rad], NaN where there is none.
        :param rate: :math:`\dot\theta_d` [rad/s].
        :param behind: goal minus position beyond what counts as an error, 0 within it [rad].
        :param motion: direction of the measured motion, in [-1, 1].
        :param presliding: :math:`\ell` [rad].
        :param command_velocity: as :class:`~stribeck.core.compensation.Tuning` has it [rad/s].
        """
        change = goal - self._goal
        change = np.where(np.isfinite(change), change, rate * dt)
        self._goal = goal
        sign = np.sign(change)
        self.direction = sign + (self.direction - sign) * np.exp(-np.abs(change) / presliding)
        leads = np.minimum(np.abs(rate) / (LEADING * command_velocity), 1.0)
        self._resting = np.where(leads >= 1.0, 0.0, self._resting + dt)
        arrived = (behind * self.direction <= 0.0) | (self._resting > ARRIVAL_TIME)
        self._resting = np.where(arrived & (leads < 1.0), np.inf, self._resting)
        arriving = self._resting < np.inf
        self.leads = arriving | (leads > 0.5)
        calm = behind * self.direction >= 0.0
        fading = np.where(calm, np.exp(-dt / HOLD_TIME), np.exp(-dt / LED_TIME))
        self.led = np.maximum(np.where(arriving, self.led, self.led * fading), leads)
        against = np.maximum(-motion * self.direction, 0.0)
        self._conflict = self._conflict + min(1.0, dt / CONFLICT_TIME) * (against - self._conflict)

    @property
    def share(self) -> FloatArray:
        """How much of the direction is the goals' affair, in [0, 1], (n,)."""
        return np.asarray(self.led * (1.0 - np.minimum(2.0 * self._conflict, 1.0)))
