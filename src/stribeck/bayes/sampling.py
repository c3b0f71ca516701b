r"""What samplers share: targets, chains of many posteriors side by side, and what they adapt to.

A target is a log prior and a log likelihood on unconstrained coordinates x (d,). Arrays of positions are (D, C, d): D
posteriors that differ in their data only, with C chains each. All of a posterior's chains learn together, in rounds: a round
runs with the centre, the root of the covariance and the step size that the round before found; drawing itself adapts
nothing more, so that its chains are Markov chains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Target:
    """A posterior.

    :param dimension: d.
    :param log_prior: log density of coordinates (d,).
    :param log_likelihood: of coordinates (d,) and one posterior's data.
    :param data: arrays by posterior, each (D, …).
    :param posteriors: D.
    """

    dimension: int
    log_prior: Callable[[jax.Array], jax.Array]
    log_likelihood: Callable[[jax.Array, Any], jax.Array]
    data: Any
    posteriors: int = 1

    def log_density(self, x: jax.Array, data: Any) -> jax.Array:
        """Log posterior of coordinates (d,), but for a constant."""
        return self.log_prior(x) + self.log_likelihood(x, data)


class SamplerTuning(NamedTuple):
    """What chains of each posterior learned: x = centre + root z.

    :param centre: (D, d).
    :param root: lower triangular root of the covariance, (D, d, d).
    :param step: size of a step in z, (D,).
    """

    centre: Any
    root: Any
    step: Any


@dataclass(frozen=True, eq=False)
class Draws:
    """What a sampler drew.

    :param x: coordinates (D, C, S, d).
    :param acceptance: mean probability of acceptance (D,).
    :param divergences: steps that left all bounds (D,).
    """

    x: Array
    acceptance: Array
    divergences: npt.NDArray[np.int64]


Progress = Callable[[str, int, int, Array | None], None]
"""Told a stage's name, how many steps of how many are done, and draws so far (D, C, S, d), if there are any."""


def silent(stage: str, done: int, of: int, draws: Array | None) -> None:
    """No progress."""


def tuning_from(x: Array, step: float | Array) -> SamplerTuning:
    """Centre and covariance of positions (D, K, d), shrunk towards their diagonal where they are few."""
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
    """Random keys of a shape."""
    found: jax.Array = jax.random.split(jax.random.key(seed), shape)
    return found


def to_natural(tuning: SamplerTuning, z: Any) -> Any:
    """X (D, C, d) at z."""
    return tuning.centre[:, None] + jnp.sum(tuning.root[:, None] * z[:, :, None], axis=-1)


def to_white(tuning: SamplerTuning, x: Array) -> Array:
    """Z (D, C, d) at x."""
    away = np.swapaxes(x - tuning.centre[:, None], 1, 2)
    return np.swapaxes(np.linalg.solve(tuning.root, away), 1, 2)
