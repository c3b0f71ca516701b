r"""Bordered block-tridiagonal systems in O(n).

.. math:: \begin{bmatrix} H & B \\ B^T & C \end{bmatrix}\begin{bmatrix} x \\ \chi \end{bmatrix} =
          \begin{bmatrix} f \\ e \end{bmatrix}, \qquad H = tridiag(E_k, D_k, E_k^T).

H of N blocks of size d is a band of half-width 2d - 1, whose Cholesky factor takes :math:`4Nd^3` operations in LAPACK; then
:math:`x = H^{-1}f - H^{-1}B\chi` with the Schur complement :math:`S = C - B^TH^{-1}B` of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded

from stribeck.multibody.mechanism import Array


@dataclass(frozen=True, eq=False)
class Eliminated:
    r"""A system whose states are eliminated.

    :param schur: S (p, p).
    :param reduced: :math:`e - B^TH^{-1}f` (p,).
    :param free: :math:`H^{-1}f` (N, d).
    :param response: :math:`-H^{-1}B` (N, d, p): how states answer to parameters.
    """

    schur: Array
    reduced: Array
    free: Array
    response: Array

    def states(self, chi: Array) -> Array:
        """The states (N, d) that belong to parameters (p,)."""
        return np.asarray(self.free + self.response @ chi)


def banded(diagonal: Array, lower: Array) -> Array:
    """LAPACK's lower band (2 d, N d) of D (N, d, d) and E (N, d, d), block k + 1 against k."""
    count, d = diagonal.shape[:2]
    band = np.zeros((2 * d, count, d))
    for column in range(d):
        band[: d - column, :, column] = diagonal[:, column:, column].T
        band[d - column : 2 * d - column, :, column] = lower[:, :, column].T
    return band.reshape(2 * d, count * d)


def eliminate(diagonal: Array, lower: Array, border: Array, corner: Array, f: Array, e: Array) -> Eliminated:
    """Eliminate the states.

    :param diagonal: D (N, d, d).
    :param lower: E (N, d, d); the last is zero.
    :param border: B (N, d, p).
    :raises numpy.linalg.LinAlgError: if H is not positive definite.
    """
    count, d, p = border.shape
    factor = cholesky_banded(banded(diagonal, lower), overwrite_ab=True, lower=True, check_finite=False)
    flat = border.reshape(count * d, p)
    sides = np.concatenate([flat, f.reshape(-1, 1)], axis=1)
    solved = cho_solve_banded((factor, True), sides, check_finite=False)
    return Eliminated(
        corner - flat.T @ solved[:, :p],
        e - flat.T @ solved[:, p],
        solved[:, p].reshape(count, d),
        -solved[:, :p].reshape(count, d, p),
    )
