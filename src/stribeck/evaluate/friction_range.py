"""Friction of a law over velocity and load, for curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stribeck.evaluate.diagram import SPEEDS
from stribeck.model.arrays import Array
from stribeck.model.joint import Drive
from stribeck.model.law import friction_budget

MARGIN = 1.25
"""Friction is plotted up to this multiple of the recorded load."""

CURVE_POINTS = 121
"""Points of friction curves and diagrams."""


@dataclass(frozen=True, eq=False)
class Friction:
    """Friction budget of a law [N m], with motor torque and external torque in opposite balance.

    :param velocity: (V,) [rad/s].
    :param loads: external torque of each curve over velocity (L,) [N m].
    :param over_velocity: friction (L, V).
    :param load: external torque (X,) [N m].
    :param speeds: speed of each curve over load (S,) [rad/s].
    :param over_load: friction (S, X).
    """

    velocity: Array
    loads: Array
    over_velocity: Array
    load: Array
    speeds: Array
    over_load: Array


def friction_of(file: Drive, fastest: float, largest_load: float) -> Friction:
    """Curves up to a velocity [rad/s], and up to a load [N m] with its margin."""
    law, values = file.law, file.values
    velocity = np.linspace(*law.speed_range(max(fastest, 1e-3)), CURVE_POINTS)
    loads = np.array([0.0, 0.5, 1.0]) * largest_load / MARGIN
    load = np.linspace(0.0, largest_load, CURVE_POINTS)
    speeds = np.array([0.0, *(speed for speed in SPEEDS[1:] if speed <= fastest)])

    def budget(motor: Array, moving: Array) -> Array:
        positive, negative = friction_budget(law, values, motor, -motor, moving)
        chosen = np.where(moving < 0.0, negative, positive)
        return np.asarray(np.broadcast_to(chosen, np.broadcast_shapes(motor.shape, moving.shape)))

    return Friction(
        velocity=velocity,
        loads=loads,
        over_velocity=budget(loads[:, None], velocity[None]),
        load=load,
        speeds=speeds,
        over_load=budget(load[None], speeds[:, None]),
    )
