r"""Measured points of a drive/backdrive diagram as further data for the parameters of a file.

The parameters of a fit are normal with mean :math:`p_0` and covariance C, of the file's predictive distribution or of its intervals. A
point k measures :math:`r_k(p) = |\tau_m(p) + \tau_e(p)| - \tau_f^m(p) = 0` with the standard deviation :math:`\sigma_k`. With the
derivatives H of r by the parameters, the law is fitted anew by Gauss-Newton steps of

.. math:: \min_p\; (p - p_0)^T C^{-1} (p - p_0) + \sum_k w_k\,r_k(p)^2 / \sigma_k^2, \qquad
    C' = \big(C^{-1} + \textstyle\sum_k w_k\,h_k h_k^T / \sigma_k^2\big)^{-1}

Points of one stretch of motion share what the law lacks: the weights :math:`w_k` are one over the number of points of a run, place and
direction, and where the residuals are larger than their deviations say, all deviations are enlarged to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stribeck.errors import ConfigError
from stribeck.evaluate.measured_diagram import STEP, DiagramPoint, acting_torques, expected_friction
from stribeck.identify.common.quantiles import normal_estimate, normal_quantile
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate
from stribeck.model.joint import CorrelationMatrix, Drive
from stribeck.model.log import Log, Samples

ROUNDS = 8
RELATIVE = 1e-4
"""Step of differences, relative to the standard deviation of a parameter."""

PLACE = 0.2
"""Width of the classes of load in which points of one run and direction belong together, relative to the largest load."""


@dataclass(frozen=True)
class DiagramUpdate:
    """A drive fitted to points as well.

    :param drive: with new values, intervals and correlation.
    :param shorter: by name, how many times shorter the interval is than before.
    :param scale: factor by which the points' deviations were enlarged, at least 1.
    """

    drive: Drive
    shorter: Mapping[str, float]
    scale: float


def updated(drive: Drive, points: Sequence[DiagramPoint], logs: Sequence[Log]) -> DiagramUpdate:
    """The drive fitted to measured points, too.

    :param logs: the recordings of the points.
    :raises ConfigError: for a file without intervals, or no points.
    """
    names, covariance = _uncertain(drive)
    if not points:
        raise ConfigError(
            "the recordings contain no snapshots at the beginning of motion or in slow motion: record the trajectory `breakaway` with several loads"
        )
    samples = {log.name: log.resample(STEP) for log in logs}
    prior = np.linalg.pinv(covariance)
    start = np.array([drive.values[name] for name in names])
    deviation = np.array([point.deviation for point in points])
    weights = _weights(points)
    sizes = np.sqrt(np.diag(covariance))
    lower, upper = np.array([drive.bounds.get(name, (-np.inf, np.inf)) for name in names]).T
    at, scale = start.copy(), 1.0
    for _ in range(ROUNDS):
        residual = _residuals(drive, points, samples, names, at)
        slopes = np.stack(
            [
                (_residuals(drive, points, samples, names, at + step) - residual) / step[k]
                for k, step in enumerate(np.diag(RELATIVE * sizes))
            ],
            axis=1,
        )
        spread = np.sqrt(np.sum(weights * (residual / deviation) ** 2) / np.sum(weights))
        scale = max(1.0, float(spread))
        precision = weights / (scale * deviation) ** 2
        hessian = prior + slopes.T @ (precision[:, None] * slopes)
        step = np.linalg.solve(hessian, prior @ (start - at) - slopes.T @ (precision * residual))
        at = np.clip(at + step, np.minimum(lower, start), np.maximum(upper, start))
        if np.all(np.abs(step) < 1e-3 * sizes):
            break
    after = np.linalg.inv(hessian)
    return DiagramUpdate(
        _with(drive, names, at, after),
        {
            name: float(before / now)
            for name, before, now in zip(names, sizes, np.sqrt(np.diag(after)), strict=True)
        },
        scale,
    )


def _uncertain(drive: Drive) -> tuple[tuple[str, ...], Array]:
    """Names of the uncertain parameters and their covariance.

    :raises ConfigError: if the file states none.
    """
    if drive.prediction is not None:
        matrix = np.array(drive.prediction.covariance)
        free = [
            k for k, name in enumerate(drive.prediction.names) if matrix[k, k] > 0.0 and name in drive.values
        ]
        return tuple(drive.prediction.names[k] for k in free), matrix[np.ix_(free, free)]
    factor = 2.0 * normal_quantile()
    widths = {
        name: (upper - lower) / factor
        for name, (lower, upper) in drive.intervals.items()
        if upper > lower and name in drive.values
    }
    if not widths:
        raise ConfigError(
            "the parameter file states no intervals, so measured points cannot improve it: identify it from recordings"
        )
    names, sizes = tuple(widths), np.array(list(widths.values()))
    correlation = np.eye(len(names))
    if drive.correlation is not None:
        correlation = np.where(correlation > 0.0, 1.0, 0.999 * drive.correlation.between(names))
    return names, correlation * np.outer(sizes, sizes)


def _weights(points: Sequence[DiagramPoint]) -> Array:
    """One over the number of points that belong together (K,)."""
    largest = max(abs(point.external_torque) for point in points) or 1.0
    groups = [
        (point.run, point.kind, point.speed > 0.0, round(point.external_torque / (PLACE * largest)))
        for point in points
    ]
    counts = Counter(groups)
    return np.array([1.0 / counts[group] for group in groups])


def _residuals(
    drive: Drive,
    points: Sequence[DiagramPoint],
    samples: Mapping[str, Samples],
    names: Sequence[str],
    values: Array,
) -> Array:
    """Friction as measured with the values, less that of the law with them (K,) [N m]."""
    p = {**drive.values, **dict(zip(names, values.tolist(), strict=True))}
    torques = {name: acting_torques(one, drive, p) for name, one in samples.items()}
    found = np.empty(len(points))
    for k, point in enumerate(points):
        rows = slice(*point.rows)
        motor, load = (float(part[rows].mean()) for part in torques[point.run])
        turning = np.sign(point.motor_torque if point.kind == "drive" else point.external_torque)
        pull = turning * (point.motor_torque + point.external_torque) - point.friction
        moved = replace(point, motor_torque=motor, external_torque=load)
        found[k] = turning * (motor + load) - pull - expected_friction(moved, drive, p)
    return found


def _with(drive: Drive, names: Sequence[str], values: Array, covariance: Array) -> Drive:
    """The drive with new values, intervals and correlation; its predictive distribution of motions no longer holds."""
    sizes = np.sqrt(np.diag(covariance))
    stated: dict[str, Estimate] = dict(drive.stated)
    for name, value, size in zip(names, values.tolist(), sizes.tolist(), strict=True):
        unit = stated[name].unit if name in stated else ""
        stated[name] = normal_estimate(value, unit, size, bounds=drive.bounds.get(name))
    matrix = np.clip(covariance / np.outer(sizes, sizes), -1.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return replace(
        drive,
        values={**drive.values, **dict(zip(names, values.tolist(), strict=True))},
        stated=stated,
        correlation=CorrelationMatrix(tuple(names), tuple(tuple(row) for row in matrix.tolist())),
        prediction=None,
        statements=(*drive.statements, "the measured points of the drive/backdrive diagram were used too"),
    )
