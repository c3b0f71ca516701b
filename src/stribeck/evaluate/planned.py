"""Runs that were not recorded: a trajectory on a bench, as the simulation takes recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stribeck.errors import ConfigError, RecordingError
from stribeck.model.log import Log, Series, Setup
from stribeck.model.trajectories import BREAKAWAY, TRAJECTORIES, Trajectory, trajectory_named
from stribeck.recordings.tables.readers import read_table

FINEST = 0.001
"""Period at which the goal of a trajectory is sampled [s]."""


def trajectory_of(word: str) -> Trajectory:
    """A trajectory by name, or from a table with the columns ``time`` [s], ``goal`` [rad] and, if torque goes off, ``torque_enable``.

    :raises ConfigError: for an unknown name.
    :raises RecordingError: for a table without these columns.
    """
    path = Path(word)
    if word in (*TRAJECTORIES, BREAKAWAY.name):
        return trajectory_named(word)
    if not path.suffix:
        raise ConfigError(
            f"no trajectory {word!r}; valid: {', '.join((*TRAJECTORIES, BREAKAWAY.name))}, or a table with columns of time and goal"
        )
    table = read_table(path)
    columns = {}
    for name in ("time", "goal"):
        if name not in table.names:
            raise RecordingError(f"{path}: no column {name!r}; it has {', '.join(table.names)}")
        columns[name] = table.column(name)
    time = columns["time"] - columns["time"][0]
    goal = Series(time, columns["goal"], held=True)
    until = np.inf
    if "torque_enable" in table.names:
        off = np.flatnonzero(table.column("torque_enable") < 0.5)
        until = float(time[off[0]]) if off.size else np.inf
    return Trajectory(path.stem, path.name, float(time[-1]), goal.at, until)


def planned_run(trajectory: Trajectory, setup: Setup, actuator: str) -> Log:
    """A run as it would be commanded, from rest; the position is known at its start alone, and constant here."""
    count = round(trajectory.duration / FINEST) + 1
    time = FINEST * np.arange(count, dtype=np.float64)
    goal = np.asarray(trajectory.goal(time), dtype=np.float64)

    def constant(value: float) -> Series:
        return Series(time, np.full(count, value), held=False)

    return Log(
        trajectory.name,
        actuator,
        trajectory.name,
        setup,
        constant(float(goal[0])),
        constant(0.0),
        Series(time, goal, held=True),
        Series(time, trajectory.torque_enable(time), held=True),
    )
