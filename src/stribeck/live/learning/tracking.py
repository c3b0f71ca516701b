r"""Scale of the friction of a joint from the errors with which it follows its goals, without a model of its dynamics.

A joint whose friction is cancelled exactly follows its goal and stops there; with less it lags behind and stops short, with more it
gets ahead and moves on beyond its goal or swings about it. Neither needs an inertia to be seen.

Beside friction that is learnt from momentum (:mod:`stribeck.live.learning.observer`), scales above 1 make up for what an error of the model hides from it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stribeck.live.formulas import Compiler, as_written, compiled_by
from stribeck.model.arrays import Array
from stribeck.model.namespace import array_namespace

FALL_TIME = 0.1
"""Time constant with which the scale falls while a joint moves beyond a goal at rest by the error width or more [s]."""

FOLLOW_TIME = 0.5
"""Time in which it changes by 1 while the predicted error of a joint whose goal moves is the error width or more [s]."""

FOLLOW_LOOPS = 20.0
"""The same in loop times, at least: until the error shows what the scale does, it changes by 5 % at most [1]."""

REACTION = 2.0
"""Time until the torque of a joint that gets ahead of its goal has fallen, in loop times [1]."""

SLIP = 0.02
"""How far too large a scale may drive a joint beyond its goal in its first motion, before the error shows it [rad]."""

LEAST_FRICTION = 0.3
"""Fraction of the identified friction that is there at least, for :func:`first` [1]."""

LEAD = 0.2
"""Time for which the error is predicted: controllers slower than this overshoot [s]."""

RETURN_TIME = 1.0
"""Time constant with which a scale above 1 returns to 1 while a joint stands still before a goal at rest [s]."""

LEAST_LEARNT = 0.5
"""Learnt scales below this leave as much room as this one [1]."""

MISSED = 0.1
"""Largest part of the friction that the observer is taken to miss [1]."""

UNTOUCHED = 0.25
"""Degree of contact from which a lag is no friction [1]."""

NATURAL = 0.2
"""Overshoot as a fraction of the largest error on the way to the goal, which a controller makes by itself [1]."""


class TrackingScale:
    r"""Scales s of the friction torques of n joints, from 0 to ``most``.

    With the error e along the path of the goal, beyond the dead-band and divided by the error width w, and the error predicted from the
    velocity of the goal,

    .. math::
        z = \mathrm{clip}\bigl(e + t_l\,(\dot\theta_d - \dot\theta)/w\bigr), \qquad
        T \dot s = \begin{cases} \max(z, 0) + \max(s - 1, 0) \min(z, 0) & e > 0\\ s \min(z, 0) & e < 0\end{cases} \quad (\text{goal moves}),

    and :math:`T_f \dot s = -s\,\min(-e, 1)` for e < 0 if the joint moves and its goal rests. A joint that catches up has more than it needs, but what was
    identified it keeps.

    This is the adaptation of Slotine and Li, "On the Adaptive Control of Robot Manipulators", 1987, doi:10.1177/027836498700600303, with the
    friction alone as what is adapted, a bounded composite error, and :math:`1/t_l` in place of the controller's bandwidth, which is not known.

    A joint counts as ahead of its goal only if it has been behind it, or within the dead-band, since the path turned: the lag of a controller
    becomes a lead when the goal reverses. Nor does it within :data:`NATURAL` of its largest error on that way: controllers overshoot steps
    without any friction. The way ends when it is behind its goal again, so a joint that swings about its goal counts.
    A joint that stands still before a goal at rest may be held by an obstacle: a scale above 1 returns to 1.

    In a loop with a long delay the first scale is that of :func:`first`, and T is :data:`FOLLOW_LOOPS` loop times. That scale counts beside friction learnt
    from momentum, too, until this is certain (:func:`least_beside`).
    """

    def __init__(self, joints: int, compiler: Compiler = as_written) -> None:
        self._zero: Array = np.zeros(joints)
        self._passed_of = compiled_by(compiler, passed)
        self._reach_of, self._ahead_of = compiled_by(compiler, reach), compiled_by(compiler, ahead)
        self._beyond_of = compiled_by(compiler, beyond)
        self._followed, self._rested = compiled_by(compiler, followed), compiled_by(compiler, rested)
        self._begun = False
        self.begin()

    def begin(self) -> None:
        """Start anew with the identified friction."""
        self.scale: Array = np.ones_like(self._zero)
        self._begun = False
        self.restart()

    def restart(self) -> None:
        """Forget the motion but keep the scales."""
        self._way = self._passed = self._reach = self._ahead = self._zero

    def update(
        self, behind: Array, slip: Array, path: Array, moves: Array, going: Array, width: Any, most: Any, dt: float,
        start: Any = 1.0, loop: float = 0.0, least: Any = 0.0,
    ) -> None:  # fmt: skip
        """Update with a state.

        :param behind: goal minus position beyond the dead-band, 0 within it and without a goal [rad].
        :param slip: velocity of the goal minus that of the joint [rad/s].
        :param path: direction of the path of the goal, in [-1, 1].
        :param moves: weight with which the velocity of a goal leads, in [0, 1].
        :param going: 1 for joints that move, 0 for joints at standstill.
        :param width: error width [rad].
        :param most: largest scales, (n,); not below 1.
        :param start: largest scales to begin with (:func:`first`), (n,); ``None`` while the loop time is not known.
        :param loop: time until a torque shows in the error [s].
        :param least: smallest scales, (n,) or one for all [1].
        """
        if not self._begun and start is not None:
            self._begun, self.scale = True, np.minimum(self.scale, start)
        way = np.sign(path)
        self._passed = self._passed_of(self._passed, way, self._way, behind)
        self._reach = self._reach_of(self._reach, self._ahead, way, self._way, behind)
        self._ahead = self._ahead_of(self._ahead, way, behind)
        self._way = way
        counts = self._passed * self._beyond_of(self._reach, way, behind)
        error, predicted = behind * way / width, (behind + LEAD * slip) * way / width
        time = max(FOLLOW_TIME, FOLLOW_LOOPS * loop)
        scale = self._followed(
            self.scale, counts, error, predicted, dt / FOLLOW_TIME * moves, dt / time * moves
        )
        self.scale = np.maximum(self._rested(scale, counts, error, going, dt * (1.0 - moves), most), least)


def slack(friction: Any, loop: float, inertia: Any, slip: Any) -> Any:
    r"""Part :math:`\sigma` of the friction b by which a torque may be too large: it drives a joint beyond its goal for n loop times T.

    :math:`\tfrac12 \sigma b\,(nT)^2/J \le x`, with n = :data:`REACTION`, the inertia J, infinite where unknown, and x = ``slip`` [rad].
    """
    time = REACTION * max(loop, 1e-9)
    return 2.0 * slip * inertia / (friction * time * time)


def first(gain: float, allowed: Any) -> Any:
    r"""Largest scale to begin with, from 0 to 1: :math:`g s \le \kappa + \sigma` with :math:`\kappa` = :data:`LEAST_FRICTION` and ``allowed`` of :func:`slack`."""
    return np.minimum((LEAST_FRICTION + allowed) / max(gain, 1e-9), 1.0)


def least_beside(start: Any, certainty: Any) -> Any:
    """Smallest scale where friction is learnt from momentum, too: that to begin with, and 1 as that friction is certain."""
    return start + (1.0 - start) * certainty


def most_beyond(
    most: Any, gain: Any, certainty: Any, dry: Any, viscous: Any, wrong: Any, contact: Any, sudden: Any,
    allowed: Any = math.inf,
) -> Any:  # fmt: skip
    r"""Largest scale where friction is learnt from momentum, too.

    It completes the gain g to 1 and adds what the observer may have missed: :math:`g s \hat s \le (1 + \epsilon)\hat s + w` with the
    larger :math:`\hat s` of both learnt scales and :math:`\epsilon` = :data:`MISSED`. So a lag that is no friction (goals that are ahead) does not raise it further.
    At a contact it is 1. In slow loops :func:`slack` bounds what is added, too.

    :param most: largest scale by all other bounds [1].
    :param gain: g of learnt friction [1].
    :param certainty: of the learnt friction: nothing is added before the observer has seen motion, from 0 to 1.
    :param dry, viscous: learnt scales [1].
    :param wrong: w, error of the modelled weight per friction at rest [1].
    :param contact: degree of contact, in [0, 1].
    :param sudden: joints whose residual has just changed as at a contact.
    :param allowed: part of the friction by which the torque may be too large (:func:`slack`) [1].
    """
    xp = array_namespace(most, dry)
    learnt = xp.maximum(xp.maximum(dry, viscous), LEAST_LEARNT)
    largest = xp.minimum((1.0 + MISSED + wrong / learnt) / xp.maximum(gain, 1e-9), most / learnt)
    margin = xp.minimum(largest - 1.0, allowed / xp.maximum(gain * learnt, 1e-9))
    beyond = certainty * xp.maximum(margin, 0.0) * xp.maximum(1.0 - contact / UNTOUCHED, 0.0)
    return xp.where(sudden > 0.5, 1.0, 1.0 + beyond)


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


def followed(scale: Any, counts: Any, error: Any, predicted: Any, step: Any, rise: Any) -> Any:
    r"""The scale after a step of a goal that moves; ``counts`` is 1 where a position ahead of the goal counts.

    :param step, rise: :math:`\Delta t/T` of falling and of rising.
    """
    xp = array_namespace(scale, error)
    z = xp.minimum(xp.maximum(predicted, -1.0), 1.0)
    catching, ahead = xp.exp(step * xp.minimum(z, 0.0)), xp.exp(step * counts * xp.minimum(z, 0.0))
    wound = xp.maximum(scale - 1.0, 0.0)
    behind = scale - wound * (1.0 - catching) + rise * xp.maximum(z, 0.0)
    return xp.where(error > 0.0, behind, scale * ahead)


def rested(scale: Any, counts: Any, error: Any, going: Any, dt: Any, most: Any) -> Any:
    """The scale after a step of a goal at rest, ``dt`` [s] long, at most ``most``."""
    xp = array_namespace(scale, error)
    fallen = scale * xp.exp(-dt / FALL_TIME * going * counts * xp.minimum(xp.maximum(-error, 0.0), 1.0))
    still = xp.where(error > 0.0, 1.0 - going, 0.0)
    excess = xp.maximum(fallen - 1.0, 0.0)
    return xp.minimum(fallen - excess * (1.0 - xp.exp(-dt / RETURN_TIME * still)), most)
