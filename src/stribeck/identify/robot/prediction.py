"""Positions of a robot in a recorded run by a file of drives, simulated from the goals alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from stribeck.errors import ConfigError
from stribeck.files.drives import Drives
from stribeck.identify.common.machine_motion import MachineMotion
from stribeck.identify.robot.identify import predicted
from stribeck.identify.robot.problem import RobotProblem, fixed_as_in, problem_of
from stribeck.identify.robot.recordings import RobotRun, read_runs
from stribeck.identify.robot.tree import RobotTree, load_tree
from stribeck.model.arrays import Array
from stribeck.model.joint import STIFFNESS
from stribeck.recordings.readable import read_usable


def predict_robot(
    content: Drives,
    model: Path,
    paths: Sequence[Path],
    note: Callable[[str], None],
    degrees: bool = False,
    calibration: Path | None = None,
) -> list[MachineMotion]:
    """Positions of all joints with a drive; other joints are held where they begin.

    :param model: URDF or MJCF of the robot.
    :param degrees, calibration: see :func:`~stribeck.identify.robot.recordings.read_runs`.
    :param note: receives a line for each run that is left out.
    :raises ConfigError: for drives that are not of this robot.
    :raises RecordingError: if no run can be used.
    """
    tree = load_tree(model)
    strange = [joint for joint in content.joints if joint not in tree.names]
    if strange or not content.joints:
        raise ConfigError(
            f"the file contains drives of {', '.join(content.joints) or 'no joint'}, but {model} has the joints {', '.join(tree.names)}"
        )
    excluded = [name for name in tree.names if name not in content.joints]

    def read(some: Sequence[Path]) -> list[RobotRun]:
        return read_runs(some, tree, excluded, degrees, calibration=calibration)

    runs = read_usable(paths, read, note)
    for run in runs:
        for text in (
            *run.notes,
            *([f"{run.flaw}; its errors are included in spite of it"] if run.flaw else []),
        ):
            note(f"{run.name}: {text}")
    return [_predicted(content, tree, run) for run in runs]


def _predicted(content: Drives, tree: RobotTree, run: RobotRun) -> MachineMotion:
    joints = tuple(index for index, name in enumerate(tree.names) if name in content.joints)
    problem, x = problem_of_drives(content, tree, run, joints)
    found = predicted(tree, problem, x, run)
    rows, columns = slice(run.first, None), list(joints)
    linear = [tree.model.jnt_type[joint] == 2 for joint in joints]
    measured = run.position[rows][:, columns]
    return MachineMotion(
        run.name,
        tuple(tree.names[joint] for joint in joints),
        "position",
        tuple("m" if slides else "rad" for slides in linear),
        np.asarray(run.dt * np.arange(len(run.position))[rows], dtype=np.float64),
        measured,
        found.simulated[rows][:, columns],
        np.ones(measured.shape, dtype=bool),
    )


def problem_of_drives(
    content: Drives, tree: RobotTree, run: RobotRun, joints: Sequence[int]
) -> tuple[RobotProblem, Array]:
    """The simulation of a run by the drives of a file, and the vector of their parameters.

    :raises ConfigError: if the run has no gains, and the file gives none.
    """
    drives = [content.joints[tree.names[joint]] for joint in joints]
    law = drives[0].law
    stated = [drive.estimates for drive in drives]
    free: list[str] = [name for name in ("armature", "bias", "delay", "backlash") if name in stated[0]]
    free += [name for name in ("tilt_x", "tilt_y") if name in content.machine.estimates]
    if run.stiffness is None:
        if STIFFNESS not in stated[0]:
            raise ConfigError(
                f"neither {run.name} nor the file of drives has gains kp: give runs with their gains"
            )
        free.append(STIFFNESS)
    settings = {} if content.provenance is None else content.provenance.search.settings
    step = settings.get("time_step")
    substeps = 1 if not step else max(round(run.dt / float(step)), 1)
    problem = problem_of(tree, [run], joints, law, free=free, substeps=substeps)
    fixed = fixed_as_in(problem, drives, problem.fixed)
    x = []
    for name, owner in problem.columns:
        if name == "shift":
            x.append(0.0)
        elif owner < 0:
            x.append(content.machine.estimates[name].value)
        else:
            x.append(stated[list(joints).index(owner)][name].value)
    return replace(problem, fixed=fixed), np.array(x)
