r"""Runs that were not recorded: as the simulation takes them, and which would tell most by its expected information.

The uncertain parameters are written as :math:`\theta = \hat\theta + L u` with :math:`C = L L^T` and
:math:`u \sim N(0, I)`. A run whose simulated motion has the derivatives :math:`G = \partial y/\partial u` (T, n) adds

.. math:: M = \frac{\Delta t}{2\tau\sigma^2} G^T G

to the information I, because the error of the model, with standard deviation :math:`\sigma` and correlation time
:math:`\tau`, makes neighbouring samples nearly one. Its expected information is :math:`\frac12 \log\det(I + M)`
(D-optimality), and the variance of any motion changes from :math:`\|G_t\|^2` to :math:`G_t (I + M)^{-1} G_t^T`. Runs are
ranked by the mean of that variance over all candidates. Source: Chaloner and Verdinelli, "Bayesian experimental design:
a review", Statistical Science 10, 1995, 10.1214/ss/1177009939.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from stribeck.errors import ConfigError, ParameterFileError, RecordingError
from stribeck.evaluate.assessment import Stepping
from stribeck.identify.servo.conditions import KINDS
from stribeck.identify.servo.prediction import Model, model_of, motions
from stribeck.model.arrays import Array
from stribeck.model.joint import Drive
from stribeck.model.log import Log, Series, Setup
from stribeck.model.step import batch_for
from stribeck.model.trajectories import BREAKAWAY, TRAJECTORIES, Trajectory, trajectory_named
from stribeck.recordings.tables.readers import read_table

NAMES = ("sin_time_square", "sin_sin", "up_and_down", "lift_and_drop", "steps", "half_sine")
"""Trajectories that are considered."""

FACTORS = (0.5, 1.0, 2.0)
"""Gains and masses are considered between these multiples of the smallest and largest recorded ones."""

DIFFERENCE = 0.3
"""Half-width of the differences, in standard deviations."""

FARTHEST = 3.0
"""Set-ups with which a motion leaves this range [rad] are left out."""


@dataclass(frozen=True)
class Suggestion:
    """A run that could be recorded next.

    :param information: expected information about the parameters [nats].
    :param spread: root mean square of the standard deviation of all candidates' motions after it [rad].
    :param new: conditions that no recording has.
    """

    setup: Setup
    trajectory: str
    information: float
    spread: float
    new: tuple[str, ...]


@dataclass(frozen=True)
class Suggestions:
    """Runs that could be recorded next, the best first.

    :param spread: as in :class:`Suggestion`, before any of them [rad].
    """

    runs: tuple[Suggestion, ...]
    spread: float


def suggest(file: Drive, logs: Sequence[Log], stepping: Stepping) -> Suggestions:
    """Rank set-ups and trajectories by how much a run of each would reduce the spread of all their motions.

    :raises ParameterFileError: if the file does not state the covariance of its parameters.
    """
    prediction = file.prediction
    if prediction is None:
        raise ParameterFileError(
            "the parameter file contains no covariance of its parameters (block stribeck.prediction): identify again with this version"
        )
    runs = _candidates(logs, stepping.dt)
    model = model_of(file, batch_for(runs, stepping.dt, stepping.integrator), stepping.integrator, None)
    derivatives, reach = _derivatives(model, file, np.array(prediction.covariance))
    possible = np.flatnonzero((reach < FARTHEST) & np.all(np.isfinite(derivatives), axis=(1, 2)))
    derivatives = derivatives[possible]
    samples = 2.0 * prediction.correlation_time / stepping.dt
    information = np.einsum("rtn,rtm->rnm", derivatives, derivatives) / (
        max(samples, 1.0) * prediction.deviation**2
    )
    size = derivatives.shape[2]
    total = np.einsum("rtn,rtm->nm", derivatives, derivatives) / derivatives[:, :, 0].size
    found = []
    for k, matrix in zip(possible.tolist(), information, strict=True):
        posterior = np.eye(size) + matrix
        left = float(np.sqrt(np.trace(np.linalg.solve(posterior, total))))
        gain = 0.5 * float(np.linalg.slogdet(posterior)[1])
        new = [name for name, _, value, _ in KINDS if value(runs[k]) not in {value(log) for log in logs}]
        found.append(Suggestion(runs[k].setup, runs[k].trajectory, gain, left, tuple(new)))
    found.sort(key=lambda one: one.spread)
    return Suggestions(tuple(found), float(np.sqrt(np.trace(total))))


def _candidates(logs: Sequence[Log], dt: float) -> list[Log]:
    """Runs of all trajectories with gains and masses at and around the recorded ones."""
    setups = [log.setup for log in logs]
    gains = _around([setup.kp for setup in setups])
    masses = _around([setup.mass for setup in setups])
    return [
        _planned(logs[0], replace(setups[0], kp=kp, mass=mass), TRAJECTORIES[name], dt)
        for kp, mass, name in product(gains, masses, NAMES)
    ]


def _around(values: Sequence[float]) -> list[float]:
    return sorted({FACTORS[0] * min(values), *(FACTORS[1] * v for v in values), FACTORS[2] * max(values)})


def _planned(log: Log, setup: Setup, trajectory: Trajectory, dt: float) -> Log:
    """A run that is not recorded: its goals, from rest."""
    time = np.arange(0.0, trajectory.duration, dt)
    still = np.zeros_like(time)
    return Log(
        name=f"{trajectory.name}, gain {setup.kp:g}, mass {setup.mass:g}",
        actuator=log.actuator,
        trajectory=trajectory.name,
        setup=setup,
        position=Series(time, still, held=False),
        velocity=Series(time, still, held=False),
        goal=Series(time, trajectory.goal(time), held=True),
        torque_enable=Series(time, trajectory.torque_enable(time), held=True),
    )


def _derivatives(model: Model, file: Drive, covariance: Array) -> tuple[Array, Array]:
    """Derivatives (R, T, n) of the motions along the axes of the covariance, and their largest angles (R,) [rad]."""
    mean = np.array([file.values[name] for name in model.parameters.free_names])
    values, axes = np.linalg.eigh(covariance)
    steps = (axes * np.sqrt(np.maximum(values, 0.0))).T
    lower, upper = model.parameters.lower, model.parameters.upper
    ahead, behind = (np.clip(mean + sign * DIFFERENCE * steps, lower, upper) for sign in (1.0, -1.0))
    moved = motions(model, np.concatenate([ahead, behind]))
    count = len(mean)
    # Where a bound cuts a difference short, the derivative is that of the part within it.
    covered = np.sum((ahead - behind) * steps, axis=1) / np.maximum(np.sum(steps**2, axis=1), 1e-300)
    difference = (moved[:, :, :count] - moved[:, :, count:]) / np.maximum(covered, 0.1 * DIFFERENCE)
    return np.moveaxis(difference, 0, 1), np.max(np.abs(moved), axis=(0, 2))


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
