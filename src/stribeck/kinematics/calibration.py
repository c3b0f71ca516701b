r"""Kinematic calibration: base, markers, joint offsets and the whole geometry of an arm from measured points.

Three fits, each starting from the one before:

- ``nominal``: pose of the base and markers behind the flange, the arm as drawn;
- ``offsets``: and the zero positions of the joints;
- ``full``: and the whole geometry, with what :mod:`stribeck.kinematics.term_selection` finds worth keeping beyond it.

Parameters that the poses cannot tell stay at nominal and are named. Errors are 3-D distances between
measured and predicted points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from stribeck.errors import RecordingError
from stribeck.kinematics.alignment import align
from stribeck.kinematics.chain import SerialChain
from stribeck.kinematics.identifiability import Dependent, find_dependent
from stribeck.kinematics.model import DOWN, EXTRA, GEOMETRY, KinematicModel, candidate_terms
from stribeck.kinematics.robust_fit import PointData, RobustEstimate, covariance, fit_points, pose_weights
from stribeck.kinematics.term_selection import TermSelection, select_terms

FloatArray = npt.NDArray[np.float64]

FITS: dict[str, tuple[str, ...]] = {"nominal": ("base",), "offsets": ("base", "offset"), "full": GEOMETRY}
"""Groups of constant parameters of each fit."""

NUMBERS_PER_PARAMETER = 1.5
"""Measured coordinates for each parameter that a fit needs at least."""

WRONG_ARM = 0.05
"""Median error of the nominal fit, as a share of the reach, from which on nominal geometry and data do not
belong together."""


@dataclass(frozen=True)
class PointErrors:
    """3-D errors over all markers and poses [m]."""

    mean: float
    median: float
    largest: float


@dataclass(frozen=True)
class Blunder:
    """A pose that does not agree with the others.

    :param row: of the pose in its files, from 0.
    :param error: mean 3-D error over its markers [m].
    """

    row: int
    error: float


@dataclass(frozen=True, eq=False)
class ArmCalibration:
    """A fitted arm.

    :param model: with the terms of this fit.
    :param estimate: its parameters.
    :param free: indices of the estimated parameters.
    :param dependent: parameters that the poses could not tell.
    :param sigma: standard deviation of each parameter, NaN where it was not estimated.
    :param selection: of terms beyond the geometry.
    """

    model: KinematicModel
    estimate: RobustEstimate
    free: tuple[int, ...]
    dependent: tuple[Dependent, ...]
    sigma: FloatArray
    selection: TermSelection

    def distances(self, data: PointData) -> FloatArray:
        """3-D errors (poses, markers) [m]."""
        found = self.model.predict(data.positions, self.estimate.values) - data.points
        distances: FloatArray = np.linalg.norm(found, axis=2)
        return distances

    def errors(self, data: PointData) -> PointErrors:
        """Errors over all markers and poses, blunders included."""
        found = self.distances(data)
        return PointErrors(float(found.mean()), float(np.median(found)), float(found.max()))

    def blunders(self, data: PointData) -> list[Blunder]:
        """Poses so far off that the robust loss does not count them, the worst first.

        The scale is that of the fit or of these poses, whichever is larger.
        """
        residuals = self.model.predict(data.positions, self.estimate.values) - data.points
        residuals = residuals.reshape(len(data), -1)
        weights, _ = pose_weights(residuals, max(self.estimate.scale, pose_weights(residuals)[1]))
        far = weights == 0.0
        error = self.distances(data).mean(axis=1)
        worst = sorted(np.flatnonzero(far), key=lambda i: -error[i])
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

    :param chain: nominal geometry.
    :param markers: names of the points.
    :param data: poses to fit.
    :param fits: of :data:`FITS`, in this order.
    :param extra: groups beyond the geometry that cross-validation may choose from; empty for geometry alone.
    :param gravity: its direction in the frame of the base.
    :param seed: of the folds of cross-validation.
    :raises RecordingError: for too few poses, or data that do not belong to this geometry.
    """
    base, points = align(chain, data)
    everything = KinematicModel(chain, base, candidate_terms(chain, gravity), tuple(markers), gravity)
    for name in (name for name in reversed(FITS) if name in fits):
        _check_enough(everything.keep(FITS[name]), data, points)
    nominal = _fit(everything.keep(FITS["nominal"]), data, _start(everything.keep(("base",)), points))
    _check_belonging(nominal, data, chain)
    found, last = {}, nominal
    for name in (name for name in FITS if name in fits):
        if name != "nominal":
            last = continue_fit(everything.keep(FITS[name]), data, last)
        if name == "full":
            last = _with_extra(everything, data, last, extra, seed)
        found[name] = last
    return found


