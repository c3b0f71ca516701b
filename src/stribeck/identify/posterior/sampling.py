r"""Common parts of the samplers: targets, tuning, modes from which chains start, and the loop that collects draws.

A target is a log prior and a log likelihood of unconstrained coordinates x (d,). Positions are arrays (D, C, d) for D
posteriors, which differ only in their data, with C chains each. Warm-up adapts all chains of a posterior together, in rounds:
each round uses the centre, covariance and step size of the previous one. Nothing is adapted while draws are collected, so
that these are Markov chains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stribeck.model.arrays import Array


@dataclass(frozen=True, eq=False)
class Target:
    """A posterior.

    :param dimension: d.
    :param log_prior: of coordinates (d,).
    :param log_likelihood: of coordinates (d,) and the data of one posterior.
    :param data: arrays (D, …).
    """

    dimension: int
    log_prior: Callable[[jax.Array], jax.Array]
    log_likelihood: Callable[[jax.Array, Any], jax.Array]
    data: Any

    def log_density(self, x: jax.Array, data: Any) -> jax.Array:
        """Log posterior of coordinates (d,) up to a constant."""
        return self.log_prior(x) + self.log_likelihood(x, data)


class SamplerTuning(NamedTuple):
    """Preconditioning and step size of each posterior's chains: x = centre + root z.

    :param centre: (D, d).
    :param root: lower triangular root of the covariance, (D, d, d).
    :param step: size of a step in z, (D,).
    """

    centre: Any
    root: Any
    step: Any


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of D posteriors.

    :param x: coordinates (D, C, S, d).
    :param divergences: number of divergent transitions (D,).
    """

    x: Array
    divergences: npt.NDArray[np.int64]


Progress = Callable[[str, int, int, Array | None], None]
"""Called with the name of a stage, steps done, steps in all, and draws so far (D, C, S, d) if there are any."""

Enough = Callable[[Array], bool]
"""Called with the draws so far: whether to stop early."""


def silent(stage: str, done: int, of: int, draws: Array | None) -> None:
    """Report no progress."""


def tuning_from(x: Array, step: float | Array) -> SamplerTuning:
    """Tuning from the centre and covariance of positions (D, K, d); for small K, shrinks the latter to its diagonal."""
    count, size = x.shape[1:]
    centre = x.mean(axis=1)
    away = x - centre[:, None]
    covariance = np.einsum("dki,dkj->dij", away, away) / max(count - 1, 1)
    diagonal = np.einsum("dii->di", covariance).copy()
    weight = count / (count + size)
    covariance = weight * covariance
    covariance[:, range(size), range(size)] += (1.0 - weight) * diagonal + 1e-12 + 1e-8 * diagonal
    return SamplerTuning(centre, np.linalg.cholesky(covariance), np.broadcast_to(step, len(x)).astype(float))


def keys_for(seed: int, shape: tuple[int, ...]) -> jax.Array:
    """Array of random keys."""
    keys: jax.Array = jax.random.split(jax.random.key(seed), shape)
    return keys


def collect(
    advance: Callable[[Array, int], tuple[Array, Any]],
    x: Array,
    draws: int,
    thin: int,
    progress: Progress,
    enough: Enough | None,
) -> Draws:
    """Advance chains block by block until there are ``draws`` for each chain, or ``enough``.

    :param advance: from positions (D, C, d) and the number of the block to path (D, C, S, d) and divergences (D,).
    :param thin: one of so many steps is kept.
    """
    parts: list[Array] = []
    divergences = np.zeros(len(x), dtype=np.int64)
    while True:
        path, divergent = advance(x, len(parts) + 1)
        x = path[:, :, -1]
        parts.append(path[:, :, thin - 1 :: thin])
        divergences = divergences + divergent
        drawn = np.concatenate(parts, axis=2)[:, :, :draws]
        progress("draws", drawn.shape[2], draws, drawn)
        if drawn.shape[2] == draws or (enough is not None and enough(drawn)):
            return Draws(drawn, divergences)


def to_natural(tuning: SamplerTuning, z: Any) -> Any:
    """Coordinates x (D, C, d) at z."""
    return tuning.centre[:, None] + jnp.sum(tuning.root[:, None] * z[:, :, None], axis=-1)


def to_white(tuning: SamplerTuning, x: Array) -> Array:
    """Whitened coordinates z (D, C, d) at x."""
    away = np.swapaxes(x - tuning.centre[:, None], 1, 2)
    return np.swapaxes(np.linalg.solve(tuning.root, away), 1, 2)


STEPS = 40
SMALLEST = 0.3
"""Lower limit of the curvature; the coordinates of the prior have standard deviations of about one."""

APART = 1.5
"""Spread of the starting points, in standard deviations."""


def starts(target: Target, first: Array, chains: int, seed: int) -> tuple[Array, SamplerTuning]:
    """Initial positions (D, C, d) and tuning of the chains: the inverse curvature at modes is the first covariance.

    Starting points are spread more widely (:data:`APART`), so that the agreement of the chains is a valid convergence test.

    :param first: starting points of the search for modes (D, d).
    """
    mode, curvature = modes(target, first)
    values, vectors = np.linalg.eigh(curvature)
    values = np.maximum(np.abs(values), SMALLEST)
    covariance = np.einsum("dik,dk,djk->dij", vectors, 1.0 / values, vectors)
    root = np.linalg.cholesky(covariance)
    noise = np.random.default_rng(seed).standard_normal((len(first), chains, first.shape[1]))
    x = mode[:, None] + APART * np.einsum("dij,dcj->dci", root, noise)
    return x, SamplerTuning(mode, root, np.full(len(first), 0.3))


def modes(target: Target, x: Array) -> tuple[Array, Array]:
    """Modes (D, d) of all posteriors at once, and the Hessian of the negative log density there (D, d, d).

    Damped Newton steps, with the absolute eigenvalues of the curvature, lead there from draws of the prior.
    """

    def cost(point: Any, data: Any) -> Any:
        return -target.log_density(point, data)

    def around(point: Any, data: Any) -> Any:
        return cost(point, data), jax.grad(cost)(point, data), jax.hessian(cost)(point, data)

    local = jax.jit(lambda x: jax.lax.map(lambda pair: around(*pair), (x, target.data)))
    values = jax.jit(jax.vmap(cost))
    damping = np.ones(len(x))
    value, slope, curvature = (np.asarray(part) for part in local(x))
    for _ in range(STEPS):
        step = _newton(slope, curvature, damping)
        tried = np.nan_to_num(np.asarray(values(x + step, target.data)), nan=np.inf)
        better = tried < value
        x = np.where(better[:, None], x + step, x)
        damping = np.where(better, damping * 0.2, damping * 8.0)
        gain = np.where(better, value - tried, np.inf)
        value, slope, curvature = (np.asarray(part) for part in local(x))
        if np.all(gain < 1e-2) or np.all(damping > 1e6):
            break
    return x, curvature


def _newton(slope: Array, curvature: Array, damping: Array) -> Array:
    """Damped Newton steps (D, d)."""
    values, vectors = np.linalg.eigh(curvature)
    values = np.maximum(np.abs(values), 1e-3) + damping[:, None]
    return np.asarray(-np.einsum("dik,dk,djk,dj->di", vectors, 1.0 / values, vectors, slope))
