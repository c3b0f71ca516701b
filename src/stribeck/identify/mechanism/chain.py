r"""Least squares over chains of states with common parameters, by orthogonal elimination in O(N).

States follow :math:`x_{k+1} = A_kx_k + E_k\epsilon_k + P_k\chi`, the first state of a run is :math:`x = Tz + Q\chi`, and the
cost is

.. math:: \sum_k \|C_kx_k + F_k\epsilon_k + D_k\chi + y_k\|^2 + \|w\odot(\epsilon_k + e_k)\|^2 .

The normal equations, block-tridiagonal in the states, are not formed. Proceeding from the last step to the first, the cost of
the remaining run is :math:`\|R_{k+1}x_{k+1} + S_{k+1}\chi + s_{k+1}\|^2`, and Householder reflections triangularise

.. math:: \begin{bmatrix} F_k & C_k & D_k & y_k \\ w & 0 & 0 & we_k \\ R_{k+1}E_k & R_{k+1}A_k & R_{k+1}P_k + S_{k+1} & s_{k+1} \end{bmatrix}
          = Q \begin{bmatrix} R_\epsilon & R_{\epsilon x} & R_{\epsilon\chi} & r_\epsilon \\ 0 & R_k & S_k & s_k \\ 0 & 0 & \cdot & \cdot \end{bmatrix}.

The first rows give :math:`\epsilon_k` as a function of the state, the last ones contain parameters only. The only inverted
matrix is :math:`R_\epsilon`, which is regular for :math:`w > 0` even if no sample depends on a state. After the last step,
:math:`\|R_\chi\chi + c_\chi\|^2` remains; :math:`R_\chi^TR_\chi` is the Schur complement of the normal equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg.lapack import dgeqrf, dtrtrs

from stribeck.model.arrays import Array, Mask

Flags = Mask


@dataclass(frozen=True, eq=False)
class StateChain:
    """The problem above, all runs concatenated.

    :param turn: A (N, d, d).
    :param push: E (N, d, e).
    :param drift: P (N, d, p).
    :param linked: whether state k + 1 belongs to the same run as state k (N,); other steps have no push and no samples.
    :param sample: :math:`[F, C, D, y]` (N, s, e + d + p + 1).
    :param weight: w (N, e).
    :param offset: :math:`we` (N, e).
    :param first: T (runs, d, f).
    :param first_drift: Q (runs, d, p).
    :param known: rows [C, D, y] about the first states x (runs, k, d + p + 1).
    """

    turn: Array
    push: Array
    drift: Array
    linked: Flags
    sample: Array
    weight: Array
    offset: Array
    first: Array
    first_drift: Array
    known: Array

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Dimensions d, e, p of state, impulse and parameters."""
        return self.turn.shape[1], self.push.shape[2], self.drift.shape[2]


@dataclass(frozen=True, eq=False)
class EliminatedChain:
    r"""The problem after elimination of the states.

    :param gain: :math:`\epsilon = G\,[x, \chi, 1]` (N, e, d + p + 1).
    :param first_gain: :math:`z = G\,[\chi, 1]` (runs, f, p + 1).
    :param triangle: :math:`[R_\chi, c_\chi]` (≤ p + 1, p + 1).
    """

    gain: Array
    first_gain: Array
    triangle: Array

    @property
    def schur(self) -> Array:
        """S (p, p)."""
        root = self.triangle[:, :-1]
        return np.asarray(root.T @ root)

    @property
    def reduced(self) -> Array:
        r""":math:`-R_\chi^Tc_\chi` (p,), right-hand side for :math:`S\chi`."""
        return np.asarray(-self.triangle[:, :-1].T @ self.triangle[:, -1])

    def cost(self, chi: Array) -> float:
        """Half the sum of squares at parameters (p,) and optimal states."""
        return 0.5 * float(np.sum((self.triangle @ np.append(chi, 1.0)) ** 2))


