r"""Bordered block-tridiagonal systems in O(n): block Cholesky along the chain of states.

.. math:: \begin{bmatrix} H & B \\ B^T & C \end{bmatrix}\begin{bmatrix} x \\ \chi \end{bmatrix} =
          \begin{bmatrix} f \\ e \end{bmatrix}, \qquad H = tridiag(E_k, D_k, E_k^T).

Forward: :math:`L_kL_k^T = D_k - U_{k-1}^TU_{k-1}`, :math:`U_k = L_k^{-1}E_k^T`, and :math:`Z_k = L_k^{-1}([B, f]_k -
U_{k-1}^TZ_{k-1})`. The Schur complement of the parameters is :math:`C - \sum Z_B^TZ_B`. Backward:
:math:`X_k = L_k^{-T}(Z_k - U_kX_{k+1})`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Factors(NamedTuple):
    """Factorised system with right sides.

    :param lower: L (N, d, d).
    :param upper: U (N, d, d).
    :param border: :math:`Z_B` (N, d, p).
    :param right: :math:`Z_f` (N, d).
    :param schur: :math:`C - \\sum Z_B^TZ_B` (p, p).
    :param reduced: :math:`e - \\sum Z_B^TZ_f` (p,).
    """

    lower: Any
    upper: Any
    border: Any
    right: Any
    schur: Any
    reduced: Any


def factorize(diagonal: Any, lower: Any, border: Any, corner: Any, f: Any, e: Any) -> Factors:
    """Factors of a system; NaN where it is not positive definite.

    :param diagonal: D (N, d, d).
    :param lower: E (N, d, d), coupling of k + 1 (rows) to k.
    :param border: B (N, d, p).
    """
    d, p = border.shape[1:]
    sides = jnp.concatenate([border, f[..., None]], axis=2)

    def forward(carry: Any, block: Any) -> Any:
        upper, solved = carry
        D, E, side = block
        L = jnp.linalg.cholesky(D - upper.T @ upper)
        both = jax.scipy.linalg.solve_triangular(
            L, jnp.concatenate([E.T, side - upper.T @ solved], axis=1), lower=True
        )
        return (both[:, :d], both[:, d:]), (L, both[:, :d], both[:, d:])

    start = (jnp.zeros((d, d)), jnp.zeros((d, p + 1)))
    L, U, Z = jax.lax.scan(forward, start, (diagonal, lower, sides))[1]
    schur = corner - jnp.einsum("kdi,kdj->ij", Z[..., :p], Z[..., :p])
    reduced = e - jnp.einsum("kdi,kd->i", Z[..., :p], Z[..., p])
    return Factors(L, U, Z[..., :p], Z[..., p], schur, reduced)


def back_substitute(factors: Factors, sides: Any) -> Any:
    """Solutions X (N, d, m) for forward-substituted right sides Z (N, d, m)."""

    def backward(after: Any, block: Any) -> Any:
        L, U, Z = block
        found = jax.scipy.linalg.solve_triangular(L, Z - U @ after, lower=True, trans="T")
        return found, found

    blocks = (factors.lower, factors.upper, sides)
    return jax.lax.scan(backward, jnp.zeros(sides.shape[1:]), blocks, reverse=True)[1]


def states_for(factors: Factors, chi: Any) -> Any:
    """The states (N, d) that belong to parameters (p,)."""
    return back_substitute(factors, (factors.right - factors.border @ chi)[..., None])[..., 0]


def sensitivities(factors: Factors) -> Any:
    r"""How states answer to parameters, :math:`\partial x/\partial\chi = -H^{-1}B` (N, d, p)."""
    return back_substitute(factors, -factors.border)
