r"""Robust nonlinear least squares of measured points: Gauss-Newton with a weight for each pose.

The points of one pose err together, so a pose is a blunder or none. With the residuals :math:`r_i` of the m
coordinates of pose i, :math:`d_i = \|r_i\|/\sqrt{m}` and Tukey's biweight

.. math:: w_i = \left(1 - \min(1, d_i / (c s))^2\right)^2, \qquad c = 4.685,

the scale s is the median of the d over what it is for m normal residuals of deviation 1. Each step solves

.. math:: \left(\sum_i w_i J_i^T J_i + s^2 \Lambda\right)\Delta = \sum_i w_i J_i^T r_i - s^2 \Lambda\theta

where :math:`\Lambda` holds the inverse variances of normal priors with mean 0 (0: none).

Residuals of a pose are correlated, since joints err rather than points. The covariance is therefore the
sandwich over poses that leaves one out at a time (CR3),

.. math:: C = \sum_i d_i d_i^T, \qquad d_i = (H - w_i J_i^T J_i)^{-1} w_i J_i^T r_i

with H the matrix of the last step.

Sources: Beaton and Tukey, Technometrics 16 (1974); Huber and Ronchetti, "Robust Statistics" (2009); Bell and
McCaffrey, Survey Methodology 28 (2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import chi2

from stribeck.errors import RecordingError
from stribeck.kinematics.model import KinematicModel

FloatArray = npt.NDArray[np.float64]

TUKEY = 4.685
"""Multiple of the scale from which on a pose has no weight; 95 % efficient for normal residuals."""

MOST_STEPS = 200
SETTLED_STEPS = 30
"""After so many steps the scale stays, so that weights cannot go round in circles."""

CONVERGED = 1e-8
"""A step that moves the points by less than this on average [m] is the last one."""

ROUNDING = 1e-9
"""Scale [m] below which residuals are rounding: all of them count."""


@dataclass(frozen=True, eq=False)
class PointData:
    """Measured points in poses.

    :param positions: joint positions (poses, n) [rad, m].
    :param points: of the markers as the measuring system sees them (poses, k, 3) [m].
    :param rows: row of each pose in its files, from 0 (poses,).
    """

    positions: FloatArray
    points: FloatArray
    rows: npt.NDArray[np.int64]

    def take(self, chosen: npt.ArrayLike) -> PointData:
        """Some of the poses."""
        index = np.asarray(chosen)
        return PointData(self.positions[index], self.points[index], self.rows[index])

    def __len__(self) -> int:
        """Number of poses."""
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class RobustEstimate:
    """Parameters that fit.

    :param values: of all parameters.
    :param weights: of the poses (poses,), 0 for blunders.
    :param scale: of residual coordinates without blunders [m].
    :param steps: of Gauss-Newton.
    """

    values: FloatArray
    weights: FloatArray
    scale: float
    steps: int


def pose_weights(residuals: FloatArray, scale: float | None = None) -> tuple[FloatArray, float]:
    """Tukey's weights of poses (poses,), and the scale [m].

    :param residuals: (poses, m) [m].
    :param scale: if it is known.
    """
    distances = np.sqrt(np.mean(residuals**2, axis=1))
    m = residuals.shape[1]
    if scale is None:
        scale = max(float(np.median(distances)) / float(np.sqrt(chi2.median(m) / m)), ROUNDING)
    return (1.0 - np.minimum(1.0, distances / (TUKEY * scale)) ** 2) ** 2, scale


def fit_points(
    model: KinematicModel,
    data: PointData,
    start: FloatArray,
    free: list[int],
    precision: FloatArray | None = None,
) -> RobustEstimate:
    """Estimate parameters.

    :param start: values of all parameters.
    :param free: indices of those to estimate; the others stay.
    :param precision: inverse variance of each parameter's prior (parameters,), 0 for none; default: none.
    :raises RecordingError: if the steps do not converge, or the poses do not tell the free parameters.
    """
    features = model.features(data.positions)
    prior = np.zeros(len(start)) if precision is None else precision
    values, scale = start.copy(), None
    for step in range(1, MOST_STEPS + 1):
        points, jacobian = model.linearise(data.positions, values, features)
        residuals = (data.points - points).reshape(len(data), -1)
        weights, current = pose_weights(residuals, scale)
        if step >= SETTLED_STEPS:
            scale = current
        change, moved = solve_weighted(
            jacobian[:, :, free], residuals, weights, current**2 * prior[free], values[free]
        )
        values[free] += change
        if moved < CONVERGED:
            return RobustEstimate(values, weights, current, step)
    raise RecordingError(
        f"the calibration did not settle in {MOST_STEPS} steps: is the nominal geometry that of this arm, with "
        "the joints in this order and these senses of rotation?"
    )


def solve_weighted(
    jacobian: FloatArray, residuals: FloatArray, weights: FloatArray, ridge: FloatArray, values: FloatArray
) -> tuple[FloatArray, float]:
    """One step of weighted least squares with a prior of mean 0, and how far it moves the points [m].

    :param jacobian: (poses, m, parameters).
    :param residuals: (poses, m) [m].
    :param ridge: squared scale over prior variance of each parameter (parameters,).
    :param values: of the parameters now.
    :raises RecordingError: if the normal equations have no solution.
    """
    rows = (jacobian * np.sqrt(weights)[:, None, None]).reshape(-1, jacobian.shape[-1])
    target = (residuals * np.sqrt(weights)[:, None]).ravel()
    normal = rows.T @ rows + np.diag(ridge)
    size = np.sqrt(np.diag(normal))
    if not np.all(size > 0.0):
        raise RecordingError("some parameters have no effect in these poses: measure more and other poses")
    try:
        factor = cho_factor(normal / np.outer(size, size))
    except np.linalg.LinAlgError:
        raise RecordingError(
            "these poses do not tell all parameters apart: measure more and other poses, or ask for fewer parameters"
        ) from None
    change = cho_solve(factor, (rows.T @ target - ridge * values) / size) / size
    return change, float(np.sqrt(np.mean((rows @ change) ** 2)))


def covariance(
    model: KinematicModel,
    data: PointData,
    estimate: RobustEstimate,
    free: list[int],
    precision: FloatArray | None = None,
) -> FloatArray:
    """Covariance of the free parameters, poses being independent of each other."""
    points, jacobian = model.linearise(data.positions, estimate.values)
    jacobian = jacobian[:, :, free]
    residuals = (data.points - points).reshape(len(data), -1)
    weighted = jacobian * estimate.weights[:, None, None]
    ridge = np.zeros(len(free)) if precision is None else estimate.scale**2 * precision[free]
    normal = np.tensordot(weighted, jacobian, axes=([0, 1], [0, 1])) + np.diag(ridge)
    size = np.sqrt(np.diag(normal))
    weighted, jacobian, normal = weighted / size, jacobian / size, normal / np.outer(size, size)
    inverse = np.linalg.inv(normal)
    # Woodbury: (H − JᵀwJ)⁻¹ Jᵀw r = H⁻¹ Jᵀw (1 − J H⁻¹ Jᵀw)⁻¹ r, with matrices as small as a pose has coordinates
    spread = inverse @ weighted.transpose(0, 2, 1)
    inner = np.eye(residuals.shape[1]) - jacobian @ spread
    left_out = (spread @ np.linalg.solve(inner, residuals[:, :, None]))[:, :, 0]
    found: FloatArray = left_out.T @ left_out / np.outer(size, size)
    return found
