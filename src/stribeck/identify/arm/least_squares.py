r"""Least squares on base parameters: ordinary, weighted by the noise of each joint, robust, and generalised.

.. math:: \min_\beta \sum_j \sigma_j^{-2} \sum_t \rho(\tau_j(t) - W_j(t)\beta), \qquad
    \min_\beta \sum_t (\tau_t - W_t\beta)^T \Sigma^{-1} (\tau_t - W_t\beta)

The generalised one takes the whole covariance Σ of the joints' torques, from the residuals
(:mod:`stribeck.identify.common.joint_covariance`). Unlike the others it needs residuals of a joint that do not depend on the
motion of the other joints: an error of the model in one joint would change the parameters of those that it is correlated with.
Hausman's test of the difference of both fits detects this, and the weighted fit takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import linalg, stats

from stribeck.errors import RecordingError
from stribeck.identify.arm.base_parameters import BaseParameters
from stribeck.identify.arm.config import Protocol
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.regressor import Friction, Machine, design, structural_base
from stribeck.identify.common.autoregressive import covariance, covariance_of, standard_deviations
from stribeck.identify.common.joint_covariance import joint_covariance, whitener
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.arrays import Array, Indices, Mask

Weighting = Literal["ordinary", "weighted", "robust", "generalised"]

ITERATIONS = 30
HUBER = 1.345
"""Residuals beyond this many standard deviations enter the cost linearly (95 % efficient for normal noise)."""

WEAKEST = 1e-6
"""Directions whose singular value is below this share of the largest are not excited (columns of unit length)."""

HAUSMAN_LEVEL = 0.05
"""Weighted and generalised fits that differ more than noise does with this probability differ by an error of the model."""

SAME = 1e-6
"""Difference of the predictions of two fits, in noise variances, below which both are the same."""


@dataclass(frozen=True)
class LinearFit:
    """A fit of base parameters.

    :param values, sigma: estimates and their standard deviations, (b,).
    :param noise: standard deviation of the residuals of each joint (n,) [N m or N].
    :param friction: whether the two directions have separate friction.
    :param rest: velocity below which a joint has no direction of motion [rad/s].
    :param condition: condition number of the fitted rows, columns of unit length.
    :param spread: covariance of the residuals of all joints (n, n), correlations drawn towards zero.
    :param hausman_p: probability of a difference as large as the one between weighted and generalised fit by noise alone; below
        :data:`HAUSMAN_LEVEL` the fit is the weighted one. ``None`` for other fits.
    """

    machine: Machine
    base: BaseParameters
    values: Array
    sigma: Array
    noise: Array
    friction: Friction
    rest: float
    condition: float
    status: SolverStatus
    spread: Array
    hausman_p: float | None = None

    def predict(self, motion: ProcessedMotion) -> Array:
        """Predicted torques at the rows of a run, (M, n)."""
        columns = design(self.machine, motion.states, self.rest, self.friction).columns
        return np.asarray(self.base.reduce(columns) @ self.values)

    @property
    def rejected(self) -> bool:
        """Whether Hausman's test replaced the generalised fit by the weighted one."""
        return self.hausman_p is not None and self.hausman_p < HAUSMAN_LEVEL

    @property
    def named(self) -> Mapping[str, float]:
        """Estimates, each by the name of the independent parameter in its combination."""
        return {self.base.names[k]: float(v) for k, v in zip(self.base.chosen, self.values, strict=True)}


def fit_rows(motion: ProcessedMotion, protocol: Protocol) -> Mask:
    """Mask of the rows of each joint that are fitted, (M, n)."""
    return motion.moving if protocol.fit == "moving" else np.ones_like(motion.moving)


