"""Random Fourier trajectories, scaled until a limit is active: start points and baseline of the search."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Lock

import numpy as np

from stribeck.errors import ConfigError
from stribeck.excitation.criterion import POSITIONS, TORQUE_SHARE, Criterion
from stribeck.excitation.task import ExcitationTask
from stribeck.model.arrays import Array, Mask

BATCH = 128
"""Number of trajectories drawn at once."""

EXACT = 100
"""Number of the best trajectories whose information is computed from all samples."""

HALVINGS = 5
"""Bisection steps for the largest amplitude without collision."""

LEAST = 16
"""Number of trajectories of a batch that are finished even if time is up: drawing them took longer."""

HOPELESS = 10
"""After so many trajectories without one within the effort limits, the search ends when its time is up."""

SMALLEST = 0.05
"""Trajectories that still collide, or need too much torque, at this share of their amplitude are replaced."""

CANDIDATES = 512
"""Random trajectories whose offsets are checked at once."""

DRAWS = 100
"""Maximum number of attempts to find a batch of collision-free offsets."""

FEWEST = 16
"""Number of collision-free offsets that are enough if all attempts find no more."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """Random trajectories, the most informative first.

    :param z: (N, n (2 L - 1)).
    :param log_det: (N,), descending; estimates beyond the first :data:`EXACT`.
    """

    z: Array
    log_det: Array


def random_baseline(
    criterion: Criterion,
    count: int,
    seed: int,
    pool: Executor,
    tell: Callable[[int], bool] = lambda done: True,
) -> Baseline:
    """Random trajectories within all limits.

    Coefficients are normally distributed. Each joint is scaled until its position, velocity, acceleration or a
    coefficient reaches its limit, with a uniformly distributed offset in the remaining range. Then all joints are scaled
    together until collisions are avoided and torques are within their limits.

    :param pool: threads for the work.
    :param tell: called with the number of finished trajectories; if it returns ``False``, the work ends with what is
        there, at least :data:`LEAST` trajectories.
    :raises ConfigError: if no random configuration is free of collisions, or within the effort limits.
    """
    lock, done = Lock(), [0]  # number of trajectories finished by all threads

    def batch(number: int) -> list[tuple[Array, float]]:
        if number and not tell(done[0]):
            return []
        wanted = min(BATCH, count - number * BATCH)
        made = _batch(criterion, np.random.default_rng([seed, number]), wanted, lambda: tell(done[0]))
        with lock:
            done[0] += len(made)
        tell(done[0])
        return made

    batches = pool.map(batch, range(-(-count // BATCH)))
    return _best_first(criterion, [item for items in batches for item in items], lambda: tell(done[0]))


def _batch(
    criterion: Criterion, rng: np.random.Generator, count: int, go_on: Callable[[], bool]
) -> list[tuple[Array, float]]:
    """Trajectories and their log determinants; fewer than ``count``, but at least :data:`LEAST`, if ``go_on`` returns ``False``."""
    made: list[tuple[Array, float]] = []
    tried = 0
    for _ in range(DRAWS):
        for z in _shrink_to_clear(criterion, _draw_clear(criterion, rng)):
            found = _within_torque(criterion, z)
            made += [] if found is None else [found]
            tried += 1
            if not made and tried >= HOPELESS and not go_on():
                raise ConfigError(
                    f"none of {tried} random trajectories is within the effort limits: check limits: effort, and masses and inertias in the URDF"
                )
            if len(made) == count or (len(made) >= LEAST and not go_on()):
                return made
    if made:
        return made
    raise ConfigError("the arm cannot stay at rest within its effort limits: check limits: effort")


def _best_first(criterion: Criterion, made: list[tuple[Array, float]], go_on: Callable[[], bool]) -> Baseline:
    """Trajectories sorted by information; only for the best :data:`EXACT` is it computed from all samples."""
    made.sort(key=lambda item: item[1], reverse=True)
    exact: list[tuple[Array, float]] = []
    for z, _ in made[:EXACT]:
        exact.append((z, criterion.score(z).log_det))
        if not go_on():
            break
    made = sorted(exact, key=lambda item: item[1], reverse=True) + made[len(exact) :]
    return Baseline(np.array([z for z, _ in made]), np.array([value for _, value in made]))


def _draw_clear(criterion: Criterion, rng: np.random.Generator) -> Array:
    """:data:`BATCH` random trajectories about collision-free offsets."""
    task = criterion.task
    clear: list[Array] = []
    for _ in range(DRAWS):
        z = _draw(task, rng, CANDIDATES if task.shapes else BATCH)
        offsets = z.reshape(-1, *task.shape)[..., -1]
        clear.append(z[criterion.room(offsets.T) > 0.0])
        if sum(map(len, clear)) >= BATCH:
            break
    if sum(map(len, clear)) >= FEWEST:
        return np.concatenate(clear)[:BATCH]
    raise ConfigError(
        f"nearly all random configurations are too close to the floor or in self-collision, most often {criterion.obstacle()}: check floor, clearance, "
        "capsules and position limits, add the pair under ignore in the robot's file, or switch the check off with `no_collisions`"
    )


def _draw(task: ExcitationTask, rng: np.random.Generator, count: int) -> Array:
    """Random trajectories, each joint scaled to a limit, (count, n (2 L - 1))."""
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
    remaining = np.maximum(room - scale * (highest - lowest), 0.0)
    start = middle - 0.5 * room - scale * lowest
    z[..., -1] = start + remaining * rng.random((count, n))
    return z.reshape(count, -1)


def shrunk(task: ExcitationTask, z: Array, share: Array | float) -> Array:
    """Trajectories with their amplitude scaled by ``share``, same offsets, (…, n (2 L - 1))."""
    scaled = np.array(z).reshape(-1, *task.shape)
    scaled[..., :-1] *= np.reshape(share, (-1, 1, 1))
    return scaled.reshape(np.shape(z))


def _shrink_to_clear(criterion: Criterion, z: Array) -> Array:
    """Trajectories scaled until they are free of collisions, without those that would hardly move."""
    task = criterion.task
    if not task.shapes:
        return z
    good, low, high = np.zeros(len(z)), np.zeros(len(z)), np.ones(len(z))
    share = high
    for _ in range(HALVINGS + 1):
        free = _clear(criterion, shrunk(task, z, share))
        good = np.where(free, share, good)
        low, high = np.where(free, share, low), np.where(free, high, share)
        share = 0.5 * (low + high)
    return shrunk(task, z, good)[good > SMALLEST]


def _clear(criterion: Criterion, z: Array) -> Mask:
    task = criterion.task
    position = z.reshape(-1, *task.shape) @ task.basis(POSITIONS // BATCH).position.T
    room = criterion.room(np.moveaxis(position, 1, 0).reshape(task.joints, -1))
    return np.asarray(room.reshape(len(z), -1).min(axis=1) > 0.0)


def _within_torque(criterion: Criterion, z: Array) -> tuple[Array, float] | None:
    """A trajectory scaled until its torques are within their limits, and its log determinant.

    ``None`` if it would then hardly move: the arm cannot hold itself there.
    """
    share = 1.0
    while share > SMALLEST:
        candidate = shrunk(criterion.task, z, share)
        score = criterion.worth(candidate)
        if score.torque < TORQUE_SHARE:
            return candidate, score.log_det
        share *= 0.9
    return None
