"""Pieces of motion for controllers that take them whole and come to rest at their end."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from stribeck.session.directive import Plan
from stribeck.session.motion import Brake

FloatArray = npt.NDArray[np.float64]

AT_REST = 1e-6
"""Who stops within this time is at rest already, but for rounding: controllers want times that rise [s]."""


def with_rest(plan: Plan, deceleration: FloatArray, step: float, rest: float) -> Plan:
    """A plan with the way to rest behind it, and a while of rest.

    Whoever has it stops even if nobody says anything further; and it is not over when it arrives, which
    controllers refuse. An infinite deceleration leaves the last position as it is, with the velocity zero.

    :param deceleration: of each joint, (J,) [rad/s²].
    :param step: between points [s].
    :param rest: how long it rests at the end [s].
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


def hold(position: FloatArray, start: float, duration: float) -> Plan:
    """To a position within a time, and there to rest.

    :param position: (J,) [rad].
    :param start: when it begins, on the clock of the session [s].
    :param duration: [s].
    """
    return Plan(start, np.array([duration]), position[np.newaxis], np.zeros((1, position.size)))
