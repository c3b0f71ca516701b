"""Verdict on the identification of a robot, of each joint and recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stribeck.identify.common.judging import Evidence, Misfit, Sizes, judge, misfits_of
from stribeck.identify.robot.identify import RobotFit, RunScore
from stribeck.identify.robot.rollout import Array
from stribeck.model.estimate import Estimate
from stribeck.model.verdict import Reason, Verdict

STILL = 0.01
"""Standard deviation of the position of a joint below which it counts as still [rad or m]."""

LEAST_RUNS = 3
"""Independent recordings from which on there are intervals."""


def judge_robot(fit: RobotFit) -> Verdict:
    """The verdict on a fit."""
    estimates = {"": fit.base, **fit.estimates}
    values = {joint: {name: one.value for name, one in fit.estimates[joint].items()} for joint in fit.joints}
    sizes = {
        joint: Sizes(
            values[joint].get("friction_base", 0.0) + values[joint].get("friction_stribeck", 0.0),
            float(fit.tree.limits[index]),
        )
        for joint, index in zip(fit.joints, fit.problem.joints, strict=True)
    }
    misfits = _misfits(fit, fit.train, held_out=False) + _misfits(fit, fit.validation, held_out=True)
    counted = sum(not score.run.flaw for score in fit.train)
    more = (*few_runs(counted, estimates), *_left_out(fit))
    return judge(Evidence("position", misfits, estimates, sizes, more=more))


def few_runs(count: int, estimates: Mapping[str, Mapping[str, Estimate]]) -> list[Reason]:
    """Why there are no intervals, where recordings are too few for any.

    :param count: recordings that were fitted.
    :param estimates: by joint and parameter.
    """
    if count >= LEAST_RUNS or any(one.interval for each in estimates.values() for one in each.values()):
        return []
    text = f"no intervals, because they need at least {LEAST_RUNS} recordings, and {count} were fitted: record more, or split one"
    return [Reason("few_runs", "doubtful", text)]


def _misfits(fit: RobotFit, scores: Sequence[RunScore], held_out: bool) -> tuple[Misfit, ...]:
    """Root mean square error relative to the standard deviation of the positions, of runs without a flaw."""
    counted = [score for score in scores if not score.run.flaw]
    if not counted:
        return ()
    squares = np.array([score.squares for score in counted])
    spreads = np.array([_spread(fit, score) for score in counted])

    moving = np.sqrt(spreads.mean(axis=0)) > STILL
    by_joint = np.where(moving, _relative(squares.mean(axis=0), spreads.mean(axis=0)), np.nan)
    by_file = _relative(squares.mean(axis=1), spreads.mean(axis=1))
    return misfits_of(
        float(_relative(squares.mean(), spreads.mean())),
        dict(zip(fit.joints, by_joint.tolist(), strict=True)),
        dict(zip([score.run.name for score in counted], by_file.tolist(), strict=True)),
        held_out=held_out,
    )


def _relative(squares: Any, variances: Any) -> Any:
    return np.sqrt(squares / np.maximum(variances, 1e-300))


def _spread(fit: RobotFit, score: RunScore) -> Array:
    """Variance of the positions of the identified joints (J',)."""
    position = score.run.position[score.run.first :, list(fit.problem.joints)]
    return np.asarray(position.var(axis=0))


def _left_out(fit: RobotFit) -> list[Reason]:
    """Recordings of the validation that were not predicted."""
    return [
        Reason(
            "flaw",
            "doubtful",
            f"{score.run.name} is not used for validation: {score.run.flaw}",
            file=score.run.name,
        )
        for score in fit.validation
        if score.run.flaw
    ]
