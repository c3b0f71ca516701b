r"""Least squares on base parameters: ordinary, weighted with the noise of each joint, and robust.

.. math:: \min_\beta \sum_j \sigma_j^{-2} \sum_t \rho(\tau_j(t) - W_j(t)\beta)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import linalg

from stribeck.dynamics.base_parameters import BaseParameters
from stribeck.dynamics.motion import ProcessedMotion
from stribeck.dynamics.regressor import Friction, Machine, design, structural_base
from stribeck.errors import RecordingError
from stribeck.estimates.autoregressive import covariance, standard_deviations
from stribeck.io.identification_config import Protocol

Array = npt.NDArray[np.float64]
Weighting = Literal["ordinary", "weighted", "robust"]

ITERATIONS = 30
HUBER = 1.345
"""Residuals beyond so many standard deviations count linearly (95 % efficiency for normal ones)."""

WEAKEST = 1e-6
"""A direction whose singular value is below this share of the largest is not excited (columns scaled to one)."""


@dataclass(frozen=True)
class LinearFit:
    """A fit that is linear in its parameters.

    :param base: the base parameters.
    :param values, sigma: estimates and their standard deviations, (b,).
    :param noise: standard deviation of the residuals of each joint (n,) [N m or N].
    :param friction: whether directions differ.
    :param rest: velocity below which there is no direction [rad/s].
    :param condition: condition number of the rows that were fitted, columns scaled to one.
    """

    machine: Machine
    base: BaseParameters
    values: Array
    sigma: Array
    noise: Array
    friction: Friction
    rest: float
    condition: float

    def predict(self, motion: ProcessedMotion) -> Array:
        """Torques at the rows of a run, (M, n)."""
        columns = design(self.machine, motion.states, self.rest, self.friction).columns
        return np.asarray(self.base.reduce(columns) @ self.values)

    @property
    def named(self) -> Mapping[str, float]:
        """Estimates by the name of the first of each combination."""
        return {
            self.base.names[k]: float(value) for k, value in zip(self.base.chosen, self.values, strict=True)
        }


def fit_rows(motion: ProcessedMotion, protocol: Protocol) -> npt.NDArray[np.bool_]:
    """Which rows of each joint are fitted, (M, n)."""
    return motion.moving if protocol.fit == "moving" else np.ones_like(motion.moving)


def fit_linear(
    machine: Machine,
    motions: Sequence[ProcessedMotion],
    protocol: Protocol,
    weighting: Weighting = "ordinary",
    friction: Friction = "symmetric",
) -> LinearFit:
    """Least squares on base parameters.

    :raises RecordingError: for motion that leaves parameters open which a better one would tell; they are named.
    """
    base = structural_base(machine, protocol.rest, friction)
    columns = [
        base.reduce(design(machine, motion.states, protocol.rest, friction).columns) for motion in motions
    ]
    used = [fit_rows(motion, protocol) for motion in motions]
    rows = np.concatenate([c[u] for c, u in zip(columns, used, strict=True)])
    torque = np.concatenate([motion.torque[u] for motion, u in zip(motions, used, strict=True)])
    joint = np.concatenate([np.nonzero(u)[1] for u in used])
    check_excited(machine, base, rows, motions, protocol)
    values = _solve(rows, torque)
    weights = np.ones(len(rows))
    for _ in range(0 if weighting == "ordinary" else ITERATIONS):
        before, residual = values, torque - rows @ values
        noise = _noise(residual, joint, len(machine.joints), robust=weighting == "robust")
        scaled = residual / noise[joint]
        weights = 1.0 / noise[joint]
        if weighting == "robust":
            weights = weights * np.sqrt(HUBER / np.maximum(np.abs(scaled), HUBER))
        values = _solve(rows * weights[:, None], torque * weights)
        if np.linalg.norm(rows @ (values - before)) < 1e-6 * np.linalg.norm(torque):
            break
    residual = torque - rows @ values
    noise = _noise(residual, joint, len(machine.joints), robust=False)
    alike = np.full(len(noise), float(np.sqrt(np.mean(residual**2))))
    deviations = _deviations(columns, used, motions, values, alike if weighting == "ordinary" else noise)
    return LinearFit(machine, base, values, deviations, noise, friction, protocol.rest, _condition(rows))


def check_excited(
    machine: Machine,
    base: BaseParameters,
    rows: Array,
    motions: Sequence[ProcessedMotion],
    protocol: Protocol,
) -> None:
    """Refuse motion that leaves base parameters open.

    :param rows: the fitted rows of the regressor (R, b).
    :raises RecordingError: naming the joints that stand still, or the parameters.
    """
    speeds = np.max([np.abs(motion.states.velocity).max(axis=0) for motion in motions], axis=0)
    still = [name for name, speed in zip(machine.joints, speeds, strict=True) if speed <= protocol.moving]
    if still:
        raise RecordingError(
            f"too little motion: {', '.join(still)} never faster than {protocol.moving:g} (protocol: moving); "
            "move every joint, `stribeck excite` designs such a motion"
        )
    if len(rows) < rows.shape[1]:
        raise RecordingError(f"too little motion: {len(rows)} rows for {rows.shape[1]} parameters")
    scale = np.linalg.norm(rows, axis=0)
    open_ = [base.names[k] for k, size in zip(base.chosen, scale, strict=True) if size == 0.0]
    if not open_:
        _, singular, directions = linalg.svd(linalg.qr(rows / scale, mode="r")[0][: len(scale)])
        weak = directions[singular < WEAKEST * singular[0]]
        shares = np.abs(weak).max(axis=0, initial=0.0)
        open_ = [base.names[k] for k, share in zip(base.chosen, shares, strict=True) if share > 0.3]
    if open_:
        raise RecordingError(
            f"too little motion, the rows leave open: {', '.join(open_)} (each with what it is combined with); "
            "move all joints at once, fast and far, `stribeck excite` designs such a motion"
        )


def _solve(rows: Array, torque: Array) -> Array:
    """Least squares through the normal equations of scaled columns, refined once with the residual."""
    scale = np.linalg.norm(rows, axis=0)
    scaled = rows / scale
    factor = linalg.cho_factor(scaled.T @ scaled)
    found = linalg.cho_solve(factor, scaled.T @ torque)
    found += linalg.cho_solve(factor, scaled.T @ (torque - scaled @ found))
    return np.asarray(found / scale)


def _noise(residual: Array, joint: Array, joints: int, robust: bool) -> Array:
    """Standard deviation of each joint's residuals; robustly by the median of their sizes."""
    found = [residual[joint == j] for j in range(joints)]
    sizes = [1.4826 * np.median(np.abs(r)) if robust else np.sqrt(np.mean(r**2)) for r in found]
    return np.asarray(np.maximum(np.array(sizes), 1e-12))


def _condition(rows: Array) -> float:
    singular = linalg.svdvals(linalg.qr(rows / np.linalg.norm(rows, axis=0), mode="r")[0][: rows.shape[1]])
    return float(singular[0] / singular[-1])


def _deviations(
    columns: Sequence[Array],
    used: Sequence[npt.NDArray[np.bool_]],
    motions: Sequence[ProcessedMotion],
    values: Array,
    noise: Array,
) -> Array:
    jacobians = [np.where(u[:, :, None], c, 0.0) for c, u in zip(columns, used, strict=True)]
    residuals = [
        np.where(u, motion.torque - c @ values, 0.0)
        for c, u, motion in zip(columns, used, motions, strict=True)
    ]
    return standard_deviations(covariance(jacobians, residuals, noise))
