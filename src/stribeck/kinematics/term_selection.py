r"""Which parameters beyond the geometry stay: those that predict poses they were not fitted to.

Groups of parameters (joint gains, compliance, …) are added one at a time, each with a normal prior of mean 0
whose deviation comes from a short list. Measured is the mean 3-D error of the training poses in k-fold
cross-validation: the next group is the smallest one within a standard error of the best, and it stays if
it lowers the error by more than the standard error of that difference. The user's validation poses never
take part.

Corrections are small, so that the model is linearised once, at the geometric fit; every fold then is a robust
linear problem.

Source: Hastie, Tibshirani and Friedman, "The Elements of Statistical Learning" (2009), section 7.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.kinematics.model import EXTRA, KinematicModel
from stribeck.kinematics.robust_fit import PointData, pose_weights, solve_weighted

FloatArray = npt.NDArray[np.float64]

FOLDS = 8
FEWEST_POSES = 24
"""With fewer poses, geometry alone is fitted."""

DEVIATIONS = (3e-4, 1e-3, 3e-3)
"""Prior deviations to choose from [rad, 1]."""

ROBUST_STEPS = 4


@dataclass(frozen=True)
class TermTrial:
    """A group that was tried on top of others.

    :param group: its name.
    :param deviation: best prior deviation of its parameters.
    :param error: mean error in cross-validation with it [m].
    :param gain: mean error without it less that with it [m].
    :param standard_error: of the gain [m].
    :param kept: whether it stays.
    """

    group: str
    deviation: float
    error: float
    gain: float
    standard_error: float
    kept: bool


@dataclass(frozen=True)
class TermSelection:
    """The groups that stay, with their prior deviations, and how it came to that.

    :param deviations: prior deviation by group.
    :param error_without: mean error of the geometry alone in cross-validation [m], NaN if not tried.
    :param trials: the best of each round, in order; the last one may not be kept.
    """

    deviations: Mapping[str, float]
    error_without: float
    trials: tuple[TermTrial, ...]


@dataclass(frozen=True, eq=False)
class _Problem:
    """The model linearised at the geometric fit: Jacobian (poses, m, p), residuals (poses, m)."""

    jacobian: FloatArray
    residuals: FloatArray
    groups: npt.NDArray[np.str_]
    folds: npt.NDArray[np.int64]

    def errors(self, deviations: Mapping[str, float]) -> FloatArray:
        """Mean 3-D error of each pose [m] when its fold is left out."""
        columns = np.flatnonzero(~np.isin(self.groups, EXTRA) | np.isin(self.groups, list(deviations)))
        precision = np.array([deviations.get(self.groups[c], np.inf) for c in columns]) ** -2.0
        found = np.empty(len(self.residuals))
        for fold in range(self.folds.max() + 1):
            held = self.folds == fold
            change = _robust_solve(self.jacobian[~held][:, :, columns], self.residuals[~held], precision)
            left = self.residuals[held] - self.jacobian[held][:, :, columns] @ change
            found[held] = np.linalg.norm(left.reshape(len(left), -1, 3), axis=2).mean(axis=1)
        return found


def _robust_solve(jacobian: FloatArray, residuals: FloatArray, precision: FloatArray) -> FloatArray:
    """Robust linear least squares with a prior."""
    change = np.zeros(jacobian.shape[-1])
    for _ in range(ROBUST_STEPS):
        left = residuals - jacobian @ change
        weights, scale = pose_weights(left)
        change = change + solve_weighted(jacobian, left, weights, scale**2 * precision, change)[0]
    return change


def select_terms(
    model: KinematicModel,
    data: PointData,
    values: FloatArray,
    free: Sequence[int],
    candidates: Sequence[str],
    seed: int,
) -> TermSelection:
    """Choose groups of parameters by cross-validation.

    :param model: with all terms.
    :param data: training poses.
    :param values: of all parameters, with the geometry fitted and what lies beyond it 0.
    :param free: indices of the independent parameters.
    :param candidates: groups to try, of :data:`EXTRA`.
    :param seed: of the split into folds.
    """
    if len(data) < FEWEST_POSES or not candidates:
        return TermSelection({}, float("nan"), ())
    problem = _linearised(model, data, values, free, seed)
    chosen: dict[str, float] = {}
    errors = problem.errors(chosen)
    without, trials = float(errors.mean()), []
    left = [group for group in candidates if np.any(problem.groups == group)]
    while left:
        trial, now = _best_trial(problem, chosen, errors, left)
        trials.append(trial)
        if not trial.kept:
            break
        chosen[trial.group], errors = trial.deviation, now
        left.remove(trial.group)
    return TermSelection(chosen, without, tuple(trials))


def _linearised(
    model: KinematicModel, data: PointData, values: FloatArray, free: Sequence[int], seed: int
) -> _Problem:
    points, jacobian = model.linearise(data.positions, values)
    order = np.random.default_rng(seed).permutation(len(data))
    folds = np.empty(len(data), dtype=np.int64)
    folds[order] = np.arange(len(data)) % FOLDS
    return _Problem(
        jacobian[:, :, list(free)],
        (data.points - points).reshape(len(data), -1),
        np.array([model.groups[p] for p in free]),
        folds,
    )


def _best_trial(
    problem: _Problem, chosen: Mapping[str, float], errors: FloatArray, left: Sequence[str]
) -> tuple[TermTrial, FloatArray]:
    """The smallest group that predicts as well as the best one, and the errors with it."""
    by_group = {group: _best_prior(problem, chosen, group) for group in left}
    best = min((found for _, found in by_group.values()), key=np.mean)
    as_good = [
        g for g in left if np.mean(by_group[g][1]) <= best.mean() + _standard_error(by_group[g][1] - best)
    ]
    group = min(as_good, key=lambda g: int(np.sum(problem.groups == g)))
    deviation, now = by_group[group]
    gain, spread = float(np.mean(errors - now)), _standard_error(errors - now)
    return TermTrial(group, deviation, float(now.mean()), gain, spread, gain > spread), now


def _best_prior(problem: _Problem, chosen: Mapping[str, float], group: str) -> tuple[float, FloatArray]:
    """The prior deviation with which a group predicts best, and the errors with it."""
    tried = [(deviation, problem.errors({**chosen, group: deviation})) for deviation in DEVIATIONS]
    return min(tried, key=lambda found: float(found[1].mean()))


def _standard_error(differences: FloatArray) -> float:
    return float(differences.std(ddof=1) / np.sqrt(len(differences)))
