"""A simulated Furuta pendulum with thirteen unknown parameters, and its recordings."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.mechanism import Mechanism
from stribeck.identify.mechanism.model_file import read_model
from stribeck.identify.mechanism.problem import GridRun
from stribeck.identify.mechanism.recordings import MechanismRecording, on_grid

Array = npt.NDArray[np.float64]
STEP, SECONDS = 0.01, 10.0
COUNTS = 4096


def furuta() -> Mechanism:
    """The mechanism of config/mechanisms/furuta.yaml; its values are the truth."""
    return read_model("furuta").mechanism


def voltage(time: Array) -> Array:
    """What drives the motor: two sines and a square wave [V]."""
    return 3.0 * np.sin(2.3 * time) + 2.0 * np.sin(7.1 * time) + 1.5 * np.sign(np.sin(1.1 * time))


@lru_cache(maxsize=4)
def simulated(seconds: float = SECONDS) -> tuple[Array, Array, Array]:
    """Time (N,), joint angles (N, 2) and voltages (N, 1), held from one row to the next, of the true mechanism."""
    mechanism = furuta()
    dynamics = MultibodyDynamics(mechanism)
    time = STEP * np.arange(round(seconds / STEP) + 1)
    held = voltage(time)[:, None]
    drive = on_grid(
        MechanismRecording("made", time, np.zeros((len(time), 2)), held), mechanism, STEP
    ).samples.voltage
    with jax.enable_x64():
        physical = mechanism.physical(mechanism.values())
        start = BodyState(dynamics.layout.zero_pose(physical), jnp.zeros((2, 6)))
        states = jax.jit(lambda s: dynamics.simulate(physical, s, jnp.asarray(drive), STEP))(start)
        angles = jax.vmap(
            lambda q: jnp.stack(dynamics.layout.coordinates(dynamics.layout.pose(physical, q)))
        )(states.q)
    return time, np.unwrap(np.asarray(angles), axis=0)[: len(time)], held


def recorded(seed: int, seconds: float = SECONDS) -> MechanismRecording:
    """What encoders of 12 bits with random phases read."""
    time, angles, drive = simulated(seconds)
    phase = np.random.default_rng(seed).uniform(0.0, 1.0, 2)
    step = 2.0 * np.pi / COUNTS
    counts = np.floor(angles / step + phase)
    return MechanismRecording("made", time, (counts + 0.5 - phase) * step, drive)


def run(seed: int, seconds: float = SECONDS) -> GridRun:
    """A recording on the grid."""
    return on_grid(recorded(seed, seconds), furuta(), STEP)


def displaced(seed: int, share: float = 0.5) -> Array:
    """Free parameters off by up to a share of their values; those that are zero by that share of their range."""
    parameters = furuta().parameters
    values = parameters.vector()
    off = np.random.default_rng(1000 + seed).uniform(-share, share, len(values))
    moved = np.where(np.abs(values) > 0.0, values * (1.0 + off), off * (parameters.upper - parameters.lower))
    return np.clip(moved, parameters.lower, parameters.upper)


def described(changes: dict[str, Any]) -> Mechanism:
    """The mechanism with parameters fixed at values."""
    mechanism = furuta()
    return replace(mechanism, parameters=mechanism.parameters.fixed(changes))
