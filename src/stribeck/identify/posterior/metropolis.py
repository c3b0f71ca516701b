r"""Adaptive Metropolis (Haario, Saksman, Tamminen 2001) with tempered warm-up, for many chains and posteriors.

Proposals are :math:`x' = x + s\,R\,\epsilon` with R the root of the chains' covariance, accepted with probability
:math:`\min(1, p(x')/p(x))`. R and s are adapted during warm-up only. Warm-up moves a population from the prior to the posterior
through :math:`p_\beta \propto p(x)\,p(y|x)^\beta`, β from 0 to 1 (Del Moral, Doucet, Jasra 2006): each step of β leaves half of
the population effective; the population is then resampled and moved.

Log densities are computed for whole batches: coordinates ``(L, d)`` to values ``(L,)``, ordered by posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

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
    tuning_from,
)
from stribeck.model.arrays import Array

ACCEPTANCE = 0.25
"""Target acceptance rate of the step size adaptation."""

POPULATION = 128
"""Number of chains, sufficient for the covariance of about ten parameters."""

MOVES = 12
"""Steps of each member at each β."""

LEFT = 0.5
"""Effective fraction of the population after a step of β."""

BLOCK = 12
"""Steps per call of the compiled program."""


@dataclass(frozen=True, eq=False)
class Batched:
    """A target that computes the densities of all chains of all posteriors at once.

    :param log_prior: (L, d) -> (L,).
    :param log_likelihood: (L, d) -> (L,), chains ordered by posterior.
    """

    dimension: int
    log_prior: Callable[[Any], Any]
    log_likelihood: Callable[[Any], Any]


def batched(target: Target, chains: int) -> Batched:
    """Vectorise the densities of a target over chains."""

    def likelihood(x: Any) -> Any:
        lanes = x.reshape(-1, chains, target.dimension)
        values = jax.vmap(jax.vmap(target.log_likelihood, (0, None)))(lanes, target.data)
        return values.ravel()

    return Batched(target.dimension, jax.vmap(target.log_prior), likelihood)


def sample(
    target: Batched,
    start: Array,
    draws: int,
    seed: int,
    *,
    thin: int = 10,
    settle: int = 600,
    progress: Progress = silent,
    enough: Enough | None = None,
) -> Draws:
    """Temper, warm up and draw.

    :param start: draws from the prior (D, C, d).
    :param draws: number of draws kept per chain.
    :param thin: keep every ``thin``-th step.
    :param settle: warm-up steps at β = 1, during which covariance and step size are adapted twice.
    """
    with jax.enable_x64():
        x, tuning = temper(target, start, seed, progress)
        for number in range(2):
            path, tuning = _run(target, x, tuning, settle // 2, seed + 31 * (number + 1), adapt=True)
            x = path[:, :, -1]
            half = path[:, :, path.shape[2] // 2 :: 3]
            tuning = tuning_from(half.reshape(len(half), -1, half.shape[-1]), tuning.step)

        def advance(x: Array, number: int) -> tuple[Array, int]:
            steps = thin * min(50, draws)
            return _run(target, x, tuning, steps, seed + 104729 * number, adapt=False)[0], 0

        return collect(advance, x, draws, thin, progress, enough)


def temper(
    target: Batched, start: Array, seed: int, progress: Progress = silent
) -> tuple[Array, SamplerTuning]:
    """Move a population from the prior (D, C, d) to the posterior; return it with its last tuning."""
    rng = np.random.default_rng(seed)
    x, beta = start, np.zeros(len(start))
    size = np.full(len(start), 2.0 / np.sqrt(target.dimension))
    likelihood = _values(target, x)
    number = 0
    while np.any(beta < 1.0):
        raised = np.array([_raised(b, one) for b, one in zip(beta, likelihood, strict=True)])
        picked = [_resampled((r - b) * one, rng) for r, b, one in zip(raised, beta, likelihood, strict=True)]
        beta, x = raised, np.stack([members[index] for members, index in zip(x, picked, strict=True)])
        tuning = tuning_from(x, size)
        path, tuning = _run(target, x, tuning, MOVES, seed + number + 1, adapt=True, beta=beta)
        x, size, number = path[:, :, -1], np.asarray(tuning.step), number + 1
        likelihood = _values(target, x)
        progress("tempering", int(1000 * beta.min()), 1000, None)
    return x, tuning


def _raised(beta: float, likelihood: Array) -> float:
    """Next β of one population, chosen to leave half of it effective."""

    def effective(step: float) -> float:
        weight = np.exp(step * (likelihood - likelihood.max()))
        return float(weight.sum() ** 2 / (weight**2).sum()) / len(weight)

    low, high = 0.0, 1.0 - beta
    if effective(high) >= LEFT:
        return 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) >= LEFT else (low, middle)
    return beta + low


def _resampled(log_weight: Array, rng: np.random.Generator) -> Any:
    """Indices drawn by systematic resampling."""
    weight = np.exp(log_weight - log_weight.max())
    count = len(weight)
    edges = np.cumsum(weight) / weight.sum()
    return np.minimum(np.searchsorted(edges, (rng.uniform() + np.arange(count)) / count), count - 1)


def _finite(values: Any) -> Any:
    return jnp.where(jnp.isfinite(values), values, -1e30)


def _values(target: Batched, x: Array) -> Array:
    values = _programs(target)[0](x.reshape(-1, x.shape[-1]))
    return np.asarray(values, dtype=np.float64).reshape(x.shape[:2])


def _run(
    target: Batched,
    x: Array,
    tuning: SamplerTuning,
    steps: int,
    seed: int,
    adapt: bool,
    beta: Array | None = None,
) -> tuple[Array, SamplerTuning]:
    """Run chains; return path (D, C, steps, d), and tuning with the last step size."""
    beta = np.ones(len(x)) if beta is None else beta
    blocks = -(-steps // BLOCK)
    paths = []
    size, point = np.asarray(tuning.step), x
    for key in keys_for(seed, (blocks,)):
        path, size = _programs(target)[1](key, point, np.asarray(tuning.root), size, beta, adapt)
        path = np.asarray(path)
        point = path[:, :, -1]
        paths.append(path)
    return np.concatenate(paths, axis=2), tuning._replace(step=np.asarray(size))


@lru_cache(maxsize=8)
def _programs(target: Batched) -> tuple[Any, Any]:
    """Compile the log likelihood and the block of steps of a target."""
    return jax.jit(lambda x: _finite(target.log_likelihood(x))), jax.jit(partial(_block, target))


def _block(target: Batched, key: Any, x: Any, root: Any, size: Any, beta: Any, adapt: Any) -> Any:
    """:data:`BLOCK` steps from positions x (D, C, d): path, step sizes."""
    lanes = (-1, target.dimension)
    heat = jnp.repeat(beta, x.shape[1])

    def density(x: Any) -> Any:
        flat = x.reshape(lanes)
        return _finite(target.log_prior(flat)) + heat * _finite(target.log_likelihood(flat))

    def body(carry: Any, now: Any) -> Any:
        x, value, size = carry
        first, second = jax.random.split(now)
        step = jnp.sum(root[:, None] * jax.random.normal(first, x.shape)[:, :, None], axis=-1)
        tried = x + size[:, None, None] * step
        new = density(tried)
        odds = new - value
        accept = jnp.log(jax.random.uniform(second, odds.shape)) < odds
        x = jnp.where(accept.reshape(x.shape[:2])[..., None], tried, x)
        rate = jnp.minimum(jnp.exp(odds), 1.0).reshape(x.shape[:2]).mean(axis=1)
        size = jnp.where(adapt, size * jnp.exp(0.3 * (rate - ACCEPTANCE)), size)
        return (x, jnp.where(accept, new, value), size), x

    (_, _, size), path = jax.lax.scan(body, (x, density(x), size), jax.random.split(key, BLOCK))
    return jnp.moveaxis(path, 0, 2), size
