"""Calibration of servo posteriors by simulation-based ranks."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from rank_calibration import RankCalibration, calibrate
from stribeck.files.actuators import load_actuator
from stribeck.identify.posterior import metropolis
from stribeck.identify.posterior.densities import LogNormal
from stribeck.identify.posterior.servo import ServoPosterior, independent_samples
from stribeck.identify.posterior.servo_priors import servo_prior
from stribeck.identify.servo.rollout import Rollout
from stribeck.model.law import law_named
from stribeck.model.log import Log, Series, Setup, batch_of
from stribeck.model.step import simulate
from stribeck.model.trajectories import trajectory_named

NOISE = LogNormal.of_factor(0.003, 1.5)
"""Noise of the encoder [rad]: two steps of 12 bits, within a factor of 1.5."""


def _run() -> Log:
    """One run of 2 s at 5 ms from rest; what it measured does not matter."""
    time = 0.005 * np.arange(401)
    goal = trajectory_named("sin_time_square").goal(time)
    zero = Series(time, np.zeros_like(time), held=False)
    return Log(
        name="simulated",
        actuator="xl330",
        trajectory="sin_time_square",
        setup=Setup(0.3, 0.1, 0.02, 5.0, 400.0),
        position=zero,
        velocity=zero,
        goal=Series(time, goal, held=True),
        torque_enable=Series(time, np.ones_like(time), held=True),
    )


def ranks_of(
    law_name: str, posteriors: int, chains: int, draws: int, thin: int, settle: int
) -> RankCalibration:
    """Ranks of servos drawn from the prior in posteriors of one run each, all side by side."""
    servo, law = load_actuator("xl330"), law_named(law_name)
    parameters = servo.parameters(law)
    batch = batch_of([_run().resample(0.005)])
    rollout = Rollout(batch, servo, law, parameters)
    posterior = ServoPosterior(
        rollout, servo_prior(servo, law, parameters), independent_samples(rollout), NOISE
    )
    rng = np.random.default_rng(3)
    with jax.enable_x64():
        truth = posterior.draw(rng, posteriors)
        values = np.asarray(posterior.values(truth))
        start = posterior.draw(rng, posteriors * chains).reshape(posteriors, chains, -1)
    columns = dict(zip(parameters.free_names, values.T, strict=False))
    wide = batch_of([_run().resample(0.005)] * posteriors)
    clean = simulate(wide, servo, law, columns).position
    measured = clean + values[:, -1] * rng.standard_normal(clean.shape)
    measured[0] = 0.0  # simulations start at the first sample: it is known
    posterior = replace(posterior, measured=measured.T[:, :, None])
    found = metropolis.sample(posterior.batched(chains), start, draws // chains, 0, thin=thin, settle=settle)
    with jax.enable_x64():
        drawn = np.asarray(posterior.values(found.x)).reshape(posteriors, -1, len(posterior.names))
    return calibrate(posterior.names, values, drawn)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("law", ["m1", "m3"])
def test_ranks_of_servos_are_uniform(law):
    """200 servos of the prior, one run of 2 s at 5 ms each, 200 draws of each posterior."""
    found = ranks_of(law, 200, 50, 200, thin=200, settle=1600)
    print(
        law,
        dict(zip(found.names, found.adjusted.round(4), strict=True)),
        found.coverage,
        found.pooled_coverage,
    )
    assert found.uniform
    assert 0.93 <= found.pooled_coverage <= 0.97
