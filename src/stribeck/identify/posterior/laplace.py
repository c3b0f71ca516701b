r"""Modes of posteriors and the curvature there, for the initialisation of chains.

Damped Newton steps, with the absolute eigenvalues of the curvature, lead from a draw of the prior to a mode, for all posteriors
at once. The inverse curvature is the covariance of the first :class:`~stribeck.identify.posterior.sampling.SamplerTuning`. Starting points
are spread more widely (:data:`APART`), so that the agreement of the chains is a valid convergence test.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from stribeck.identify.posterior.sampling import SamplerTuning, Target
from stribeck.model.arrays import Array

STEPS = 40
SMALLEST = 0.3
"""Lower limit of the curvature; the coordinates of the prior have standard deviations of about one."""

APART = 1.5
"""Spread of the starting points, in standard deviations."""


def starts(target: Target, first: Array, chains: int, seed: int) -> tuple[Array, SamplerTuning]:
    """Initial positions (D, C, d) and tuning of the chains.

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
    """Modes (D, d), and the Hessian of the negative log density there (D, d, d)."""

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