@dataclass(frozen=True, eq=False)
class FittedRows:
    """The fitted rows of all runs.

    :param columns: regressor of each run (M, n, p).
    :param used: mask of the fitted rows of each joint, for each run (M, n).
    """

    motions: Sequence[ProcessedMotion]
    columns: Sequence[Array]
    used: Sequence[Mask]

    @classmethod
    def of(
        cls, motions: Sequence[ProcessedMotion], columns: Sequence[Array], protocol: Protocol
    ) -> FittedRows:
        """The rows selected by a protocol."""
        return cls(motions, columns, [fit_rows(motion, protocol) for motion in motions])

    @cached_property
    def rows(self) -> Array:
        """Stacked regressor (R, p)."""
        return np.concatenate([c[u] for c, u in zip(self.columns, self.used, strict=True)])

    @cached_property
    def torque(self) -> Array:
        """Stacked torques (R,)."""
        return np.concatenate([m.torque[u] for m, u in zip(self.motions, self.used, strict=True)])

    @cached_property
    def joint(self) -> Indices:
        """Joint index of each row (R,)."""
        return np.concatenate([np.nonzero(u)[1] for u in self.used])

    def residuals(self, values: Array) -> list[Array]:
        """Residuals of each run (M, n) at the parameters (p,); those that are not fitted are zero."""
        return [
            np.where(u, motion.torque - c @ values, 0.0)
            for c, u, motion in zip(self.columns, self.used, self.motions, strict=True)
        ]

    def whitened(
        self, spread: Array, transform: Callable[[Array], Array] = whitener
    ) -> tuple[list[Array], list[Array]]:
        """Columns (M, n, p) and torques (M, n) of each run in which the noise of all joints is independent and has the variance 1.

        The whole covariance of the joints that are fitted at a time counts there; others are zero.

        :param spread: covariance of the joints (n, n).
        :param transform: the matrix (k, k) by which the rows of k joints are multiplied, from their covariance.
        """
        columns, torques = [], []
        for c, u, motion in zip(self.columns, self.used, self.motions, strict=True):
            found, of_torque = np.zeros_like(c), np.zeros_like(motion.torque)
            for pattern in np.unique(u, axis=0):
                here, joints = np.flatnonzero((u == pattern).all(axis=1)), np.flatnonzero(pattern)
                if len(joints):
                    matrix = transform(spread[np.ix_(joints, joints)])
                    place: Any = np.ix_(here, joints)
                    found[place] = np.einsum("jk,mkp->mjp", matrix, c[place])
                    of_torque[place] = motion.torque[place] @ matrix.T
            columns.append(found)
            torques.append(of_torque)
        return columns, torques

    def covariance(self, values: Array, noise: Array, prior: Array | None = None) -> Array:
        """Covariance of the parameters (p, p).

        :param values: estimates (p,).
        :param noise: standard deviation of each joint's residuals (n,).
        :param prior: precision of a prior (p, p).
        """
        jacobians = [np.where(u[:, :, None], c, 0.0) for c, u in zip(self.columns, self.used, strict=True)]
        return covariance(jacobians, self.residuals(values), noise, prior)


def fit_linear(
    machine: Machine,
    motions: Sequence[ProcessedMotion],
    protocol: Protocol,
    weighting: Weighting = "ordinary",
    friction: Friction = "symmetric",
    base: BaseParameters | None = None,
) -> LinearFit:
    """Least squares on base parameters.

    :param base: those of :func:`structural_base`, if they are already known.
    :raises RecordingError: for motion that does not excite all base parameters, with the names of those not excited.
    """
    base = base or structural_base(machine, protocol.rest, friction)
    columns = [
        base.reduce(design(machine, motion.states, protocol.rest, friction).columns) for motion in motions
    ]
    fitted = FittedRows.of(motions, columns, protocol)
    check_excited(machine, base, fitted.rows, motions, protocol)
    if weighting == "generalised":
        weighted = _by_joint(machine, base, fitted, "weighted", friction, protocol)
        return _generalised(machine, base, fitted, weighted, protocol)
    return _by_joint(machine, base, fitted, weighting, friction, protocol)


