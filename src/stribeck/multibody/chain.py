r"""Least squares along a chain of states with parameters in common, by orthogonal elimination in O(n).

.. math:: \min \sum_k \| A_k x_k + N_k x_{k+1} + P_k\chi + z_k \|^2 + \sum_{k\in\text{starts}} \| F_k x_k + Q_k\chi + f_k \|^2

Rows that know :math:`x_k` are triangularised with Householder reflections,

.. math:: Q^T \begin{bmatrix} \hat R_k & 0 & \hat B_k & \hat z_k \\ A_k & N_k & P_k & z_k \end{bmatrix} =
          \begin{bmatrix} R_k & U_k & B_k & c_k \\ 0 & \hat R_{k+1} & \hat B_{k+1} & \hat z_{k+1} \end{bmatrix},

the first d rows are kept, the others go on to the next state. What is left at the end are the rows of the parameters
alone, :math:`\|R_\chi\chi + c_\chi\|^2`, with :math:`R_\chi^TR_\chi = S` the Schur complement of the block-tridiagonal normal
equations. These are not formed: stiff constraints and a large ratio spread the singular values of the Jacobian over ten
decades, which the square would double beyond what double precision holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dgeqrf, dtrtrs

from stribeck.multibody.mechanism import Array


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of the problem above.

    :param here: A (N, m, d).
    :param there: N (N, m, d); zero where no state follows.
    :param parameters: P (N, m, p).
    :param value: z (N, m).
    :param starts: indices of the first states.
    :param first: F (runs, s, d).
    :param first_parameters: Q (runs, s, p).
    :param first_value: f (runs, s).
    """

    here: Array
    there: Array
    parameters: Array
    value: Array
    starts: Array
    first: Array
    first_parameters: Array
    first_value: Array


@dataclass(frozen=True, eq=False)
class Eliminated:
    r"""A problem without its states.

    :param kept: :math:`[R_k, U_k, B_k, c_k]` (N, d, 2 d + p + 1).
    :param triangle: :math:`[R_\chi, c_\chi]` (p + 1, p + 1).
    """

    kept: Array
    triangle: Array

    @property
    def schur(self) -> Array:
        """S (p, p)."""
        root = self.triangle[:, :-1]
        return np.asarray(root.T @ root)

    @property
    def reduced(self) -> Array:
        r""":math:`-R_\chi^Tc_\chi` (p,): right side for :math:`S\chi`."""
        return np.asarray(-self.triangle[:, :-1].T @ self.triangle[:, -1])

    def states(self, chi: Array) -> Array:
        """Optimal states (N, d) for parameters (p,)."""
        d = self.kept.shape[1]
        sides = -(self.kept[:, :, 2 * d : -1] @ chi) - self.kept[:, :, -1]
        return self._substituted(sides[..., None])[..., 0]

    def response(self) -> Array:
        r""":math:`\partial x/\partial\chi` of the optimal states (N, d, p)."""
        d = self.kept.shape[1]
        return self._substituted(-self.kept[:, :, 2 * d : -1])

    def _substituted(self, sides: Array) -> Array:
        d = self.kept.shape[1]
        found = np.zeros_like(sides)
        after = np.zeros(sides.shape[1:])
        for k in range(len(sides) - 1, -1, -1):
            right = sides[k] - self.kept[k, :, d : 2 * d] @ after
            after, problem = dtrtrs(self.kept[k, :, :d], right)
            if problem:
                raise np.linalg.LinAlgError(f"state {k} is not determined")
            found[k] = after
        return found


def eliminate(rows: Rows) -> Eliminated:
    """Eliminate the states from the first to the last."""
    count, m, d = rows.here.shape
    width = 2 * d + rows.parameters.shape[2] + 1
    kept = np.zeros((count, d, width))
    carried = np.zeros((0, width - d))
    begins = {int(start): run for run, start in enumerate(rows.starts)}
    for k in range(count):
        if k in begins:
            run = begins[k]
            first = np.concatenate(
                [rows.first[run], rows.first_parameters[run], rows.first_value[run][:, None]], axis=1
            )
            carried = np.concatenate([carried, first])
        block = np.zeros((max(len(carried) + m, width), width), order="F")
        block[: len(carried), :d], block[: len(carried), 2 * d :] = carried[:, :d], carried[:, d:]
        own = block[len(carried) : len(carried) + m]
        own[:, :d], own[:, d : 2 * d] = rows.here[k], rows.there[k]
        own[:, 2 * d : -1], own[:, -1] = rows.parameters[k], rows.value[k]
        factor = dgeqrf(block, overwrite_a=True)[0]
        triangle = np.triu(factor[:width])
        kept[k] = triangle[:d]
        carried = triangle[d:, d:]
    # Columns of a state that does not follow are zero, and rows pass them by: all rows know of parameters.
    return Eliminated(kept, np.linalg.qr(carried[:, d:], mode="r"))
