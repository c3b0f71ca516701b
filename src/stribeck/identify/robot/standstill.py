r"""Standstill of position servos in recordings: how far from its goal a joint stops, from either side.

A joint that comes to rest from direction :math:`d = \pm 1` while its goal stands still has the error

.. math:: e = \theta^* - \theta = e_0 + c\, g(q) + d\, h

with the torque :math:`g(q)` that holds the pose, the compliance :math:`c = 1/K`, an offset :math:`e_0` of the calibration, and half of the dead band
:math:`h = \tau_b / K`. The three numbers of each joint minimise a robust (soft :math:`L_1`) sum over all stops. A stop counts if its goal has rested for
:data:`REST`, the position has moved by less than :data:`STILL` in the last :data:`QUIET`, and the last motions of goal and position had the same direction:
a joint that overshot stands on the other side. Intervals (90 %) are quantiles of a bootstrap over runs, as stops of one run are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np

from stribeck.identify.robot.recordings import RobotRun
from stribeck.identify.robot.tree import RobotTree
from stribeck.model.arrays import Array

REST, QUIET = 0.3, 0.2
"""Time for which a goal has to rest, and the last part of it in which the position may not move [s]."""

STILL = 1.6e-3
"""Largest movement of a joint at rest [rad]: a count of a 12-bit encoder."""

MOVED = 5e-3
"""Smallest movement whose direction counts [rad]."""

FEWEST = 6
"""Fewest stops of a joint, with some in each direction, from which its dead band is estimated."""

SCALE = 2e-3
"""Deviation from which on a stop has less weight [rad]."""

LOADS = 0.03
"""Smallest range of loads from which a compliance is estimated [N m]."""

ROUNDS = 25
"""Reweightings; the weight of a deviation r is :math:`(1 + r^2)^{-1/2}`, that of the soft L1 loss."""

RESAMPLINGS, LEVEL = 200, 0.9


class Stop(NamedTuple):
    """A joint at rest.

    :param run: index of the run.
    :param error: goal - position [rad].
    :param direction: of the motion before, 1 or -1.
    :param holding: torque that holds the pose without friction [N m].
    """

    run: int
    joint: int
    error: float
    direction: float
    holding: float


@dataclass(frozen=True)
class Standstill:
    """Standstill of a joint.

    :param half: half of its dead band [rad].
    :param compliance: error for a load [rad/(N m)].
    :param offset: error without load in the middle of the band [rad].
    :param half_interval, compliance_interval: with 90 %.
    :param stops: number of stops.
    :param spread: median deviation of the stops from the ends of the band [rad].
    """

    joint: str
    half: float
    compliance: float
    offset: float
    half_interval: tuple[float, float]
    compliance_interval: tuple[float, float]
    stops: int
    spread: float

    @property
    def dead_band(self) -> float:
        """Width of the dead band [rad]."""
        return 2.0 * self.half


def stops_of(runs: Sequence[RobotRun], tree: RobotTree, joints: Sequence[int]) -> list[Stop]:
    """All stops of some joints in runs without a flaw."""
    found = []
    for index, run in enumerate(runs):
        if run.flaw is None:
            for joint in joints:
                found += [
                    Stop(
                        index,
                        joint,
                        float(run.goal[row, joint] - run.position[row, joint]),
                        direction,
                        holding_torque(tree, run.position[row])[joint],
                    )
                    for row, direction in _rests(run, joint)
                ]
    return found


def _rests(run: RobotRun, joint: int) -> list[tuple[int, float]]:
    """Last row of each rest of a joint, and the direction in which it was reached."""
    goal, position = run.goal[:, joint], run.position[:, joint]
    changes = np.flatnonzero(np.abs(np.diff(goal)) > 1e-6)
    begins, ends = np.concatenate([[0], changes + 1]), np.concatenate([changes, [len(goal) - 1]])
    quiet, rests = max(round(QUIET / run.dt), 1), []
    for begin, end in zip(begins, ends, strict=True):
        if (end - begin) * run.dt < REST or np.ptp(position[max(end - quiet, 0) : end + 1]) > STILL:
            continue
        direction = _last_direction(position[: end + 1])
        if direction and direction == _last_direction(goal[: begin + 1]):
            rests.append((int(end), direction))
    return rests


def _last_direction(values: Array) -> float:
    """Direction of the last movement by more than :data:`MOVED`, 0 for none."""
    away = np.flatnonzero(np.abs(values - values[-1]) > MOVED)
    return 0.0 if not len(away) else float(np.sign(values[-1] - values[away[-1]]))


def holding_torque(tree: RobotTree, position: Array) -> Array:
    """Torques that hold a pose without friction (J,) [N m]."""
    data = tree.data
    data.qpos[:], data.qvel[:] = position, 0.0
    mujoco.mj_forward(tree.model, data)
    return np.array(data.qfrc_bias)


def standstill_of(joint: str, stops: Sequence[Stop], seed: int = 0) -> Standstill | None:
    """The dead band of a joint; ``None`` if there are too few stops, or from one side only."""
    directions = [stop.direction for stop in stops]
    if len(stops) < FEWEST or min(directions.count(1.0), directions.count(-1.0)) < FEWEST // 3:
        return None
    found = _fit(stops)
    rng, by_run = np.random.default_rng(seed), list({stop.run: None for stop in stops})
    groups = {run: [stop for stop in stops if stop.run == run] for run in by_run}
    drawn = []
    for _ in range(RESAMPLINGS):
        chosen = [stop for run in rng.choice(by_run, len(by_run)) for stop in groups[int(run)]]
        if len({stop.direction for stop in chosen}) == 2:
            drawn.append(_fit(chosen))
    low, high = np.quantile(drawn, [0.5 * (1.0 - LEVEL), 0.5 * (1.0 + LEVEL)], axis=0)
    residuals = _rows(stops) @ found - [stop.error for stop in stops]
    return Standstill(
        joint,
        half=float(found[2]),
        compliance=float(found[1]),
        offset=float(found[0]),
        half_interval=(float(low[2]), float(high[2])),
        compliance_interval=(float(low[1]), float(high[1])),
        stops=len(stops),
        spread=float(np.median(np.abs(residuals))),
    )


def _rows(stops: Sequence[Stop]) -> Array:
    return np.array([[1.0, stop.holding, stop.direction] for stop in stops])


def _fit(stops: Sequence[Stop]) -> Array:
    """Offset, compliance and half of the band, by reweighted least squares; no compliance where the load hardly differs."""
    rows, errors = _rows(stops), np.array([stop.error for stop in stops])
    used = np.array([True, float(np.ptp(rows[:, 1])) > LOADS, True])
    columns, found, weight = rows[:, used], np.zeros(3), np.ones(len(rows))
    for _ in range(ROUNDS):
        weighted = weight[:, None] * columns
        found[used] = np.linalg.solve(weighted.T @ columns, weighted.T @ errors)
        weight = (1.0 + ((rows @ found - errors) / SCALE) ** 2) ** -0.5
    return found
