r"""How wide draws have to be so that their simulations contain one more run.

A simulation of draws has two sizes: the share s of the standard deviations of the posterior, and the error :math:`\varepsilon` of the model, a
relative standard deviation of friction and motor torque (:mod:`stribeck.evaluate.draws`).

*Share.* Residuals of a fit are mostly errors of the law, and its posterior is known by a normal approximation only, which with few runs contains
servos that move quite differently from the recorded one. Draws that are on average more than twice as far from the recorded motion as
the estimate contradict the recordings. Therefore s is the largest share with

.. math:: \overline{var(y(t;\theta_s))} + \overline{(y(t;\hat\theta) - y_m(t))^2} \le 4\, \overline{(y(t;\hat\theta) - y_m(t))^2}.

*Error.* In run r the middle 90 % of the draws contain the share :math:`c_r(\varepsilon)` of the samples, and 90 % of them from
:math:`\varepsilon_r` on. The logarithms of :math:`\varepsilon_r` have a normal distribution over runs, so that of one more run has Student's
t distribution (:func:`~stribeck.identify.servo.conditions.one_more`), and :math:`\varepsilon` is the smallest size with

.. math:: E_{\varepsilon_{new}} \tfrac{1}{R} \sum_r c_r(\varepsilon\, \varepsilon_r / \varepsilon_{new}) \ge 0.9.

With the mean over the fitted runs alone, 90 % of their samples would be contained, but fewer of a run that differs from them. If the
posterior alone contains enough, there is no error, and s is the smallest share that does in the same sense.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stribeck.identify.servo.conditions import one_more
from stribeck.identify.servo.prediction import COVERAGE, LEVELS
from stribeck.model.arrays import Array, Indices, Mask

SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03, 0.01)
"""Shares of the standard deviations of a posterior that are tried."""

NONE = 1e-3
"""A share that stands for no spread at all."""

ERRORS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.28, 0.5)
"""Relative standard deviations of friction and motor torque that are tried."""

NEGLIGIBLE = ERRORS[0] * (1.0 + 1e-9)
"""Errors up to which none is drawn."""

FARTHEST = 2.0
"""Distance of draws from the recorded motion, relative to that of the estimate, up to which they do not contradict the recordings."""

HALVINGS = 30
"""Steps of the search for a size between those that were tried."""

Simulate = Callable[[Array, Array], Array]
"""Motions (T, C, S) of draws with errors and shares (G,) of each group of columns."""


class Recorded(NamedTuple):
    """What draws have to contain.

    :param position: measured (T, C) [rad].
    :param valid: samples that count (T, C).
    :param run: number of the run of each column (C,).
    :param group: number of the drive of each column (C,), from 0; each has an error and a share of its own.
    """

    position: Array
    valid: Mask
    run: Indices
    group: Indices


class DrawSizes(NamedTuple):
    """Errors and shares (G,) of draws."""

    errors: Array
    shares: Array


def sizes_for(simulate: Simulate, residual: Array, recorded: Recorded) -> DrawSizes:
    """The sizes of draws of each group.

    :param residual: of the estimates in the runs that were fitted (T, C) [rad].
    """
    count = int(recorded.group.max()) + 1
    own = (FARTHEST**2 - 1.0) ** 0.5 * _root_mean_squares(residual, recorded)
    spreads, covered, tried = [], [], []
    for share in SHARES:
        motion = simulate(np.zeros(count), np.full(count, share))
        tried.append(share)
        spreads.append(_root_mean_squares(np.std(motion, axis=2), recorded))
        covered.append(coverage_by_run(motion, recorded))
        if np.all(spreads[-1] <= own) and np.all(np.min(covered[-1], axis=1) < COVERAGE):
            break
    sizes = np.log(np.array(tried))[::-1]
    none = np.zeros((1, *covered[0].shape))  # without a spread nothing is contained
    covered_by, from_none = np.concatenate([none, covered[::-1]]), np.concatenate([[np.log(NONE)], sizes])
    shares = np.array([_largest(sizes, np.array(spreads)[::-1, k], own[k]) for k in range(count)])
    least = np.array([for_one_more(from_none, covered_by[:, k]) for k in range(count)])
    enough = least <= shares
    shares = np.where(enough, least, shares)
    if np.all(enough):
        return DrawSizes(np.zeros(count), shares)
    errors = _errors(simulate, recorded, np.where(enough, 0.0, 1.0), shares)
    return DrawSizes(errors, shares)


def _errors(simulate: Simulate, recorded: Recorded, used: Array, shares: Array) -> Array:
    """The error of each group whose ``used`` is 1 (G,)."""
    covered = [coverage_by_run(simulate(error * used, shares), recorded) for error in ERRORS]
    sizes = np.log(np.array(ERRORS))
    wanted = np.array([for_one_more(sizes, np.array(covered)[:, k]) for k in range(len(used))])
    return np.asarray(used * np.where(wanted <= NEGLIGIBLE, 0.0, np.minimum(wanted, ERRORS[-1])))


def coverage_by_run(motion: Array, recorded: Recorded) -> Array:
    """Share of the samples of each run within the middle :data:`COVERAGE` of motions (T, C, S), by group (G, R)."""
    low, high = np.quantile(motion, [0.5 - 0.5 * COVERAGE, 0.5 + 0.5 * COVERAGE], axis=2)
    hits = (recorded.position >= low) & (recorded.position <= high) & recorded.valid
    shape = int(recorded.group.max()) + 1, int(recorded.run.max()) + 1
    inside, total = np.zeros(shape), np.zeros(shape)
    np.add.at(inside, (recorded.group, recorded.run), hits.sum(axis=0))
    np.add.at(total, (recorded.group, recorded.run), recorded.valid.sum(axis=0))
    return np.asarray(inside / np.maximum(total, 1.0))


def for_one_more(sizes: Array, covered: Array) -> float:
    """The smallest size with which one more run is expected to be covered; infinite if none of them is enough.

    :param sizes: logarithms of the sizes that were tried, increasing (N,).
    :param covered: share of the samples of each run with each of them (N, R).
    """
    from scipy.special import stdtrit  # not at the top: files are read where SciPy is missing

    rising = np.maximum.accumulate(covered, axis=0)
    own = np.array([_crossing(sizes, one, COVERAGE) for one in rising.T])
    scatter = one_more(own)
    new = scatter.mean + scatter.scale * stdtrit(scatter.freedom, LEVELS)

    def expected(size: float) -> float:
        return float(
            np.mean([np.interp(size + at - new, sizes, one) for at, one in zip(own, rising.T, strict=True)])
        )

    low, high = float(sizes[0]), float(sizes[-1])
    if expected(low) >= COVERAGE:
        return float(np.exp(low))
    if expected(high) < COVERAGE:
        return float(np.inf)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if expected(middle) >= COVERAGE else (middle, high)
    return float(np.exp(high))


def _crossing(sizes: Array, values: Array, wanted: float) -> float:
    """Where values (N,) that do not fall reach a wanted one first, between sizes (N,); the last size if they do not."""
    after = int(np.searchsorted(values, wanted))
    if after in (0, len(values)):
        return float(sizes[min(after, len(values) - 1)])
    part = (wanted - values[after - 1]) / (values[after] - values[after - 1])
    return float(sizes[after - 1] + part * (sizes[after] - sizes[after - 1]))


def _largest(sizes: Array, spreads: Array, most: float) -> float:
    """The largest size whose spread is not above ``most``: between logarithms (N,), the smallest or largest if none or all are."""
    rising = np.maximum.accumulate(spreads)
    if rising[-1] <= most:
        return float(np.exp(sizes[-1]))
    logs = np.log(np.maximum(rising, 1e-300))
    return float(np.exp(_crossing(sizes, logs, float(np.log(max(most, 1e-300))))))


def _root_mean_squares(values: Array, recorded: Recorded) -> Array:
    """Root mean square over the samples of each group (G,)."""
    count = int(recorded.group.max()) + 1
    squares, total = np.zeros(count), np.zeros(count)
    np.add.at(squares, recorded.group, np.sum(np.where(recorded.valid, values, 0.0) ** 2, axis=0))
    np.add.at(total, recorded.group, recorded.valid.sum(axis=0))
    return np.asarray(np.sqrt(squares / np.maximum(total, 1.0)))
