"""Motion segments for trajectory controllers, which receive them whole and stop at their end."""

from __future__ import annotations

import math

import numpy as np

from stribeck.core.arrays import Array
from stribeck.session.directive import Plan
from stribeck.session.motion import Brake

AT_REST = 1e-6
"""Stopping time [s] below which a joint counts as at rest; controllers need strictly increasing times."""


def with_rest(plan: Plan, deceleration: Array, step: float, rest: float) -> Plan:
    """Extend a plan by deceleration and a period of rest.

    The controller then stops even if it receives nothing further, and the plan is not already over on arrival, which
    controllers would reject. With infinite deceleration the last position is held at zero velocity.

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


def hold(position: Array, start: float, duration: float) -> Plan:
    """Plan that moves to a position (J,) [rad] within ``duration`` [s] from ``start`` [s] and rests there."""
    return Plan(start, np.array([duration]), position[np.newaxis], np.zeros((1, position.size)))
