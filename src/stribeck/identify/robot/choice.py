"""The drives of each joint alone, under the loads of the measured motion, with the law that runs left out ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from stribeck.identify.robot.intervals import half_widths
from stribeck.identify.robot.problem import RobotProblem, problem_of, substeps_of, with_law
from stribeck.identify.robot.recordings import RobotRun
from stribeck.identify.robot.rollout import Array
from stribeck.identify.robot.tree import RobotTree
from stribeck.model.law import LAWS, FrictionLaw
from stribeck.model.terms.position import POSITION

DELAYS, DAMPINGS = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08), (0.1, 0.7)
"""Command delays [s] and viscous friction [N m s/rad] from which the search starts; the best are taken."""

CHAIN = {"m1": (), "m2": ("m2",), "m3": ("m3",), "m4": ("m3", "m4"), "m5": ("m3", "m4", "m5")}
CHAIN["m6"] = (*CHAIN["m5"], "m6")
"""Laws that are fitted one after the other, each from the solution of the one before, the first from that of M1."""

SMALL, FINER = 5e-4, 4
"""Error of each joint alone below which that of the time step counts [rad], and by how much steps are then divided."""

STEPS = 3
"""Steps of the search from the solution of all runs to that of one half of them."""

LEAST_GAIN = 0.01
"""Least relative fall of the squared error of runs left out where a further effect counts: of two runs a standard error tells little."""

AUTO = ("m2", "m3", "m4", "m5")
"""Laws that ``auto`` compares with M1."""

Fitted = tuple[RobotProblem, Array]


def fitted(
    tree: RobotTree,
    runs: Sequence[RobotRun],
    joints: Sequence[int],
    law: str,
    note: Callable[[str], None],
    backlash: bool = False,
    terms: Sequence[str] = (),
    known: dict[str, Fitted] | None = None,
) -> Fitted:
    """Fit law M1 from the best of several delays, from there the wanted law, and friction over position where it counts.

    :param known: fits of the same runs and joints by law, before friction over position: those that are there are not repeated, others are added.
    """
    free = ["armature", "bias", "delay"]
    free += ["tilt_x", "tilt_y"] if tree.hung else []
    free += ["stiffness"] if runs[0].stiffness is None else []
    substeps = substeps_of(runs[0].dt)
    setting: dict[str, Any] = {"free": free, "substeps": substeps}
    by_law = {} if known is None else known
    problem = by_law["m1"][0] if by_law else problem_of(tree, runs, joints, _law("m1", terms), **setting)

    def problem_with(wanted: FrictionLaw, *more: str) -> RobotProblem:
        richer = {**setting, "free": [*free, *more]}
        return problem_of(tree, runs, joints, wanted, **richer, lanes=problem.lanes)

    def noted(found: Fitted, text: str) -> Fitted:
        note(
            f"joints simulated one by one, {text}: error {np.sqrt(found[0].errors(found[1]).mean()) * 1e3:.2f} mrad"
        )
        return found

    if not by_law:
        by_law["m1"] = noted((problem, problem.fit(_best_start(problem)).point), "law M1")
    for wanted in AUTO if law == "auto" else (law,):
        before = "m1"
        for step in CHAIN[wanted]:
            if step not in by_law:
                by_law[step] = noted(
                    continued(problem_with(_law(step, terms)), *by_law[before]), f"law {step.upper()}"
                )
            before = step
    if law == "auto":
        law = _simplest(by_law, len(runs), note)
    found = by_law[law]
    if len(runs) > 1 and "position" not in found[0].kind.law.inputs:
        richer = problem_with(_law(law, (*terms, POSITION.name)))
        found = _where_it_counts(richer, found, tree, "friction depends on position", note)
    if backlash:
        found = _with_backlash(found, partial(problem_with, found[0].kind.law, "backlash"), tree, note)
    if found[0].errors(found[1]).mean() < SMALL**2:
        found = noted(_with_finer_steps(found), f"steps of {runs[0].dt / substeps / FINER * 1e3:.2g} ms")
    return found


def _with_backlash(
    found: Fitted,
    problem_with_backlash: Callable[[], RobotProblem],
    tree: RobotTree,
    note: Callable[[str], None],
) -> Fitted:
    """The fit with backlash of the joints where it counts."""
    if len(found[0].runs) < 3:
        note("backlash is not tested, because at least three runs are needed")
        return found
    richer, columns = problem_with_backlash(), found[0].columns
    richer = richer.only(
        [k for k, each in enumerate(richer.columns) if each[0] == "backlash" or each in columns]
    )
    return _beyond_zero(_where_it_counts(richer, found, tree, "backlash", note), found, tree, note)


def _with_finer_steps(found: Fitted) -> Fitted:
    """The same parameters, fitted with steps divided by :data:`FINER`."""
    kind = found[0].kind
    exact = replace(found[0], kind=replace(kind, substeps=kind.substeps * FINER))
    return exact, exact.fit(found[1]).point


def _best_start(problem: RobotProblem) -> Array:
    """Of several delays and dampings, those with the least error."""
    starts = []
    for delay, damping in product(DELAYS, DAMPINGS):
        x = problem.start()
        x[[name == "delay" for name, _ in problem.columns]] = delay
        x[[name == "friction_viscous" for name, _ in problem.columns]] = damping
        starts.append((problem.errors(x).mean(), x))
    return min(starts, key=lambda pair: pair[0])[1]


def _law(name: str, terms: Sequence[str]) -> FrictionLaw:
    return LAWS[name].with_terms(**dict.fromkeys(terms, True))


def continued(richer: RobotProblem, problem: RobotProblem, x: Array) -> Fitted:
    """Fit a richer law from the solution ``x`` of a poorer one: of each joint the better of two starts.

    One start has the new terms near 0, so that no joint gets worse; the other has them at their usual size.
    """
    element, lane = richer.blocks()
    starts = [with_law(richer, problem, x, share) for share in (1e-3, 1.0)]
    if np.array_equal(starts[0], starts[1]):
        return richer, richer.fit(starts[0]).point
    found = [richer.alone(start) for start in starts]
    costs = np.array([np.bincount(lane, richer.lane_equations(each).squares) for each in found])
    best = np.argmin(np.nan_to_num(costs, nan=np.inf), axis=0)
    return richer, richer.fit(np.where(best[element] > 0, found[1], found[0])).point


def left_out_squares(problem: RobotProblem, x: Array) -> Array:
    """Mean squared error of each run and joint, predicted from the other half of the runs (R, J') [rad²].

    Every second run belongs to one half. What all joints share stays as fitted to all runs.
    """
    owners, count = np.array([segment.run for segment in problem.segments]), len(problem.runs)
    found = np.empty((count, len(problem.joints)))
    for half in (0, 1):
        errors = problem.errors(problem.alone(x, range(half, count, 2), STEPS))
        for run in range(1 - half, count, 2):
            found[run] = errors[owners == run].mean(axis=0)
    return found


def _simplest(by_law: dict[str, Fitted], runs: int, note: Callable[[str], None]) -> str:
    """The first law within one standard error of the one with the least error of runs left out."""
    if runs < 2:
        note("only one run, so law M1 is used: a choice needs further runs")
        return "m1"
    squares = {law: left_out_squares(*by_law[law]).mean(axis=1) for law in sorted(by_law)}
    least = min(squares.values(), key=np.mean)
    chosen = next(law for law in squares if not _gain_counts(squares[law], least))
    listed = ", ".join(f"{law.upper()} {np.sqrt(each.mean()) * 1e3:.2f}" for law, each in squares.items())
    note(f"law {chosen.upper()} chosen; errors in runs left out of the fit [mrad]: {listed}")
    return chosen


def _gain_counts(poorer: Array, richer: Array) -> Any:
    """Whether the errors by run (R, …) fall by more than one standard error of the paired difference."""
    gain = poorer - richer
    return gain.mean(axis=0) > gain.std(axis=0, ddof=1) / np.sqrt(len(gain))


def _effect_counts(poorer: Array, richer: Array) -> Any:
    """Whether the errors by run fall by more than one standard error, and by :data:`LEAST_GAIN` at least."""
    return _gain_counts(poorer, richer) & (richer.mean(axis=0) < (1.0 - LEAST_GAIN) * poorer.mean(axis=0))


def _where_it_counts(
    richer: RobotProblem, poorer: Fitted, tree: RobotTree, effect: str, note: Callable[[str], None]
) -> Fitted:
    """The terms that are new in a problem, of the joints whose error in runs left out falls by more than a standard error."""
    richer, x = continued(richer, *poorer)
    counts = _effect_counts(left_out_squares(*poorer), left_out_squares(richer, x))
    groups = set(np.flatnonzero(counts))
    if not groups:
        return poorer
    names = [tree.names[richer.joints[group]] for group in sorted(groups)]
    note(f"{effect} in {', '.join(names)}")
    element = richer.blocks()[0]
    return _fitted_with(richer, x, [index in groups for index in element], poorer[0])


def _fitted_with(richer: RobotProblem, x: Array, wanted: Sequence[bool], poorer: RobotProblem) -> Fitted:
    """Fit what a problem shares with a poorer one, and of its new terms the wanted ones."""
    kept = [index for index, column in enumerate(richer.columns) if column in poorer.columns or wanted[index]]
    if len(kept) == len(x):
        return richer, x
    chosen = richer.only(kept)
    return chosen, chosen.fit(x[kept]).point


def _beyond_zero(found: Fitted, poorer: Fitted, tree: RobotTree, note: Callable[[str], None]) -> Fitted:
    """Without the new terms whose intervals reach zero."""
    problem, x = found
    beyond = x > half_widths(problem, x)
    dropped = [
        tree.names[owner]
        for (name, owner), far in zip(problem.columns, beyond, strict=True)
        if not far and (name, owner) not in poorer[0].columns
    ]
    if not dropped:
        return found
    note(f"no backlash in {', '.join(dropped)}, because its interval includes zero")
    new = [column for column in problem.columns if column not in poorer[0].columns]
    if len(dropped) == len(new):
        return poorer
    return _fitted_with(problem, x, list(beyond), poorer[0])
