r"""How well the friction of an arm's joints is determined in the recorded motion.

Parameters of a friction law are correlated: Coulomb friction and the Stribeck term may each be undetermined although their sum is well
determined. What compensation needs is the friction itself at the speeds and loads of the motion. Its variance at a row t follows from the
covariance C of the joint's parameters,

.. math::

    \sigma^2(t) = g(t)^T C\,g(t), \qquad g(t) = \partial f(t) / \partial\theta,

and the relative half-width is that of its 95 % interval over all moving rows,
:math:`1.96\,\sqrt{\sum_t \sigma^2(t) / \sum_t f^2(t)}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stribeck.identify.arm.friction.element_torque import (
    Element,
    element_torque,
    elements_of,
    friction_part,
    parameter_names,
)
from stribeck.identify.arm.friction.full_fit import FullFit
from stribeck.identify.arm.friction.selection import offsets_of, prepare
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.common.quantiles import normal_quantile
from stribeck.model.arrays import Array, Indices
from stribeck.model.estimate import CONFIDENCE
from stribeck.model.law import FrictionLaw


def friction_widths(fit: FullFit, motions: Sequence[ProcessedMotion]) -> dict[str, float]:
    """Relative half-width of the 95 % interval of each joint's friction over its moving rows, by name [1].

    Joints without moving rows or without friction are left out.

    :param motions: processed with the delay of the choice.
    """
    joints = fit.machine.joints
    squares = np.zeros((len(joints), 2))
    for motion in motions:
        run = prepare(fit.machine, motion)
        load = run.regressor @ fit.inertials.ravel()
        developed = run.developed(fit.machine, fit.choice.presliding, fit.rest)
        elements = elements_of(fit.machine.weights, motion.fine, developed, load)
        for k in range(len(joints)):
            rows = np.arange(len(motion.fine))[motion.pick][motion.moving[:, k]]
            squares[k] += _squares(fit.laws[k], fit.parameters[k], fit.covariances[k], elements[k], rows)
    level = normal_quantile(CONFIDENCE)
    return {
        joint: level * math.sqrt(variance / friction)
        for joint, (variance, friction) in zip(joints, squares.tolist(), strict=True)
        if friction > 0.0
    }


def _squares(
    law: FrictionLaw, parameters: Array, covariance: Array, element: Element, rows: Indices
) -> Array:
    """Sums of the variance and of the square of the friction of an element over some of its rows (2,)."""
    others = {"armature", *offsets_of(law)}
    own = [k for k, name in enumerate(parameter_names(law)) if name not in others]
    slopes = element_torque(law, parameters, element).by_parameters[rows][:, own]
    variance = np.einsum("nk,kl,nl->", slopes, covariance[np.ix_(own, own)], slopes)
    friction = friction_part(law, parameters, element)[rows]
    return np.array([max(float(variance), 0.0), float(friction @ friction)])


def resolved_speeds(motions: Sequence[ProcessedMotion], cutoff: float) -> dict[str, float]:
    r"""Lowest speed at which filtered torques resolve the friction of each joint, :math:`v_{min} = |a|/(2 f_c)`, by name [rad/s or m/s].

    A joint that reverses with the acceleration a, the median over its reversals, reaches the speed v in the time :math:`v/|a|`, and
    torques that a driver or the protocol filtered do not show what changes within half a period :math:`1/(2 f_c)`. Friction
    at rest and the Stribeck term then depend on the filter. Joints that never reverse are left out.

    :param motions: all of the same joints.
    :param cutoff: frequency :math:`f_c` above which torques were filtered [Hz].
    """
    joints = motions[0].joints if motions else ()
    found = {}
    for k, joint in enumerate(joints):
        parts = [_at_reversals(m.fine.velocity[:, k], m.fine.acceleration[:, k]) for m in motions]
        if len(accelerations := np.concatenate(parts)):
            found[joint] = float(np.median(accelerations)) / (2.0 * cutoff)
    return found


def _at_reversals(velocity: Array, acceleration: Array) -> Array:
    """Magnitudes of the acceleration where the velocity changes its sign."""
    crosses = velocity[:-1] * velocity[1:] < 0.0
    return np.asarray(np.abs(acceleration[:-1])[crosses])
