r"""Physically consistent inertial parameters of a body, and coordinates for optimisers.

Inertial parameters are those of a mass distribution if and only if the pseudo-inertia
:math:`J = \begin{pmatrix} \Sigma & h \\ h^T & m \end{pmatrix} \succ 0`, with :math:`\Sigma = \frac12 tr(I)\,1 - I`
and :math:`h = m c` (Wensing, Kim, Slotine 2018). Then m > 0, the inertia about the centre of mass is positive
definite, and its principal moments satisfy the triangle inequality.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg

from stribeck.identify.arm.model import INERTIALS
from stribeck.model.arrays import Array
from stribeck.model.namespace import array_namespace

SMALLEST_SHARE = 1e-6
"""Smallest second moment of mass of a consistent body, relative to the largest."""

SMALLEST_RADIUS = 0.02
"""Radius of gyration of a body whose URDF gives no inertia [m]."""


def pseudo_inertia(inertials: Any) -> Any:
    """Pseudo-inertia (…, 4, 4) of inertial parameters (…, 10), about the origin of the joint frame."""
    xp = array_namespace(inertials)
    m, mx, my, mz, xx, xy, yy, xz, yz, zz = (inertials[..., k] for k in range(INERTIALS))
    half = 0.5 * (xx + yy + zz)
    rows = ((half - xx, -xy, -xz, mx), (-xy, half - yy, -yz, my), (-xz, -yz, half - zz, mz), (mx, my, mz, m))
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


def inertials_of(pseudo: Any) -> Any:
    """Inertial parameters (…, 10) of a pseudo-inertia (…, 4, 4)."""
    xp, s = array_namespace(pseudo), pseudo
    trace = s[..., 0, 0] + s[..., 1, 1] + s[..., 2, 2]
    entries = (
        *(s[..., 3, 3], s[..., 0, 3], s[..., 1, 3], s[..., 2, 3]),
        *(trace - s[..., 0, 0], -s[..., 0, 1], trace - s[..., 1, 1]),
        *(-s[..., 0, 2], -s[..., 1, 2], trace - s[..., 2, 2]),
    )
    return xp.stack(entries, axis=-1)


def log_cholesky(coordinates: Any, origin: Any) -> Any:
    r"""Inertial parameters (…, 10) from log-Cholesky coordinates (…, 10), always physically consistent.

    :math:`J = R\,T T^T R^T`, T upper triangular with :math:`e^{\xi_1} … e^{\xi_4}` on its diagonal and
    :math:`\xi_5 … \xi_{10}`, by rows, above it (Rucker and Wensing 2022). At zero J is :math:`R R^T`; the
    coordinates are dimensionless.

    :param origin: R (…, 4, 4), see :func:`cholesky_root`.
    """
    xp = array_namespace(coordinates)
    d = xp.exp(coordinates[..., :4])
    zero = 0.0 * d[..., 0]
    o = [coordinates[..., 4 + k] for k in range(6)]
    rows = (
        (d[..., 0], o[0], o[1], o[2]),
        (zero, d[..., 1], o[3], o[4]),
        (zero, zero, d[..., 2], o[5]),
        (zero, zero, zero, d[..., 3]),
    )
    upper = origin @ xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)
    return inertials_of(upper @ xp.swapaxes(upper, -1, -2))


def cholesky_root(inertials: Array) -> Array:
    """Upper triangular root R (…, 4, 4) of the pseudo-inertia, :math:`J = R R^T`, of consistent bodies (…, 10)."""
    flipped = pseudo_inertia(inertials)[..., ::-1, ::-1]
    return np.asarray(np.linalg.cholesky(flipped)[..., ::-1, ::-1])


def about_com(inertials: Array) -> tuple[Array, Array, Array]:
    """Mass (…,), centre of mass (…, 3) and inertia about it (…, 3, 3) from inertial parameters (…, 10)."""
    m, first = inertials[..., 0], inertials[..., 1:4]
    com = first / m[..., None]
    second = (
        pseudo_inertia(inertials)[..., :3, :3] - m[..., None, None] * com[..., :, None] * com[..., None, :]
    )
    trace = np.trace(second, axis1=-2, axis2=-1)
    return m, com, trace[..., None, None] * np.eye(3) - second


def consistency(inertials: Array) -> Array:
    r"""Margins of physical consistency (…, 3) of bodies (…, 10); all positive means consistent.

    The mass [kg]; the smallest principal moment of inertia [kg m^2]; the margin of the triangle inequality
    :math:`I_1 + I_2 > I_3` [kg m^2].
    """
    mass, _, inertia = about_com(np.asarray(inertials, dtype=np.float64))
    moments = np.linalg.eigvalsh(inertia)
    triangle = moments[..., 0] + moments[..., 1] - moments[..., 2]
    return np.stack([mass, moments[..., 0], triangle], axis=-1)


def nearest_consistent(inertials: Array) -> Array:
    """Consistent parameters (n, 10) near given ones, by a lower bound on the central second moments of mass.

    A body with mass but without inertia gets that of a ball whose size is given by :data:`SMALLEST_RADIUS`.
    """
    consistent = np.array(inertials, dtype=np.float64).reshape(-1, INERTIALS)
    for k, body in enumerate(consistent):
        mass, com, inertia = about_com(body)
        second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        values, vectors = np.linalg.eigh(second)
        ball = mass * SMALLEST_RADIUS**2
        floor = ball if values.max() < SMALLEST_SHARE * ball else SMALLEST_SHARE * max(values.max(), ball)
        if values.min() >= floor:
            continue
        second = (vectors * np.maximum(values, floor)) @ vectors.T
        consistent[k] = _from_second_moments(float(mass), com, second)
    return consistent


def from_com(mass: float, com: Array, inertia: Array) -> Array:
    """Inertial parameters (10,) from mass, centre of mass (3,) and inertia about it (3, 3); see :func:`about_com`."""
    return _from_second_moments(mass, com, 0.5 * np.trace(inertia) * np.eye(3) - inertia)


def _from_second_moments(mass: float, com: Array, second: Array) -> Array:
    """Inertial parameters (10,) from second moments of mass about the centre of mass (3, 3)."""
    pseudo = np.zeros((4, 4))
    pseudo[:3, :3] = second + mass * np.outer(com, com)
    pseudo[:3, 3] = pseudo[3, :3] = mass * com
    pseudo[3, 3] = mass
    return np.asarray(inertials_of(pseudo))


def entropic_slope(inertials: Array) -> Array:
    r"""Derivative (n, 10) of :math:`tr(J J_0^{-1})` by the inertial parameters of J, for bodies :math:`J_0` (n, 10)."""
    inverse = np.linalg.inv(pseudo_inertia(inertials))
    units = pseudo_inertia(np.eye(INERTIALS))
    return np.asarray(np.einsum("nij,pji->np", inverse, units))


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
