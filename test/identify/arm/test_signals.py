"""Filters whose cut-off is in Hz, derivatives without phase or edge error, sampling that keeps what it should."""

import numpy as np
import pytest

from stribeck.errors import ConfigError, TooShortError
from stribeck.identify.arm.signals import (
    ZeroPhase,
    convolution,
    derivative,
    direction,
    linear_presliding,
    resample,
)

RATE = 1000.0
TIME = np.arange(0.0, 4.0, 1.0 / RATE)


@pytest.mark.parametrize("frequency", [5.0, 20.0, 50.0, 80.0])
@pytest.mark.parametrize("order", [2, 4])
def test_a_sine_passes_with_the_stated_gain_and_no_phase(frequency, order):
    """The measured gain of a sine is the formula's, one half at the cut-off; its phase is zero."""
    low_pass = ZeroPhase(order, 50.0)
    wave = np.exp(2j * np.pi * frequency * TIME)
    found = low_pass(wave.real, RATE) + 1j * low_pass(wave.imag, RATE)
    response = np.mean((found * wave.conj())[1000:-1000])
    warped = np.tan(np.pi * frequency / RATE) / np.tan(np.pi * low_pass.cutoff / RATE)
    assert response == pytest.approx(1.0 / (1.0 + warped ** (2 * order)), abs=2e-4)
    if frequency == low_pass.cutoff:
        assert response.real == pytest.approx(0.5, abs=2e-4)


def test_the_ends_show_no_start_of_the_filter():
    """A slow signal with an offset comes out as it went in, at the ends too."""
    slow = 3.0 + np.sin(2 * np.pi * 0.3 * TIME + 0.4)
    settled, hasty = (
        derivative(low_pass(slow, RATE), 1 / RATE)
        for low_pass in (ZeroPhase(4, 50.0), ZeroPhase(4, 50.0, padding=13))
    )
    exact = 2 * np.pi * 0.3 * np.cos(2 * np.pi * 0.3 * TIME + 0.4)
    assert np.abs(settled - exact).max() < 0.01
    assert np.abs(hasty - exact).max() > 0.05


def test_the_kernel_is_the_filter():
    """Convolution with the impulse response gives what the filter gives, at chosen rows."""
    low_pass, noise = ZeroPhase(4, 40.0), np.random.default_rng(0).normal(size=(len(TIME), 2))
    matrix = convolution(low_pass.kernel(RATE), len(TIME), slice(1000, 3000, 7))
    assert np.abs(matrix @ noise - low_pass(noise, RATE)[1000:3000:7]).max() < 1e-7
    assert np.allclose(matrix @ np.ones(len(TIME)), 1.0)


@pytest.mark.parametrize("cutoff", [0.0, 500.0, 700.0])
def test_a_cutoff_that_cannot_be_is_refused(cutoff):
    """Half the sampling rate is the limit, and the message says so."""
    with pytest.raises(ConfigError, match="500 Hz"):
        ZeroPhase(4, cutoff)(TIME, RATE)


def test_too_few_samples_are_refused():
    with pytest.raises(TooShortError, match="too few"):
        ZeroPhase(4, 50.0)(TIME[:9], RATE)


def test_derivatives_are_exact_for_parabolas_at_the_ends_too():
    """Second order everywhere; one-sided differences are off by half a step at the ends."""
    parabola = 1.0 + 2.0 * TIME + 3.0 * TIME**2
    exact = 2.0 + 6.0 * TIME
    assert np.abs(derivative(parabola, 1 / RATE) - exact).max() < 1e-9
    assert np.abs(derivative(parabola, 1 / RATE, edge_order=1) - exact).max() == pytest.approx(3e-3)


def test_derivatives_have_no_phase():
    """The derivative of a sine is a cosine, not a shifted one."""
    wave = np.sin(2 * np.pi * 5.0 * TIME)
    found = derivative(wave, 1 / RATE)
    assert abs(np.mean(found * wave)) < 1e-3 * np.abs(found).max()


def test_jitter_is_resampled():
    """Samples every 8 to 16 ms come out on a grid, to the error of linear interpolation."""
    steps = np.random.default_rng(1).uniform(0.008, 0.016, 400)
    time = np.cumsum(steps)
    grid = np.arange(time[0], time[-1], 0.01)
    found = resample(time, np.sin(2.0 * time), grid)
    assert np.abs(found - np.sin(2.0 * grid)).max() < 2.0**2 * 0.016**2 / 8


def test_rest_has_no_direction():
    assert direction(np.array([-1.0, -1e-5, 0.0, 1e-5, 1.0]), 1e-4).tolist() == [-1, 0, 0, 0, 1]


def test_presliding_turns_within_twice_its_length_and_keeps_at_rest():
    """Dahl's state is bounded, saturates with the motion, and stays where motion stops."""
    position = np.concatenate([np.linspace(0, 1, 101), np.full(50, 1.0), np.linspace(1, 0.9, 101)])[:, None]
    state = linear_presliding(position, 0.02)[:, 0]
    assert state[0] == 0.0
    assert state[10:151].tolist() == [1.0] * 141
    turned = np.flatnonzero(state <= -1.0 + 1e-9)[0]
    assert position[turned, 0] == pytest.approx(1.0 - 0.04, abs=2e-3)
