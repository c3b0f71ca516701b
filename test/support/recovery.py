"""Recordings simulated from published parameters, and their refits side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from stribeck.files.actuators import load_actuator
from stribeck.identify.servo.rollout import Rollout
from stribeck.identify.servo.uncertainty import Uncertainty, cluster_length, estimated
from stribeck.model.law import law_named
from stribeck.model.log import Batch, Log, Setup, batch_of
from stribeck.model.parameters import ParameterSet
from stribeck.model.trajectories import Trajectory, trajectory_named
from virtual import Encoder, record

TRAJECTORIES = ("sin_time_square", "sin_sin", "up_and_down", "lift_and_drop")
STEP_12_BITS = 2.0 * np.pi / 4096.0


@dataclass(frozen=True)
class Bench:
    """Loads and gains of a simulated campaign."""

    actuator: str
    masses: tuple[float, ...]
    length: float
    arm_mass: float
    gains: tuple[float, ...]
    supply_voltage: float

    def plays(self) -> Iterator[tuple[Setup, Trajectory]]:
        """Every load at every gain on every trajectory."""
        for mass, kp, trajectory in product(self.masses, self.gains, TRAJECTORIES):
            yield (
                Setup(mass, self.length, self.arm_mass, self.supply_voltage, kp),
                trajectory_named(trajectory),
            )


MX106 = Bench("mx106", (0.5, 1.0, 1.5), 0.15, 0.05, (4.0, 8.0, 16.0, 32.0), 15.0)
EROB = Bench("erob80_100", (3.1, 8.2, 14.6), 0.5, 0.8, (10.0, 25.0, 50.0, 100.0), 48.0)


def truth_of(bench: Bench, law_name: str) -> ParameterSet:
    """Published values, those nearer than 5 % of the search range to a bound moved there."""
    actuator, law = load_actuator(bench.actuator), law_named(law_name)
    parameters = actuator.parameters(law)
    published = {"q_offset": 0.0, **actuator.published[law_name]}
    unit = parameters.to_unit([published[name] for name in parameters.free_names])
    return parameters.with_vector(parameters.from_unit(np.clip(unit, 0.05, 0.95)))


def virtual_logs(bench: Bench, truth: ParameterSet, law_name: str, encoder: Encoder) -> list[Log]:
    """One campaign as a servo with this encoder records it."""
    actuator, law = load_actuator(bench.actuator), law_named(law_name)
    rng = np.random.default_rng(0)
    return record(actuator, law, truth.values(), list(bench.plays()), encoder, rng)


def virtual_runs(bench: Bench, truth: ParameterSet, law_name: str) -> Batch:
    """One campaign without noise."""
    return batch_of([log.resample(0.005) for log in virtual_logs(bench, truth, law_name, Encoder(0.0))])


def measurements(
    batch: Batch, motion: NDArray[np.float64], rng: np.random.Generator, count: int, disturbance: float
) -> NDArray[np.float64]:
    """Positions (count, T, R) that a 12-bit encoder with noise of one step would report.

    :param disturbance: standard deviation of a first-order autoregressive model error of 1 Hz [rad].
    """
    shape = (count, *motion.shape)
    noisy = motion + STEP_12_BITS * rng.standard_normal(shape)
    if disturbance:
        decay = np.exp(-2.0 * np.pi * 1.0 * batch.dt)
        state = rng.standard_normal((count, motion.shape[1]))
        for k in range(motion.shape[0]):
            noisy[:, k] += disturbance * state
            state = decay * state + np.sqrt(1.0 - decay**2) * rng.standard_normal(state.shape)
    return np.round(noisy / STEP_12_BITS) * STEP_12_BITS


def refit(
    rollout: Rollout, start: NDArray[np.float64], measured: NDArray[np.float64], iterations: int = 12
) -> NDArray[np.float64]:
    """Levenberg-Marquardt from one point for every set of measurements (S, T, R) side by side."""
    points = np.repeat(start[None], len(measured), axis=0)
    best = rollout.normal_equations(points, measured)
    loss, gradient, hessian = best
    damping = np.full(len(points), 1e-3)
    for _ in range(iterations):
        diagonal = np.einsum("sii->si", hessian)
        scaling = np.maximum(diagonal, 1e-9 * diagonal.max(axis=1, keepdims=True))
        held = ((points <= 0) & (gradient > 0)) | ((points >= 1) & (gradient < 0))
        free = (~held).astype(float)
        matrices = hessian * free[:, :, None] * free[:, None, :]
        extra = damping[:, None] * scaling + held
        matrices = matrices + extra[:, None, :] * np.eye(points.shape[1])
        steps = -np.linalg.solve(matrices, (gradient * free)[..., None])[..., 0]
        candidates = np.clip(points + steps, 0.0, 1.0)
        tried = rollout.normal_equations(candidates, measured)
        better = tried.loss < loss
        points[better] = candidates[better]
        loss, gradient, hessian = (
            np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
            for new, old in zip(tried, (loss, gradient, hessian), strict=True)
        )
        damping = np.where(better, damping * 0.1, damping * 10.0)
    return points


def estimate_at_points(
    rollout: Rollout, points: NDArray[np.float64], measured: NDArray[np.float64]
) -> list[Uncertainty]:
    """Uncertainties of parallel fits: at their optima (S, n), to the measured positions of each (S, T, R) [rad]."""
    length = cluster_length(rollout, points[0], measured[0] - np.mean(measured, axis=0))
    scores = rollout.scores(points, length, measured)
    return [estimated(rollout, point, scores, k, length) for k, point in enumerate(points)]
