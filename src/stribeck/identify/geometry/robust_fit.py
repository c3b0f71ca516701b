r"""Robust nonlinear least squares on measured points, with one weight per pose.

The errors of the points in one pose are correlated, so a pose as a whole is a blunder or not. With the residuals
:math:`r_i` of the m coordinates of pose i, :math:`d_i = \|r_i\|/\sqrt{m}` and Tukey's biweight, the cost at a scale s is

.. math:: \sum_i m\,\rho(d_i) + \frac{s^2}{2}\theta^T\Lambda\theta, \qquad
    \rho(d) = \frac{(cs)^2}{6}\left(1 - \left(1 - \min(1, d/(cs))^2\right)^3\right), \quad c = 4.685,

where :math:`\Lambda` holds the inverse variances of normal priors with mean 0 (0: none). The scale is the median of the
:math:`d_i`, divided by that of m normal residuals of standard deviation 1. Levenberg-Marquardt minimises the cost,
with the weights :math:`w_i = \rho'(d_i)/d_i = (1 - \min(1, d_i/(cs))^2)^2` in the normal equations

.. math:: H = \sum_i w_i J_i^T J_i + s^2\Lambda, \qquad g = s^2\Lambda\theta - \sum_i w_i J_i^T r_i

then the scale is computed again, and so on until it no longer changes.

Residuals within a pose are correlated because joint errors move all its points. Poses are therefore the clusters of the
covariance, :func:`~stribeck.identify.common.clusters.leave_one_out_of_few`.

Sources: Beaton and Tukey 1974; Huber and Ronchetti 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import chi2

from stribeck.errors import RecordingError
from stribeck.identify.common.clusters import leave_one_out_of_few
from stribeck.identify.common.minimise import DenseEquations, minimise
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.geometry.model import KinematicModel
from stribeck.model.arrays import Array, Indices

TUKEY = 4.685
"""Multiple of the scale from which a pose has zero weight; 95 % efficient for normal residuals."""

ROUNDS = 30
"""Maximum number of updates of the scale; then it is kept, as scale and weights may alternate between two solutions."""

STEPS = 200
"""Maximum number of steps at one scale."""

SETTLED = 1e-9
"""Relative change of the scale at which it has converged."""

ROUNDING = 1e-9
"""Scale [m] below which residuals are rounding errors; no pose is then rejected."""


@dataclass(frozen=True, eq=False)
class PointData:
    """Measured points in poses.

    :param positions: joint positions (poses, n) [rad, m].
    :param points: marker positions in the frame of the measuring system (poses, k, 3) [m].
    :param rows: row of each pose in its files, from 0 (poses,).
    """

    positions: Array
    points: Array
    rows: Indices

    def take(self, chosen: Sequence[int] | Indices) -> PointData:
        """The data of a subset of the poses."""
        index = np.asarray(chosen)
        return PointData(self.positions[index], self.points[index], self.rows[index])

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class RobustEstimate:
    """Estimated parameters.

    :param values: values of all parameters.
    :param weights: weights of the poses (poses,), 0 for blunders.
    :param scale: scale of residual coordinates without blunders [m].
    """

    values: Array
    weights: Array
    scale: float
    steps: int
    status: SolverStatus


def pose_weights(residuals: Array, scale: float | None = None) -> tuple[Array, float]:
    """Tukey weights of poses (poses,), and the scale [m].

    :param residuals: (poses, m) [m].
    :param scale: computed from the residuals if omitted.
    """
    distances = np.sqrt(np.mean(residuals**2, axis=1))
    m = residuals.shape[1]
    if scale is None:
        scale = max(float(np.median(distances)) / float(np.sqrt(chi2.median(m) / m)), ROUNDING)
    return (1.0 - np.minimum(1.0, distances / (TUKEY * scale)) ** 2) ** 2, scale


def fit_points(
    model: KinematicModel, data: PointData, start: Array, free: list[int], precision: Array | None = None
) -> RobustEstimate:
    """Estimate parameters.

    :param start: values of all parameters.
    :param free: indices of those to estimate; the others are fixed.
    :param precision: inverse variance of each parameter's prior (parameters,), 0 for none; default: none.
    :raises RecordingError: if the solver does not converge, or the poses do not identify the free parameters.
    """
    features = model.features(data.positions)
    prior = np.zeros(len(free)) if precision is None else precision[free]
    values, steps, scale, status = start.copy(), 0, np.nan, SolverStatus.LIMIT

    def residuals_at(point: Array) -> tuple[Array, Array]:
        values[free] = point
        points, jacobian = model.linearise(data.positions, values, features)
        return (data.points - points).reshape(len(data), -1), jacobian[:, :, free]

    def equations(point: Array) -> DenseEquations:
        residuals, jacobian = residuals_at(point)
        weights, _ = pose_weights(residuals, scale)
        normal, slope = _normal_equations(jacobian, residuals, weights, scale**2 * prior, point)
        flat = residuals.shape[1] * (TUKEY * scale) ** 2 / 6.0  # cost of a pose with zero weight
        cost = flat * np.sum(1.0 - weights**1.5) + 0.5 * scale**2 * prior @ point**2
        return DenseEquations(float(cost), -slope, normal)

    point, infinite = start[free], np.full(len(free), np.inf)
    _check_solvable(*residuals_at(point), prior)
    for _ in range(ROUNDS):
        before, scale = scale, pose_weights(residuals_at(point)[0])[1]
        if abs(scale - before) <= SETTLED * scale:
            break
        point, _, status, taken = minimise(
            equations, point, -infinite, infinite, np.ones(len(free)), STEPS, damping=1e-12, least_gain=1e-12
        )
        steps += taken
    if status in (SolverStatus.CONVERGED, SolverStatus.KINK):
        weights = pose_weights(residuals_at(point)[0], scale)[0]
        return RobustEstimate(values, weights, scale, steps, status)
    raise RecordingError(
        f"the calibration did not converge in {steps} steps: check the nominal geometry, and the order and signs of the joints"
    )


def _check_solvable(residuals: Array, jacobian: Array, prior: Array) -> None:
    """Refuse poses whose normal equations have no solution."""
    weights, scale = pose_weights(residuals)
    solve_weighted(jacobian, residuals, weights, scale**2 * prior, np.zeros(len(prior)))


def _normal_equations(
    jacobian: Array, residuals: Array, weights: Array, ridge: Array, values: Array
) -> tuple[Array, Array]:
    """Matrix (parameters, parameters) and right-hand side (parameters,) of a weighted step."""
    rows = (jacobian * np.sqrt(weights)[:, None, None]).reshape(-1, jacobian.shape[-1])
    target = (residuals * np.sqrt(weights)[:, None]).ravel()
    return rows.T @ rows + np.diag(ridge), rows.T @ target - ridge * values


def solve_weighted(jacobian: Array, residuals: Array, weights: Array, ridge: Array, values: Array) -> Array:
    """One step of weighted least squares with a prior of mean 0, (parameters,).

    :param jacobian: (poses, m, parameters).
    :param residuals: (poses, m) [m].
    :param ridge: squared scale divided by the prior variance of each parameter (parameters,).
    :param values: current values of the parameters.
    :raises RecordingError: if the normal equations have no solution.
    """
    normal, slope = _normal_equations(jacobian, residuals, weights, ridge, values)
    size = np.sqrt(np.diag(normal))
    if not np.all(size > 0.0):
        raise RecordingError(
            "some parameters have no effect in these poses: measure more, and different ones"
        )
    try:
        factor = cho_factor(normal / np.outer(size, size))
    except np.linalg.LinAlgError:
        raise RecordingError(
            "these poses do not determine all parameters: measure more, and different ones, or choose a simpler fit"
        ) from None
    return np.asarray(cho_solve(factor, slope / size) / size)


def covariance(
    model: KinematicModel,
    data: PointData,
    estimate: RobustEstimate,
    free: list[int],
    precision: Array | None = None,
) -> Array:
    """Covariance of the free parameters, for mutually independent poses."""
    points, jacobian = model.linearise(data.positions, estimate.values)
    residuals = (data.points - points).reshape(len(data), -1)
    ridge = np.zeros(len(free)) if precision is None else estimate.scale**2 * precision[free]
    return leave_one_out_of_few(jacobian[:, :, free], residuals, estimate.weights, ridge)