def eliminate(chain: StateChain) -> EliminatedChain:
    """Eliminate the states from the last to the first."""
    d, e, p = chain.sizes
    width = e + d + p + 1
    count = len(chain.turn)
    runs = len(chain.first)
    gain = np.zeros((count, e, d + p + 1))
    first_gain = np.zeros((runs, chain.first.shape[2], p + 1))
    tail = np.zeros((0, d + p + 1))
    alone: list[Array] = []
    step = np.concatenate([chain.push, chain.turn, chain.drift, np.zeros((count, d, 1))], axis=2)
    samples = chain.sample.shape[1]
    begins = np.concatenate([[True], ~chain.linked[:-1]])
    run = runs
    for k in range(count - 1, -1, -1):
        if chain.linked[k]:
            block = np.zeros((e + samples + len(tail), width), order="F")
            block[:e, :e].flat[:: e + 1] = chain.weight[k]
            block[:e, -1] = chain.offset[k]
            block[e : e + samples] = chain.sample[k]
            rest = block[e + samples :]
            np.matmul(tail[:, :d], step[k], out=rest)
            rest[:, e + d :] += tail[:, d:]
            triangle = _triangle(block)
            gain[k] = -_solved(triangle[:e, :e], triangle[:e, e:])
            tail = triangle[e : e + d, e:]
            alone.append(triangle[e + d :, e + d :])
        else:
            tail = np.zeros((0, d + p + 1))
        if begins[k]:
            run -= 1
            tail = np.concatenate([tail, chain.known[run]])
            first_gain[run], left = _first(tail, chain.first[run], chain.first_drift[run])
            alone.append(left)
    return EliminatedChain(gain, first_gain, np.asarray(np.linalg.qr(np.concatenate(alone), mode="r")))


def _first(tail: Array, basis: Array, drift: Array) -> tuple[Array, Array]:
    """Gain of a first state, and the rows that contain only parameters."""
    d, f = basis.shape
    p = drift.shape[1]
    right = tail[:, d:].copy()
    right[:, :p] += tail[:, :d] @ drift
    block = np.concatenate([tail[:, :d] @ basis, right], axis=1)
    # Slight damping keeps the directions of a first state on which no sample depends.
    small = 1e-9 * np.sqrt(np.sum(block[:, :f] ** 2, axis=0)).max(initial=0.0) + 1e-300
    block = np.concatenate([block, np.concatenate([small * np.eye(f), np.zeros((f, p + 1))], axis=1)])
    triangle = _triangle(np.asfortranarray(block))
    return -_solved(triangle[:f, :f], triangle[:f, f:]), triangle[f:, f:]


def _triangle(block: Array) -> Array:
    """R of a QR decomposition, upper trapezoidal."""
    factor = dgeqrf(block, overwrite_a=True)[0]
    return np.asarray(factor[: min(factor.shape)] * _upper(min(factor.shape), factor.shape[1]))


@lru_cache(maxsize=64)
def _upper(rows: int, columns: int) -> Array:
    """Ones on the diagonal and above."""
    return np.triu(np.ones((rows, columns)))


def _solved(triangle: Array, right: Array) -> Array:
    solution, problem = dtrtrs(triangle, right)
    if problem:
        raise np.linalg.LinAlgError("the covariance of the unexplained impulses is singular")
    return np.asarray(solution)


def response(chain: StateChain, found: EliminatedChain) -> tuple[Array, Array]:
    r"""Derivatives of the optimal states, :math:`\partial x/\partial\chi` (N, d, p), :math:`\partial\epsilon/\partial\chi` (N, e, p)."""
    d, e, p = chain.sizes
    count = len(chain.turn)
    states, pushes = np.zeros((count, d, p)), np.zeros((count, e, p))
    run = -1
    for k in range(count):
        if k == 0 or not chain.linked[k - 1]:
            run += 1
            states[k] = chain.first[run] @ found.first_gain[run, :, :p] + chain.first_drift[run]
        if chain.linked[k]:
            pushes[k] = found.gain[k, :, :d] @ states[k] + found.gain[k, :, d : d + p]
            states[k + 1] = chain.turn[k] @ states[k] + chain.push[k] @ pushes[k] + chain.drift[k]
    return states, pushes
