"""Intervals of the parameters of a robot, and populations of joints with equal drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stribeck.identify.common.clusters import (
    CELLS,
    ClusterCovariance,
    Lacking,
    between_cells,
    bias_reduced,
    cells_of,
    correlation_of,
)
from stribeck.identify.common.quantiles import Population, estimate_about, population_of
from stribeck.identify.robot.problem import ALIKE, UNKNOWNS, IntArray, RobotProblem
from stribeck.identify.robot.rollout import Array, simulate_lanes
from stribeck.identify.robot.tree import RobotTree
from stribeck.model.estimate import Estimate
from stribeck.model.joint import CorrelationMatrix

LEAST_SCATTER = 1e-3
"""Of a population, relative to its mean."""


@dataclass(frozen=True)
class RobotEstimates:
    """Estimates by joint and of the base, and the correlation of those of each joint."""

    joints: dict[str, dict[str, Estimate]]
    base: dict[str, Estimate]
    correlations: dict[str, CorrelationMatrix]


def estimates_of(tree: RobotTree, problem: RobotProblem, x: Array, numerical: Array) -> RobotEstimates:
    """Values with intervals that count runs as independent, and what the law lacks.

    :param numerical: what the step and the coupling of the simulation change (n,); it widens the intervals.
    """
    kept, found = _with_what_lacks(problem, x)
    widths = np.hypot(found.half_widths(), numerical[kept])
    joints: dict[str, dict[str, Estimate]] = {tree.names[joint]: {} for joint in problem.joints}
    base: dict[str, Estimate] = {}
    for width, index in zip(widths, kept, strict=True):
        name, owner = problem.columns[index]
        unknown, value = UNKNOWNS[name], float(x[index])
        bounds = (unknown.lower, unknown.upper)
        estimate = estimate_about(value, unknown.unit, float(width), bounds=bounds)
        if estimate.interval is not None:
            ends = max(estimate.interval[0], bounds[0]), min(estimate.interval[1], bounds[1])
            estimate = replace(estimate, interval=ends)
        (base if owner < 0 else joints[tree.names[owner]])[name] = estimate
    correlations = {}
    for joint in problem.joints:
        own = [k for k, index in enumerate(kept) if problem.columns[index][1] == joint]
        names = [problem.columns[kept[k]][0] for k in own]
        correlation = correlation_of(names, found.matrix[np.ix_(own, own)], ~found.rankless[own])
        if correlation is not None:
            correlations[tree.names[joint]] = correlation
    return RobotEstimates(joints, base, correlations)


def _with_what_lacks(problem: RobotProblem, x: Array) -> tuple[IntArray, ClusterCovariance]:
    """Indices of the parameters without the shifts of the runs (k,), and their covariance with what the law lacks."""
    kept, found, _ = _covariance(problem, x)
    if not found.rankless.all():
        found = found.beyond(_lacking(problem, x, kept))
    return kept, found


def _lacking(problem: RobotProblem, x: Array, kept: IntArray) -> Lacking:
    """What the law lacks in like conditions of a joint, see :func:`conditions_of`, from cells of each condition of each joint.

    There are :data:`~stribeck.identify.common.clusters.CELLS` of each condition, however many parameters: what a law lacks is smooth, and
    in cells narrower than it extends it would count as independent errors.
    """
    places, weight, kinds = problem.blocks()[1], np.asarray(problem.lanes.weight) > 0.0, []
    for condition in conditions_of(problem, x):
        cells = np.zeros(condition.shape, dtype=int)
        for place in range(len(problem.joints)):
            rows = weight & (places == place)
            cells[rows] = cells_of(condition[rows])
        kinds.append(problem.in_cells(x, cells, CELLS))
    return between_cells(kinds, np.diag(problem.priors()[0])).of(kept)


def conditions_of(problem: RobotProblem, x: Array) -> Array:
    """On what the friction that a law lacks may depend: velocity and position (2, T, L), of the simulated motion, which has no noise."""
    position = simulate_lanes(problem.kind, problem.lanes, problem.values(x))
    return np.stack([np.gradient(position, problem.lanes.dt, axis=0), position])


def half_widths(problem: RobotProblem, x: Array, *, lacking: bool = False) -> Array:
    """Of the 95 % intervals (n,); infinite where there is none.

    :param lacking: whether they count what the law lacks.
    """
    kept, found = _with_what_lacks(problem, x) if lacking else _covariance(problem, x)[:2]
    widths = np.full(len(x), np.inf)
    widths[kept] = found.half_widths()
    return widths


def alike(
    problem: RobotProblem, x: Array, joints: Sequence[int]
) -> tuple[RobotProblem, dict[str, Population]]:
    r"""The problem with normal priors of the parameters of joints with equal drives, and their populations.

    With the variance v of an estimate from the data alone, its curvature c in the sum of squares and the scatter τ between
    joints, the prior has the weight :math:`v c / \tau^2`: an estimate moves to the mean by the share :math:`v / (v + \tau^2)`.
    """
    kept, found, curvature = _covariance(problem, x)
    variances = np.where(found.rankless, np.inf, np.diag(found.matrix))
    weights, means, deviations = np.zeros((3, len(x)))
    populations = {}
    for wanted in (*ALIKE, *problem.kind.law.parameter_names):
        members = [
            k
            for k, index in enumerate(kept)
            if problem.columns[index][0] == wanted and problem.columns[index][1] in joints
        ]
        if np.isfinite(variances[members]).sum() < 2:
            continue
        population = population_of(x[kept[members]], variances[members])
        least = max(population.scatter, LEAST_SCATTER * abs(population.mean), 1e-9)
        noise = np.where(np.isfinite(variances[members]), variances[members], 1e6 * least**2)
        weights[kept[members]] = noise * curvature[members] / least**2
        means[kept[members]] = population.mean
        deviations[kept[members]] = np.hypot(least, population.deviation)
        populations[wanted] = population
    return replace(problem, prior=(weights, means, deviations)), populations


def _covariance(problem: RobotProblem, x: Array) -> tuple[IntArray, ClusterCovariance, Array]:
    """Indices of the parameters without the shifts of the runs (k,), their covariance, and curvatures (k,).

    Each run is one independent piece (CR2), or each segment where there are fewer than three runs; the shift of a run is
    eliminated from its scores and curvatures. A population adds what its prior leaves open.
    """
    equations = problem.lane_equations(x)
    owners = np.array([segment.run for segment in problem.segments])
    if owners.max() < 2:
        owners = np.arange(len(owners))
    lanes = np.repeat(owners, len(problem.joints))
    shifts = np.array([name == "shift" for name, _ in problem.columns])
    kept, weights = np.flatnonzero(~shifts), problem.priors()[0]
    scores, curvatures = [], []
    for owner in np.unique(owners):
        maps = problem.maps[lanes == owner]
        score = np.einsum("lfn,lf->n", maps, equations.gradient[lanes == owner])
        curvature = np.tensordot(maps, equations.hessian[lanes == owner] @ maps, ((0, 1), (0, 1)))
        for own in np.flatnonzero(shifts & (np.diag(curvature) > 0.0)):
            gain = curvature[:, own] / (curvature[own, own] + weights[own])
            score = score - gain * score[own]
            curvature = curvature - np.outer(gain, curvature[own])
        scores.append(score[kept])
        curvatures.append(curvature[np.ix_(kept, kept)])
    size, prior = len(kept), np.diag(weights[kept])
    if len(scores) < 3:
        none = ClusterCovariance(np.zeros((size, size)), np.ones(size), np.ones(size, dtype=bool))
        return kept, none, np.zeros(size)
    hessian = np.sum(curvatures, axis=0) + prior
    scale = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    inverse = np.linalg.pinv(hessian / np.outer(scale, scale)) / np.outer(scale, scale)
    curvature = 1.0 / np.maximum(np.diag(inverse), 1e-300)
    if problem.prior is None:
        return kept, bias_reduced(np.array(scores), np.array(curvatures), prior), curvature
    pulled = inverse * (weights * problem.prior[2])[kept]
    found = bias_reduced(np.array(scores) - np.mean(scores, axis=0), np.array(curvatures), prior)
    return kept, replace(found, matrix=found.matrix + pulled @ pulled.T), curvature
