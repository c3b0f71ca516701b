"""Inertial parameters of bodies in log-Cholesky coordinates, with derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg

from stribeck.identify.arm.inertia import cholesky_root, log_cholesky
from stribeck.identify.arm.model import INERTIALS
from stribeck.model.arrays import Array


class LogCholesky:
    """Log-Cholesky coordinates of bodies about a start; see :func:`~stribeck.identify.arm.inertia.log_cholesky`.

    :param start: consistent inertial parameters (n, 10), at coordinates zero.
    """

    def __init__(self, start: Array) -> None:
        self._root = cholesky_root(start)
        self.logarithms = np.arange(start.size).reshape(-1, INERTIALS)[:, :4].ravel()
        """Indices of the coordinates that are logarithms."""

    def at(self, coordinates: Array) -> tuple[Array, Array]:
        """Inertial parameters (n, 10) and their derivative (10 n, 10 n), by complex-step differentiation."""
        point = coordinates.reshape(-1, INERTIALS)
        step = 1e-30
        points = point[:, None, :] + 1j * step * np.eye(INERTIALS)
        blocks = log_cholesky(points, self._root[:, None]).imag / step
        jacobian = linalg.block_diag(*np.swapaxes(blocks, 1, 2)) if len(point) else np.zeros((0, 0))
        return np.asarray(log_cholesky(point, self._root)), jacobian

    def bends(self, coordinates: Array, weights: Array) -> Array:
        """Second derivatives of a weighted sum of the inertial parameters, (10 n, 10 n)."""
        shape = (-1, INERTIALS)
        with jax.enable_x64():
            blocks = _bends(coordinates.reshape(shape), weights.reshape(shape), self._root)
        return np.asarray(linalg.block_diag(*np.asarray(blocks)))


@jax.jit
@jax.vmap
def _bends(coordinates: jax.Array, weights: jax.Array, root: jax.Array) -> jax.Array:
    def weighted(point: jax.Array) -> jax.Array:
        return jnp.vdot(weights, log_cholesky(point, root))

    return jnp.asarray(jax.hessian(weighted)(coordinates))