def _by_joint(
    machine: Machine,
    base: BaseParameters,
    fitted: FittedRows,
    weighting: Weighting,
    friction: Friction,
    protocol: Protocol,
) -> LinearFit:
    """Ordinary, weighted or robust least squares: the noise of joints is independent."""
    rows, torque, joint = fitted.rows, fitted.torque, fitted.joint
    values = _solve(rows, torque)
    status = SolverStatus.CONVERGED if weighting == "ordinary" else SolverStatus.LIMIT
    for _ in range(0 if weighting == "ordinary" else ITERATIONS):
        before, residual = values, torque - rows @ values
        noise = _noise(residual, joint, len(machine.joints), robust=weighting == "robust")
        scaled = residual / noise[joint]
        weights = 1.0 / noise[joint]
        if weighting == "robust":
            weights = weights * np.sqrt(HUBER / np.maximum(np.abs(scaled), HUBER))
        values = _solve(rows * weights[:, None], torque * weights)
        if np.linalg.norm(rows @ (values - before)) < 1e-6 * np.linalg.norm(torque):
            status = SolverStatus.CONVERGED
            break
    residual = torque - rows @ values
    noise = _noise(residual, joint, len(machine.joints), robust=False)
    assumed = np.full_like(noise, np.sqrt(np.mean(residual**2))) if weighting == "ordinary" else noise
    sigma = standard_deviations(fitted.covariance(values, assumed))
    spread, _ = joint_covariance(fitted.residuals(values), fitted.used)
    return LinearFit(
        machine, base, values, sigma, noise, friction, protocol.rest, _condition(rows), status, spread
    )


def _generalised(
    machine: Machine, base: BaseParameters, fitted: FittedRows, weighted: LinearFit, protocol: Protocol
) -> LinearFit:
    """Least squares with the covariance of all joints, which follows from the residuals in turn; weighted where both disagree."""
    status, values = SolverStatus.LIMIT, weighted.values
    for _ in range(ITERATIONS):
        before = values
        spread, _ = joint_covariance(fitted.residuals(values), fitted.used)
        columns, torques = fitted.whitened(spread)
        rows = np.concatenate([c[u] for c, u in zip(columns, fitted.used, strict=True)])
        torque = np.concatenate([t[u] for t, u in zip(torques, fitted.used, strict=True)])
        values = _solve(rows, torque)
        if np.linalg.norm(rows @ (values - before)) < 1e-6 * np.linalg.norm(torque):
            status = SolverStatus.CONVERGED
            break
    residuals = [t - c @ values for c, t in zip(columns, torques, strict=True)]
    p_value = _hausman(fitted, spread, columns, residuals)
    if p_value < HAUSMAN_LEVEL:
        return replace(weighted, hausman_p=p_value)
    sigma = standard_deviations(covariance(columns, residuals, np.ones(len(machine.joints))))
    noise = np.sqrt(np.diag(spread))
    condition, friction, rest = _condition(rows), weighted.friction, protocol.rest
    return LinearFit(machine, base, values, sigma, noise, friction, rest, condition, status, spread, p_value)


def _hausman(
    fitted: FittedRows, spread: Array, columns: Sequence[Array], residuals: Sequence[Array]
) -> float:
    r"""Probability that noise alone makes a difference of the weighted and the generalised fit as large as the one found.

    Both are linear in the torques, so that their difference is :math:`\delta = \sum_t F_t^T e_t` with the whitened noise e and

    .. math:: F_t = L^T D^{-1} W_t H_D^{-1} - L^{-1} W_t H^{-1}, \quad
        \Sigma = LL^T, \quad H_D = \sum_t W_t^T D^{-1} W_t, \quad H = \sum_t W_t^T \Sigma^{-1} W_t

    and D the diagonal of Σ. The squared difference of the predicted torques, :math:`\delta^T H_D \delta`, is compared with its
    distribution under noise that does not depend on the motion, a weighted sum of chi-square distributions (Satterthwaite 1946).

    :param columns, residuals: whitened, of the generalised fit, for each run.

    Source: Hausman 1978, "Specification tests in econometrics".
    """
    apart, _ = fitted.whitened(spread, lambda part: np.diag(1.0 / np.sqrt(np.diag(part))))
    pulled, _ = fitted.whitened(spread, lambda part: (np.linalg.cholesky(part) / np.diag(part)[:, None]).T)
    of_apart, of_whole = (sum(np.einsum("tjp,tjq->pq", c, c) for c in some) for some in (apart, columns))
    scale = 1.0 / np.sqrt(np.diag(of_apart))
    scaled = of_apart * np.outer(scale, scale)
    back = [linalg.pinvh(h * np.outer(scale, scale), rtol=1e-13) * scale for h in (of_apart, of_whole)]
    functions = [p @ back[0].T - c @ back[1].T for p, c in zip(pulled, columns, strict=True)]
    difference = sum(np.einsum("tjp,tj->p", f, r) for f, r in zip(functions, residuals, strict=True))
    by_noise = scaled @ covariance_of(functions, columns, residuals)
    mean, square = float(np.trace(by_noise)), float(np.trace(by_noise @ by_noise))
    if mean < SAME:
        return 1.0
    seen = float(difference @ scaled @ difference)
    return float(stats.chi2.sf(seen * mean / square, mean**2 / square))


