r"""The slowest speed at which a servo follows a ramp without stopping, and the height of the stairs below it (stick-slip).

A joint whose friction falls with speed sticks until the growing error overcomes it, slips, and sticks again. Goals rise at constant speeds
:math:`v`; a speed is smooth if the joint never stops in the second half of the ramp. Stairs are the movements between two stops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stribeck.advise.plant import JointPlant
from stribeck.model.arrays import Array, Mask

RANGES = (np.geomspace(0.05, 2.0, 19), np.geomspace(0.005, 0.05, 12))
"""Speeds that are compared [rad/s]; the lower ones only for joints that move smoothly at all of the upper ones."""

SAMPLED = np.concatenate([[0.0], np.geomspace(1e-5, 10.0, 300)])
"""Speeds at which friction is tabulated [rad/s]."""

STEP = 1e-3
"""Time step [s]; shorter for stiff joints."""

SETTLING = 3.0
"""Time after the error has grown enough to move the joint [s]."""

SHORT = 0.05
"""Step as a share of the time constant of a joint."""


class Stairs(NamedTuple):
    """Slow motion of a joint.

    :param slowest: slowest smooth speed [rad/s], 0 if every speed is.
    :param height: of the stairs at half that speed [rad], 0 without any.
    """

    slowest: float
    height: float


def stairs(plants: Sequence[JointPlant]) -> list[Stairs]:
    """Slow motion of joints, simulated together; see the module docstring."""
    found = [Stairs(0.0, 0.0)] * len(plants)
    left = [k for k, plant in enumerate(plants) if _may_stick(plant)]
    for speeds in RANGES:
        if left:
            stopped, height = ramps([plants[k] for k in left], speeds)
            for k, rough, steps in zip(left, stopped, height, strict=True):
                found[k] = _summary(speeds, rough, steps)
            left = [k for k in left if not found[k].slowest]
    return found


def _may_stick(plant: JointPlant) -> bool:
    """Whether friction falls with speed somewhere by more than damping grows; else every ramp is stable."""
    against, _ = plant.friction(SAMPLED, -plant.load)
    return bool(np.any(np.diff(against) / np.diff(SAMPLED) < -plant.damping))


def _summary(speeds: Array, rough: Mask, height: Array) -> Stairs:
    places = np.flatnonzero(rough)
    if not len(places):
        return Stairs(0.0, 0.0)
    last = int(places[-1])
    if last + 1 == len(speeds):
        return Stairs(math.inf if speeds is RANGES[0] else float(speeds[last]), float(height[last]))
    return Stairs(float(np.sqrt(speeds[last] * speeds[last + 1])), float(height[last // 2]))


def ramps(plants: Sequence[JointPlant], speeds: Array) -> tuple[Mask, Array]:
    """Whether each joint stops in the second half of a ramp, and its mean movement between stops [rad], by speed (m, n)."""
    stiffness, damping, inertia = (
        np.array([[getattr(plant, name)] for plant in plants]) for name in ("stiffness", "damping", "inertia")
    )
    dt = min(STEP, SHORT * float(np.sqrt(inertia / stiffness).min()))
    sampled = SAMPLED
    against = np.array([plant.friction(sampled, -plant.load)[0] for plant in plants])
    slopes = np.diff(against) / np.diff(sampled)
    delayed = 3.0 * against[:, :1] / stiffness
    durations = SETTLING + 3.0 * delayed / speeds
    shape = durations.shape
    position, velocity, goal, begun = (
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape),
        np.full(shape, np.nan),
    )
    stops, travelled, rows = np.zeros(shape), np.zeros(shape), np.arange(len(plants))[:, None]
    for time in np.arange(0.0, durations.max(), dt):
        goal += speeds * dt
        drive = stiffness * (goal - position) - damping * velocity
        fast = np.abs(velocity)
        place = np.clip(np.searchsorted(sampled, fast) - 1, 0, len(sampled) - 2)
        resistance = against[rows, place] + slopes[rows, place] * (fast - sampled[place])
        direction = np.where(velocity != 0.0, np.sign(velocity), np.sign(drive))
        held = (velocity == 0.0) & (np.abs(drive) <= resistance)
        faster = velocity + np.where(held, 0.0, drive - direction * resistance) * dt / inertia
        stopping = (velocity > 0.0) & (faster <= 0.0)
        velocity = np.where((velocity * faster < 0.0) | stopping, 0.0, faster)
        position += dt * velocity
        new = stopping & (time > 0.5 * durations) & (time < durations)
        travelled += np.where(new & np.isfinite(begun), position - begun, 0.0)
        stops += new
        begun = np.where(new, position, begun)
    return stops > 0.0, travelled / np.maximum(stops - 1.0, 1.0)
