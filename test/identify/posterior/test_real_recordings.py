"""Posteriors on real recordings: few data on a TX40, one load and a current limit on an XL330."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from helpers import DATA, XL330, needs_xl330
from stribeck.files.actuators import load_actuator
from stribeck.files.robots import read_robot
from stribeck.identify.arm.config import identification_config
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.recordings import read_arm_recordings as read_motion
from stribeck.identify.arm.regressor import machine_of
from stribeck.identify.posterior.few_data import few_data
from stribeck.identify.posterior.knowledge import cad
from stribeck.identify.posterior.servo import ServoDraws, mean_position, sample_servo
from stribeck.identify.posterior.servo_priors import servo_prior
from stribeck.identify.posterior.servo_result import held_correlation, statements
from stribeck.identify.servo.rollout import Rollout
from stribeck.model.law import law_named
from stribeck.model.log import Log, batch_of
from stribeck.model.trajectories import trajectory_named
from stribeck.recordings.sources import read_recordings
from virtual import Encoder, record

TX40 = DATA / "tx40"
needs_tx40 = pytest.mark.skipif(not TX40.is_dir(), reason="the recordings of the TX40 are not here")

PAIR = ("friction_base", "load_friction_base")


@pytest.mark.slow
@pytest.mark.timeout(3000)
@needs_tx40
def test_with_few_data_the_posterior_beats_least_squares():
    """Trained on the first 0.5, 1 and 2 s, the URDF as prior, the rest is predicted better at each length."""
    robot = read_robot("tx40")
    config = identification_config(robot)
    arm = load_arm(TX40 / "tx40.urdf", robot.joints)
    machine = machine_of(robot.joints, arm, config.couplings)
    run = read_motion([TX40], config.recording, machine.joints, robot.units)[0]
    found = few_data(cad(arm, np.full(6, 0.1)), machine, run, config.protocol, (0.5, 1.0, 2.0), 0)
    for one in found:
        print(one.seconds, one.posterior, one.least_squares, one.plain, one.draws.posterior.samples)
        assert one.posterior < one.least_squares


@cache
def _runs() -> tuple[Log, ...]:
    return tuple(read_recordings(XL330, arm_mass=0.0))


def _rollout(logs: list[Log], law: str, limited: bool) -> Rollout:
    servo = load_actuator("xl330").with_effects(("current-limit",) if limited else ())
    parameters = servo.parameters(law_named(law))
    if limited:
        parameters = parameters.freed(["current_limit"])
    return Rollout(batch_of([log.resample(0.005) for log in logs]), servo, law_named(law), parameters)


def _sample(rollout: Rollout, seed: int = 0, **options) -> ServoDraws:
    prior = servo_prior(rollout.actuator, rollout.law, rollout.parameters)
    return sample_servo(rollout, prior, seed, draws=30, thin=30, **options)


def _spread(found: ServoDraws) -> tuple[float, float, np.ndarray]:
    """Correlation of constant and load-dependent friction, that with all else held, and the standard deviations of both."""
    i, j = (found.posterior.names.index(name) for name in PAIR)
    plain, held = np.corrcoef(found.flat.T)[i, j], held_correlation(found.flat)[i, j]
    return float(plain), float(held), found.flat[:, [i, j]].std(axis=0)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@needs_xl330
def test_one_load_leaves_a_ridge_that_a_second_one_collapses():
    """Constant and load-dependent friction of the real runs are known together only, and the words say so; runs of a
    second load, simulated with the posterior's mean, tell them apart.
    """
    rollout = _rollout(list(_runs()), "m3", limited=False)
    one = _sample(rollout)
    correlation, held, widths = _spread(one)
    said = statements(one.posterior.names[:-1], one.flat[:, :-1], _runs())
    print(correlation, held, widths, said)
    assert correlation < -0.3
    assert held < -0.5
    assert any("the same load" in sentence for sentence in said)
    residual = one.posterior.positions(one.mean) - rollout.batch.position
    plays = [
        (replace(log.setup, mass=mass), trajectory_named(log.trajectory))
        for log in _runs()
        for mass in (0.1,)
    ]
    second = record(
        rollout.actuator,
        rollout.law,
        one.mean,
        plays,
        Encoder(rollout.actuator.resolution),
        np.random.default_rng(0),
        disturbance=np.concatenate([residual, residual[-1:]]),  # the recordings end a sample earlier
    )
    two = _sample(_rollout([*_runs(), *second], "m3", limited=False))
    less, less_held, narrower = _spread(two)
    said = statements(two.posterior.names[:-1], two.flat[:, :-1], [*_runs(), *second])
    print(less, less_held, narrower, said)
    assert abs(less) < abs(correlation)
    assert np.all(narrower < 0.7 * widths)
    assert not any("the same load" in sentence for sentence in said)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@needs_xl330
def test_discrepancy_keeps_the_current_limit_where_the_datasheet_has_it():
    """Gains 100 and 200, law M6, limit free. With discrepancy it stays within a prior's standard deviation of 1.75 A, and
    gain 400 is predicted to 52 mrad; counted as independent, samples move it away, and the prediction with it.
    """
    train = _rollout([log for log in _runs() if log.setup.kp < 300.0], "m6", limited=True)
    test = _rollout([log for log in _runs() if log.setup.kp > 300.0], "m6", limited=True)
    figures = {}
    for discrepancy in (True, False):
        found = _sample(train, discrepancy=discrepancy)
        limit = found.flat[:, found.posterior.names.index("current_limit")]
        position = mean_position(found, test)
        error = 1e3 * float(test.batch.mean_absolute_errors(position).mean())
        figures[discrepancy] = (float(limit.mean()), error)
        print(discrepancy, figures[discrepancy], limit.std(), found.posterior.samples[0])
    assert abs(figures[True][0] - 1.75) < 0.175
    assert figures[True][1] <= 52.0
    assert figures[False][0] < 1.35
    assert figures[False][1] > 90.0
