r"""Averages of fits that predict about as well: weights of laws and minima, and the motions that they predict together.

A comparison of laws by conditions left out (:mod:`stribeck.identify.servo.selection`) finds candidates whose errors there hardly
differ, and minima of each that fit equally well. All are kept with weights. Candidate k has the pseudo-Bayesian weight

.. math:: a_k = \Big\langle \frac{z_k}{\sum_j z_j} \Big\rangle_\alpha, \quad z_k = \prod_c \Big(\sum_i \alpha_{ci}\, e_{kci}\Big)^{-n/C}

with its mean error :math:`e_{kci}` under the condition i, of C kinds c, without which it was fitted, and the number n of runs: it is the
likelihood of Laplace-distributed errors of unknown scale, of which a run counts as one, for residuals are correlated over it. The mean
is over the Bayesian bootstrap, uniform :math:`\alpha_c` on the simplex, as few conditions do not tell the mean error of a new one. Minima
of a candidate with the losses :math:`L_m` share its weight in proportion to :math:`L_m^{-n}`.

Source: pseudo-BMA+ of Yao et al., "Using stacking to average Bayesian predictive distributions", Bayesian Analysis 13, 2018,
10.1214/17-BA1091, § 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stribeck.identify.servo.task import FitTask
from stribeck.model.arrays import Array
from stribeck.model.joint import Member

RESAMPLED = 400
"""Draws of the Bayesian bootstrap."""

LEAST_WEIGHT = 0.01
"""Fits with smaller weights are left out of an average."""

MOST_MEMBERS = 16
"""Largest number of fits in an average besides the best one."""

SAME = 0.05
"""Points of the unit cube that differ by less than this along every axis belong to one minimum."""


class Found(NamedTuple):
    """Minima of a candidate in a fit to all runs.

    :param task: the candidate's.
    :param weight: of the candidate.
    :param points: the minima in the unit cube (M, n).
    :param losses: of these (M,).
    """

    task: FitTask
    weight: float
    points: Array
    losses: Array


def weights_of(left_out: Sequence[Array], samples: float, seed: int = 0) -> Array:
    """Weights of K candidates (K,), whose sum is 1.

    :param left_out: mean error under each condition left out, (K, L) for each kind of conditions [rad].
    :param samples: independent samples in all runs.
    """
    rng = np.random.default_rng(seed)
    logarithm = np.zeros((len(left_out[0]), RESAMPLED))
    for errors in left_out:
        shares = rng.dirichlet(np.ones(errors.shape[1]), RESAMPLED)
        logarithm -= samples / len(left_out) * np.log(np.maximum(errors, 1e-9) @ shares.T)
    weights = np.exp(logarithm - np.max(logarithm, axis=0))
    return np.asarray(np.mean(weights / np.sum(weights, axis=0), axis=1))


def members_of(found: Sequence[Found], task: FitTask, point: Array, loss: float) -> tuple[Member, ...]:
    """All minima of all candidates but the best fit, with their weights, the largest first.

    :param found: candidates.
    :param task: that of the best fit, one of theirs.
    :param point: the best fit in the unit cube (n,).
    :param loss: of the best fit.
    """
    listed: list[tuple[float, FitTask, Array]] = []
    samples, best = len(task.split.train), 0.0
    for one in found:
        points, losses = one.points, one.losses
        chosen = _same_candidate(one.task, task)
        if chosen:
            other = np.max(np.abs(points - point), axis=1) > SAME
            points, losses = np.vstack([points[other], point]), np.append(losses[other], loss)
        shares = (np.maximum(losses, 1e-12) / max(float(np.min(losses)), 1e-12)) ** -samples
        weights = one.weight * shares / np.sum(shares)
        if chosen:
            best, points, weights = float(weights[-1]), points[:-1], weights[:-1]
        listed += [(float(w), one.task, p) for w, p in zip(weights, points, strict=True)]
    listed = sorted((one for one in listed if one[0] >= LEAST_WEIGHT), key=lambda one: -one[0])[:MOST_MEMBERS]
    total = best + sum(weight for weight, _, _ in listed)
    if best <= 0.0:
        return ()
    return tuple(
        Member(
            weight / total,
            fit.law.name,
            tuple(sorted(fit.actuator.active_effects)),
            fit.parameters.with_vector(fit.parameters.from_unit(place)).values(),
        )
        for weight, fit, place in listed
    )


def _same_candidate(one: FitTask, other: FitTask) -> bool:
    return (
        one.law == other.law
        and one.actuator.active_effects == other.actuator.active_effects
        and one.settings.prior_strength == other.settings.prior_strength
    )
