"""Where a joint is held that a hand may move: a goal that follows once it is pulled far enough."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

FEEDBACK_TIME = 0.2
"""Age from which on feedback is no longer felt [s]."""


class Yielding:
    r"""Goals of joints that hold their pose and yield to a hand.

    The pose held follows the position at a distance: :math:`h \leftarrow q - s\,clip(q - h, -s, s)/s`. With the stiffness K of the
    servo a hand has to pull with :math:`K s` beyond what friction takes. Feedback of a torque :math:`\tau` moves the goal by
    :math:`\tau/K`, so that the hand feels it.

    :param slip: s of each joint (n,) [rad].
    :param stiffness: K (n,) [N m/rad].
    :param largest: feedback torque at most (n,) [N m].
    """

    def __init__(self, slip: Sequence[float], stiffness: Sequence[float], largest: Sequence[float]):
        self._slip, self._stiffness = np.asarray(slip, dtype=float), np.asarray(stiffness, dtype=float)
        self._largest = np.asarray(largest, dtype=float)
        self.restart()

    def restart(self) -> None:
        """Begin again: the pose is that of the next position, and no feedback is felt."""
        self._held: Array | None = None
        self._torque, self._felt = np.zeros_like(self._slip), -np.inf

    def feel(self, torque: npt.ArrayLike, now: float) -> None:
        """Take over a torque to be felt (n,) [N m]; one that is not a number is none."""
        given = np.asarray(torque, dtype=float)
        self._torque = np.clip(np.where(np.isfinite(given), given, 0.0), -self._largest, self._largest)
        self._felt = now

    def goal(self, position: npt.ArrayLike, now: float) -> tuple[Array, Array]:
        """Pose to hold, and what the goals are moved by feedback, (n,) [rad] each."""
        q = np.asarray(position, dtype=float)
        held = q if self._held is None else self._held
        self._held = q - np.clip(q - held, -self._slip, self._slip)
        torque = self._torque if now - self._felt < FEEDBACK_TIME else np.zeros_like(self._torque)
        return self._held.copy(), torque / self._stiffness
