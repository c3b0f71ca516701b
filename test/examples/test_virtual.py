"""Recordings of a servo that is not there are what a real servo would have reported."""

import numpy as np
import pytest

from helpers import SETUP, driven, published
from stribeck.files.actuators import load_actuator
from stribeck.model.law import LAWS
from stribeck.model.log import batch_of
from stribeck.model.step import simulate
from stribeck.model.trajectories import trajectory_named
from virtual import Encoder, record

SERVO = load_actuator("xl330")
VALUES = published("xl330", "m4")
PLAYS = [(SETUP, trajectory_named("sin_sin")), (SETUP, trajectory_named("lift_and_drop"))]


def recorded(encoder: Encoder, seed: int = 0, **options):
    """Two runs, as an encoder saw them."""
    return record(SERVO, LAWS["m4"], VALUES, PLAYS, encoder, np.random.default_rng(seed), **options)


def test_a_perfect_encoder_records_the_simulation():
    """Position and velocity to the last bit; commands as the trajectory says, torque off at the drop."""
    logs = recorded(Encoder(resolution=0.0))
    motion = simulate(driven(SERVO, ["sin_sin", "lift_and_drop"], SETUP), SERVO, LAWS["m4"], VALUES)
    for run, log in enumerate(logs):
        assert np.array_equal(log.position.value, motion.position[:, run])
        assert np.array_equal(log.velocity.value, motion.velocity[:, run])
        trajectory = PLAYS[run][1]
        assert np.array_equal(log.goal.value, trajectory.goal(log.goal.time))
        assert np.array_equal(log.torque_enable.value, trajectory.torque_enable(log.goal.time))
    assert (logs[0].actuator, logs[0].trajectory, logs[0].setup) == ("xl330", "sin_sin", SETUP)
    assert logs[0].name != logs[1].name


def test_simulating_a_recording_with_its_own_parameters_explains_it():
    """The loop closes: no error but the encoder's rounding, which is a quarter step on average."""
    logs = recorded(Encoder(resolution=SERVO.resolution))
    batch = batch_of([log.resample(0.005) for log in logs])
    errors = batch.mean_absolute_errors(simulate(batch, SERVO, LAWS["m4"], VALUES).position)
    assert np.all(errors < 0.5 * SERVO.resolution)
    assert np.all(errors > 0.1 * SERVO.resolution)


def test_an_encoder_reports_whole_steps():
    """Positions and velocities are multiples of their resolutions, at most half a step off."""
    exact, rounded = recorded(Encoder(0.0))[0], recorded(Encoder(0.01, velocity_resolution=0.5))[0]
    for name, step in (("position", 0.01), ("velocity", 0.5)):
        found = getattr(rounded, name).value
        np.testing.assert_allclose(found / step, np.round(found / step), atol=1e-9)
        assert np.max(np.abs(found - getattr(exact, name).value)) <= 0.5 * step * (1 + 1e-9)


def test_noise_has_the_standard_deviation_it_was_given_and_its_seed_decides_it():
    """2402 samples estimate a standard deviation to 1.4 %: 6 % are four times that."""
    noisy, exact = recorded(Encoder(0.0, noise=0.003)), recorded(Encoder(0.0))
    errors = np.concatenate([a.position.value - b.position.value for a, b in zip(noisy, exact, strict=True)])
    assert np.std(errors) == pytest.approx(0.003, rel=0.06)
    again, other = recorded(Encoder(0.0, noise=0.003)), recorded(Encoder(0.0, noise=0.003), seed=1)
    assert np.array_equal(noisy[1].position.value, again[1].position.value)
    assert not np.array_equal(noisy[1].position.value, other[1].position.value)


def test_a_disturbance_is_added_to_what_is_measured():
    """One column per run, before rounding."""
    disturbance = np.outer(np.ones(1201), [0.1, -0.2])
    disturbed, exact = recorded(Encoder(0.0), disturbance=disturbance), recorded(Encoder(0.0))
    for run in (0, 1):
        added = disturbed[run].position.value - exact[run].position.value
        np.testing.assert_allclose(added, disturbance[:, run], atol=1e-15)
        assert np.array_equal(disturbed[run].velocity.value, exact[run].velocity.value)


@pytest.mark.ci
def test_finer_steps_between_samples_are_those_of_the_simulation():
    """Four steps in a sample: positions of a simulation in steps of 1.25 ms under commands held for 5 ms."""
    logs = recorded(Encoder(resolution=0.0), substeps=4)
    fine = batch_of([log.resample(0.00125) for log in logs])
    motion = simulate(fine, SERVO, LAWS["m4"], VALUES)
    for run, log in enumerate(logs):
        assert len(log.position.time) == 1201
        np.testing.assert_allclose(log.position.value, motion.position[::4, run], atol=1e-12)
    coarse = recorded(Encoder(resolution=0.0))
    apart = np.abs(coarse[0].position.value - logs[0].position.value)
    assert 1e-6 < apart.max() < 0.01
