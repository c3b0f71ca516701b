r"""Share of the friction torque that a joint without a model of its dynamics bears, from how it comes to its goals.

A joint whose friction is cancelled exactly stops at its goal; with less it stops short, with more it moves on beyond it or swings
about it. Neither needs an inertia to be seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stribeck.live.formulas import Compiler, as_written, compiled_by
from stribeck.model.arrays import Array
from stribeck.model.namespace import array_namespace

FALL_TIME = 0.1
"""Time constant with which the share falls while a joint is beyond its goal by the error width or more [s]."""

RISE_TIME = 0.5
"""Time constant with which it rises while a joint is behind a goal that moves, by the error width or more [s]."""

NATURAL = 0.2
"""Overshoot as a fraction of the largest error on the way to the goal, which a controller makes by itself [1]."""


class Overshoot:
    r"""Shares s of the friction torques of n joints, in [0, 1].

    With the error e along the path of the goal, beyond the dead-band and divided by the error width,

    .. math:: \dot s = -s\,\min(-e, 1)/T_f \quad (e < 0), \qquad \dot s = (1 - s)\,\min(e, 1)/T_r \quad (e > 0, \text{goal moves})

    A joint counts as beyond its goal only if it has been behind it, or within the dead-band, since the path turned: the lag of a controller
    becomes a lead when the goal reverses. Nor does it within :data:`NATURAL` of its largest error on that way: controllers overshoot steps
    without any friction. The way ends when it is behind its goal again, so a joint that swings about its goal counts.
    """

    def __init__(self, joints: int, compiler: Compiler = as_written) -> None:
        self._zero: Array = np.zeros(joints)
        self._passed_of = compiled_by(compiler, passed)
        self._reach_of, self._ahead_of = compiled_by(compiler, reach), compiled_by(compiler, ahead)
        self._beyond_of = compiled_by(compiler, beyond)
        self._share_of = compiled_by(compiler, bearable)
        self.begin()

    def begin(self) -> None:
        """Start anew with the whole friction."""
        self.share: Array = np.ones_like(self._zero)
        self.reduced = False
        """Whether any share is below 1."""
        self.restart()

    def restart(self) -> None:
        """Forget the motion but keep the shares."""
        self._way = self._passed = self._reach = self._ahead = self._zero

    def update(self, behind: Array, path: Array, moves: Array, width: Any, dt: float) -> None:
        """Update with a state.

        :param behind: goal minus position beyond the dead-band, 0 within it and without a goal [rad].
        :param path: direction of the path of the goal, in [-1, 1].
        :param moves: weight with which the velocity of a goal leads, in [0, 1].
        :param width: error width [rad].
        """
        way = np.sign(path)
        self._passed = self._passed_of(self._passed, way, self._way, behind)
        self._reach = self._reach_of(self._reach, self._ahead, way, self._way, behind)
        self._ahead = self._ahead_of(self._ahead, way, behind)
        self._way = way
        counts = self._passed * self._beyond_of(self._reach, way, behind)
        self.share = self._share_of(self.share, counts, behind * way / width, moves, dt)
        self.reduced = min(self.share.tolist()) < 1.0


def passed(passed: Any, way: Any, before: Any, behind: Any) -> Any:
    """1 for joints that have not been ahead of their goals all the time since its path turned, else 0."""
    xp = array_namespace(way, behind)
    return xp.where(behind * way >= 0.0, 1.0, xp.where(way == before, passed, 0.0))


def reach(reach: Any, ahead: Any, way: Any, before: Any, behind: Any) -> Any:
    """Largest error on the way to the goal [rad], since its path turned or its joint fell behind it again."""
    xp, error = array_namespace(way, behind), behind * way
    kept = xp.where((way == before) & ~((error > 0.0) & (ahead > 0.0)), reach, 0.0)
    return xp.maximum(kept, error)


def ahead(ahead: Any, way: Any, behind: Any) -> Any:
    """1 for joints that were last ahead of their goals, not behind them, else 0."""
    xp, error = array_namespace(way, behind), behind * way
    return xp.where(error < 0.0, 1.0, xp.where(error > 0.0, 0.0, ahead))


def beyond(reach: Any, way: Any, behind: Any) -> Any:
    """1 for joints further beyond their goals than a controller brings them by itself, else 0."""
    return array_namespace(way, behind).where(-behind * way > NATURAL * reach, 1.0, 0.0)


def bearable(share: Any, counts: Any, error: Any, moves: Any, dt: Any) -> Any:
    """The next share; ``counts`` is 1 where a position beyond the goal counts, :class:`Overshoot` explains the others."""
    xp = array_namespace(share, error)
    fallen = share * xp.exp(-dt / FALL_TIME * counts * xp.minimum(xp.maximum(-error, 0.0), 1.0))
    risen = 1.0 - xp.exp(-dt / RISE_TIME * moves * xp.minimum(xp.maximum(error, 0.0), 1.0))
    return fallen + (1.0 - fallen) * risen
