"""Thresholds of rest in `compensation.yaml` were those of the motion: 0.6 rad/s for a joint that moved with 0.05."""

import numpy as np
import pytest

from stribeck.identify.common.noise import tunings, white_noise
from stribeck.live.direction.motion import FINEST

STEP = 4e-4


def jerky(rate=25.0, seconds=120.0):
    """A joint that stands, creeps and reverses, at a low rate, with an encoder of 0.4 mrad."""
    time = np.arange(0.0, seconds, 1.0 / rate)
    velocity = 0.3077 * np.sign(np.sin(2.0 * np.pi * time / 1.7)) * (np.sin(2.0 * np.pi * time / 20.0) > 0.0)
    position = np.cumsum(velocity) / rate
    return np.round(position / STEP)[:, None] * STEP


def test_motion_is_no_noise():
    """The resolution comes out within a factor of two; it was 20 times too large."""
    noise = float(white_noise([jerky()])[0])
    assert 0.5 * STEP / np.sqrt(12.0) < noise < 2.0 * STEP / np.sqrt(12.0)
    assert tunings([jerky()])[0].moving_velocity < 0.2


def test_white_noise_is_itself():
    noise = 1e-3 * np.random.default_rng(0).normal(size=(5000, 2))
    assert white_noise([noise]) == pytest.approx(1e-3, rel=0.05)


def test_a_fitted_presliding_length_counts():
    """It was 1 mrad whatever was fitted; below two steps of the position nothing is known."""
    fine = np.sin(np.linspace(0.0, 10.0, 5000))[:, None]
    assert tunings([fine], presliding=3e-5)[0].presliding == 2.0 * FINEST
    assert tunings([fine], presliding=4e-4)[0].presliding == 8e-4
    assert tunings([fine])[0].presliding == 1e-3
