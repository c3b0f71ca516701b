"""Recordings of a simulated servo with an encoder on a bench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.model.actuator import Actuator
from stribeck.model.law import FrictionLaw
from stribeck.model.log import Log, Samples, Series, Setup, batch_of
from stribeck.model.step import Integrator, simulate
from stribeck.model.terms.term import Values
from stribeck.model.trajectories import Trajectory

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Encoder:
    """Resolution and noise of the motion that a servo reports.

    :param resolution: smallest step of the position [rad]; 0 for none.
    :param noise: standard deviation of white noise before rounding [rad].
    :param velocity_resolution: smallest step of the velocity [rad/s]; 0 for none.
    """

    resolution: float
    noise: float = 0.0
    velocity_resolution: float = 0.0


def record(
    actuator: Actuator,
    law: FrictionLaw,
    p: Values,
    plays: Sequence[tuple[Setup, Trajectory]],
    encoder: Encoder,
    rng: np.random.Generator,
    *,
    dt: float = 0.005,
    substeps: int = 1,
    integrator: Integrator = "exponential",
    disturbance: FloatArray | None = None,
) -> list[Log]:
    """Simulate trajectories on a bench, and record them as a servo would.

    The joint starts at rest at 0 rad. Samples and commands are ``dt`` [s] apart.

    :param p: parameter values by name.
    :param plays: set-up and trajectory of each run; trajectories of one duration.
    :param substeps: steps of the simulation from one sample to the next.
    :param disturbance: added to the positions before they are measured [rad], (T, R): what a model
        of the joint does not explain.
    """
    runs = [_commanded(actuator, setup, trajectory, dt) for setup, trajectory in plays]
    fine = [run.log.resample(dt / substeps) for run in runs]
    motion = simulate(batch_of(fine), actuator, law, p, integrator=integrator)
    logs = []
    for r, run in enumerate(runs):
        count = len(run.time)
        position = motion.position[::substeps][:count, r]
        if disturbance is not None:
            position = position + disturbance[:count, r]
        position = _rounded(position + encoder.noise * rng.standard_normal(count), encoder.resolution)
        velocity = _rounded(motion.velocity[::substeps][:count, r], encoder.velocity_resolution)
        source = run.log
        logs.append(
            Log(
                name=source.name,
                actuator=actuator.name,
                trajectory=source.trajectory,
                setup=source.setup,
                position=Series(run.time, position, held=False),
                velocity=Series(run.time, velocity, held=False),
                goal=source.goal,
                torque_enable=source.torque_enable,
            )
        )
    return logs


def _rounded(values: FloatArray, resolution: float) -> FloatArray:
    return np.round(values / resolution) * resolution if resolution else values


def _commanded(actuator: Actuator, setup: Setup, trajectory: Trajectory, dt: float) -> Samples:
    """A run of which only the commands are known yet, the joint at rest at 0 rad."""
    time = dt * np.arange(round(trajectory.duration / dt) + 1, dtype=np.float64)
    at_rest = Series(time, np.zeros_like(time), held=False)
    log = Log(
        name=f"kp{setup.kp:g}_m{setup.mass:g}_l{setup.length:g}_{trajectory.name}",
        actuator=actuator.name,
        trajectory=trajectory.name,
        setup=setup,
        position=at_rest,
        velocity=at_rest,
        goal=Series(time, trajectory.goal(time), held=True),
        torque_enable=Series(time, trajectory.torque_enable(time), held=True),
    )
    return log.resample(dt)
