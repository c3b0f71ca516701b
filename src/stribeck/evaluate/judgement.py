"""Comparison of laws: the best on the recordings, and the simplest that is as good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stribeck.evaluate.assessment import Assessed, Assessment
from stribeck.identify.common.quantiles import student_quantile
from stribeck.model.arrays import Array

Basis = Literal["held out", "fitted", "all"]
"""The runs on which laws are compared: held out of every fit, fitted by every file, or all."""

AS_GOOD = 0.05
"""Largest relative excess of the mean error at which a law counts as equally good."""


@dataclass(frozen=True)
class Comparison:
    """A law compared with the best one, run by run.

    :param label: label of the other law's file.
    :param more: excess of its mean error over the best one's [rad].
    :param interval: 95 % interval of ``more``, by Student's t over runs; ``None`` for fewer than three runs.
    :param outcome: ``as good`` within :data:`AS_GOOD`, ``worse`` if the difference is significant, else ``undecided``.
    """

    label: str
    more: float
    interval: tuple[float, float] | None
    outcome: Literal["as good", "undecided", "worse"]


@dataclass(frozen=True)
class Judgement:
    """Ranking of laws by their errors.

    :param basis: choice of the runs compared.
    :param means: mean error on these runs [rad], by label.
    :param best: label of the file with the smallest mean error.
    :param comparisons: all others, the simpler laws first.
    :param simplest: the simplest law that is as good as the best, or the best itself.
    """

    basis: Basis
    runs: tuple[str, ...]
    means: dict[str, float]
    best: str
    comparisons: tuple[Comparison, ...]
    simplest: str


def judge(assessment: Assessment) -> Judgement:
    """Rank parameter files by their errors, on runs that none of them was fitted to if there are any."""
    files = assessment.files
    basis, names = _basis(assessment)
    errors = {one.label: np.array([one.runs[name].error for name in names]) for one in files}
    means = {label: float(np.mean(values)) for label, values in errors.items()}
    by_size = sorted(files, key=lambda one: (len(one.file.law.parameter_names), means[one.label]))
    best = min(by_size, key=lambda one: means[one.label])
    comparisons = tuple(
        compare(one.label, errors[one.label], errors[best.label]) for one in by_size if one is not best
    )
    good = {best.label, *(other.label for other in comparisons if other.outcome == "as good")}
    simplest = next(one.label for one in by_size if one.label in good)
    return Judgement(basis, names, means, best.label, comparisons, simplest)


def _basis(assessment: Assessment) -> tuple[Basis, tuple[str, ...]]:
    names = tuple(run.log.name for run in assessment.runs)
    unseen = tuple(
        name
        for name in names
        if all(one.roles[name] in ("held out", "not in the fit") for one in assessment.files)
    )
    if unseen:
        return "held out", unseen
    fitted = tuple(name for name in names if all(one.roles[name] == "fitted" for one in assessment.files))
    return ("fitted", fitted) if fitted else ("all", names)


def compare(label: str, errors: Array, best: Array) -> Comparison:
    """Compare the errors of two laws on the same runs (R,) [rad]; the second law is the better one."""
    more = errors - best
    mean, count = float(np.mean(more)), len(more)
    interval = None
    if count >= 3:
        half = float(student_quantile(count - 1) * np.std(more, ddof=1) / np.sqrt(count))
        interval = (mean - half, mean + half)
    if mean <= AS_GOOD * float(np.mean(best)):
        return Comparison(label, mean, interval, "as good")
    return Comparison(label, mean, interval, "worse" if interval and interval[0] > 0.0 else "undecided")


def carries_over(one: Assessed) -> float | None:
    """Ratio of the mean errors on held-out and fitted runs; ``None`` if either is missing."""
    unseen, fitted = one.errors("held out", "not in the fit"), one.errors("fitted")
    if not unseen or not fitted:
        return None
    return float(np.mean(list(unseen.values())) / np.mean(list(fitted.values())))
