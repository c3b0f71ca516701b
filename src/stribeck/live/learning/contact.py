"""Contact detection: a torque against the motion that exceeds all friction is external and must not be cancelled."""

from __future__ import annotations

import math

import numpy as np

from stribeck.model.arrays import Array, Mask

CONTACT_TIME = 0.05
"""Time constant with which the torque fades out, and back in, at a contact [s]."""

PATIENCE = 0.5
"""Shortest duration of a contact; it doubles for each further contact without motion in between [s]."""

LONGEST_PATIENCE = 30.0
"""Upper bound of that duration [s]."""

STOP_TIME = 0.3
"""Time since its goal came to rest for which a joint may be found to have met something on the way [s]."""


class Contact:
    """Contact state of n joints.

    A contact lasts until the joint moves with its goal, the goal reverses, or friction alone could hold the joint against
    its controller's torque. In the last case the obstacle may be gone, which only another attempt can show.

    Where the goal rests, nothing is to be moved and nothing is tried again: a joint that meets something as its goal comes to rest
    (a robot that stops at a contact) loses its torque at once, until its goal moves. What would fade slowly would press on: friction holds what
    is pressed, also without the torque that pressed it.
    """

    def __init__(self, joints: int) -> None:
        self._zero: Array = np.zeros(joints)
        self.restart()

    def restart(self) -> None:
        """Set all joints to no contact."""
        self._touched = self._since = self._zero
        self._rested = np.full_like(self._zero, math.inf)
        self._patience = np.full_like(self._zero, PATIENCE)
        self.share = self._zero
        """Degree of contact, smoothed, in [0, 1]."""

    def update(
        self,
        beyond: Mask,
        held: Mask,
        led: Mask,
        follows: Mask,
        path: Array,
        dt: float,
        rests: Mask | bool = False,
        met: Mask | bool = False,
    ) -> None:
        """Update with a state.

        :param beyond: joints on which more than friction acts against the motion.
        :param held: joints that friction alone could hold.
        :param led: joints that a goal leads.
        :param follows: joints that move with their goal.
        :param path: direction in which the goal leads.
        :param rests: joints whose goal rests.
        :param met: joints on which something outside acts against that direction.
        """
        way = np.sign(path)
        before, self._rested = self._rested, np.where(rests, self._rested + dt, 0.0)
        rested = (
            (before > 0.0) & rests & (self._rested <= STOP_TIME)
        )  # not in passing, as a goal that turns back
        stopped = ~follows & rested & (beyond | met)
        begins = stopped | (~follows & led & beyond)
        self._since = np.where(begins | (self._touched == 0.0), 0.0, self._since + dt)
        tries = held & ~np.asarray(rests) & (self._since > self._patience)
        longer = np.minimum(2.0 * self._patience, LONGEST_PATIENCE)
        self._patience = np.where(follows, PATIENCE, np.where(tries, longer, self._patience))
        kept = np.where(~follows & ~tries & (way * self._touched > 0.0), self._touched, 0.0)
        self._touched = np.where(begins, way, kept)
        share = min(1.0, dt / CONTACT_TIME)
        self.share = np.where(
            stopped & (way != 0.0), 1.0, self.share + share * (np.abs(self._touched) - self.share)
        )
