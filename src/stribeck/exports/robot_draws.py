r"""How wide draws of the joints of a robot have to be, computed where its recordings are at hand: when it is identified.

A file of drives does not contain the recordings, and the bench trajectories of a servo are no motion of a leg. Each joint is simulated in all
runs of the fit with draws of its parameters, also of its delay and the bias of its goal, under the loads that the fit used
(:mod:`stribeck.identify.robot.rollout`). Error and share of each joint are those of :mod:`stribeck.exports.draw_width`, with the runs as they
were fitted; the file of drives keeps them.

The parameters of these draws are independent. In the combinations that correlations of a fit leave open, the motion hardly changes, but a law
errs in others: with correlations the draws of an SO-101 needed factors of ± 4 to 22 % on friction and motor torque besides, and half-widths of 13.6 instead of
8.8 mrad for as many samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stribeck.evaluate.draws import draws_of, uncertain_of
from stribeck.exports.draw_width import ERRORS, Recorded, coverage_by_run, sizes_for
from stribeck.exports.draws import with_stiffness
from stribeck.files.drives import Drives
from stribeck.identify.robot.problem import RobotProblem
from stribeck.identify.robot.rollout import Lanes, simulate_lanes
from stribeck.model.arrays import Array
from stribeck.model.joint import DERIVATIVE, STIFFNESS, Drive

TRIALS, TOGETHER = 60, 10
"""Draws from which coverage is computed, and draws that are simulated together."""

ROWS = 600
"""Rows of a run whose coverage is computed, at least, if it has as many."""

GAINS = (STIFFNESS, DERIVATIVE)
"""Parameters that the scale of the torque multiplies."""


def with_draw_sizes(content: Drives, problem: RobotProblem, x: Array) -> Drives:
    """The drives with the width of their draws; unchanged if a joint has no uncertain parameter, as after fits of one or two runs.

    :param problem: of the fit.
    :param x: its parameters.
    """
    drives = list(content.joints.values())
    if not all(np.any(np.diag(uncertain_of(drive).covariance) > 0.0) for drive in drives):
        return content
    names = ("draw_error", "draw_share", "draw_coverage")
    widths = np.transpose(sizes_of(drives, problem, x)).tolist()
    return replace(
        content,
        joints={
            name: replace(drive, loss=replace(drive.loss, **dict(zip(names, width, strict=True))))
            for (name, drive), width in zip(content.joints.items(), widths, strict=True)
        },
    )


def lines_of(content: Drives) -> list[str]:
    """How wide the draws are, in one line, and a line on joints that even the widest do not cover; none without draws."""
    losses = {name: drive.loss for name, drive in content.joints.items()}
    if any(loss.draw_error is None or loss.draw_coverage is None for loss in losses.values()):
        return []
    told = ", ".join(
        f"{name} {100 * (loss.draw_coverage or 0.0):.0f} % (± {100 * (loss.draw_error or 0.0):.2g} %)"
        for name, loss in losses.items()
    )
    found = [
        "samples of the fitted runs within the middle 90 % of the draws (standard deviation of friction and motor torque in the draws): "
        + told
    ]
    if widest := [name for name, loss in losses.items() if (loss.draw_error or 0.0) >= ERRORS[-1]]:
        found.append(
            f"draws of {', '.join(widest)} have the largest width, ± {100 * ERRORS[-1]:.0f} %, and may contain less than 90 % of one more run"
        )
    return found


def sizes_of(drives: list[Drive], problem: RobotProblem, x: Array) -> tuple[Array, Array, Array]:
    """Error and share of the draws of each joint, and the share of the samples of the fitted runs that they contain (J,)."""
    lanes, estimate = problem.lanes, problem.values(x)
    many, count = _repeated(lanes), len(drives)
    position = np.asarray(lanes.position, dtype=float)
    kept = slice(None, None, max(1, len(position) // ROWS))

    def simulate(errors: Array, shares: Array) -> Array:
        drawn = [
            with_stiffness(
                drive, draws_of(drive, TRIALS, k, error=errors[k], share=shares[k], correlated=False)
            )
            for k, drive in enumerate(drives)
        ]
        found = []
        for first in range(0, TRIALS, TOGETHER):
            sets = [_values(problem, estimate, drives, drawn, k) for k in range(first, first + TOGETHER)]
            motion = simulate_lanes(problem.kind, many, np.concatenate(sets, axis=1))[kept]
            found.append(motion.reshape(len(motion), TOGETHER, -1))
        return np.concatenate(found, axis=1).transpose(0, 2, 1)

    residual = simulate_lanes(problem.kind, lanes, estimate) - position
    recorded = Recorded(
        position[kept],
        np.asarray(lanes.weight)[kept] > 0.0,
        np.repeat([part.run for part in problem.segments], count),
        np.tile(np.arange(count), len(problem.segments)),
    )
    sizes = sizes_for(simulate, residual[kept], recorded)
    contained = coverage_by_run(simulate(sizes.errors, sizes.shares), recorded)
    return sizes.errors, sizes.shares, np.mean(contained, axis=1)


def _repeated(lanes: Lanes) -> Lanes:
    """The lanes :data:`TOGETHER` times, side by side."""
    series = (
        np.tile(part, (TOGETHER,) if part.ndim == 1 else (1, TOGETHER, *[1] * (part.ndim - 2)))
        for part in map(np.asarray, lanes[1:])
    )
    return Lanes(lanes.dt, *series)


def _values(
    problem: RobotProblem, estimate: Array, drives: list[Drive], drawn: Sequence[Mapping[str, Array]], k: int
) -> Array:
    """Parameters of all lanes (N, L) with draw ``k`` of each joint."""
    values, joints = estimate.copy(), len(drives)
    for j, (drive, sets) in enumerate(zip(drives, drawn, strict=True)):
        own = slice(j, None, joints)
        stated = drive.estimates
        scale = sets["ratio"][k] / drive.values.get("ratio", 1.0) if "ratio" in sets else 1.0
        for row, name in enumerate(problem.kind.names):
            if name in GAINS:
                values[row, own] *= scale
            elif name in sets:
                values[row, own] += sets[name][k] - stated[name].value
    return values
