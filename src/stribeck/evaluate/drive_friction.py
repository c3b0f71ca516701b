"""Friction of identified drives over speed, with the band that follows from their intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stribeck.errors import ConfigError
from stribeck.evaluate.draws import draws_of
from stribeck.model.arrays import Array
from stribeck.model.joint import Drive
from stribeck.model.law import friction_budget

POINTS, DRAWS, LEVEL = 200, 400, 0.95
"""Speeds of a curve, draws for its band, and the level of the band."""

FASTEST = {"rotary": 5.0, "linear": 1.0}
"""Largest speed where the law has no speed of its own [rad/s, m/s]."""

STRIBECK = 3.0
"""Largest speed as a multiple of the Stribeck speed."""


class DriveFriction(NamedTuple):
    """Friction against motion in positive direction, without load.

    :param speed: (N,) [rad/s or m/s].
    :param budget: (N,) [N m or N].
    :param low, high: ends of the band (N,), ``None`` if no parameter has an interval.
    """

    speed: Array
    budget: Array
    low: Array | None
    high: Array | None


def drive_friction(drive: Drive) -> DriveFriction:
    """Friction of a drive over speed; where it depends on the position, at the position around which it varies."""
    fastest = FASTEST[drive.actuator.units]
    if "dtheta_stribeck" in drive.values:
        fastest = max(fastest, STRIBECK * drive.values["dtheta_stribeck"])
    speed = np.linspace(0.0, fastest, POINTS)
    place = drive.values.get("friction_centre", 0.0)
    budget = np.asarray(friction_budget(drive.law, drive.values, 0.0, 0.0, speed, place)[0] + 0.0 * speed)
    try:
        drawn = draws_of(drive, DRAWS, 0)
    except ConfigError:
        return DriveFriction(speed, budget, None, None)
    values = {name: np.asarray(drawn.get(name, value))[..., None] for name, value in drive.values.items()}
    curves = np.asarray(friction_budget(drive.law, values, 0.0, 0.0, speed, place)[0] + 0.0 * speed)
    if curves.ndim < 2 or not np.ptp(curves, axis=0).any():
        return DriveFriction(speed, budget, None, None)
    rest = 0.5 * (1.0 - LEVEL)
    low, high = np.quantile(curves, [rest, 1.0 - rest], axis=0)
    return DriveFriction(speed, budget, low, high)
