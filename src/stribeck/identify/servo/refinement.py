"""The end of a fit: the best point in float64, and a time step that does not show in the parameters."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from stribeck.identify.servo.descent import polish
from stribeck.identify.servo.incumbent import BudgetSpentError, Incumbent, SearchProblem
from stribeck.identify.servo.objective import smooth_absolute
from stribeck.identify.servo.prior import WithPrior, prior_for
from stribeck.identify.servo.rollout import Rollout
from stribeck.identify.servo.task import FitTask
from stribeck.identify.servo.uncertainty import Uncertainty, cluster_length, estimate_uncertainty
from stribeck.model.arrays import Array

FLOAT32_TOLERANCE = 1e-3
"""Largest relative difference between the loss in the search's arithmetic and in float64."""

STEP_SHARE = 0.25
"""Largest error due to the time step, as a share of the half-width of a parameter's interval ..."""

FINEST_STEP = 0.0003125
"""... unless the step is this short already [s]."""

MARGIN = 2.5
"""Factor on the error for which a shorter step is chosen. Errors of long steps fall more slowly than by the square, and a step
that is still too long is compiled and searched in vain."""

BUDGET_OF_FINER_STEP = 10_000
"""Evaluations allowed with each shorter step."""

LANES_OF_ONE = 8
"""Candidates per compiled call where one point is improved: its trial steps at a time."""


def problem_of(task: FitTask, rollout: Rollout) -> SearchProblem:
    """The simulations, with prior knowledge where there is any."""
    runs = len(task.split.train) / task.settings.prior_strength
    prior = prior_for(task.actuator, task.parameters, runs)
    return rollout if prior is None else WithPrior(rollout, prior)


def residual_at(rollout: Rollout, point: Array) -> Array:
    """Residuals (T, R) [rad] at a point (n,), in float64."""
    return rollout.motion(point).position - rollout.batch.position


def checked_point(rollout: Rollout, points: Array) -> tuple[Array, Array]:
    """The best of points (S, n), the best first, whose loss float64 confirms, and its residuals (T, R) [rad].

    Between sticking and slipping, rounding decides the motion of some points, so their loss in float32 is meaningless.
    """
    checked = []
    for point, loss in zip(points, rollout.losses(points), strict=True):
        residual = residual_at(rollout, point)
        confirmed = float(np.sum(rollout.batch.weight * smooth_absolute(residual)))
        checked.append((confirmed, point, residual))
        if confirmed <= loss * (1.0 + FLOAT32_TOLERANCE):
            break
    _, point, residual = min(checked, key=lambda entry: entry[0])
    return point, residual


def prepare_for(rollout: Rollout, unit: Array) -> None:
    """Compile ahead what a search from a point (n,) near the minimum needs, and its uncertainty: blocks have hardly another length there."""
    rollout.prepare(cluster_length(rollout, unit, residual_at(rollout, unit)))


def with_finer_step(
    task: FitTask,
    rollout: Rollout,
    unit: Array,
    residual: Array,
    uncertainty: Uncertainty,
    incumbent: Incumbent,
) -> tuple[FitTask, Rollout, Array, Array, Uncertainty, float]:
    """Reduce the time step and polish the point until the step's error is below :data:`STEP_SHARE`.

    :returns: the task with its last step, its simulations, the point, its residuals, its uncertainty, and the time spent
        compiling [s].
    """
    compiled = 0.0
    while uncertainty.step_share > STEP_SHARE and task.settings.dt > FINEST_STEP:
        excess = MARGIN * uncertainty.step_share / STEP_SHARE
        halvings = np.ceil(0.5 * np.log2(excess))  # the error is of second order
        dt = max(task.settings.dt * 0.5 ** int(np.clip(halvings, 1, 3)), FINEST_STEP)
        task = replace(task, settings=replace(task.settings, dt=dt))
        length = cluster_length(rollout, unit, residual)
        rollout = replace(task.rollout(), lanes=LANES_OF_ONE, tangent_lanes=1)
        rollout.prepare(length)  # the blocks have hardly another length at the finer step
        meter = rollout.meter
        finer = Incumbent(BUDGET_OF_FINER_STEP, partial(getattr, meter, "evaluations"))
        with suppress(BudgetSpentError):
            polish(problem_of(task, rollout), finer, unit)
        unit, residual = checked_point(rollout, finer.best_points)
        uncertainty = estimate_uncertainty(rollout, unit, residual)
        incumbent.status, incumbent.loss = finer.status, finer.loss
        compiled += meter.compile_seconds
    return task, rollout, unit, residual, uncertainty, compiled
