r"""Errors of a drive's recordings, each predicted by the parameters that the other recordings identify.

Parameters without run r are approximated by one Gauss–Newton step of the loss of the fit from its optimum, with the derivatives of the motion there and
the weights of :func:`~stribeck.identify.servo.objective.smooth_absolute`; of some parts of the step the one with the least loss in the
other runs counts. The error of one more run lies between those of runs that were fitted and those of runs that were not, as a fit to L runs knows
one more than those to L - 1 of them (:func:`~stribeck.identify.servo.prediction.factor_of_one_more`):

.. math:: \sigma_r^2 = \sigma_{in,r}^2 + \frac{2(L-1)}{2L-1} (\sigma_{out,r}^2 - \sigma_{in,r}^2).
"""

from __future__ import annotations

import numpy as np

from stribeck.evaluate.assessment import Stepping
from stribeck.identify.servo.objective import SMOOTHING, smooth_absolute
from stribeck.identify.servo.prediction import SHARES, model_of, motions
from stribeck.model.arrays import Array
from stribeck.model.estimate import side_of
from stribeck.model.joint import Drive
from stribeck.model.log import Batch

STEP, SMALLEST = 0.01, 1e-4
"""Change of a parameter for derivatives: relative to its value, at least relative to its range."""

DAMPING = 1e-4
"""Added to the diagonal of the normal equations, relative to it."""


def errors_of_one_more(drive: Drive, recorded: Batch, stepping: Stepping) -> Array:
    """Simulated minus measured positions (T, R) [rad], as large as those of runs that were not fitted.

    Without search bounds in the file, and for a single run, they are those of the drive as it is.

    :param recorded: the runs that were fitted, with the measured motion.
    """
    known = drive.actuator.parameters(drive.law)
    names = [name for name in drive.bounds if name in known and name != "command_delay"]
    valid, count = recorded.weight > 0.0, len(recorded.logs)
    own = np.where(valid, stepping.motion(drive, recorded).position - recorded.position, 0.0)
    lower, upper = np.array([drive.bounds[name] for name in names]).reshape(-1, 2).T
    centre = np.array([drive.values[name] for name in names])
    # Parameters at a bound are held there.
    inner = np.array([side_of(drive.values[name], drive.bounds[name]) is None for name in names])
    if count < 2 or not inner.any():
        return own
    names, centre, lower, upper = (
        [n for n, i in zip(names, inner, strict=True) if i],
        *(one[inner] for one in (centre, lower, upper)),
    )
    model = model_of(drive, recorded, stepping.integrator, stepping.reset_period, names)
    order = [names.index(name) for name in model.parameters.free_names]

    def errors(points: Array) -> Array:
        return np.where(
            valid[:, :, None], motions(model, points[:, order]) - recorded.position[:, :, None], 0.0
        )

    size = np.maximum(STEP * np.abs(centre), SMALLEST * (upper - lower))
    size = np.where(centre + size > upper, -size, size)
    slopes = (errors(centre + np.diag(size)) - own[:, :, None]) / size
    weight = recorded.weight / np.sqrt(own**2 + SMOOTHING**2)
    gradients = np.einsum("tr,tri,tr->ri", weight, slopes, own)
    curvatures = np.einsum("tr,tri,trj->rij", weight, slopes, slopes)
    points = []
    for r in range(count):
        others = np.arange(count) != r
        hessian = curvatures[others].sum(axis=0)
        scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        damped = hessian * np.outer(scale, scale) + DAMPING * np.eye(len(names))
        step = -scale * np.linalg.solve(damped, scale * gradients[others].sum(axis=0))
        points.append(np.clip(centre + np.array(SHARES)[:, None] * step, lower, upper))
    moved = errors(np.concatenate(points)).reshape(*own.shape, count, len(SHARES))
    losses = np.einsum("tq,tqrs->qrs", recorded.weight, smooth_absolute(moved))
    found = np.empty_like(own)
    for r in range(count):
        best = int(np.argmin(losses[np.arange(count) != r, r].sum(axis=0)))
        found[:, r] = moved[:, r, r, best]
    return _of_one_more(own, found, count)


def _of_one_more(fitted: Array, left_out: Array, count: int) -> Array:
    """Errors (T, R) of runs left out, scaled to the size of those of one more run after ``count`` runs."""
    inside, outside = (np.sum(errors**2, axis=0) for errors in (fitted, left_out))
    share = 2.0 * (count - 1) / (2.0 * count - 1.0)
    wanted = inside + share * np.maximum(outside - inside, 0.0)
    scale = np.sqrt(wanted / np.maximum(outside, 1e-300))
    return np.asarray(np.where(outside > 0.0, left_out * scale, fitted))
