r"""Friction of each joint run by run, and which joint changed since an earlier fit.

Coulomb and viscous friction of each joint and run are fitted anew, with everything else as in the earlier fit. Compared is
the friction at the joint's root mean square speed, :math:`F = K_c + K_v v`. With d the mean deviation of the runs from run s to
run n from the earlier value, :math:`\sigma^2` its variance, :math:`\sigma_0^2` that of the earlier value, and a change of standard
deviation :math:`\tau` (10 % or 50 %) that began with run s under the alternative,

.. math:: \Lambda_n = \sum_{s, \tau} \frac{1}{2 s (s + 1)}
   \frac{N(d;\, 0,\, \sigma^2 + \sigma_0^2 + \tau^2)}{N(d;\, 0,\, \sigma^2 + \sigma_0^2)},

where starts s > n, which the data do not concern, count with a ratio of 1.

A joint counts as changed from the run on in which :math:`\Lambda` exceeds :math:`J/\alpha` with J joints: however many runs
follow, the probability of a false alarm of any joint is at most :math:`\alpha`.
Source: Robbins, "Statistical methods related to the law of the iterated logarithm", Ann. Math. Statist. 41, 1970,
10.1214/aoms/1177696786.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stribeck.errors import ConfigError, RecordingError
from stribeck.files.drives import Drives
from stribeck.identify.common.clusters import bias_reduced
from stribeck.identify.common.minimise import BlockEquations, minimise_blocks
from stribeck.identify.robot.problem import (
    SHARED,
    UNKNOWNS,
    RobotProblem,
    fixed_as_in,
    motion_of,
    problem_of,
    substeps_of,
)
from stribeck.identify.robot.recordings import RobotRun
from stribeck.identify.robot.rollout import Array
from stribeck.identify.robot.tree import RobotTree

FREE = ("friction_base", "friction_viscous", "delay")
"""What is fitted anew; the delay only because goals may lie later in some runs."""

PART = 4.0
"""Longest part of a run that counts as one independent piece [s]."""

FALSE_ALARMS, SIZES, STEPS = 0.05, (0.1, 0.5), 12
"""α, relative sizes τ of a change, most steps of the search."""


@dataclass(frozen=True, eq=False)
class JointDrift:
    """Friction of a joint over runs.

    :param speed: v [rad/s].
    :param earlier: friction of the earlier fit and its standard deviation [N m].
    :param friction, deviation: of each run (R,) [N m].
    :param evidence: natural logarithm of Λ after each run (R,).
    :param since: number of the run in which the change was certain, None without a change.
    """

    joint: str
    speed: float
    earlier: tuple[float, float]
    friction: Array
    deviation: Array
    evidence: Array
    since: int | None


def friction_over_runs(
    tree: RobotTree, runs: Sequence[RobotRun], known: Drives, excluded: Sequence[str] = ()
) -> list[JointDrift]:
    """Friction of each joint in each run, and the test for a change since ``known``.

    :raises ConfigError: if ``known`` is of another robot.
    """
    joints = [index for index, name in enumerate(tree.names) if name not in excluded]
    missing = [tree.names[joint] for joint in joints if tree.names[joint] not in known.joints]
    if missing:
        listed = ", ".join(known.joints)
        raise ConfigError(
            f"the earlier fit has no joint {', '.join(missing)}; it has {listed}: exclude the joints that it lacks"
        )
    if len({run.stiffness is None for run in runs}) > 1 or len({round(run.dt, 5) for run in runs}) > 1:
        raise RecordingError(
            "runs have different time steps, or only some of them have gains kp: give runs of one kind only"
        )
    problem = _known_problem(tree, runs, joints, known)
    x = _refitted(problem)
    frictions, variances, speeds = _friction(problem, x)
    found = []
    for position, joint in enumerate(joints):
        name = tree.names[joint]
        p, speed = known.joints[name].estimates, speeds[position]
        base, viscous = p["friction_base"], p["friction_viscous"]
        before = base.value + speed * viscous.value
        widths = [
            np.inf if each.interval is None else 0.5 * (each.interval[1] - each.interval[0]) / 1.96
            for each in (base, viscous)
        ]
        spread = float(np.hypot(widths[0], speed * widths[1]))
        change = frictions[:, position] - before
        evidence = change_evidence(
            change, variances[:, position], spread**2, [size * before for size in SIZES]
        )
        over = np.flatnonzero(evidence > np.log(len(joints) / FALSE_ALARMS))
        deviation = np.sqrt(variances[:, position])
        since = int(over[0]) if len(over) else None
        found.append(
            JointDrift(name, speed, (before, spread), frictions[:, position], deviation, evidence, since)
        )
    return found


def change_evidence(change: Array, variance: Array, earlier: float, sizes: Sequence[float]) -> Array:
    """Logarithm of Λ after each run (R,).

    :param change: of each run from the earlier value (R,), with its ``variance`` (R,).
    :param earlier: variance of the earlier value.
    :param sizes: standard deviations τ of changes, in the unit of ``change``.
    """
    if not np.isfinite(earlier):
        return np.zeros_like(change)
    found = np.full(len(change), -np.inf)
    for start in range(len(change)):
        late, spread = change[start:], variance[start:]
        weight = np.cumsum(1.0 / spread)
        mean, spread = np.cumsum(late / spread) / weight, 1.0 / weight + earlier
        for size in sizes:
            wide = spread + size**2
            gain = 0.5 * (np.log(spread / wide) + mean**2 * (1.0 / spread - 1.0 / wide))
            gain -= np.log(len(sizes) * (start + 1) * (start + 2))
            found[start:] = np.logaddexp(found[start:], gain)
    # Starts that are still to come count with their weight, as without a change.
    return np.asarray(np.logaddexp(found, -np.log(np.arange(len(change)) + 2.0)))


def _known_problem(
    tree: RobotTree, runs: Sequence[RobotRun], joints: Sequence[int], known: Drives
) -> RobotProblem:
    """The problem whose only unknowns are :data:`FREE` of each run and joint, block by block."""
    drives, base = [known.joints[tree.names[joint]] for joint in joints], known.machine.estimates
    names = {name for drive in drives for name, one in drive.stated.items() if one.status != "fixed"}
    law = drives[0].law.with_parameters(name for drive in drives for name in drive.law.parameter_names)
    free = sorted((names | set(base)) & set(UNKNOWNS) - set(law.parameter_names))
    plain = [replace(run, nominal=False) for run in runs]
    problem = problem_of(tree, plain, joints, law, free=free, substeps=substeps_of(runs[0].dt), part=PART)
    x = problem.start()
    for index, (name, owner) in enumerate(problem.columns):
        source = base if name in SHARED else known.joints[tree.names[owner]].estimates
        x[index] = source[name].value if name in source else 0.0
    fixed, count = fixed_as_in(problem, drives, problem.values(x)), len(joints)
    wanted = [name for name in FREE if name != "delay" or any(run.nominal for run in runs)]
    rows = [problem.kind.names.index(name) for name in wanted]
    owners = _blocks(problem)
    maps = np.zeros((fixed.shape[1], len(problem.free), len(rows) * len(runs) * count))
    for k, row in enumerate(rows):
        maps[np.arange(len(owners)), problem.free.index(row), owners * len(rows) + k] = 1.0
    fixed[rows] = 0.0
    columns = tuple((name, block) for block in range(len(runs) * count) for name in wanted)
    return replace(problem, columns=columns, fixed=fixed, maps=maps)


def _blocks(problem: RobotProblem) -> np.ndarray[tuple[int], np.dtype[np.int_]]:
    """Number of the run and joint of each lane."""
    count = len(problem.joints)
    return np.array([segment.run * count + k for segment in problem.segments for k in range(count)])


def _refitted(problem: RobotProblem) -> Array:
    owners = _blocks(problem)
    each = len(problem.columns) // (owners.max() + 1)

    def equations(point: Array) -> BlockEquations:
        found = problem.lane_equations(point)
        gradient = np.einsum("lfn,lf->n", problem.maps, found.gradient)
        hessian = np.tensordot(problem.maps, found.hessian @ problem.maps, ((0, 1), (0, 1)))
        return BlockEquations(0.5 * np.bincount(owners, found.squares).astype(float), gradient, hessian)

    box = np.array([(unknown.lower, unknown.upper, unknown.size) for unknown in problem.unknowns()]).T
    element = np.repeat(np.arange(owners.max() + 1), each)
    return minimise_blocks(equations, problem.start(), box, element, STEPS, 1e-4).point


def _friction(problem: RobotProblem, x: Array) -> tuple[Array, Array, list[float]]:
    """Friction at the speeds and its variance (R, J'), and the speeds (J'), with parts of a run as independent pieces (CR2)."""
    found, owners, count = problem.lane_equations(x), _blocks(problem), len(problem.joints)
    each = len(problem.columns) // (owners.max() + 1)
    moved = [np.square(motion_of(run.position, run.dt, None)[1]).mean(axis=0) for run in problem.runs]
    speeds = np.sqrt(np.mean(moved, axis=0))[list(problem.joints)]
    frictions, variances = np.empty((2, len(problem.runs), count))
    for block in range(owners.max() + 1):
        lanes, own = np.flatnonzero(owners == block), slice(block * each, (block + 1) * each)
        maps = problem.maps[lanes][:, :, own]
        scores = np.einsum("lfn,lf->ln", maps, found.gradient[lanes])
        spread = bias_reduced(scores, np.einsum("lfn,lfg,lgm->lnm", maps, found.hessian[lanes], maps))
        weights = np.array([1.0, speeds[block % count], 0.0])[:each]
        freedom = float(spread.freedom[0])
        variance = float(weights @ spread.matrix @ weights) * (
            freedom / (freedom - 2.0) if freedom > 3.0 else 3.0
        )
        run, joint = divmod(block, count)
        frictions[run, joint] = weights @ x[own]
        variances[run, joint] = max(variance, 1e-12)
    return frictions, variances, [float(speed) for speed in speeds]