def check_excited(
    machine: Machine,
    base: BaseParameters,
    rows: Array,
    motions: Sequence[ProcessedMotion],
    protocol: Protocol,
) -> None:
    """Refuse motion that does not excite all base parameters.

    :param rows: the fitted rows of the regressor (R, b).
    :raises RecordingError: with the names of the joints that do not move, or of the parameters.
    """
    speeds = np.max([np.abs(motion.states.velocity).max(axis=0) for motion in motions], axis=0)
    still = [name for name, speed in zip(machine.joints, speeds, strict=True) if speed <= protocol.moving]
    if still:
        raise RecordingError(
            f"too little motion: {', '.join(still)} never moves faster than {protocol.moving:g} (protocol: "
            "moving): record a motion of all joints, for example one of `stribeck design trajectory`"
        )
    if len(rows) < rows.shape[1]:
        raise RecordingError(
            f"too little motion: {len(rows)} rows for {rows.shape[1]} parameters: record more"
        )
    scale = np.linalg.norm(rows, axis=0)
    open_ = [base.names[k] for k, size in zip(base.chosen, scale, strict=True) if size == 0.0]
    if not open_:
        _, singular, directions = linalg.svd(linalg.qr(rows / scale, mode="r")[0][: len(scale)])
        weak = directions[singular < WEAKEST * singular[0]]
        shares = np.abs(weak).max(axis=0, initial=0.0)
        open_ = [base.names[k] for k, share in zip(base.chosen, shares, strict=True) if share > 0.3]
    if open_:
        raise RecordingError(
            f"too little motion to determine {', '.join(open_)} (alone, or combined with others): record a "
            "fast and wide motion of all joints at once, for example one of `stribeck design trajectory`"
        )


def _solve(rows: Array, torque: Array) -> Array:
    """Least squares through the normal equations of scaled columns, refined once with the residual."""
    scale = np.linalg.norm(rows, axis=0)
    scaled = rows / scale
    factor = linalg.cho_factor(scaled.T @ scaled)
    values = linalg.cho_solve(factor, scaled.T @ torque)
    values += linalg.cho_solve(factor, scaled.T @ (torque - scaled @ values))
    return np.asarray(values / scale)


def _noise(residual: Array, joint: Indices, joints: int, robust: bool) -> Array:
    """Standard deviation of each joint's residuals; the robust one is derived from their median absolute value."""
    of_joints = [residual[joint == j] for j in range(joints)]
    sizes = [1.4826 * np.median(np.abs(r)) if robust else np.sqrt(np.mean(r**2)) for r in of_joints]
    return np.asarray(np.maximum(np.array(sizes), 1e-12))


def _condition(rows: Array) -> float:
    singular = linalg.svdvals(linalg.qr(rows / np.linalg.norm(rows, axis=0), mode="r")[0][: rows.shape[1]])
    return float(singular[0] / singular[-1])
