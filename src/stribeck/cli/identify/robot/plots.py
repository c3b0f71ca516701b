"""What ``stribeck identify robot --output`` writes beside the parameters: simulated motion and pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stribeck.files.folders import write_atomically
from stribeck.identify.robot.identify import RobotFit, RunScore
from stribeck.model.arrays import Array
from stribeck.model.law import friction_budget
from stribeck.report.robots import draw_robot_errors, draw_robot_friction, draw_robot_motion
from stribeck.report.style import save_all

POINTS = 200
"""Points of a friction curve."""


def write_motion(fit: RobotFit, folder: Path) -> None:
    """Write time, goal, measured and simulated position of each run as ``<run>-simulated.npz``."""
    for score in (*fit.train, *fit.validation):
        run, content = score.run, io.BytesIO()
        time = np.arange(len(run.position)) * run.dt
        np.savez_compressed(content, t=time, goal=run.goal, position=run.position, simulated=score.simulated)
        write_atomically(folder / f"{run.name}-simulated.npz", content.getvalue())


def write_pictures(fit: RobotFit, alone: Sequence[RunScore], folder: Path) -> list[Path]:
    """Draw errors, friction of all joints, and the motion of the worst run; returns the paths."""
    parts = {"": fit.train, "validation: ": fit.validation, "left out: ": alone}
    scores = {f"{part}{score.run.name}": score for part, found in parts.items() for score in found}
    errors = np.sqrt(np.stack([score.squares for score in scores.values()]))
    usual = [name for name, score in scores.items() if not score.run.flaw]
    worst = max(usual, key=lambda name: float(scores[name].squares.mean()))
    run, joints = scores[worst].run, list(fit.problem.joints)
    rows = slice(run.first, None)
    goal, position, simulated = (
        values[rows][:, joints] for values in (run.goal, run.position, scores[worst].simulated)
    )
    time = np.arange(len(run.position), dtype=np.float64)[rows] * run.dt
    return save_all(
        {
            "errors": draw_robot_errors(errors, list(scores), fit.joints),
            "friction": draw_robot_friction(friction_curves(fit)),
            "worst-run": draw_robot_motion(worst, time, goal, position, simulated, fit.joints),
        },
        folder,
    )


def friction_curves(fit: RobotFit) -> dict[str, tuple[Array, Array, Array]]:
    """Speeds up to the largest usual one, and least and largest friction without load over the positions, by joint."""
    law, runs = fit.problem.kind.law, fit.problem.runs
    drives = fit.problem.drives(fit.x, 0, len(fit.tree.names))
    found = {}
    for joint in fit.problem.joints:
        p = {name: float(values[joint]) for name, values in drives.items()}
        places = np.concatenate([run.position[:, joint] for run in runs])
        speeds = np.concatenate([np.abs(np.diff(run.position[:, joint])) / run.dt for run in runs])
        speed = np.linspace(0.0, float(np.quantile(speeds, 0.999)), POINTS)
        place = np.quantile(places, np.linspace(0.01, 0.99, 21))[:, None]
        over = friction_budget(law, p, 0.0, 0.0, speed, place)[0] + 0.0 * (speed + place)
        found[fit.tree.names[joint]] = (speed, over.min(axis=0), over.max(axis=0))
    return found
