r"""Where a posterior has its mode, and how wide it is there: what chains start from.

Newton steps with the curvature's eigenvalues made positive, damped until the density rises: from a draw of the prior to a
mode of the posterior, of all posteriors side by side. The inverse of the curvature there is the covariance of a first
:class:`~stribeck.bayes.sampling.SamplerTuning`; chains start twice as far apart as it says, so that they do not agree by
construction.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from stribeck.bayes.sampling import Array, SamplerTuning, Target

STEPS = 40
SMALLEST = 0.3
"""Curvatures below count as this: coordinates of the prior are of the size of one, and no direction is much wider."""

APART = 1.5


def starts(target: Target, first: Array, chains: int, seed: int) -> tuple[Array, SamplerTuning]:
    """First positions (D, C, d) and what is known of the scales.

    :param first: where to begin (D, d).
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
    """Modes (D, d) and the curvature of the negative log density there (D, d, d)."""

    def cost(point: Any, own: Any) -> Any:
        return -target.log_density(point, own)

    def around(point: Any, own: Any) -> Any:
        return cost(point, own), jax.grad(cost)(point, own), jax.hessian(cost)(point, own)

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
    """Damped steps (D, d), the curvature's eigenvalues made positive."""
    values, vectors = np.linalg.eigh(curvature)
    values = np.maximum(np.abs(values), 1e-3) + damping[:, None]
    return np.asarray(-np.einsum("dik,dk,djk,dj->di", vectors, 1.0 / values, vectors, slope))
