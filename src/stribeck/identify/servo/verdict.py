"""Verdict on the identification of a servo."""

from __future__ import annotations

import numpy as np

from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.servo.result import Errors, FitResult
from stribeck.model.log import Log
from stribeck.model.terms import FRICTION_PARAMETERS
from stribeck.model.verdict import FAILS, Reason, Verdict, error_reason, interval_reason
from stribeck.recordings.signals.run_units import overload


def judge_result(result: FitResult) -> Verdict:
    """The verdict on a fit."""
    reasons = []
    train = _relative(result.train, result.split.train)
    reasons += error_reason(train, "position, fitted runs")
    if result.validation is not None:
        validation = _relative(result.validation, result.split.validation)
        reasons += error_reason(validation, "position, runs held out")
        if validation > FAILS * train:
            text = f"the error on runs held out is {validation / train:.2g} times that on fitted ones: the law does not carry over"
            reasons.append(Reason("does_not_carry_over", "doubtful", text))
    reasons += _loads(result)
    if result.uncertainty is None:
        reasons.append(Reason("unfinished", "doubtful", "the fit was not finished"))
    else:
        reasons += _estimates(result, train)
    if result.status is SolverStatus.DIVERGED:
        reasons.append(Reason("solver", "unusable", f"the search {result.status.words}"))
    return Verdict(tuple(reasons))


def _relative(errors: Errors, runs: tuple[Log, ...]) -> float:
    """Mean absolute error relative to the mean absolute deviation of the positions from their means."""
    spreads = [float(np.mean(np.abs(run.position.value - np.mean(run.position.value)))) for run in runs]
    return errors.mean / max(float(np.mean(spreads)), 1e-12)


def _loads(result: FitResult) -> list[Reason]:
    """Loads that the servo could not have moved."""
    text = overload([*result.split.train, *result.split.validation], result.actuator)
    return [Reason("grams", "unusable", text)] if text else []


def _estimates(result: FitResult, error: float) -> list[Reason]:
    """Parameters at search bounds, except friction terms that are absent, and intervals without a width."""
    reasons = []
    bounded = {name: one for name, one in result.estimates.items() if one.side is not None}
    bounds = {
        name: f"{name} at its {one.side} bound {one.value:.3g} {one.unit}"
        for name, one in bounded.items()
        if one.side == "upper" or name not in FRICTION_PARAMETERS
    }
    if bounds:
        text = f"{', '.join(bounds.values())}: the search wanted to go on"
        reasons.append(Reason("at_bound", "doubtful", text))
    friction = {name: one for name, one in result.estimates.items() if name in FRICTION_PARAMETERS}
    if friction and all(one.status == "not determined" for one in friction.values()):
        text = f"none of {', '.join(friction)} is determined by these runs: does the joint move in them?"
        reasons.append(Reason("friction_unknown", "unusable", text))
    runs = result.split.train
    if "kt" in result.estimates and all(np.max(run.torque_enable.value) < 0.5 for run in runs):
        text = "torque is off in all runs, so the motor's parameters mean nothing: is torque_enable right?"
        reasons.append(Reason("torque_off", "doubtful", text))
    known = [one for one in result.estimates.values() if one.interval is not None]
    widths = [0.5 * (one.interval[1] - one.interval[0]) for one in known if one.interval is not None]
    return reasons + interval_reason([one.value for one in known], widths, error)
