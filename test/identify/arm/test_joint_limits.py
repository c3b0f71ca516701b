"""Torque limits and rest thresholds, from URDF and recordings."""

import numpy as np
import pytest

from moving_arms import arm, recording
from stribeck.identify.arm.friction.drives import torque_limits
from stribeck.identify.common.noise import tunings, white_noise
from stribeck.live.direction.motion import FINEST, Tuning


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A recording of the arm without noise."""
    return recording(arm(tmp_path_factory.mktemp("arm")))


def test_noise_is_found_under_motion(run):
    """Within 5 % of its standard deviation, for white noise and for rounding; nothing in smooth motion."""
    rng = np.random.default_rng(0)
    sizes = np.array([1e-3, 1e-4, 3e-5])
    noisy = run.position + sizes * rng.normal(size=run.position.shape)
    assert white_noise([noisy]) == pytest.approx(sizes, rel=0.05)
    rounded = np.round(run.position / 1e-3) * 1e-3
    assert white_noise([rounded]) == pytest.approx(1e-3 / np.sqrt(12.0), rel=0.3)
    assert (white_noise([run.position]) < 1e-7).all()


def test_thresholds_follow_the_noise_of_each_joint(run):
    """That of a resolution; velocities too noisy for it raise the threshold of motion."""
    exact, rough = tunings([run.position])[0], 4e-3
    assert exact == Tuning.of_resolution(FINEST)
    rng = np.random.default_rng(0)
    noise = np.array([0.0, 1.0, 0.0]) * rng.uniform(-0.5, 0.5, run.position.shape)
    found = tunings([run.position + rough * noise], presliding=5e-3)
    assert found[1].deadband == pytest.approx(3.0 * rough, rel=0.05)
    assert found[0].deadband == exact.deadband
    assert found[0].presliding == 1e-2
    shaken = run.velocity + np.array([0.0, 0.0, 0.1]) * rng.normal(size=run.position.shape)
    moving = [one.moving_velocity for one in tunings([run.position], [shaken])]
    assert moving == pytest.approx([exact.moving_velocity, exact.moving_velocity, 0.5], rel=0.05)


def test_limits_are_given_or_those_of_the_urdf_or_the_largest_effort(run, tmp_path):
    """The first that is positive."""
    largest = np.abs(run.effort).max(axis=0)
    model = arm(tmp_path)
    assert torque_limits(model, (1.0, 2.0, 3.0), [run]).tolist() == [1.0, 2.0, 3.0]
    assert torque_limits(model, None, [run]).tolist() == [60.0, 60.0, 60.0]
    assert torque_limits(None, None, [run]).tolist() == largest.tolist()
