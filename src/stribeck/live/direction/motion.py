"""Direction of the measured or intended motion of a joint, and its tuning at rest and at reversals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from stribeck.model.namespace import array_namespace

SLOPE_TIME = 0.02
"""Time constant of velocities computed as the slope of positions [s]."""

FINEST = 1e-4
"""Finest position resolution assumed when rest and reversals are judged [rad]."""


PRESLIDING = 1e-3
"""Smallest presliding length that is derived from a resolution [rad]."""


@dataclass(frozen=True)
class Tuning:
    r"""Feed-forward behaviour at rest and at reversals; fields are numbers, or arrays with one number per joint.

    :param deadband: position error below which a joint at rest has no intended motion [rad].
    :param error_width: error beyond the dead-band at which the intention is full [rad].
    :param command_velocity: commanded velocity at which the intention is full [rad/s].
    :param moving_velocity: measured velocity :math:`v_h` above which the motion alone decides [rad/s].
    :param overshoot_fraction: fraction of the feed-forward torque that remains when a joint moves away from a goal at rest. Below
        :math:`(2 - g)/g` a joint whose friction is overestimated loses energy in every swing about the
        goal, so it cannot keep oscillating.
    :param presliding: displacement after a reversal within which friction changes sign [rad].
    """

    deadband: Any = 0.0046
    error_width: Any = 0.012
    command_velocity: Any = 0.1
    moving_velocity: Any = 0.3
    overshoot_fraction: Any = 0.3
    presliding: Any = 0.0031

    @classmethod
    def of_resolution(cls, resolution: float) -> Tuning:
        r"""Tuning for a joint with a position resolution [rad]: 3 steps are no error, 8 steps a full one.

        Velocities from slopes over :data:`SLOPE_TIME` are multiples of resolution / time; 4 of these count as
        motion. Resolutions below :data:`FINEST` are treated as :data:`FINEST`.
        """
        step = max(resolution, FINEST)
        moving = 4.0 * step / SLOPE_TIME
        return cls(3.0 * step, 8.0 * step, moving / 3.0, moving, presliding=max(2.0 * step, PRESLIDING))

    def with_joint_values(self, ratio: float, **said: float) -> Tuning:
        """This tuning with some fields replaced by values in the coordinates of a joint behind a gear.

        :param ratio: turns of the servo per turn of the joint.
        """
        factors = {name: 1.0 if name == "overshoot_fraction" else ratio for name in said}
        return replace(self, **{name: factors[name] * value for name, value in said.items()})

    @classmethod
    def stacked(cls, tunings: Sequence[Tuning]) -> Tuning:
        """The tuning of several joints as one, with arrays (n,)."""
        columns = (np.array([getattr(t, f.name) for t in tunings], dtype=np.float64) for f in fields(cls))
        return cls(*columns)


def clipped(x: Any, limit: Any) -> Any:
    """``x`` clipped to ± limit."""
    xp = array_namespace(x, limit)
    return xp.minimum(xp.maximum(x, -limit), limit)


def smooth_step(x: Any) -> Any:
    """Odd, smooth step from -1 at -1 to 1 at 1: :math:`(3x - x^3)/2`, constant outside."""
    x = clipped(x, 1.0)
    return x * (1.5 - 0.5 * x * x)


def motion_direction(velocity: Any, tuning: Tuning) -> Any:
    r"""Direction of the measured motion, in [-1, 1], as far as velocity alone decides.

    :math:`m = a\,sign(\dot\theta)`, :math:`a = u^2(3 - 2u)`, :math:`u = \min(|\dot\theta|/v_h, 1)`.

    :param velocity: measured velocity :math:`\dot\theta` [rad/s].
    """
    u = clipped(velocity / tuning.moving_velocity, 1.0)
    size = array_namespace(u).abs(u)
    return u * size * (3.0 - 2.0 * size)


def intended_direction(velocity: Any, error: Any, command_velocity: Any, tuning: Tuning) -> Any:
    r"""Direction of the actual or intended motion, in [-1, 1], smooth through zero.

    :param velocity: measured velocity :math:`\dot\theta` [rad/s].
    :param error: goal minus position e [rad]; 0 without a goal.
    :param command_velocity: :math:`\dot\theta_d` [rad/s]; 0 if unknown.

    At rest the intention :math:`i = S(z(e)/e_w + \dot\theta_d/v_c)` decides, with z the error beyond
    the dead-band and S the step :func:`smooth_step`. In motion the sign of the velocity decides; in between,
    :math:`d = m + (1-|m|)\,i` with m of :func:`motion_direction`. When a joint moves away from a goal at rest, d is
    reduced by up to the factor ``overshoot_fraction`` (see :class:`Tuning`), fully so at the edge of the dead-band. d is odd: it
    changes sign when all arguments do.
    """
    xp = array_namespace(velocity, error, command_velocity)
    within = clipped(error, tuning.deadband)
    commanded = command_velocity / tuning.command_velocity
    intention = smooth_step((error - within) / tuning.error_width + commanded)
    motion = motion_direction(velocity, tuning)
    direction = motion + (1.0 - xp.abs(motion)) * intention
    led = xp.minimum(xp.abs(commanded), 1.0)
    retreat = xp.maximum(-motion * within / xp.maximum(tuning.deadband, 1e-9), 0.0)
    return direction * (1.0 - (1.0 - tuning.overshoot_fraction) * (1.0 - led) * retreat)
