"""Friction in even motion: at which speeds and loads it is compared, and what drives and draws from them say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stribeck.evaluate.draws import draws_of
from stribeck.model.joint import Drive
from stribeck.model.law import FrictionLaw, friction_budget, with_offset

FloatArray = npt.NDArray[np.float64]

SPEEDS = (0.1, 0.25, 0.5, 0.9)
"""Stated speeds, as shares of the speed that 98 % of the moving rows do not exceed."""

LOADS = (0.1, 0.5, 0.9)
"""Stated loads, as quantiles of those of the moving rows."""

DRAWS = 400


def points(v: FloatArray, load: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Stated speeds in both directions and loads of recorded rows (N,), all combinations (P,)."""
    moving = np.abs(v) > 0.02 * np.max(np.abs(v))
    fast = float(np.quantile(np.abs(v[moving]), 0.98))
    speeds = np.array([sign * share * fast for share in SPEEDS for sign in (1.0, -1.0)])
    loads = np.quantile(load[moving], LOADS)
    return np.repeat(speeds, len(loads)), np.tile(loads, len(speeds))


def even_friction(
    law: FrictionLaw, values: Mapping[str, Any], v: FloatArray, load: FloatArray, places: FloatArray
) -> FloatArray:
    """Friction (…, P) against an even motion at speeds and loads (P,) [N m], mean over places."""

    def at_place(place: float) -> FloatArray:
        found = np.zeros(np.broadcast_shapes(np.shape(values["armature"]), v.shape))
        for _ in range(4):  # the motor carries the load and the friction
            motor = load + np.sign(v) * found
            positive, negative = friction_budget(law, values, motor, -load, v, place)
            found = np.asarray(np.where(v < 0.0, negative, positive)) + np.zeros_like(found)
        return np.asarray(found - np.sign(v) * with_offset(law, values, 0.0))

    return np.asarray(np.mean([at_place(place) for place in places], axis=0))


def drawn_friction(
    drive: Drive, v: FloatArray, load: FloatArray, places: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Friction (P,) of a drive in even motion at speeds and loads (P,), and of draws from it (D, P), means over places."""
    drawn = {name: value[:, None] for name, value in draws_of(drive, DRAWS, 0).items()}
    found = even_friction(drive.law, dict(drive.values), v, load, places)
    return found, even_friction(drive.law, drawn, v[None], load[None], places)


def relative_width(true: FloatArray, found: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Width of bands (P,) relative to that at which they would hold 95 % of the true values, all widened by one factor."""
    side = np.where(true < found, found - low, high - found)
    return float(1.0 / np.quantile(abs(true - found) / np.maximum(side, 1e-12), 0.95))
