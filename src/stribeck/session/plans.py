"""Motion segments for trajectory controllers, which receive them whole and stop at their end; durations of plays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stribeck.model.arrays import Array
from stribeck.session.directive import Plan, SessionOptions
from stribeck.session.limits import Play, SessionJoint
from stribeck.session.motion import Brake, Following, Glide, GoalMotion

AT_REST = 1e-6
"""Stopping time [s] below which a joint counts as at rest; controllers need strictly increasing times."""


def sampled(motion: GoalMotion, start: float, step: float, bounds: tuple[Array, Array]) -> Plan | None:
    """A motion as points, or ``None`` if it holds a position.

    :param start: its start time [s].
    :param step: longest time between points [s].
    :param bounds: lower and upper bounds of the positions, (J,) each [rad].
    """
    if motion.duration <= 0.0:
        return None
    count = max(1, math.ceil(motion.duration / step))
    time = np.linspace(0.0, motion.duration, count + 1)
    position = np.clip([motion.position(float(t)) for t in time], *bounds)
    velocity = np.array([motion.velocity(float(t)) for t in time])
    return Plan(start, time, position, velocity)


def with_rest(plan: Plan, deceleration: Array, step: float, rest: float) -> Plan:
    """Extend a plan by deceleration and a period of rest.

    The controller then stops even if it receives nothing further, and the plan is not already over when it arrives late:
    controllers reject such plans, and go on with what they have. With infinite deceleration the last position is held at zero velocity.

    :param deceleration: of each joint, (J,) [rad/s²].
    :param step: time between points [s].
    :param rest: duration of the rest period [s].
    """
    brake = Brake(plan.position[-1], plan.velocity[-1], deceleration)
    count = math.ceil(brake.duration / step) if brake.duration > AT_REST else 0
    time = np.linspace(0.0, brake.duration, count + 1)[1:]
    ends = [*time, brake.duration + rest]
    velocity = plan.velocity.copy()
    if not count:
        velocity[-1] = 0.0
    return Plan(
        plan.start,
        np.concatenate([plan.time, plan.time[-1] + np.array(ends)]),
        np.concatenate([plan.position, [brake.position(float(t)) for t in ends]]),
        np.concatenate([velocity, [brake.velocity(float(t)) for t in ends]]),
    )


def hold(position: Array, start: float, duration: float, rest: float) -> Plan:
    """Plan that moves to a position (J,) [rad] within ``duration`` [s] from ``start`` [s] and rests there for ``rest`` [s]."""
    times = np.array([duration, duration + rest])
    return Plan(start, times, np.tile(position, (2, 1)), np.zeros((2, position.size)))


def estimated_duration(
    play: Play,
    joints: Sequence[SessionJoint],
    rest: Array,
    soft: tuple[Array, Array],
    options: SessionOptions,
) -> float:
    """Estimated duration of a play with all its phases [s].

    :param rest: position between runs, (J,) [rad].
    :param soft: speed [rad/s] and acceleration [rad/s²] between runs, (J,) each.
    """
    before = options.gain_time + 2.0 * options.rest_time + play.trajectory.duration
    following = Following(play.trajectory, joints)
    if following.drops:
        return before + options.enable_time + options.swing_time + 2.0
    back = Glide.within(following.position(play.trajectory.duration), rest, *soft)
    return before + back.duration + 2.0 * options.rest_time
