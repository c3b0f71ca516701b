"""Verdict on the identification of a servo."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stribeck.identify.common.judging import Evidence, Misfit, judge, misfits_of
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.servo.objective import Split
from stribeck.identify.servo.result import Errors, FitResult
from stribeck.identify.servo.uncertainty import together_in
from stribeck.model.log import Log
from stribeck.model.verdict import Reason, Verdict
from stribeck.recordings.signals.run_units import overload


def judge_result(result: FitResult) -> Verdict:
    """The verdict on a fit."""
    finished = result.uncertainty is not None
    return judge(
        Evidence(
            "position",
            position_misfits(result.split, result.train, result.validation),
            {"": result.estimates} if finished else {},
            status=SolverStatus.DIVERGED if result.search.status is SolverStatus.DIVERGED else None,
            together=together_in(result.split.train, result.parameters),
            more=(*_more(result), *([] if finished else [UNFINISHED])),
        )
    )


UNFINISHED = Reason("unfinished", "doubtful", "the fit was not finished")
"""Reason against an interrupted fit."""


def position_misfits(split: Split, train: Errors, validation: Errors | None) -> tuple[Misfit, ...]:
    """Errors relative to the mean absolute deviation of the positions, of fitted runs together and of each run held out."""
    misfits = misfits_of(_relative(train, split.train))
    if validation is None:
        return misfits
    each = {
        run.name: validation.by_run[run.name] / max(_spread(run), 1e-12)
        for run in split.validation
        if run.name in validation.by_run
    }
    return misfits + misfits_of(_relative(validation, split.validation), by_file=each, held_out=True)


def _spread(run: Log) -> float:
    """Mean absolute deviation of the positions of a run from their mean [rad]."""
    return float(np.mean(np.abs(run.position.value - np.mean(run.position.value))))


def _relative(errors: Errors, runs: tuple[Log, ...]) -> float:
    """Mean absolute error relative to the mean of the runs' deviations."""
    return errors.mean / max(float(np.mean([_spread(run) for run in runs])), 1e-12)


def _more(result: FitResult) -> Iterator[Reason]:
    """Loads that the servo could not have moved, and torque that is off in all runs."""
    if text := overload([*result.split.train, *result.split.validation], result.actuator):
        yield Reason("grams", "unusable", text)
    on = any(np.max(run.torque_enable.value) >= 0.5 for run in result.split.train)
    if "kt" in result.estimates and not on:
        text = "torque is off in all runs, so the parameters of the motor cannot be identified: check torque_enable"
        yield Reason("torque_off", "doubtful", text)
