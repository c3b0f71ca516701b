"""Identification of the drives of a whole robot from goals and positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.api.choices import LAWS_OR_AUTO, ROBOT_TERMS
from stribeck.api.fit import Fit
from stribeck.api.machines import Sources
from stribeck.api.recordings import Given, PathLike, Recordings, as_recordings, paths_of, warn
from stribeck.api.stages import StageLine
from stribeck.errors import check_valid
from stribeck.exports.robot_draws import with_draw_sizes
from stribeck.identify.robot.drives import robot_drives
from stribeck.identify.robot.identify import RobotFit, RunScore
from stribeck.identify.robot.identify import identify_robot as identified
from stribeck.identify.robot.problem import CENTRE
from stribeck.identify.robot.recordings import RobotRun, read_runs
from stribeck.identify.robot.tree import load_tree
from stribeck.identify.robot.verdict import judge_robot
from stribeck.recordings.readable import read_usable


def rms(scores: Sequence[RunScore]) -> float | None:
    """Root mean squared error over runs without a flaw and joints, each with equal weight [rad]."""
    squares = [score.squares.mean() for score in scores if not score.run.flaw]
    return float(np.sqrt(np.mean(squares))) if squares else None


def content_of(fit: RobotFit, alone: Sequence[RunScore] = ()) -> dict[str, Any]:
    """The content of the summary for scripts.

    :param alone: runs predicted from the others.
    """
    law = fit.problem.kind.law.name
    drives = dict(zip(fit.problem.kind.names, fit.problem.fixed, strict=True))
    parts = {"train": fit.train, "validation": fit.validation, "left_out": alone}
    per_joint: dict[str, Any] = {}
    counted = {part: [score for score in scores if not score.run.flaw] for part, scores in parts.items()}
    for index, joint in enumerate(fit.joints):
        squares = {
            part: np.mean([score.squares[index] for score in scores])
            for part, scores in counted.items()
            if scores
        }
        per_joint[joint] = {
            "rms": {part: float(np.sqrt(value)) for part, value in squares.items()},
            "parameters": {name: each.to_json() for name, each in fit.estimates[joint].items()},
            "centre": float(drives.get(CENTRE, np.zeros(len(fit.joints)))[index]),
        }
    per_run = {
        part: [
            {"run": score.run.name, "rms": float(np.sqrt(score.squares.mean())), "rows_late": score.rows_late}
            | ({"flaw": score.run.flaw} if score.run.flaw else {})
            for score in scores
        ]
        for part, scores in parts.items()
    }
    same = {name: asdict(population) for name, population in fit.populations.items()}
    return ({"same": same} if same else {}) | {
        "schema": 1,
        "rms": {
            "train": rms(fit.train),
            "validation": rms(fit.validation),
            "left_out": rms(alone),
            "each_joint_alone": fit.decoupled,
        },
        "per_joint": per_joint,
        "per_run": per_run,
        "laws": dict.fromkeys(fit.joints, law),
        "base": {name: each.to_json() for name, each in fit.base.items()},
        "not_determined": [
            {"joint": doubt.joint, "change": doubt.direction}
            | {"rms_rise": doubt.error_rise, "rms_rise_alone": doubt.alone}
            for doubt in fit.doubts
        ],
    }


def _both(
    given: Recordings, validate: Given | None, read: Callable[[Sequence[Path]], list[RobotRun]]
) -> tuple[list[RobotRun], list[RobotRun]]:
    """Runs to fit and runs to predict, after warnings of what is peculiar in them."""
    train = read(paths_of(given))
    others = [] if validate is None else read_usable(paths_of(validate), read, warn)
    for run in (*train, *others):
        for text in run.notes:
            warn(f"{run.name}: {text}")
    return train, others


def identify_robot(
    runs: Given,
    model: PathLike,
    *,
    law: str = "m1",
    terms: Iterable[str] = (),
    validate: Given | None = None,
    exclude: Iterable[str] = (),
    same: Iterable[str] = (),
    degrees: bool = False,
    calibration: PathLike | None = None,
    goal_joints: Iterable[str] = (),
    backlash: bool = False,
    polish: bool = True,
    progress: bool = True,
) -> Fit:
    """Identify the drives of a robot from ordinary motion: goals and positions of all joints.

    :param runs: files, folders or bags with goals and positions; LeRobot data sets are read too.
    :param model: URDF or MJCF of the robot; meshes may be missing.
    :param law: ``m1`` to ``m6`` for all joints, or ``auto``: chosen by runs left out.
    :param terms: terms that the law has in any case, for example ``position``.
    :param validate: runs that are predicted only.
    :param exclude: joints that are not identified.
    :param same: joints with equal drives, whose parameters are drawn towards their mean.
    :param degrees: goals and positions are in degrees, as in LeRobot data sets.
    :param calibration: calibration file of a LeRobot data set whose numbers are -100 to 100 of a joint's range.
    :param goal_joints: joints of the goals of a ``forward_command_controller`` in a bag, in its order.
    :param backlash: also try backlash of the gears before the encoder, as in hobby servos.
    :param polish: fit again under the simulated motion of the whole robot.
    :param progress: show the stages of the computation.
    :raises RecordingError: for recordings that cannot be used.
    :raises ConfigError: for arguments that are not valid, and joints that the model does not have.
    """
    check_valid(law, LAWS_OR_AUTO, "unknown friction law")
    terms = tuple(terms)
    check_valid(terms, ROBOT_TERMS, "unknown terms")
    given, tree, excluded = as_recordings(runs), load_tree(Path(model)), tuple(exclude)
    servos = None if calibration is None else Path(calibration)

    def read(paths: Sequence[Path]) -> list[RobotRun]:
        return read_runs(paths, tree, excluded, degrees, tuple(goal_joints), servos)

    train, others = _both(given, validate, read)
    with StageLine(not progress) as stages:
        result = identified(
            tree,
            train,
            others,
            law=law,
            terms=terms,
            excluded=excluded,
            same=tuple(same),
            polish=polish,
            backlash=backlash,
            note=stages.tell,
        )
    content = with_draw_sizes(robot_drives(result, judge_robot(result)), result.problem, result.x)
    sources = Sources(Path(model), None, degrees, servos)
    return Fit(content, runs=given, result=result, title=Path(model).name, sources=sources)
