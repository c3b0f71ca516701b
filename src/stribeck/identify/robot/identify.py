"""Identification of all drives of a robot: each joint alone, then all together, then scored free-running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stribeck.errors import ConfigError, RecordingError
from stribeck.identify.common.quantiles import Population
from stribeck.identify.robot.choice import FINER, fitted
from stribeck.identify.robot.forward import held_goals, simulate_robot
from stribeck.identify.robot.intervals import alike, estimates_of, half_widths
from stribeck.identify.robot.problem import RobotProblem, problem_of, series_of, substeps_of, together
from stribeck.identify.robot.recordings import RobotRun
from stribeck.identify.robot.rollout import Array
from stribeck.identify.robot.tree import RobotTree
from stribeck.model.estimate import Estimate
from stribeck.model.joint import CorrelationMatrix

FORWARD_STEP, FORWARD_STEPS = 0.004, 4
"""Largest step of the simulation of the whole robot [s], and fewest steps per row, of which there is an even number."""

ROWS_LATE = 4
"""Largest number of rows by which goals of a run may lie earlier or later than in the others."""


COUPLED, ROUNDS = 0.2, 3
"""Distance between the motions of all joints together and of each alone, as a share of the error, from which on the fit is
repeated (it adds 2 % to an error that it is independent of), and how often."""

NUMERICAL = 0.2
"""Share of the half-width of an interval above which what the step or the coupling changes counts (below it widens the interval by 2 %)."""

CLEARLY = 0.8
"""Goals count as late only if that lowers the error to this share."""


@dataclass(frozen=True, eq=False)
class RunScore:
    """Free-running motion of a run, and its error by joint.

    :param simulated: (T, J) [rad].
    :param squares: mean squared error of the identified joints (J',) [rad²].
    :param rows_late: whole rows by which the goals of a run that was not fitted were found to lie later.
    """

    run: RobotRun
    simulated: Array
    squares: Array
    rows_late: int = 0


@dataclass(frozen=True)
class Doubt:
    """A combination of parameters of a joint that the data hardly determine.

    :param direction: relative change of each parameter.
    :param error_rise: relative rise of the rms error for that change.
    :param alone: the largest rise if a single parameter changes as in the direction.
    """

    joint: str
    direction: dict[str, float]
    error_rise: float
    alone: float


@dataclass(frozen=True, eq=False)
class RobotFit:
    """Result.

    :param estimates: by joint and parameter.
    :param base: of parameters of the base.
    :param populations: of joints with equal drives, by parameter.
    :param correlations: of the estimates of each joint.
    """

    tree: RobotTree
    problem: RobotProblem
    x: Array
    train: tuple[RunScore, ...]
    validation: tuple[RunScore, ...]
    estimates: dict[str, dict[str, Estimate]]
    base: dict[str, Estimate]
    doubts: tuple[Doubt, ...]
    decoupled: float
    populations: Mapping[str, Population]
    correlations: Mapping[str, CorrelationMatrix] = field(default_factory=dict)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the identified joints."""
        return tuple(self.tree.names[joint] for joint in self.problem.joints)


def identify_robot(
    tree: RobotTree,
    train: Sequence[RobotRun],
    validation: Sequence[RobotRun] = (),
    *,
    law: str = "m1",
    terms: Sequence[str] = (),
    excluded: Sequence[str] = (),
    same: Sequence[str] = (),
    polish: bool = True,
    backlash: bool = False,
    note: Callable[[str], None] = lambda text: None,
) -> RobotFit:
    """Identify the drives of a robot from goals and positions.

    :param law: ``m1`` to ``m6``, or ``auto`` for the one chosen by runs left out.
    :param terms: names of terms added to it; without one over the position, friction over it is tried.
    :param excluded: names of joints that are held where they rest.
    :param same: names of joints with equal drives: their parameters are drawn towards a common mean, by as much as the scatter
        between them and their intervals tell.
    :param polish: fit again under the loads of the simulated motion of the whole robot.
    :param backlash: also try backlash between gears and link, with the encoder at the link; it needs three runs.
    :param note: receives lines on the progress.
    :raises ConfigError: for names of joints that the model does not have.
    """
    tree_joints = [index for index, name in enumerate(tree.names) if name not in excluded]
    unknown = [name for name in (*excluded, *same) if name not in tree.names]
    if unknown:
        raise ConfigError(f"{tree.path} has no joint {', '.join(unknown)}; it has {', '.join(tree.names)}")
    if same and len(set(same) - set(excluded)) < 2:
        raise ConfigError(f"equal drives need at least two joints, found {', '.join(same)}: name more")
    if not tree_joints:
        raise ConfigError(f"all joints of {tree.path} are excluded: leave at least one to identify")
    good = usable(train, note)
    problem, x = fitted(tree, good, tree_joints, law, note, backlash, terms)
    populations: dict[str, Population] = {}
    if same:
        problem, populations = alike(problem, x, [tree.names.index(name) for name in same])
        x = problem.fit(x).point
    decoupled = float(np.sqrt(problem.errors(x).mean()))
    plain, counts = problem, NUMERICAL * half_widths(problem, x, lacking=True)
    problem, x, scores, coupling = _together(tree, plain, x, good, polish, counts, note)
    step = _error_of_step(tree, problem, x, scores)
    while np.any(step > counts) and finer_of(problem) < FINER:
        plain = replace(plain, finer=2 * plain.finer)
        note("the step of the simulation changes the estimates: halved")
        problem, x, scores, coupling = _together(tree, plain, x, good, polish, counts, note)
        step = _error_of_step(tree, problem, x, scores)
    note(f"error with all joints together {_total(scores) * 1e3:.2f} mrad")
    unseen = [predicted(tree, problem, x, run) for run in validation]
    found = estimates_of(tree, problem, x, np.hypot(step, coupling))
    scored, doubts = (tuple(scores), tuple(unseen)), _doubts(tree, problem, x)
    parts = (*scored, found.joints, found.base, doubts, decoupled, populations, found.correlations)
    return RobotFit(tree, problem, x, *parts)


def _together(
    tree: RobotTree,
    problem: RobotProblem,
    x: Array,
    runs: Sequence[RobotRun],
    polish: bool,
    counts: Array,
    note: Callable[[str], None],
) -> tuple[RobotProblem, Array, list[RunScore], Array]:
    """Fit again under the loads of the simulated motion of all joints, if ``polish``, until that hardly changes the estimates.

    :param counts: changes of the estimates that count (n,).
    :returns: the problem with these loads, its solution, scores, and what the loads of the last motion would change (n,).
    """
    apart, scores = problem, [score(tree, problem, x, run, index) for index, run in enumerate(runs)]
    for rest in range(ROUNDS if polish else 0, -1, -1):
        before, again = _total(scores), together(problem, x, [each.simulated for each in scores])
        change = np.abs(apart.shift(x, again.beyond(apart)))
        near = apart.distance(again) < COUPLED * before and not np.any(change > counts)
        if near or not rest:
            break
        note(
            f"error with all joints together {before * 1e3:.2f} mrad; fitted again, corrected by the difference from the simulation of single joints"
        )
        better = again.fit(x).point
        polished = [score(tree, again, better, run, index) for index, run in enumerate(runs)]
        if _total(polished) >= before:
            break
        apart, x, scores = again, better, polished
    return apart, x, scores, change


def usable(runs: Sequence[RobotRun], note: Callable[[str], None]) -> list[RobotRun]:
    """The runs without a flaw; the others are named.

    :raises RecordingError: if none is left, or runs have different time steps or gains in some only.
    """
    for run in runs:
        if run.flaw:
            note(f"{run.name} is not used: {run.flaw}")
    good = [run for run in runs if not run.flaw]
    if not good:
        raise RecordingError(f"no usable run: {runs[0].name}: {runs[0].flaw}" if runs else "no run to fit")
    odd = next((run for run in good if abs(run.dt / good[0].dt - 1.0) > 0.02), None)
    if odd is not None:
        raise RecordingError(
            f"{odd.path} has time steps of {odd.dt * 1e3:.2f} ms, {good[0].path.name} of {good[0].dt * 1e3:.2f} ms: identify them separately"
        )
    if len({run.stiffness is None for run in good}) > 1:
        raise RecordingError(
            "some runs have gains kp and others have none: give all runs their gains, or none"
        )
    return good


def score(
    tree: RobotTree,
    problem: RobotProblem,
    x: Array,
    run: RobotRun,
    index: int,
    rows_late: int = 0,
    *,
    coarse: int = 1,
) -> RunScore:
    """Simulate a run from its goals alone, all joints together, with the parameters of run ``index``.

    :param coarse: by how much the step is larger than usual.
    """
    p = problem.drives(x, index, len(tree.names))
    if run.stiffness is not None and run.derivative is not None:
        used = list(problem.joints)
        p["stiffness"][used], p["derivative"][used] = run.stiffness[used], run.derivative[used]
    exact = problem.kind.substeps // substeps_of(problem.runs[0].dt)
    finer = (2 * exact if exact > 1 else 1) * (2 if problem.kind.backlash else 1) * problem.finer
    every = max(2 * int(np.ceil(0.5 * run.dt / FORWARD_STEP)), FORWARD_STEPS) * finer // coarse
    goal, still = np.nan_to_num(run.goal), np.ones(len(tree.names), dtype=bool)
    still[list(problem.joints)] = False
    goal[:, still] = run.position[0, still]
    goals = held_goals(goal, p["delay"] + rows_late * run.dt, every, run.dt)
    simulated = simulate_robot(tree, problem.kind.law, p, goals, run.position[0], run.dt / every, every)
    if not np.isfinite(simulated).all():
        raise ConfigError(
            f"the simulation of {run.name} diverges: check gains, and the inertias in {tree.path.name}"
        )
    error = (simulated - run.position)[run.first :, list(problem.joints)]
    return RunScore(run, simulated, np.mean(error**2, axis=0), rows_late)


def predicted(tree: RobotTree, problem: RobotProblem, x: Array, run: RobotRun) -> RunScore:
    """Predict a run that was not fitted, with the median lateness of the fitted runs.

    Goals that a recording holds whole rows earlier or later than the others cannot be told from the parameters: the
    whole number of rows with the smallest error of the joints, each alone, is taken if it lowers the error clearly.
    """
    shifts = np.array([name == "shift" for name, _ in problem.columns])
    middle = np.where(shifts, np.median(x[shifts]) if shifts.any() else 0.0, x)
    found = score(tree, problem, middle, run, 0)
    late = _rows_late(tree, problem, middle, run) if run.nominal else 0
    if late:
        moved = score(tree, problem, middle, run, 0, late)
        if np.sqrt(moved.squares.mean()) < CLEARLY * np.sqrt(found.squares.mean()):
            return moved
    return found


def _rows_late(tree: RobotTree, problem: RobotProblem, x: Array, run: RobotRun) -> int:
    """Whole rows by which the goals of a run lie later than in the fitted ones."""
    setting: dict[str, Any] = {
        "free": [name for name, _ in problem.columns if name != "shift"],
        "substeps": problem.kind.substeps,
    }
    alone = problem_of(tree, [run], problem.joints, problem.kind.law, **setting)
    known = dict(zip(problem.columns, x, strict=True))
    values = alone.values(alone.start())
    errors = {}
    rows = {name: index for index, name in enumerate(alone.kind.names)}
    drives = problem.drives(x, 0, len(tree.names))
    for name, index in rows.items():
        if name not in ("stiffness", "derivative") or ("stiffness", problem.joints[0]) in known:
            values[index] = np.tile(drives[name][list(problem.joints)], len(alone.segments))
    for late in range(-ROWS_LATE, ROWS_LATE + 1):
        moved = values.copy()
        moved[rows["delay"]] += late * run.dt
        errors[late] = float(alone.errors_of(moved).mean())
    return min(errors, key=lambda late: errors[late])


def left_out(fit: RobotFit, note: Callable[[str], None] = lambda text: None) -> tuple[RunScore, ...]:
    """Predict each fitted run from a fit to the others, with the law and the loads of ``fit``."""
    found = []
    problem = fit.problem
    for index, run in enumerate(problem.runs):
        others = [other for other in range(len(problem.runs)) if other != index]
        x = problem.fit(fit.x, others).point
        if ("shift", index) in problem.columns:
            shifts = [
                x[k] for k, (name, run) in enumerate(problem.columns) if name == "shift" and run != index
            ]
            x[problem.columns.index(("shift", index))] = np.median(shifts) if shifts else 0.0
        found.append(predicted(fit.tree, problem, x, run))
        note(f"fitted without {run.name}: its error is {_total(found[-1:]) * 1e3:.2f} mrad")
    return tuple(found)


def finer_of(problem: RobotProblem) -> int:
    """By how much steps are smaller than usual, see :func:`stribeck.identify.robot.choice.fitted` and ``finer``."""
    return problem.finer * problem.kind.substeps // substeps_of(problem.runs[0].dt)


def _error_of_step(tree: RobotTree, problem: RobotProblem, x: Array, scores: Sequence[RunScore]) -> Array:
    """Change of the parameters if the simulation of the whole robot had twice its step (n,)."""
    coarse = [score(tree, problem, x, each.run, index, coarse=2) for index, each in enumerate(scores)]
    apart = [fine.simulated - other.simulated for fine, other in zip(scores, coarse, strict=True)]
    return np.abs(problem.shift(x, series_of(problem, apart)))


def _total(scores: Sequence[RunScore]) -> float:
    return float(np.sqrt(np.mean([each.squares.mean() for each in scores])))


def _doubts(tree: RobotTree, problem: RobotProblem, x: Array) -> tuple[Doubt, ...]:
    """For each joint the combination of relative changes, gains included, that the data tell least from no change.

    The direction is the last singular vector of the Jacobian of the lanes of the joint, with columns of equal length: what
    cancels, although each part alone is seen. It is scaled to 10 % in the largest relative change.
    """
    found, values = problem.lane_equations(x), problem.values(x)
    names = [problem.kind.names[index] for index in problem.free]
    used = [index for index, name in enumerate(names) if name not in ("tilt_x", "tilt_y", "bias")]
    result = []
    for position, joint in enumerate(problem.joints):
        lanes = slice(position, None, len(problem.joints))
        scale = np.median(values[[problem.free[index] for index in used]][:, lanes], axis=1)
        hessian = found.hessian[lanes].sum(axis=0)[np.ix_(used, used)] * np.outer(scale, scale)
        present = np.flatnonzero(np.diag(hessian) > 1e-6 * np.diag(hessian).max())
        hessian = hessian[np.ix_(present, present)]
        size = np.sqrt(np.diag(hessian))
        axis = np.linalg.eigh(hessian / np.outer(size, size))[1][:, 0] / size
        direction = 0.1 * axis / axis[np.argmax(np.abs(axis))]
        squares = max(float(found.squares[lanes].sum()), 1e-300)
        rises = [
            float(np.sqrt(1.0 + change @ hessian @ change / squares)) - 1.0
            for change in (direction, *np.diag(direction))
        ]
        told = {
            names[used[index]]: round(float(share), 4)
            for index, share in zip(present, direction, strict=True)
            if abs(share) > 0.005
        }
        result.append(Doubt(tree.names[joint], told, rises[0], max(rises[1:])))
    return tuple(result)
