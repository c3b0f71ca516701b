"""Random Fourier trajectories, scaled until a limit binds: what a search starts from, and is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.excitation.criterion import TORQUE_SHARE, Criterion
from stribeck.excitation.task import Task

Array = npt.NDArray[np.float64]

CHUNK = 64
"""Trajectories whose clearances are taken at once."""

HALVINGS = 5
"""Steps of the bisection for the largest amplitude without collision."""

SMALLEST = 0.05
"""Trajectories that collide at this share of their amplitude are drawn anew."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """Random trajectories, the most informative first.

    :param z: (N, n (2 L - 1)).
    :param log_det: (N,), descending.
    """

    z: Array
    log_det: Array


def random_baseline(
    criterion: Criterion,
    count: int,
    seed: int,
    tell: Callable[[int], bool] = lambda done: True,
) -> Baseline:
    """So many random trajectories within all limits.

    Coefficients are normal; each joint is scaled until its position, velocity, acceleration or a coefficient binds,
    its offset is uniform in the room that is left. Where bodies or torques then go beyond their limits, all joints
    are scaled together.

    :param tell: takes how many are done; they end there if it returns ``False``.
    :raises ConfigError: if no random configuration is free of collisions.
    """
    rng = np.random.default_rng(seed)
    kept: list[Array] = []
    values: list[float] = []
    barren = 0
    while len(kept) < count and barren < 50:
        drawn = _without_collision(criterion, _draw(criterion.task, rng, CHUNK))
        barren = 0 if len(drawn) else barren + 1
        for z in drawn[: count - len(kept)]:
            scaled, value = _within_torque(criterion, z)
            kept.append(scaled)
            values.append(value)
            if not tell(len(kept)):
                barren = 50
                break
    if not kept:
        raise ConfigError(
            "no random trajectory keeps clear of floor and bodies: check floor, clearance, capsules and the position "
            "limits of the robot's file"
        )
    order = np.argsort(values)[::-1]
    return Baseline(np.array(kept)[order], np.array(values)[order])


def _draw(task: Task, rng: np.random.Generator, count: int) -> Array:
    """Random trajectories whose joints are each at a limit, (count, n (2 L - 1))."""
    n, width = task.shape
    limits, rows = task.limits, task.basis(task.samples)
    z = rng.normal(size=(count, n, width))
    z[..., -1] = 0.0
    swing = z @ rows.position.T
    lowest, highest = swing.min(axis=-1), swing.max(axis=-1)
    room = task.margin * (limits.upper - limits.lower)
    reached = [
        (highest - lowest) / room,
        np.abs(z @ rows.velocity.T).max(axis=-1) / (task.margin * limits.velocity),
        np.abs(z @ rows.acceleration.T).max(axis=-1) / (task.margin * limits.acceleration),
        np.abs(z @ task.rest[:-1].T).max(axis=-1) / limits.coefficient,
    ]
    scale = 1.0 / np.max(reached, axis=0)
    z *= scale[..., None]
    middle = 0.5 * (limits.upper + limits.lower)
    left = np.maximum(room - scale * (highest - lowest), 0.0)
    start = middle - 0.5 * room - scale * lowest
    z[..., -1] = start + left * rng.random((count, n))
    return z.reshape(count, -1)


def _shrunk(task: Task, z: Array, share: Array | float) -> Array:
    """The same with a share of the amplitude about the same offsets, (…, n (2 L - 1))."""
    found = np.array(z).reshape(-1, *task.shape)
    found[..., :-1] *= np.reshape(share, (-1, 1, 1))
    return found.reshape(np.shape(z))


def _without_collision(criterion: Criterion, z: Array) -> Array:
    """Trajectories scaled until no bodies are too near; those that stay so are left out."""
    task = criterion.task
    if not task.shapes:
        return z
    good = np.zeros(len(z))
    low, high = np.zeros(len(z)), np.ones(len(z))
    share = high
    for _ in range(HALVINGS + 1):
        free = _clear(criterion, _shrunk(task, z, share))
        good = np.where(free, share, good)
        low, high = np.where(free, share, low), np.where(free, high, share)
        share = 0.5 * (low + high)
    return _shrunk(task, z, good)[good > SMALLEST]


def _clear(criterion: Criterion, z: Array) -> npt.NDArray[np.bool_]:
    """Whether each of several trajectories keeps all bodies apart."""
    task = criterion.task
    position = z.reshape(-1, *task.shape) @ task.basis(task.samples).position.T
    apart = criterion.apart(np.moveaxis(position, 1, 0).reshape(task.joints, -1))
    return np.asarray(apart.reshape(len(z), -1).min(axis=1) > 0.0)


def _within_torque(criterion: Criterion, z: Array) -> tuple[Array, float]:
    """A trajectory scaled until its torques are within their limits, and its log determinant."""
    task = criterion.task
    while True:
        seen = criterion.observe(z)
        if np.abs(seen.torque / task.limits.effort[:, None]).max() < TORQUE_SHARE:
            return z, seen.log_det
        z = _shrunk(task, z, 0.9)
        if np.abs(z.reshape(task.shape)[:, :-1]).max() < 1e-6:
            raise ConfigError("the arm cannot hold itself within its effort limits: check limits: effort")
