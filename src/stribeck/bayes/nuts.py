"""The no-U-turn sampler (Hoffman and Gelman 2014), blackjax's kernel, many chains and posteriors side by side.

It moves z with x = centre + root z, in which a posterior is round once its covariance is known, so that the kernel's metric
is the identity. Warm-up: rounds that double in length; each takes the covariance of all chains of its second half, and a
step size by dual averaging of their common acceptance (Nesterov's scheme as in Hoffman and Gelman, §3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

from stribeck.bayes.sampling import (
    Array,
    Draws,
    Progress,
    Target,
    Tuning,
    keys_for,
    silent,
    to_natural,
    to_white,
    tuning_from,
)

ACCEPTANCE = 0.8
"""Mean probability of acceptance that the step size is for."""

ROUNDS = (40, 60, 100, 200, 200)
DEEPEST = 9
"""Doublings of a trajectory at most: 511 steps."""

CHUNK = 50
"""Draws between two reports of progress."""


def sample(
    target: Target,
    start: Array,
    draws: int,
    seed: int,
    *,
    rounds: Sequence[int] = ROUNDS,
    thin: int = 1,
    deepest: int = DEEPEST,
    progress: Progress = silent,
    enough: Callable[[Array], bool] | None = None,
) -> Draws:
    """Warm up, then draw.

    :param start: first positions (D, C, d).
    :param draws: kept per chain.
    :param thin: one of so many steps is kept.
    :param enough: asked with the draws so far whether to stop early.
    """
    with jax.enable_x64():
        tuning, x = warm_up(target, start, seed, rounds, deepest, progress)
        return _draw(target, tuning, x, draws, seed + 1, thin, deepest, progress, enough)


def warm_up(
    target: Target, start: Array, seed: int, rounds: Sequence[int], deepest: int, progress: Progress = silent
) -> tuple[Tuning, Array]:
    """What the chains learn, and where they are then (D, C, d)."""
    tuning, x = tuning_from(start, 0.1), start
    for number, length in enumerate(rounds):
        progress("warm-up", sum(rounds[:number]), sum(rounds), None)
        path, step, _, _ = _run(target, tuning, x, length, seed + 7919 * (number + 1), deepest, adapt=True)
        x = path[:, :, -1]
        half = path[:, :, length // 2 :]
        tuning = tuning_from(half.reshape(len(half), -1, half.shape[-1]), step)
    return tuning, x


def _draw(
    target: Target,
    tuning: Tuning,
    x: Array,
    draws: int,
    seed: int,
    thin: int,
    deepest: int,
    progress: Progress,
    enough: Callable[[Array], bool] | None,
) -> Draws:
    chunk = min(CHUNK, draws)
    parts, rates, lost = [], [], []
    for number in range(-(-draws // chunk)):
        path, _, rate, divergent = _run(
            target, tuning, x, chunk * thin, seed + 104729 * (number + 1), deepest, adapt=False
        )
        x = path[:, :, -1]
        parts.append(path[:, :, thin - 1 :: thin])
        rates.append(rate)
        lost.append(divergent)
        found = np.concatenate(parts, axis=2)
        progress("draws", found.shape[2], draws, found)
        if enough is not None and enough(found):
            break
    return Draws(found[:, :, :draws], np.mean(rates, axis=0), np.sum(lost, axis=0))


def _run(
    target: Target, tuning: Tuning, x: Array, length: int, seed: int, deepest: int, adapt: bool
) -> tuple[Array, Array, Array, Any]:
    """One round: path (D, C, length, d), step sizes, mean acceptance and divergences of each posterior."""
    keys = keys_for(seed, (length, *x.shape[:2]))
    path, step, rate, divergent = _compiled(target, length, deepest, adapt)(
        keys, to_white(tuning, x), tuning, target.data
    )
    return tuple(np.asarray(part) for part in (path, step, rate, divergent))  # type: ignore[return-value]


def _compiled(target: Target, length: int, deepest: int, adapt: bool) -> Callable[..., Any]:
    cache: dict[Any, Callable[..., Any]] = target.__dict__.setdefault("_nuts", {})
    key = (length, deepest, adapt)
    if key not in cache:
        cache[key] = jax.jit(partial(_scan, target, deepest, adapt))
    return cache[key]


def _scan(target: Target, deepest: int, adapt: bool, keys: Any, z: Any, tuning: Tuning, data: Any) -> Any:
    kernel = blackjax.nuts.build_kernel()
    unit = jnp.ones(target.dimension)

    def density(centre: Any, root: Any, own: Any) -> Callable[[Any], Any]:
        return lambda point: target.log_density(centre + root @ point, own)

    def first(point: Any, centre: Any, root: Any, own: Any) -> Any:
        return blackjax.nuts.init(point, density(centre, root, own))

    def move(key: Any, state: Any, step: Any, centre: Any, root: Any, own: Any) -> Any:
        return kernel(key, state, density(centre, root, own), step, unit, max_num_doublings=deepest)

    every = jax.vmap(jax.vmap(move, (0, 0, None, None, None, None)))
    states = jax.vmap(jax.vmap(first, (0, None, None, None)))(z, tuning.centre, tuning.root, data)

    def body(carry: Any, now: Any) -> Any:
        states, averaging = carry
        step = jnp.exp(averaging[0]) if adapt else tuning.step
        states, info = every(now, states, step, tuning.centre, tuning.root, data)
        rate = jnp.mean(jnp.nan_to_num(info.acceptance_rate), axis=1)
        lost = jnp.sum(info.is_divergent, axis=1)
        averaging = _averaged(averaging, rate) if adapt else averaging
        return (states, averaging), (to_natural(tuning, states.position), rate, lost)

    start = jnp.log(tuning.step)
    averaging = (start, start, jnp.zeros_like(start), jnp.zeros(()), start)
    (_, averaging), (path, rate, lost) = jax.lax.scan(body, (states, averaging), keys)
    step = jnp.exp(averaging[1]) if adapt else tuning.step
    return jnp.moveaxis(path, 0, 2), step, rate.mean(axis=0), lost.sum(axis=0)


def _averaged(state: Any, rate: Any) -> Any:
    """One step of dual averaging: log step, its average, the error's average, time, and where it shrinks to."""
    _, mean, error, count, start = state
    count = count + 1.0
    weight = 1.0 / (count + 10.0)
    error = (1.0 - weight) * error + weight * (ACCEPTANCE - rate)
    log = jnp.log(10.0) * 0.3 + start - jnp.sqrt(count) / 0.05 * error
    share = count**-0.75
    return log, share * log + (1.0 - share) * mean, error, count, start
