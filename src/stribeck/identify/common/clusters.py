r"""Covariance of estimates whose samples are independent only between clusters.

.. math:: C = \sum_g d_g d_g^T

over clusters g (runs, blocks of runs, poses), with the score :math:`s_g` and the curvature :math:`B_g` that cluster g
contributes to the minimised loss, :math:`H = \sum_g B_g` and :math:`M_g = H^{-1/2}B_gH^{-1/2}`:

- CR2, :func:`bias_reduced`: :math:`d_g = H^{-1/2}(I - M_g)^{-1/2}H^{-1/2}s_g`, with the degrees of freedom of Bell and
  McCaffrey for each parameter;
- CR3, :func:`leave_one_out`: :math:`d_g = (H - B_g)^{-1} s_g`, scaled as the jackknife, with the number of clusters
  minus the number of parameters as degrees of freedom.

A model that lacks something errs alike wherever a joint is as fast, or at the same angle, however far apart in time. Such errors are
independent only between cells of these conditions (:func:`between_conditions`). Their variances contain that of noise; where they are
larger than noise alone explains, they add to it as far as they exceed it (:func:`beyond_noise`).

Sources: Bell and McCaffrey 2002; Pustejovsky and Tipton 2018; of several kinds of clusters, Cameron, Gelbach and Miller 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import chdtri

from stribeck.identify.common.quantiles import half_widths
from stribeck.model.arrays import Array, Indices, Mask
from stribeck.model.estimate import CONFIDENCE
from stribeck.model.joint import CorrelationMatrix

RANKLESS = 1e-7
"""Directions whose scaled curvature is below this share of the largest are rank-deficient."""

CELLS = 8
"""Cells of a condition, with as many rows each."""

SMALLEST_REST = 1e-6
"""Least share of the information that counts as that of all clusters but one."""

LEAST_ELSEWHERE = 0.2
"""Share of what is known of a direction that counts as known without any one cell, however little it is."""

CHANCE = 0.05
"""Probability at which noise alone passes for something that a model lacks."""

TAKES_PART = 0.1
"""A parameter is part of a rank-deficient direction if its component is larger than this."""


@dataclass(frozen=True, eq=False)
class ClusterCovariance:
    """Covariance of n parameters.

    :param matrix: (n, n).
    :param freedom: degrees of freedom of Student's t per parameter (n,).
    :param rankless: whether a parameter is part of a rank-deficient direction (n,).
    """

    matrix: Array
    freedom: Array
    rankless: Mask

    def half_widths(self, confidence: float = CONFIDENCE) -> Array:
        """Half-widths of the intervals (n,); infinite for rank-deficient parameters."""
        return half_widths(self.matrix, self.freedom, self.rankless, confidence)

    def beyond(self, lacking: Lacking, freedom: float | None = None) -> ClusterCovariance:
        """With what a model lacks, of so many degrees of freedom, by default those of its cells (Welch and Satterthwaite)."""
        matrix = beyond_noise(self.matrix, lacking)
        whole = np.maximum(np.diag(matrix), 1e-300)
        own = np.diag(self.matrix) / whole
        more = lacking.beyond(np.diag(self.matrix))
        parts = more / np.maximum(more.sum(axis=0), 1e-300)
        other = np.sum(parts**2 / lacking.freedom, axis=0) if freedom is None else 1.0 / freedom
        shares = own**2 / self.freedom + (1.0 - own) ** 2 * other
        return replace(self, matrix=matrix, freedom=1.0 / np.maximum(shares, 1e-12))

    def correlation(self, names: Sequence[str]) -> CorrelationMatrix | None:
        """See :func:`correlation_of`."""
        return correlation_of(names, self.matrix, ~self.rankless)


@dataclass(frozen=True, eq=False)
class Lacking:
    """Covariance between cells of k conditions, by what a model lacks and by noise.

    :param matrix: (k, n, n).
    :param limit: ratio to the variance of noise that noise alone exceeds with probability :data:`CHANCE` (k, n).
    :param freedom: degrees of freedom of the variances (k, n), or of all.
    """

    matrix: Array
    limit: Array
    freedom: Array | float = 1.0

    def beyond(self, noise: Array) -> Array:
        """Variances (k, n) in excess of those of noise (n,), where they are larger than noise alone explains."""
        between = np.diagonal(self.matrix, axis1=1, axis2=2)
        return np.where(between > self.limit * noise, np.maximum(between - noise, 0.0), 0.0)

    def of(self, kept: Indices) -> Lacking:
        """That of some parameters."""
        freedom = self.freedom if isinstance(self.freedom, float) else self.freedom[:, kept]
        return Lacking(self.matrix[:, kept][:, :, kept], self.limit[:, kept], freedom)


def correlation_of(
    names: Sequence[str], covariance: Array, known: Mask | None = None
) -> CorrelationMatrix | None:
    """Correlation of the parameters (n,) that have a variance; ``None`` for fewer than two.

    :param covariance: (n, n).
    :param known: those whose variance is known (n,), by default all.
    """
    variance = np.diag(covariance)
    kept = np.flatnonzero((variance > 0.0) & (True if known is None else known))
    if len(kept) < 2:
        return None
    deviation = np.sqrt(variance[kept])
    matrix = np.clip(covariance[np.ix_(kept, kept)] / np.outer(deviation, deviation), -1.0, 1.0)
    return CorrelationMatrix(
        tuple(names[k] for k in kept.tolist()), tuple(tuple(row) for row in np.round(matrix, 4).tolist())
    )


def leave_one_out(scores: Array, curvatures: Array, precision: Array | None = None) -> ClusterCovariance:
    """CR3 covariance, from the shift of the optimum when each cluster is left out in turn.

    :param scores: s (G, n).
    :param curvatures: B (G, n, n).
    :param precision: curvature of a prior, which belongs to no cluster (n, n).
    """
    groups, size = scores.shape
    if groups <= size and precision is None:
        return ClusterCovariance(np.zeros((size, size)), np.ones(size), np.ones(size, dtype=bool))
    whitening = _Whitening.of(curvatures, precision)
    freedom = np.full(size, max(float(groups - size), 1.0))
    return ClusterCovariance(whitening.left_out(scores, SMALLEST_REST), freedom, whitening.rankless)


def between_conditions(
    parts: Sequence[tuple[Array, Array, Array]], precision: Array | None = None, count: int = CELLS
) -> Lacking:
    """CR3 covariance over cells of each condition.

    :param parts: of each joint the Jacobian (N, n), residuals (N,) and conditions (N, k), such as velocity and position.
    :param precision: curvature of a prior (n, n).
    :param count: number of cells; without a prior more than parameters are needed.
    """
    kinds = []
    for kind in range(parts[0][2].shape[1]):
        scores, curvatures = [], []
        for jacobian, residual, conditions in parts:
            cell = cells_of(conditions[:, kind], count)
            for rows in (cell == index for index in range(count)):
                scores.append(jacobian[rows].T @ residual[rows])
                curvatures.append(jacobian[rows].T @ jacobian[rows])
        kinds.append((np.array(scores), np.array(curvatures)))
    return between_cells(kinds, precision)


def between_cells(kinds: Sequence[tuple[Array, Array]], precision: Array | None = None) -> Lacking:
    """The same from the scores (G, n) and curvatures (G, n, n) of the cells of each condition."""
    matrices, limits, freedoms = [], [], []
    for scores, curvatures in kinds:
        whitening = _Whitening.of(curvatures, precision)
        matrices.append(whitening.left_out(scores, LEAST_ELSEWHERE))
        limits.append(whitening.limit(LEAST_ELSEWHERE))
        freedoms.append(whitening.by_noise(1.0, LEAST_ELSEWHERE)[1])
    return Lacking(np.array(matrices), np.array(limits), np.array(freedoms))


def beyond_noise(noise: Array, lacking: Lacking) -> Array:
    """Covariance (n, n) of noise and of what a model lacks.

    Where a variance between cells is larger than noise alone explains, it adds as far as it exceeds that of noise.

    :param noise: (n, n).
    """
    own, whole = np.maximum(np.diag(noise), 0.0), noise + np.sum(lacking.matrix, axis=0)
    more = lacking.beyond(own)
    known = np.diag(whole) > 0.0  # rounding makes others negative, of directions of which nothing is known
    share = np.sqrt(np.divide(own + more.sum(axis=0), np.diag(whole), out=np.ones(len(own)), where=known))
    return np.asarray(whole * np.outer(share, share))


def cells_of(condition: Array, count: int = CELLS) -> Indices:
    """Cell of each value (N,), from 0; all have about as many."""
    return np.searchsorted(np.quantile(condition, np.linspace(0.0, 1.0, count + 1)[1:-1]), condition)


def leave_one_out_of_few(jacobians: Array, residuals: Array, weights: Array, ridge: Array) -> Array:
    r"""Unscaled CR3 covariance (n, n) of weighted least squares on clusters of few rows.

    With :math:`H = \sum_g w_g J_g^T J_g + \Lambda`, the step of cluster g is
    :math:`d_g = (H - w_g J_g^T J_g)^{-1} w_g J_g^T r_g`, by Woodbury's identity
    :math:`H^{-1} w_g J_g^T (1 - J_g H^{-1} w_g J_g^T)^{-1} r_g` with matrices of m rows.

    :param jacobians: J (G, m, n).
    :param residuals: r (G, m).
    :param weights: w (G,).
    :param ridge: diagonal of :math:`\Lambda` (n,).
    """
    weighted = jacobians * weights[:, None, None]
    normal = np.tensordot(weighted, jacobians, axes=([0, 1], [0, 1])) + np.diag(ridge)
    size = np.sqrt(np.diag(normal))
    weighted, jacobians, normal = weighted / size, jacobians / size, normal / np.outer(size, size)
    gain = np.linalg.inv(normal) @ weighted.transpose(0, 2, 1)
    inner = np.eye(residuals.shape[1]) - jacobians @ gain
    steps = (gain @ np.linalg.solve(inner, residuals[:, :, None]))[:, :, 0]
    return np.asarray(steps.T @ steps / np.outer(size, size))


def bias_reduced(scores: Array, curvatures: Array, precision: Array | None = None) -> ClusterCovariance:
    """CR2 covariance with the degrees of freedom of Bell and McCaffrey.

    :param scores: s (G, n).
    :param curvatures: B (G, n, n).
    :param precision: curvature of a prior, which belongs to no cluster (n, n).
    """
    whitening = _Whitening.of(curvatures, precision)
    moved = whitening.moved(scores, 0.5)
    return ClusterCovariance(whitening.back(moved.T @ moved), whitening.by_noise(0.5)[1], whitening.rankless)


@dataclass(frozen=True, eq=False)
class _Whitening:
    """Coordinates in which the total curvature H is the identity, without rank-deficient directions.

    :param forward: H^{-1/2} restricted to directions with rank (k, n).
    :param leverage: M_g (G, k, k).
    :param rankless: parameters that are part of a rank-deficient direction (n,).
    """

    forward: Array
    leverage: Array
    rankless: Mask

    @classmethod
    def of(cls, curvatures: Array, precision: Array | None = None) -> _Whitening:
        total = np.sum(curvatures, axis=0) + (0.0 if precision is None else precision)
        scale = np.sqrt(np.maximum(np.diag(total), 1e-300))
        values, vectors = np.linalg.eigh(total / np.outer(scale, scale))
        ranked = values > RANKLESS * values[-1]
        forward = (vectors[:, ranked] / np.sqrt(values[ranked])).T / scale
        blind = np.diag(total) <= 0.0
        rankless = np.any(np.abs(vectors[:, ~ranked]) > TAKES_PART, axis=1) | blind
        leverage = np.einsum("ki,gij,lj->gkl", forward, curvatures, forward, optimize=True)
        return cls(forward, leverage, rankless)

    def scores(self, scores: Array) -> Array:
        return scores @ self.forward.T

    @cached_property
    def _axes(self) -> tuple[Array, Array]:
        """Eigenvalues (G, k) and eigenvectors (G, k, k) of the leverages."""
        variance, axes = np.linalg.eigh(self.leverage)
        return variance, axes

    def moved(self, scores: Array, power: float, least: float = SMALLEST_REST) -> Array:
        """(I - M_g)^-power of the scores, (G, k)."""
        variance, axes = self._axes
        shrunk = _remaining(variance, least) ** -power
        return np.asarray(np.einsum("gij,gj,gkj,gk->gi", axes, shrunk, axes, self.scores(scores)))

    def left_out(self, scores: Array, least: float) -> Array:
        """Covariance of the original parameters (n, n), from the shift of the optimum without each cluster."""
        moved = self.moved(scores, 1.0, least)
        return self.back((len(scores) - 1) / len(scores) * moved.T @ moved)

    def by_noise(self, power: float, least: float = SMALLEST_REST) -> tuple[Array, Array]:
        """Expectation of the variances of :meth:`moved` scores of white noise, and their degrees of freedom (n,), Satterthwaite's.

        The scores of clusters are those at the optimum, where they add to zero.
        """
        variance, axes = self._axes
        remaining = _remaining(variance, least)
        # Per parameter c: a_g with a_g'a_g = c'(I - M_g)^-2p M_g c and X_g'a_g = M_g (I - M_g)^-p c.
        along = np.einsum("gki,kc->gic", axes, self.forward)
        norms = np.einsum("gic,gi,gic->cg", along, variance * remaining ** (-2.0 * power), along)
        shared = np.einsum("gik,gk,gkc->cgi", axes, variance * remaining**-power, along)
        overlap = -np.einsum("cgi,chi->cgh", shared, shared)
        groups = np.arange(len(variance))
        overlap[:, groups, groups] += norms
        # The ratio is scale-free; for nearly rank-deficient parameters the squares would overflow without normalisation.
        size = np.maximum(np.abs(overlap).max(axis=(1, 2)), 1e-300)
        overlap /= size[:, None, None]
        trace, square = np.einsum("cgg->c", overlap), np.einsum("cgh,cgh->c", overlap, overlap)
        return trace * size, np.maximum(trace**2 / np.maximum(square, 1e-300), 1.0)

    def limit(self, least: float) -> Array:
        """Ratio (n,) of :meth:`left_out` to the variance of white noise that this noise exceeds with probability :data:`CHANCE`."""
        expected, freedom = self.by_noise(1.0, least)
        groups, own = len(self.leverage), np.maximum(np.sum(self.forward**2, axis=0), 1e-300)
        return np.asarray((groups - 1) / groups * expected / own * chdtri(freedom, CHANCE) / freedom)

    def back(self, matrix: Array) -> Array:
        """Transform a covariance back to the original parameters (n, n)."""
        return self.forward.T @ matrix @ self.forward


def _remaining(leverage: Array, least: float = SMALLEST_REST) -> Array:
    """1 - leverage: the information in all other clusters, kept above zero."""
    return np.maximum(1.0 - leverage, least)
