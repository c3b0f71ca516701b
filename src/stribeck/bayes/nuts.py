"""The no-U-turn sampler (Hoffman and Gelman 2014), blackjax's kernel, many chains and posteriors side by side.

It moves z with x = centre + root z, in which a posterior is round once its covariance is known, so that the kernel's metric
is the identity. The first covariance is that of the curvature at a mode (:mod:`stribeck.bayes.laplace`). Warm-up: rounds that double in length; each takes the covariance of all chains of its second half, and a
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

from stribeck.bayes.laplace import starts
from stribeck.bayes.sampling import (
    Array,
    Draws,
    Progress,
    SamplerTuning,
    Target,
    keys_for,
    silent,
    to_natural,
    to_white,
    tuning_from,
)

ACCEPTANCE = 0.85
"""Mean probability of acceptance that the step size is for."""

ROUNDS = (40, 80, 160, 320)
DEEPEST = 7
"""Doublings of a trajectory at most: 127 steps."""

BLOCK = 20
"""Steps in one call of the compiled program."""

PERIOD = 100
"""Steps between two reports of progress, about."""


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

    :param start: draws from the prior (D, C, d). The first of each is where its mode is looked for.
    :param draws: kept per chain.
    :param thin: one of so many steps is kept.
    :param enough: asked with the draws so far whether to stop early.
    """
    with jax.enable_x64():
        tuning, x = warm_up(target, start, seed, rounds, deepest, progress)
        return _draw(target, tuning, x, draws, seed + 1, thin, deepest, progress, enough)


def warm_up(
    target: Target, start: Array, seed: int, rounds: Sequence[int], deepest: int, progress: Progress = silent
) -> tuple[SamplerTuning, Array]:
    """What the chains learn, and where they are then (D, C, d)."""
    progress("mode", 0, 1, None)
    x, tuning = starts(target, start[:, 0], start.shape[1], seed)
    for number, length in enumerate(rounds):
        progress("warm-up", sum(rounds[:number]), sum(rounds), None)
        path, step, _, _ = _run(target, tuning, x, length, seed + 7919 * (number + 1), deepest, adapt=True)
        x = path[:, :, -1]
        half = path[:, :, length // 2 :]
        tuning = tuning_from(half.reshape(len(half), -1, half.shape[-1]), step)
    return tuning, x


def _draw(
    target: Target,
    tuning: SamplerTuning,
    x: Array,
    draws: int,
    seed: int,
    thin: int,
    deepest: int,
    progress: Progress,
    enough: Callable[[Array], bool] | None,
) -> Draws:
    length = thin * max(BLOCK, PERIOD // thin // BLOCK * BLOCK)
    parts: list[Array] = []
    rates: list[Array] = []
    lost: list[Array] = []
    while not parts or sum(part.shape[2] for part in parts) < draws:
        path, _, rate, divergent = _run(
            target, tuning, x, length, seed + 104729 * (len(parts) + 1), deepest, adapt=False
        )
        x = path[:, :, -1]
        parts.append(path[:, :, thin - 1 :: thin])
        rates.append(rate)
        lost.append(divergent)
        found = np.concatenate(parts, axis=2)[:, :, :draws]
        progress("draws", found.shape[2], draws, found)
        if enough is not None and enough(found):
            break
    return Draws(found, np.mean(rates, axis=0), np.sum(lost, axis=0))


def _run(
    target: Target, tuning: SamplerTuning, x: Array, length: int, seed: int, deepest: int, adapt: bool
) -> tuple[Array, Array, Array, Any]:
    """One round: path (D, C, length, d), step sizes, mean acceptance and divergences of each posterior.

    It runs in blocks of one length, so that there is one program to compile.
    """
    blocks = -(-length // BLOCK)
    keys = keys_for(seed, (blocks, BLOCK, *x.shape[:2]))
    log = np.log(tuning.step)
    z, averaging = to_white(tuning, x), (log, log, np.zeros_like(log), np.zeros(()), log)
    paths, rates, lost = [], [], []
    for own in keys:
        z, averaging, path, rate, divergent = _program(target, deepest)(
            own, z, averaging, tuning, adapt, target.data
        )
        paths.append(np.asarray(path))
        rates.append(np.asarray(rate))
        lost.append(np.asarray(divergent))
    step = np.exp(np.asarray(averaging[1])) if adapt else np.asarray(tuning.step)
    return np.concatenate(paths, axis=2)[:, :, :length], step, np.mean(rates, axis=0), np.sum(lost, axis=0)


def _program(target: Target, deepest: int) -> Callable[..., Any]:
    """The compiled block of a target, kept with it."""
    cache: dict[int, Callable[..., Any]] = target.__dict__.setdefault("_nuts", {})
    if deepest not in cache:
        cache[deepest] = jax.jit(partial(_block, target, deepest))
    return cache[deepest]


def _block(
    target: Target,
    deepest: int,
    keys: Any,
    z: Any,
    averaging: Any,
    tuning: SamplerTuning,
    adapt: Any,
    data: Any,
) -> Any:
    kernel = blackjax.nuts.build_kernel()
    unit = jnp.ones(target.dimension)

    def density(point: Any, centre: Any, root: Any, own: Any) -> Any:
        # Not root @ point: XLA's products of many small matrices are far slower than sums.
        return target.log_density(centre + jnp.sum(root * point, axis=-1), own)

    def move(key: Any, state: Any, step: Any, centre: Any, root: Any, own: Any) -> Any:
        def whole(point: Any) -> Any:
            return density(point, centre, root, own)

        return kernel(key, state, whole, step, unit, max_num_doublings=deepest)

    def first(point: Any, centre: Any, root: Any, own: Any) -> Any:
        value, slope = jax.value_and_grad(density)(point, centre, root, own)
        return blackjax.mcmc.hmc.HMCState(point, value, slope)

    every = jax.vmap(jax.vmap(move, (0, 0, None, None, None, None)))
    states = jax.vmap(jax.vmap(first, (0, None, None, None)))(z, tuning.centre, tuning.root, data)

    def body(carry: Any, now: Any) -> Any:
        states, averaging = carry
        step = jnp.where(adapt, jnp.exp(averaging[0]), tuning.step)
        states, info = every(now, states, step, tuning.centre, tuning.root, data)
        rate = jnp.mean(jnp.nan_to_num(info.acceptance_rate), axis=1)
        lost = jnp.sum(info.is_divergent, axis=1)
        return (states, _averaged(averaging, rate)), (to_natural(tuning, states.position), rate, lost)

    (states, averaging), (path, rate, lost) = jax.lax.scan(body, (states, averaging), keys)
    return states.position, averaging, jnp.moveaxis(path, 0, 2), rate.mean(axis=0), lost.sum(axis=0)


def _averaged(state: Any, rate: Any) -> Any:
    """One step of dual averaging: log step, its average, the error's average, time, and where it shrinks to."""
    _, mean, error, count, start = state
    count = count + 1.0
    weight = 1.0 / (count + 10.0)
    error = (1.0 - weight) * error + weight * (ACCEPTANCE - rate)
    log = jnp.log(2.0) + start - jnp.sqrt(count) / 0.05 * error
    share = count**-0.75
    return log, share * log + (1.0 - share) * mean, error, count, start
