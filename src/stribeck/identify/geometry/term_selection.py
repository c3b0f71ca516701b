"""Selection of parameter groups beyond the geometry, by cross-validation.

Groups (joint gains, compliance, …) are added one at a time, each with a normal prior of mean 0 whose standard deviation
is selected from a short list. The criterion is the mean 3-D error of the training poses in k-fold cross-validation.
The next group is the smallest one within a standard error of the best. It is kept if it lowers the error by more than
the standard error of the difference (Hastie, Tibshirani and Friedman 2009, section 7.10).

Corrections are small, so the model is linearised once, at the geometric fit; every fold is a robust linear problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stribeck.identify.geometry.model import EXTRA, KinematicModel
from stribeck.identify.geometry.robust_fit import PointData, pose_weights, solve_weighted
from stribeck.model.arrays import Array, Indices

FOLDS = 8
FEWEST_POSES = 24
"""With fewer poses, only the geometry is fitted."""

DEVIATIONS = (3e-4, 1e-3, 3e-3)
"""Candidate standard deviations of the priors [rad, 1]."""

ROBUST_STEPS = 4


@dataclass(frozen=True)
class TermTrial:
    """A candidate group, tried in addition to others.

    :param deviation: best prior standard deviation of its parameters.
    :param error: mean cross-validation error with it [m].
    :param gain: mean error without it minus that with it [m].
    :param standard_error: standard error of the gain [m].
    """

    group: str
    deviation: float
    error: float
    gain: float
    standard_error: float
    kept: bool


@dataclass(frozen=True)
class TermSelection:
    """The selected groups, and the trials that led to them.

    :param deviations: prior standard deviation by group.
    :param error_without: mean cross-validation error of the geometry only [m], NaN if not tried.
    :param trials: the best trial of each round; the last one may have been rejected.
    """

    deviations: Mapping[str, float]
    error_without: float
    trials: tuple[TermTrial, ...]


@dataclass(frozen=True, eq=False)
class _Problem:
    """The model linearised at the geometric fit: Jacobian (poses, m, p), residuals (poses, m)."""

    jacobian: Array
    residuals: Array
    groups: NDArray[np.str_]
    folds: Indices

    def errors(self, deviations: Mapping[str, float]) -> Array:
        """Mean 3-D error of each pose [m] when its fold is left out."""
        columns = np.flatnonzero(~np.isin(self.groups, EXTRA) | np.isin(self.groups, list(deviations)))
        precision = np.array([deviations.get(self.groups[c], np.inf) for c in columns]) ** -2.0
        errors = np.empty(len(self.residuals))
        for fold in range(self.folds.max() + 1):
            held_out = self.folds == fold
            change = _robust_solve(
                self.jacobian[~held_out][:, :, columns], self.residuals[~held_out], precision
            )
            rest = self.residuals[held_out] - self.jacobian[held_out][:, :, columns] @ change
            errors[held_out] = np.linalg.norm(rest.reshape(len(rest), -1, 3), axis=2).mean(axis=1)
        return errors


def _robust_solve(jacobian: Array, residuals: Array, precision: Array) -> Array:
    change = np.zeros(jacobian.shape[-1])
    for _ in range(ROBUST_STEPS):
        rest = residuals - jacobian @ change
        weights, scale = pose_weights(rest)
        change = change + solve_weighted(jacobian, rest, weights, scale**2 * precision, change)
    return change


def select_terms(
    model: KinematicModel,
    data: PointData,
    values: Array,
    free: Sequence[int],
    candidates: Sequence[str],
    seed: int,
) -> TermSelection:
    """Select groups of parameters by cross-validation.

    :param model: with all terms.
    :param data: training poses.
    :param values: values of all parameters: the fitted geometry, and 0 for the other groups.
    :param free: indices of the independent parameters.
    :param candidates: groups to try, from :data:`EXTRA`.
    :param seed: seed of the split into folds.
    """
    if len(data) < FEWEST_POSES or not candidates:
        return TermSelection({}, float("nan"), ())
    problem = _linearised(model, data, values, free, seed)
    chosen: dict[str, float] = {}
    errors = problem.errors(chosen)
    without, trials = float(errors.mean()), []
    remaining = [group for group in candidates if np.any(problem.groups == group)]
    while remaining:
        trial, with_group = _best_trial(problem, chosen, errors, remaining)
        trials.append(trial)
        if not trial.kept:
            break
        chosen[trial.group], errors = trial.deviation, with_group
        remaining.remove(trial.group)
    return TermSelection(chosen, without, tuple(trials))


def _linearised(
    model: KinematicModel, data: PointData, values: Array, free: Sequence[int], seed: int
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
    problem: _Problem, chosen: Mapping[str, float], errors: Array, groups: Sequence[str]
) -> tuple[TermTrial, Array]:
    """Trial of the smallest group that predicts as well as the best one, and the errors with it."""
    by_group = {}
    for group in groups:
        tried = [(deviation, problem.errors({**chosen, group: deviation})) for deviation in DEVIATIONS]
        by_group[group] = min(tried, key=lambda trial: float(trial[1].mean()))
    best = min((trial for _, trial in by_group.values()), key=np.mean)
    as_good = [
        g for g in groups if np.mean(by_group[g][1]) <= best.mean() + _standard_error(by_group[g][1] - best)
    ]
    group = min(as_good, key=lambda g: int(np.sum(problem.groups == g)))
    deviation, with_group = by_group[group]
    gain, spread = float(np.mean(errors - with_group)), _standard_error(errors - with_group)
    return TermTrial(group, deviation, float(with_group.mean()), gain, spread, gain > spread), with_group


def _standard_error(differences: Array) -> float:
    return float(differences.std(ddof=1) / np.sqrt(len(differences)))
