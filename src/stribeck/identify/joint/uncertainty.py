r"""Intervals of the parameters of a joint, from blocks of time longer than the residual's correlation.

With the Jacobian :math:`J_g` and the residual :math:`r_g` of block g, the score is :math:`J_g^Tr_g` and the curvature
:math:`J_g^TJ_g`; the covariance is that of leaving out one block after the other
(:func:`~stribeck.identify.common.clusters.leave_one_out`). The covariance of what the law lacks is added as far as it exceeds this noise:
errors that are alike wherever the joint is as fast, or at the same angle, by the same sums over cells of velocities and of positions in
place of blocks (:func:`~stribeck.identify.common.clusters.between_conditions`). Parameters at a bound are held there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stribeck.identify.common.clusters import between_conditions, leave_one_out
from stribeck.identify.common.correlation import independent_blocks
from stribeck.identify.common.quantiles import estimate_about
from stribeck.identify.joint.fit import JointFit, shape_bounds
from stribeck.identify.joint.model import columns_of, signed, unit_of
from stribeck.identify.joint.run import JointRun, joined, thinned
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate, Interval, fixed, side_of
from stribeck.model.joint import CorrelationMatrix

ROWS = 8000
"""Rows of the Jacobian; longer recordings are averaged."""

CELLS = 2
"""Cells of velocities, and of positions, for each parameter: with no more than parameters nothing could be left out."""

STEP = 1e-3
"""Relative step of differences."""


@dataclass(frozen=True, eq=False)
class JointUncertainty:
    """Covariance of the estimated parameters.

    :param names: of the rows and columns.
    :param covariance: (n, n).
    :param estimates: of all parameters.
    """

    names: tuple[str, ...]
    covariance: Array
    estimates: Mapping[str, Estimate]
    correlation: CorrelationMatrix | None


def uncertainty_of(fit: JointFit, runs: Sequence[JointRun]) -> JointUncertainty:
    """Intervals of a fit to runs."""
    few = thinned(runs, ROWS)
    free = [
        name
        for name in (*fit.coefficients, *fit.structure.shapes)
        if (bounds := search_bounds(fit, name)) is None or side_of(fit.values[name], bounds) is None
    ]
    kept = joined(few, "kept")
    jacobian = kept[:, None] * np.stack([_slope(fit, few, name) for name in free], axis=1)
    residual = kept * (joined(few, "torque") - np.concatenate([fit.torque(run) for run in few]))
    ends = np.cumsum([len(run.time) for run in few])[:-1]
    blocks = independent_blocks(np.split(residual, ends), len(free))
    scores = np.array([jacobian[rows].T @ residual[rows] for rows in blocks])
    curvatures = np.array([jacobian[rows].T @ jacobian[rows] for rows in blocks])
    covariance = leave_one_out(scores, curvatures)
    rows = np.flatnonzero(kept > 0.0)
    conditions = np.stack([joined(few, name)[rows] for name in ("velocity", "position")], axis=1)
    cells = CELLS * len(free)
    lacking = between_conditions([(jacobian[rows], residual[rows], conditions)], count=cells)
    covariance = covariance.beyond(lacking, cells - len(free))
    widths = dict(zip(free, covariance.half_widths().tolist(), strict=True))
    estimates = {name: _estimate(fit, name, widths.get(name)) for name in fit.values}
    return JointUncertainty(tuple(free), covariance.matrix, estimates, covariance.correlation(free))


def search_bounds(fit: JointFit, name: str) -> Interval | None:
    """Bounds of the search for a parameter."""
    if name in fit.structure.shapes:
        return shape_bounds(name, fit.frame)
    return None if signed(name) else (0.0, np.inf)


def _slope(fit: JointFit, runs: Sequence[JointRun], name: str) -> Array:
    """Derivative of the torque with respect to a parameter (N,), zero for one that the structure lacks."""
    if name in fit.structure.shapes:
        step = STEP * max(abs(fit.values[name]), 1e-6)
        ends = [
            JointFit(fit.structure, fit.frame, {**fit.values, name: fit.values[name] + sign * step})
            for sign in (1.0, -1.0)
        ]
        above, below = (np.concatenate([end.torque(run) for run in runs]) for end in ends)
        return np.asarray((above - below) / (2.0 * step))
    parts = [columns_of(run, fit.structure, fit.shapes, fit.frame, fit.values) for run in runs]
    columns = [part.get(name, np.zeros(len(run.time))) for part, run in zip(parts, runs, strict=True)]
    return np.concatenate(columns)


def _estimate(fit: JointFit, name: str, width: float | None) -> Estimate:
    value, unit = fit.values[name], unit_of(name)
    if name in fit.frame.places:
        return fixed(value, unit)
    return estimate_about(value, unit, np.inf if width is None else width, bounds=search_bounds(fit, name))


def spread_of(fit: JointFit, known: JointUncertainty, run: JointRun) -> Array:
    """Standard deviation of a predicted torque by the uncertainty of the parameters (N,)."""
    jacobian = np.stack([_slope(fit, [run], name) for name in known.names], axis=1)
    return np.asarray(np.sqrt(np.maximum(np.sum((jacobian @ known.covariance) * jacobian, axis=1), 0.0)))
