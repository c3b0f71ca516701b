"""The last words for a controller that has fallen silent, in the mode ``sum``.

What stands behind the compensation (a forward_command_controller, say) keeps the last effort that it was told, with the
friction torque in it: without the controller nobody takes that back, and the joint goes on being pushed. So when the
controller's last command is too old, its own effort is published a few times more, while the friction fades out of it;
then nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

REPEATS = 3
"""How often the controller's own effort is published, once the friction is out of it: a message may get lost."""


class Parting:
    """Takes the friction torque out of the last effort that was passed on.

    :param fade: a torque (n,) [N m], taken back towards zero during so many seconds.
    :param timeout: age of the controller's last command from which it counts as silent [s].
    """

    def __init__(self, fade: Callable[[FloatArray, float], FloatArray], timeout: float) -> None:
        self._fade, self._timeout = fade, timeout
        self._own = self._friction = np.zeros(0)
        self.forget()

    def passed_on(self, now: float, own: FloatArray, friction: FloatArray) -> None:
        """The controller's own effort (n,) [N m] went out at ``now`` [s], with friction torque (n,) [N m] added."""
        self._at = self._last = now
        self._own, self._friction = own, friction
        self._left = REPEATS if np.any(friction) else 0

    def forget(self) -> None:
        """Nothing is owed: somebody else is in charge."""
        self._left, self._at, self._last = 0, math.inf, math.inf

    def due(self, now: float) -> FloatArray | None:
        """The effort (n,) [N m] to publish at ``now`` [s]; ``None`` while the controller speaks, and when all is said."""
        if not self._left or now - self._at <= self._timeout:
            return None
        if self._last == self._at:  # the first word: what went by until now was waiting
            self._last = self._at + self._timeout
        self._friction = self._fade(self._friction, now - self._last)
        self._last = now
        if not np.any(self._friction):
            self._left -= 1
        return np.asarray(self._own + self._friction)
