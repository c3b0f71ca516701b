r"""Common parts of the samplers: targets, tuning, and the loop that collects draws.

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
    :param posteriors: D.
    """

    dimension: int
    log_prior: Callable[[jax.Array], jax.Array]
    log_likelihood: Callable[[jax.Array, Any], jax.Array]
    data: Any
    posteriors: int = 1

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
