r"""Adaptive Metropolis (Haario, Saksman, Tamminen 2001; the seed's Algorithm 1), many chains and posteriors side by side.

Candidates are :math:`x' = x + s\,R\,\epsilon`, R the root of the covariance of what was drawn so far, accepted with
probability :math:`\min(1, p(x')/p(x))`. The covariance and s adapt in warm-up and not while drawing, so that what is kept
comes from Markov chains. Warm-up starts at the prior and comes to the posterior by steps that a population can follow,
:math:`p_\beta \propto p(x)\,p(y|x)^\beta` with β from 0 to 1 (Del Moral, Doucet, Jasra 2006): each step of β leaves half of
the population effective, then the population is drawn anew and moved.

Log densities are those of whole batches: ``(L, d)`` coordinates to ``(L,)`` values, posterior after posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.bayes.sampling import (
    Array,
    Draws,
    Progress,
    SamplerTuning,
    Target,
    keys_for,
    silent,
    tuning_from,
)

ACCEPTANCE = 0.25
"""Share of candidates to accept."""

POPULATION = 128
"""Members of a population at most and chains at least: enough for a covariance of some ten parameters."""

MOVES = 12
"""Steps of each member at each β."""

LEFT = 0.5
"""Share of the population that stays effective in a step of β."""

BLOCK = 12
"""Steps in one call of the compiled program."""


@dataclass(frozen=True, eq=False)
class Batched:
    """A target whose densities are computed for all lanes of all posteriors at once.

    :param log_prior: (L, d) -> (L,).
    :param log_likelihood: (L, d) -> (L,), the lanes of posterior after posterior.
    """

    dimension: int
    posteriors: int
    log_prior: Callable[[Any], Any]
    log_likelihood: Callable[[Any], Any]


def batched(target: Target, chains: int) -> Batched:
    """A target with so many chains, its densities mapped over them."""

    def likelihood(x: Any) -> Any:
        lanes = x.reshape(target.posteriors, chains, -1)
        found = jax.vmap(jax.vmap(target.log_likelihood, (0, None)))(lanes, target.data)
        return found.ravel()

    return Batched(target.dimension, target.posteriors, jax.vmap(target.log_prior), likelihood)


def sample(
    target: Batched,
    start: Array,
    draws: int,
    seed: int,
    *,
    thin: int = 10,
    settle: int = 600,
    progress: Progress = silent,
    enough: Callable[[Array], bool] | None = None,
) -> Draws:
    """Temper, warm up, draw.

    :param start: draws from the prior (D, C, d); all C go on as chains.
    :param draws: kept per chain.
    :param thin: one of so many steps is kept.
    :param settle: steps of warm-up at β = 1, in which covariance and size of the steps are learned anew twice.
    """
    with jax.enable_x64():
        x, tuning = temper(target, start, seed, progress)
        for number in range(2):
            path, tuning, _ = _run(target, x, tuning, settle // 2, seed + 31 * (number + 1), adapt=True)
            x = path[:, :, -1]
            half = path[:, :, path.shape[2] // 2 :: 3]
            tuning = tuning_from(half.reshape(len(half), -1, half.shape[-1]), tuning.step)
        return _draw(target, x, tuning, draws, thin, seed, progress, enough)


def _draw(
    target: Batched,
    x: Array,
    tuning: SamplerTuning,
    draws: int,
    thin: int,
    seed: int,
    progress: Progress,
    enough: Callable[[Array], bool] | None,
) -> Draws:
    parts: list[Array] = []
    rates: list[Array] = []
    while not parts or sum(part.shape[2] for part in parts) < draws:
        own = seed + 104729 * (len(parts) + 1)
        path, _, rate = _run(target, x, tuning, thin * min(50, draws), own, adapt=False)
        x = path[:, :, -1]
        parts.append(path[:, :, thin - 1 :: thin])
        rates.append(rate)
        found = np.concatenate(parts, axis=2)[:, :, :draws]
        progress("draws", found.shape[2], draws, found)
        if enough is not None and enough(found):
            break
    return Draws(found, np.mean(rates, axis=0), np.zeros(len(x), dtype=np.int64))


def temper(
    target: Batched, start: Array, seed: int, progress: Progress = silent
) -> tuple[Array, SamplerTuning]:
    """A population of the prior (D, C, d) as one of the posterior, and the steps that moved it last."""
    rng = np.random.default_rng(seed)
    x, beta = start, np.zeros(len(start))
    size = np.full(len(start), 2.0 / np.sqrt(target.dimension))
    likelihood = _values(target, x)
    number = 0
    while np.any(beta < 1.0):
        raised = np.array([_raised(b, one) for b, one in zip(beta, likelihood, strict=True)])
        picked = [_resampled((r - b) * one, rng) for r, b, one in zip(raised, beta, likelihood, strict=True)]
        beta, x = raised, np.stack([own[index] for own, index in zip(x, picked, strict=True)])
        tuning = tuning_from(x, size)
        path, tuning, _ = _run(target, x, tuning, MOVES, seed + number + 1, adapt=True, beta=beta)
        x, size, number = path[:, :, -1], np.asarray(tuning.step), number + 1
        likelihood = _values(target, x)
        progress("tempering", int(1000 * beta.min()), 1000, None)
    return x, tuning


def _raised(beta: float, likelihood: Array) -> float:
    """The next β of one population: half of it stays effective."""

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
    """Indices of a systematic draw."""
    weight = np.exp(log_weight - log_weight.max())
    count = len(weight)
    edges = np.cumsum(weight) / weight.sum()
    return np.minimum(np.searchsorted(edges, (rng.uniform() + np.arange(count)) / count), count - 1)


def _finite(values: Any) -> Any:
    return jnp.where(jnp.isfinite(values), values, -1e30)


def _values(target: Batched, x: Array) -> Array:
    """Log likelihoods (D, C)."""
    program = _kept(target, "values", lambda: jax.jit(lambda x: _finite(target.log_likelihood(x))))
    return np.asarray(program(x.reshape(-1, x.shape[-1])), dtype=np.float64).reshape(x.shape[:2])


def _run(
    target: Batched,
    x: Array,
    tuning: SamplerTuning,
    steps: int,
    seed: int,
    adapt: bool,
    beta: Array | None = None,
) -> tuple[Array, SamplerTuning, Array]:
    """Path (D, C, steps, d), the tuning with its last size of a step, and the mean acceptance (D,)."""
    beta = np.ones(len(x)) if beta is None else beta
    program = _kept(target, "block", lambda: jax.jit(partial(_block, target, x.shape[1])))
    blocks = -(-steps // BLOCK)
    paths, rates = [], []
    size, point = np.asarray(tuning.step), x
    for key in keys_for(seed, (blocks,)):
        path, size, rate = program(key, point, np.asarray(tuning.root), size, beta, adapt)
        path = np.asarray(path)
        point = path[:, :, -1]
        paths.append(path)
        rates.append(np.asarray(rate))
    found = np.concatenate(paths, axis=2)
    return found, tuning._replace(step=np.asarray(size)), np.mean(rates, axis=0)


def _kept(target: Batched, name: str, make: Callable[[], Any]) -> Any:
    """A compiled program, kept with its target."""
    cache = target.__dict__.setdefault("_programs", {})
    if name not in cache:
        cache[name] = make()
    return cache[name]


def _block(
    target: Batched, chains: int, key: Any, x: Any, root: Any, size: Any, beta: Any, adapt: Any
) -> Any:
    lanes = (target.posteriors * chains, target.dimension)
    heat = jnp.repeat(beta, chains)

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
        return (x, jnp.where(accept, new, value), size), (x, rate)

    (_, _, size), (path, rate) = jax.lax.scan(body, (x, density(x), size), jax.random.split(key, BLOCK))
    return jnp.moveaxis(path, 0, 2), size, rate.mean(axis=0)
