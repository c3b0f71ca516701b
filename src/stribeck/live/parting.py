"""Removes the friction torque from the last effort of a silent controller, in the mode ``sum``.

The receiver of the compensated effort (a forward_command_controller, for example) keeps the last value, including the
friction torque, and would go on pushing the joint. When the controller's last command is too old, its own effort is
therefore published a few more times while the friction torque fades out; then publishing stops.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stribeck.model.arrays import Array

REPEATS = 3
"""Number of times the effort without friction torque is published, because messages may get lost."""


class Parting:
    """Fades the friction torque out of the last effort that was passed on.

    :param fade: reduces a torque (n,) [N m] towards zero over a time [s].
    :param timeout: age of the controller's last command above which it counts as silent [s].
    """

    def __init__(self, fade: Callable[[Array, float], Array], timeout: float) -> None:
        self._fade, self._timeout = fade, timeout
        self._own = self._friction = np.zeros(0)
        self.forget()

    def passed_on(self, now: float, own: Array, friction: Array) -> None:
        """Remember the controller's effort (n,) [N m] published at ``now`` [s] with the friction torque (n,) [N m] added."""
        self._at = self._last = now
        self._own, self._friction = own, friction
        self._left = REPEATS if np.any(friction) else 0

    def left_behind(self, now: float, own: Array, friction: Array) -> None:
        """As :meth:`passed_on`, for a controller that is silent already: fading starts at ``now`` [s]."""
        self._at, self._last = -math.inf, now
        self._own, self._friction, self._left = own, friction, REPEATS

    def forget(self) -> None:
        """Publish nothing more, because another sender is in charge."""
        self._left, self._at, self._last = 0, math.inf, math.inf

    def rest(self) -> Array | None:
        """The controller's effort (n,) [N m], if its fading is under way and not complete."""
        return self._own if self._left and self._last != self._at else None

    def unfaded(self) -> Array | None:
        """The controller's effort (n,) [N m], if the last one published contains friction torque."""
        return self._own if self._left else None

    def due(self, now: float) -> Array | None:
        """Effort (n,) [N m] to publish at ``now`` [s]; ``None`` while the controller is active, and after the last one."""
        if not self._left or now - self._at <= self._timeout:
            return None
        if self._last == self._at:  # the first call after the timeout: fading starts at its end
            self._last = self._at + self._timeout
        self._friction = self._fade(self._friction, now - self._last)
        self._last = now
        if not np.any(self._friction):
            self._left -= 1
        return np.asarray(self._own + self._friction)
