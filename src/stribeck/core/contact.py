"""Contacts: what acts against a motion beyond all friction is an outside force, and must stay."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

CONTACT_TIME = 0.05
"""Time constant with which the torque goes, and comes back, at a contact [s]."""

PATIENCE = 0.5
"""So long a contact lasts at least; each further one without motion between lasts twice as long [s]."""

LONGEST_PATIENCE = 30.0
"""... and this at most [s]."""


class Contact:
    """Of n joints.

    A contact lasts until the joint moves on with its goal, the goal turns back, or friction alone could hold the joint
    against what its controller asks for: then what it met may be gone, which only another try can tell.
    """

    def __init__(self, joints: int) -> None:
        self._zero: FloatArray = np.zeros(joints)
        self.restart()

    def restart(self) -> None:
        """Nothing is touched."""
        self._touched = self._since = self._zero
        self._patience = np.full_like(self._zero, PATIENCE)
        self.share = self._zero
        """How much of a contact there is, smoothed, in [0, 1]."""

    def update(
        self,
        beyond: BoolArray,
        held: BoolArray,
        led: BoolArray,
        follows: BoolArray,
        path: FloatArray,
        dt: float,
    ) -> None:
        """Take in a state.

        :param beyond: where more acts against the motion than friction can.
        :param held: where friction alone could hold the joint.
        :param led: where a goal leads.
        :param follows: where the joint moves with it.
        :param path: direction in which the goal leads.
        """
        way = np.sign(path)
        begins = ~follows & led & beyond
        self._since = np.where(begins | (self._touched == 0.0), 0.0, self._since + dt)
        tries = held & (self._since > self._patience)
        longer = np.minimum(2.0 * self._patience, LONGEST_PATIENCE)
        self._patience = np.where(follows, PATIENCE, np.where(tries, longer, self._patience))
        kept = np.where(~follows & ~tries & (way * self._touched > 0.0), self._touched, 0.0)
        self._touched = np.where(begins, way, kept)
        share = min(1.0, dt / CONTACT_TIME)
        self.share = self.share + share * (np.abs(self._touched) - self.share)