def _start(model: KinematicModel, points: FloatArray) -> FloatArray:
    return np.concatenate([np.zeros(len(model.terms)), points.ravel()])


def continue_fit(
    model: KinematicModel,
    data: PointData,
    before: ArmCalibration,
    selection: TermSelection | None = None,
) -> ArmCalibration:
    """Fit a model with other terms, starting from a fit of the same chain and markers."""
    known = dict(zip(before.model.names, before.estimate.values, strict=True))
    start = np.array([known.get(name, 0.0) for name in model.names])
    return _fit(model, data, start, selection)


def _with_extra(
    everything: KinematicModel, data: PointData, geometry: ArmCalibration, extra: Sequence[str], seed: int
) -> ArmCalibration:
    """Add the groups that cross-validation chooses to the geometric fit."""
    model = everything.keep((*GEOMETRY, *extra))
    known = dict(zip(geometry.model.names, geometry.estimate.values, strict=True))
    values = np.array([known.get(name, 0.0) for name in model.names])
    told = {geometry.model.names[p] for p in geometry.free}
    free = [
        p
        for p, (name, group) in enumerate(zip(model.names, model.groups, strict=True))
        if group in EXTRA or name in told
    ]
    selection = select_terms(model, data, values, free, extra, seed)
    if not selection.deviations:
        return replace(geometry, selection=selection)
    return continue_fit(everything.keep((*GEOMETRY, *selection.deviations)), data, geometry, selection)


def _fit(
    model: KinematicModel, data: PointData, start: FloatArray, selection: TermSelection | None = None
) -> ArmCalibration:
    selection = selection or TermSelection({}, float("nan"), ())
    free, dependent = find_dependent(model, start, data.positions)
    precision = np.array([selection.deviations.get(group, np.inf) for group in model.groups]) ** -2.0
    estimate = fit_points(model, data, start, free, precision)
    sigma = np.full(len(start), np.nan)
    sigma[free] = np.sqrt(np.diag(covariance(model, data, estimate, free, precision)))
    return ArmCalibration(model, estimate, tuple(free), tuple(dependent), sigma, selection)


def _check_enough(model: KinematicModel, data: PointData, points: FloatArray) -> None:
    """Refuse more independent constants than the poses have measured coordinates for, with some to spare."""
    _, dependent = find_dependent(model, _start(model, points), data.positions)
    parameters = len(model.names) - sum(found.because == "geometry" for found in dependent)
    per_pose = data.points[0].size
    needed = int(np.ceil(NUMBERS_PER_PARAMETER * parameters / per_pose))
    if len(data) < needed:
        raise RecordingError(
            f"{len(data)} poses of {per_pose // 3} markers for {parameters} parameters: at least {needed} poses are "
            "needed; measure more, or ask for fewer fits"
        )


def _check_belonging(nominal: ArmCalibration, data: PointData, chain: SerialChain) -> None:
    """Refuse data that the nominal arm does not follow at all."""
    median = nominal.errors(data).median
    if median > WRONG_ARM * chain.reach:
        raise RecordingError(
            f"the nominal arm misses the measured points by {1e3 * median:.0f} mm (median) at a reach of "
            f"{1e3 * chain.reach:.0f} mm: check the nominal geometry, the order, signs and units of the joints, and that "
            "the rows of all files belong to the same poses"
        )


def parameters_of(calibration: ArmCalibration) -> Mapping[str, float]:
    """Values by name."""
    return dict(zip(calibration.model.names, calibration.estimate.values.tolist(), strict=True))
