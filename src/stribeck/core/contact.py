"""Contacts: what acts against a motion beyond all friction is an outside force, and must stay."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

CONTACT_TIME = 0.05
"""Time constant with which the torque goes, and comes back, at a contact [s]."""


class Contact:
    """Of n joints: a contact lasts until the joint moves on with its goal, or the goal turns back."""

    def __init__(self, joints: int) -> None:
        self._zero: FloatArray = np.zeros(joints)
        self.restart()

    def restart(self) -> None:
        """Nothing is touched."""
        self._touched = self._zero
        self.share = self._zero
        """How much of a contact there is, smoothed, in [0, 1]."""

    def update(
        self, beyond: BoolArray, led: BoolArray, follows: BoolArray, path: FloatArray, dt: float
    ) -> None:
        """Take in a state.

        :param beyond: where more acts against the motion than friction can.
        :param led: where a goal leads.
        :param follows: where the joint moves with it.
        :param path: direction in which the goal leads.
        """
        way = np.sign(path)
        kept = np.where(~follows & (way * self._touched > 0.0), self._touched, 0.0)
        self._touched = np.where(~follows & led & beyond, way, kept)
        share = min(1.0, dt / CONTACT_TIME)
        self.share = self.share + share * (np.abs(self._touched) - self.share)
