"""The no-U-turn sampler (Hoffman and Gelman 2014) for many chains and posteriors, with the kernel of blackjax.

The kernel has a unit metric and samples z, with x = centre + root z. The first covariance is the inverse curvature at a mode
(:mod:`stribeck.identify.posterior.sampling`). Each warm-up round is twice as long as the previous one. The next round uses the covariance of
all chains in its second half and a step size from dual averaging of their mean acceptance (Hoffman and Gelman 2014, §3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

from stribeck.identify.posterior.sampling import (
    Draws,
    Enough,
    Progress,
    SamplerTuning,
    Target,
    collect,
    keys_for,
    silent,
    starts,
    to_natural,
    to_white,
    tuning_from,
)
from stribeck.model.arrays import Array

ACCEPTANCE = 0.85
"""Target mean acceptance of the step size adaptation."""

ROUNDS = (40, 80, 160, 320)
"""Lengths of the warm-up rounds."""

DEEPEST = 7
"""Largest number of doublings of a trajectory: 127 steps."""

BLOCK = 20
"""Steps per call of the compiled program."""

PERIOD = 100
"""Approximate number of steps between progress reports."""


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
    enough: Enough | None = None,
) -> Draws:
    """Warm up, then draw.

    :param start: draws from the prior (D, C, d); the search for the mode starts at the first draw of each posterior.
    :param draws: kept per chain.
    :param thin: one of so many steps is kept.
    """
    with jax.enable_x64():
        tuning, x = warm_up(target, start, seed, rounds, deepest, progress)
        length = thin * max(BLOCK, PERIOD // thin // BLOCK * BLOCK)

        def advance(x: Array, number: int) -> tuple[Array, Any]:
            block_seed = seed + 1 + 104729 * number
            path, _, divergent = _run(target, tuning, x, length, block_seed, deepest, adapt=False)
            return path, divergent

        return collect(advance, x, draws, thin, progress, enough)


def warm_up(
    target: Target, start: Array, seed: int, rounds: Sequence[int], deepest: int, progress: Progress = silent
) -> tuple[SamplerTuning, Array]:
    """Tuning and positions (D, C, d) after all rounds."""
    progress("mode", 0, 1, None)
    x, tuning = starts(target, start[:, 0], start.shape[1], seed)
    for number, length in enumerate(rounds):
        progress("warm-up", sum(rounds[:number]), sum(rounds), None)
        path, step, _ = _run(target, tuning, x, length, seed + 7919 * (number + 1), deepest, adapt=True)
        x = path[:, :, -1]
        half = path[:, :, length // 2 :]
        tuning = tuning_from(half.reshape(len(half), -1, half.shape[-1]), step)
    return tuning, x


def _run(
    target: Target, tuning: SamplerTuning, x: Array, length: int, seed: int, deepest: int, adapt: bool
) -> tuple[Array, Array, Any]:
    """Run one round; return path (D, C, length, d), step sizes and divergences of each posterior."""
    blocks = -(-length // BLOCK)
    keys = keys_for(seed, (blocks, BLOCK, *x.shape[:2]))
    log = np.log(tuning.step)
    z, averaging = to_white(tuning, x), (log, log, np.zeros_like(log), np.zeros(()), log)
    paths, lost = [], []
    for block in keys:
        z, averaging, path, divergent = _program(target, deepest)(
            block, z, averaging, tuning, adapt, target.data
        )
        paths.append(np.asarray(path))
        lost.append(np.asarray(divergent))
    step = np.exp(np.asarray(averaging[1])) if adapt else np.asarray(tuning.step)
    return np.concatenate(paths, axis=2)[:, :, :length], step, np.sum(lost, axis=0)


@lru_cache(maxsize=8)
def _program(target: Target, deepest: int) -> Any:
    return jax.jit(partial(_block, target, deepest))


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
    """:data:`BLOCK` steps of all chains: positions z, averaging, path, divergences."""
    kernel = blackjax.nuts.build_kernel()
    unit = jnp.ones(target.dimension)

    def density(point: Any, centre: Any, root: Any, data: Any) -> Any:
        # Not root @ point: in XLA, products of many small matrices are far slower than sums.
        return target.log_density(centre + jnp.sum(root * point, axis=-1), data)

    def move(key: Any, state: Any, step: Any, centre: Any, root: Any, data: Any) -> Any:
        def whole(point: Any) -> Any:
            return density(point, centre, root, data)

        return kernel(key, state, whole, step, unit, max_num_doublings=deepest)

    def first(point: Any, centre: Any, root: Any, data: Any) -> Any:
        value, slope = jax.value_and_grad(density)(point, centre, root, data)
        return blackjax.mcmc.hmc.HMCState(point, value, slope)

    every = jax.vmap(jax.vmap(move, (0, 0, None, None, None, None)))
    states = jax.vmap(jax.vmap(first, (0, None, None, None)))(z, tuning.centre, tuning.root, data)

    def body(carry: Any, now: Any) -> Any:
        states, averaging = carry
        step = jnp.where(adapt, jnp.exp(averaging[0]), tuning.step)
        states, info = every(now, states, step, tuning.centre, tuning.root, data)
        rate = jnp.mean(jnp.nan_to_num(info.acceptance_rate), axis=1)
        lost = jnp.sum(info.is_divergent, axis=1)
        return (states, _averaged(averaging, rate)), (to_natural(tuning, states.position), lost)

    (states, averaging), (path, lost) = jax.lax.scan(body, (states, averaging), keys)
    return states.position, averaging, jnp.moveaxis(path, 0, 2), lost.sum(axis=0)


def _averaged(state: Any, rate: Any) -> Any:
    """One step of dual averaging; state: log step, its average, average error, time, and the shrinkage target."""
    _, mean, error, count, start = state
    count = count + 1.0
    weight = 1.0 / (count + 10.0)
    error = (1.0 - weight) * error + weight * (ACCEPTANCE - rate)
    log = jnp.log(2.0) + start - jnp.sqrt(count) / 0.05 * error
    share = count**-0.75
    return log, share * log + (1.0 - share) * mean, error, count, start
