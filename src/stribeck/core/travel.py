"""How joints have moved lately: smooth velocity, and how far they are from where they turned round."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

SMOOTHING = 0.03
"""Time constant of the smooth velocity [s]."""


NOISE_TIME = 1.0
"""Time constant of the noise of the velocity [s]."""


class Travel:
    """Of n joints, from measured positions and velocities."""

    def __init__(self, joints: int) -> None:
        self._joints = joints
        self.restart()

    def restart(self) -> None:
        """Forget."""
        self.velocity: FloatArray = np.zeros(self._joints)
        """Smooth velocity [rad/s]."""
        self.direction: FloatArray = np.zeros(self._joints)
        """Of the motion since the last turn: -1, 0 or 1."""
        self.distance: FloatArray = np.zeros(self._joints)
        """From the last turn [rad]."""
        self.step: FloatArray = np.full(self._joints, np.inf)
        """Smallest velocity but zero that was measured [rad/s]: where it is large, velocities come in steps."""
        self._bends: FloatArray = np.zeros(self._joints)
        self._before: tuple[FloatArray, FloatArray] | None = None
        self._turn: FloatArray | None = None
        self._extreme: FloatArray = np.zeros(self._joints)

    def update(self, position: FloatArray, velocity: FloatArray, hysteresis: Any, dt: float) -> None:
        """Take in a state.

        :param hysteresis: motion back by less than this is none [rad].
        """
        if self._turn is None:
            self._turn, self._extreme, self.velocity = position, position, velocity
            return
        size = np.abs(velocity)
        self.step = np.where(size > 0.0, np.minimum(self.step, size), self.step)
        if self._before is not None:
            last, earlier = self._before
            bend = velocity - 2.0 * last + earlier
            self._bends = self._bends + min(1.0, dt / NOISE_TIME) * (bend * bend - self._bends)
            self._before = velocity, last
        else:
            self._before = velocity, velocity
        self.velocity = self.velocity + min(1.0, dt / SMOOTHING) * (velocity - self.velocity)
        onward = np.where(self.direction == 0.0, np.abs(position - self._extreme) > hysteresis, False)
        back = (position - self._extreme) * self.direction < -hysteresis
        turned = onward | back
        self._turn = np.where(turned, self._extreme, self._turn)
        self.direction = np.where(turned, np.sign(position - self._extreme), self.direction)
        further = (position - self._extreme) * self.direction > 0.0
        self._extreme = np.where(further | turned, position, self._extreme)
        self.distance = np.abs(position - self._turn) * (self.direction != 0.0)

    @property
    def noise(self) -> FloatArray:
        """Standard deviation of the velocity's noise, by its second differences [rad/s]."""
        return np.sqrt(self._bends / 6.0)


class Turning:
    r"""How far the friction of n joints has turned round with their motion, in [-1, 1].

    :math:`z \to s + (z - s)\,e^{-|\Delta\theta|/\ell}`, :math:`s = sign(\Delta\theta)`: within the presliding length
    :math:`\ell` after a turn friction is a spring and takes next to nothing (P. R. Dahl, "A Solid Friction Model",
    1968). In any closed cycle a share g < 1 of what turns round likewise puts in less than friction takes, by g;
    a torque that only follows the sign of the velocity puts in more, and a joint vibrates on that spring.
    """

    def __init__(self, joints: int) -> None:
        self._joints = joints
        self.restart()

    def restart(self) -> None:
        """Forget."""
        self.share: FloatArray = np.zeros(self._joints)
        self._position: FloatArray | None = None

    def update(self, position: FloatArray, motion: FloatArray, length: Any) -> None:
        """Take in a state.

        :param motion: its direction; where a joint moves when it is first seen its friction has turned.
        :param length: presliding length [rad].
        """
        if self._position is None:
            self.share = motion
        else:
            change = position - self._position
            sign = np.sign(change)
            self.share = sign + (self.share - sign) * np.exp(-np.abs(change) / length)
        self._position = position
