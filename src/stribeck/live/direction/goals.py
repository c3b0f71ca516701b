"""Direction of the motion that goals demand, with reversals known in advance.

A goal *leads* its joint while it moves and, after it has come to rest, until the joint has arrived.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stribeck.live.direction.travel import turned
from stribeck.live.formulas import Compiler, as_written, compiled_by
from stribeck.model.arrays import Array
from stribeck.model.namespace import array_namespace

LED_TIME = 0.1
"""Time constant with which a resting goal stops leading a joint that has passed it [s]."""

LEADING = 0.1
"""A goal faster than this fraction of the command velocity leads with full weight [1]."""

ARRIVAL_TIME = 1.0
"""Longest time that a goal at rest keeps leading a joint that has not arrived [s]."""

HOLD_TIME = 60.0
"""Time constant with which a joint at rest at its goal loses the torque of its arrival [s]."""

CONFLICT_TIME = 0.01
"""Time constant with which a motion opposite to that of the goal overrides it [s]."""


class GoalPath:
    r"""Direction in which goals lead n joints, from friction that reverses along the path of the goals.

    The direction follows :func:`~stribeck.live.direction.travel.turned` with the steps of the goal. Since goals have no noise, the
    direction is known before the joint has moved.
    """

    def __init__(self, joints: int, compiler: Compiler = as_written) -> None:
        self._joints = joints
        self._direction_of = compiled_by(compiler, _direction)
        self._moves_of = compiled_by(compiler, _moves)
        self._resting_of = compiled_by(compiler, _resting)
        self._leads_of = compiled_by(compiler, _leads)
        self._led_of = compiled_by(compiler, _led)
        self._conflict_of = compiled_by(compiler, _conflict)
        self._share_of = compiled_by(compiler, _share)
        self.restart()

    def restart(self) -> None:
        """Forget the path."""
        self.direction: Array = np.zeros(self._joints)
        self.led: Array = np.zeros(self._joints)
        self.leads = np.zeros(self._joints, dtype=np.bool_)
        """Joints whose goal moves, or that have not arrived at it yet."""
        self.moves: Array = np.zeros(self._joints)
        """Weight with which the velocity of a goal leads, in [0, 1]."""
        self._goal: Array = np.full(self._joints, np.nan)
        self._resting: Array = np.full(self._joints, np.inf)
        self._conflict: Array = np.zeros(self._joints)

    def update(
        self,
        goal: Array,
        rate: Array,
        behind: Array,
        motion: Array,
        dt: float,
        presliding: Any,
        command_velocity: Any,
        error: Any = None,
    ) -> None:
        r"""Update with a goal.

        :param goal: :math:`\theta_d` (n,) [rad], NaN without a goal.
        :param rate: :math:`\dot\theta_d` [rad/s].
        :param behind: goal minus position beyond the dead-band, 0 within it [rad].
        :param error: goal minus position divided by the dead-band, in [-1, 1]; the sign of ``behind`` if left out [1].
        :param motion: direction of the measured motion, in [-1, 1].
        :param presliding: :math:`\ell` [rad].
        :param command_velocity: as in :class:`~stribeck.live.direction.motion.Tuning` [rad/s].
        """
        self.direction = direction = self._direction_of(
            self.direction, goal, self._goal, rate * dt, presliding
        )
        self._goal = goal
        self.moves = self._moves_of(rate, command_velocity)
        self._resting = self._resting_of(self._resting, rate, command_velocity, behind, direction, dt)
        self.leads = self._leads_of(self._resting, rate, command_velocity)
        error = np.sign(behind) if error is None else error
        self.led = self._led_of(self.led, self._resting, rate, command_velocity, error, direction, dt)
        self._conflict = self._conflict_of(self._conflict, motion, direction, min(1.0, dt / CONFLICT_TIME))

    @property
    def share(self) -> Array:
        """Weight of the direction of the goals, in [0, 1], (n,)."""
        return np.asarray(self._share_of(self.led, self._conflict))


def _direction(direction: Any, goal: Any, before: Any, step: Any, presliding: Any) -> Any:
    xp = array_namespace(goal, before)
    change = goal - before
    # A goal that steps back against its velocity is noise.
    along = xp.where(change * step < 0.0, 0.0, change)
    return turned(direction, xp.where(xp.isfinite(change), along, step), presliding)


def _moves(rate: Any, command_velocity: Any) -> Any:
    """Weight with which the velocity of a goal leads, in [0, 1]."""
    xp = array_namespace(rate)
    return xp.minimum(xp.abs(rate) / (LEADING * command_velocity), 1.0)


def _resting(resting: Any, rate: Any, command_velocity: Any, behind: Any, direction: Any, dt: Any) -> Any:
    """Time since a goal came to rest [s], infinite once its joint has arrived."""
    xp, moves = array_namespace(resting, rate), _moves(rate, command_velocity)
    resting = xp.where(moves >= 1.0, 0.0, resting + dt)
    arrived = (behind * direction <= 0.0) | (resting > ARRIVAL_TIME)
    return xp.where(arrived & (moves < 1.0), math.inf, resting)


def _leads(resting: Any, rate: Any, command_velocity: Any) -> Any:
    return (resting < math.inf) | (_moves(rate, command_velocity) > 0.5)


def _led(
    led: Any, resting: Any, rate: Any, command_velocity: Any, error: Any, direction: Any, dt: Any
) -> Any:
    """Weight of a goal; at rest it fades faster the further its joint has passed it."""
    xp = array_namespace(led, rate, error)
    ahead = xp.maximum(-error * direction, 0.0)
    fading = xp.exp(-dt * (ahead / LED_TIME + (1.0 - ahead) / HOLD_TIME))
    return xp.maximum(xp.where(resting < math.inf, led, led * fading), _moves(rate, command_velocity))


def _conflict(conflict: Any, motion: Any, direction: Any, share: Any) -> Any:
    against = array_namespace(motion).maximum(-motion * direction, 0.0)
    return conflict + share * (against - conflict)


def _share(led: Any, conflict: Any) -> Any:
    return led * (1.0 - array_namespace(led).minimum(2.0 * conflict, 1.0))
