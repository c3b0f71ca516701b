"""Direction of the motion that is measured or intended, and how it is tuned at rest and at reversals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from stribeck.core.namespace import array_namespace

SLOPE_TIME = 0.02
"""Time constant of a velocity that is the slope of positions [s]."""

FINEST = 1e-4
"""No joint is told finer than this when its rest and its reversals are judged [rad]."""


PRESLIDING = 1e-3
"""Presliding length of a joint of which nothing else is known [rad]."""


@dataclass(frozen=True)
class Tuning:
    r"""How feed-forward treats rest and reversals.

    :param deadband: position error below which a joint at rest intends nothing [rad].
    :param error_width: error beyond the dead-band at which the intention is full [rad].
    :param command_velocity: commanded velocity at which the intention is full [rad/s].
    :param moving_velocity: measured velocity :math:`v_h` from which the motion itself decides [rad/s].
    :param away: share of the feed-forward that is left when a joint moves away from a goal that
        rests. Below :math:`(2 - g)/g` a joint whose friction is overestimated loses energy in every
        swing about the goal, so it cannot keep swinging.
    :param presliding: motion after a reversal within which friction turns round [rad].

    Each is a number, or an array with one for each joint.
    """

    deadband: Any = 0.0046
    error_width: Any = 0.012
    command_velocity: Any = 0.1
    moving_velocity: Any = 0.3
    away: Any = 0.3
    presliding: Any = 0.0031

    @classmethod
    def of_resolution(cls, resolution: float) -> Tuning:
        r"""For a joint whose position comes in steps [rad]: 3 of them are no error, 8 a whole one.

        A slope of positions over :data:`SLOPE_TIME` comes in steps of resolution / time: 4 of them are
        motion. Nothing is finer than :data:`FINEST`.
        """
        step = max(resolution, FINEST)
        moving = 4.0 * step / SLOPE_TIME
        return cls(3.0 * step, 8.0 * step, moving / 3.0, moving, presliding=max(2.0 * step, PRESLIDING))

    def told(self, ratio: float, **said: float) -> Tuning:
        """This tuning with what is said of a joint, in the joint's coordinates, behind a gear.

        :param ratio: turns of the servo per turn of the joint.
        """
        factors = {name: 1.0 if name == "away" else ratio for name in said}
        return replace(self, **{name: factors[name] * value for name, value in said.items()})

    @classmethod
    def stacked(cls, tunings: Sequence[Tuning]) -> Tuning:
        """The tuning of several joints as one, with arrays (n,)."""
        columns = (np.array([getattr(t, f.name) for t in tunings], dtype=np.float64) for f in fields(cls))
        return cls(*columns)


def clipped(x: Any, limit: Any) -> Any:
    """X within ± limit."""
    xp = array_namespace(x, limit)
    return xp.minimum(xp.maximum(x, -limit), limit)


def smooth_step(x: Any) -> Any:
    """Odd and smooth from -1 at -1 to 1 at 1: :math:`(3x - x^3)/2`, constant outside."""
    x = clipped(x, 1.0)
    return x * (1.5 - 0.5 * x * x)


def motion_direction(velocity: Any, tuning: Tuning) -> Any:
    r"""Direction of the motion that is, in [-1, 1], as far as motion alone decides.

    :math:`m = a\,sign(\dot\theta)`, :math:`a = u^2(3 - 2u)`, :math:`u = \min(|\dot\theta|/v_h, 1)`.

    :param velocity: measured velocity :math:`\dot\theta` [rad/s].
    """
    u = clipped(velocity / tuning.moving_velocity, 1.0)
    size = array_namespace(u).abs(u)
    return u * size * (3.0 - 2.0 * size)


def intended_direction(velocity: Any, error: Any, command_velocity: Any, tuning: Tuning) -> Any:
    r"""Direction of the motion that is or is intended, in [-1, 1], smooth through zero.

    :param velocity: measured velocity :math:`\dot\theta` [rad/s].
    :param error: goal minus position e [rad]; 0 where no goal is known.
    :param command_velocity: :math:`\dot\theta_d` [rad/s]; 0 where it is not known.

    At rest the intention :math:`i = S(z(e)/e_w + \dot\theta_d/v_c)` decides, with the error beyond
    the dead-band z and the step S of :func:`smooth_step`; in motion its sign; between them the share of
    :func:`motion_direction`: :math:`d = m + (1-|m|)\,i`.
    Away from a goal at rest d is smaller (see :class:`Tuning`), the more the further the joint is
    beyond the goal, fully so at the edge of the dead-band. d is odd: with all signs turned it turns.
    """
    xp = array_namespace(velocity, error, command_velocity)
    within = clipped(error, tuning.deadband)
    commanded = command_velocity / tuning.command_velocity
    intention = smooth_step((error - within) / tuning.error_width + commanded)
    motion = motion_direction(velocity, tuning)
    direction = motion + (1.0 - xp.abs(motion)) * intention
    led = xp.minimum(xp.abs(commanded), 1.0)
    retreat = xp.maximum(-motion * within / xp.maximum(tuning.deadband, 1e-9), 0.0)
    return direction * (1.0 - (1.0 - tuning.away) * (1.0 - led) * retreat)
