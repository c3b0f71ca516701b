"""Kinematic calibration: base pose, markers, joint offsets and geometry of an arm from measured points.

Three fits, each starting from the one before:

- ``nominal``: base pose and markers in the flange frame, with the nominal arm;
- ``offsets``: also the zero positions of the joints;
- ``full``: also the whole geometry, and the further groups that :mod:`stribeck.identify.geometry.term_selection` selects.

Parameters that the poses do not identify stay at their nominal values and are reported. Errors are 3-D distances
between measured and predicted points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from stribeck.errors import RecordingError
from stribeck.identify.common.quantiles import normal_estimate, normal_quantile
from stribeck.identify.geometry.chain import SerialChain, move
from stribeck.identify.geometry.identifiability import Dependent, find_dependent
from stribeck.identify.geometry.model import DOWN, EXTRA, GEOMETRY, KinematicModel, candidate_terms
from stribeck.identify.geometry.robust_fit import (
    PointData,
    RobustEstimate,
    covariance,
    fit_points,
    pose_weights,
)
from stribeck.identify.geometry.term_selection import TermSelection, select_terms
from stribeck.model.arrays import Array
from stribeck.model.estimate import RANGE_SHARE, Estimate, fixed

Fit = Literal["nominal", "offsets", "full"]
FITS: dict[Fit, tuple[str, ...]] = {"nominal": ("base",), "offsets": ("base", "offset"), "full": GEOMETRY}
"""Groups of constant parameters of each fit."""

NUMBERS_PER_PARAMETER = 1.5
"""Minimum number of measured coordinates per parameter of a fit."""

WRONG_ARM = 0.05
"""If the median error of the nominal fit exceeds this share of the reach, nominal geometry and data do not match."""


@dataclass(frozen=True)
class PointErrors:
    """3-D errors over all markers and poses [m]."""

    mean: float
    median: float
    largest: float


@dataclass(frozen=True)
class Blunder:
    """A pose that is an outlier.

    :param row: row of the pose in its files, from 0.
    :param error: mean 3-D error over its markers [m].
    """

    row: int
    error: float


@dataclass(frozen=True, eq=False)
class ArmCalibration:
    """A fitted arm.

    :param model: model with the terms of this fit.
    :param free: indices of the estimated parameters.
    :param dependent: parameters that the poses do not identify.
    :param sigma: standard deviation of each parameter, NaN if it was not estimated.
    :param selection: selection of terms beyond the geometry.
    """

    model: KinematicModel
    estimate: RobustEstimate
    free: tuple[int, ...]
    dependent: tuple[Dependent, ...]
    sigma: Array
    selection: TermSelection

    @property
    def estimates(self) -> dict[str, Estimate]:
        """All parameters by name.

        As most are nominally zero, the scale of their intervals is :data:`RANGE_SHARE` of the deviations that occur: of
        :data:`WRONG_ARM` in both directions for the geometry, of the interval of their prior for other groups.
        """
        because = {one.name: one for one in self.dependent}
        columns = (self.model.names, self.model.units, self.model.groups, self.estimate.values, self.sigma)
        estimates = {}
        for name, unit, group, value, deviation in zip(*columns, strict=True):
            number = float(value)
            if name in because:
                dependent = because[name]
                estimates[name] = fixed(number, unit)
                if dependent.because == "poses":
                    estimates[name] = estimates[name].undetermined(
                        f"the poses do not determine it: {dependent}"
                    )
                continue
            prior = None
            widest = WRONG_ARM * (self.model.chain.reach if unit == "m" else 1.0)
            if group in self.selection.deviations:
                widest = normal_quantile() * self.selection.deviations[group]
                prior = (-widest, widest)
            scale = 2.0 * RANGE_SHARE * widest
            estimates[name] = normal_estimate(number, unit, float(deviation), prior=prior, scale=scale)
        return estimates

    def distances(self, data: PointData) -> Array:
        """3-D errors (poses, markers) [m]."""
        return np.asarray(np.linalg.norm(self._residuals(data), axis=2))

    def _residuals(self, data: PointData) -> Array:
        return self.model.predict(data.positions, self.estimate.values) - data.points

    def errors(self, data: PointData) -> PointErrors:
        """Errors over all markers and poses, including blunders."""
        distances = self.distances(data)
        return PointErrors(float(distances.mean()), float(np.median(distances)), float(distances.max()))

    def blunders(self, data: PointData) -> list[Blunder]:
        """Poses to which the robust loss gives zero weight, the worst first.

        The scale of the loss is that of the fit or of these poses, whichever is larger.
        """
        residuals = self._residuals(data).reshape(len(data), -1)
        weights, _ = pose_weights(residuals, max(self.estimate.scale, pose_weights(residuals)[1]))
        error = self.distances(data).mean(axis=1)
        worst = sorted(np.flatnonzero(weights == 0.0), key=lambda i: -error[i])
        return [Blunder(int(data.rows[i]), float(error[i])) for i in worst]


def calibrate(
    chain: SerialChain,
    markers: Sequence[str],
    data: PointData,
    *,
    fits: Sequence[str] = tuple(FITS),
    extra: Sequence[str] = EXTRA,
    gravity: tuple[float, float, float] = DOWN,
    seed: int = 0,
) -> dict[str, ArmCalibration]:
    """Fit an arm to measured points.

    :param markers: names of the measured points.
    :param fits: fits to compute, from :data:`FITS`.
    :param extra: groups beyond the geometry that cross-validation may add; empty for geometry only.
    :param gravity: direction of gravity in the base frame.
    :param seed: seed for the folds of cross-validation.
    :raises RecordingError: for too few poses, or data that do not match this geometry.
    """
    base, points = align(chain, data)
    everything = KinematicModel(chain, base, candidate_terms(chain, gravity), tuple(markers), gravity)
    for name in (name for name in reversed(FITS) if name in fits):
        _check_enough(everything.keep(FITS[name]), data, points)
    nominal = _fit(everything.keep(FITS["nominal"]), data, _start(everything.keep(("base",)), points))
    _check_match(nominal, data, chain)
    calibrations: dict[str, ArmCalibration] = {}
    last = nominal
    for name in (name for name in FITS if name in fits):
        if name != "nominal":
            last = _continued(everything.keep(FITS[name]), data, last)
        if name == "full":
            last = _with_extra(everything, data, last, extra, seed)
        calibrations[name] = last
    return calibrations


def _start(model: KinematicModel, points: Array) -> Array:
    return np.concatenate([np.zeros(len(model.terms)), points.ravel()])


def _continued(
    model: KinematicModel, data: PointData, before: ArmCalibration, selection: TermSelection | None = None
) -> ArmCalibration:
    """Fit a model with other terms, starting from a fit of the same chain and markers."""
    return _fit(model, data, _values_of(before, model), selection)


def _values_of(calibration: ArmCalibration, model: KinematicModel) -> Array:
    """Values of a calibration mapped to the parameters of another model; 0 for parameters that it lacks."""
    values = dict(zip(calibration.model.names, calibration.estimate.values, strict=True))
    return np.array([values.get(name, 0.0) for name in model.names])


def _with_extra(
    everything: KinematicModel, data: PointData, geometry: ArmCalibration, extra: Sequence[str], seed: int
) -> ArmCalibration:
    """Add the groups selected by cross-validation to the geometric fit."""
    model = everything.keep((*GEOMETRY, *extra))
    estimated = {geometry.model.names[p] for p in geometry.free}
    free = [
        p
        for p, (name, group) in enumerate(zip(model.names, model.groups, strict=True))
        if group in EXTRA or name in estimated
    ]
    selection = select_terms(model, data, _values_of(geometry, model), free, extra, seed)
    if not selection.deviations:
        return replace(geometry, selection=selection)
    return _continued(everything.keep((*GEOMETRY, *selection.deviations)), data, geometry, selection)


def _fit(
    model: KinematicModel, data: PointData, start: Array, selection: TermSelection | None = None
) -> ArmCalibration:
    selection = selection or TermSelection({}, float("nan"), ())
    free, dependent = find_dependent(model, start, data.positions)
    precision = np.array([selection.deviations.get(group, np.inf) for group in model.groups]) ** -2.0
    estimate = fit_points(model, data, start, free, precision)
    sigma = np.full(len(start), np.nan)
    sigma[free] = np.sqrt(np.diag(covariance(model, data, estimate, free, precision)))
    return ArmCalibration(model, estimate, tuple(free), tuple(dependent), sigma, selection)


def _check_enough(model: KinematicModel, data: PointData, points: Array) -> None:
    """Refuse fits with fewer than :data:`NUMBERS_PER_PARAMETER` coordinates per identifiable constant."""
    _, dependent = find_dependent(model, _start(model, points), data.positions)
    parameters = len(model.names) - sum(parameter.because == "geometry" for parameter in dependent)
    per_pose = data.points[0].size
    needed = int(np.ceil(NUMBERS_PER_PARAMETER * parameters / per_pose))
    if len(data) < needed:
        raise RecordingError(
            f"{len(data)} poses of {per_pose // 3} markers for {parameters} parameters, but at least {needed} "
            "poses are needed: measure more, or choose simpler fits"
        )


def _check_match(nominal: ArmCalibration, data: PointData, chain: SerialChain) -> None:
    median = nominal.errors(data).median
    if median > WRONG_ARM * chain.reach:
        raise RecordingError(
            f"the nominal geometry differs from the measured points by {1e3 * median:.0f} mm (median), with a reach of {1e3 * chain.reach:.0f} mm: check the "
            "nominal geometry, the order, signs and units of the joints, and that row n of every file belongs to the same pose"
        )


ROUNDS = 60


def align(chain: SerialChain, data: PointData) -> tuple[Array, Array]:
    """First guess of base pose (4, 4) and marker positions in the flange frame (k, 3) [m], with the nominal arm.

    Alternates between two problems with closed-form solutions: the base pose for given markers (orthogonal Procrustes
    problem, Kabsch 1976), and the markers for a given base pose (medians over the poses).
    """
    motion = move(chain, np.eye(4), chain.magnitudes(data.positions))
    markers = np.zeros(data.points.shape[1:])
    for _ in range(ROUNDS):
        base = rigid_motion(motion.points(markers).reshape(-1, 3), data.points.reshape(-1, 3))
        seen = (data.points - base[:3, 3]) @ base[:3, :3] - motion.position[:, None]
        markers = np.median(seen @ motion.rotation, axis=0)
    return base, markers


def rigid_motion(source: Array, target: Array) -> Array:
    """Pose (4, 4) that maps points (n, 3) onto target points with the least sum of squared distances."""
    centre, aim = source.mean(axis=0), target.mean(axis=0)
    u, _, vt = np.linalg.svd((source - centre).T @ (target - aim))
    handed = np.diag([1.0, 1.0, np.sign(np.linalg.det(vt.T @ u.T))])
    pose = np.eye(4)
    pose[:3, :3] = vt.T @ handed @ u.T
    pose[:3, 3] = aim - pose[:3, :3] @ centre
    return pose
