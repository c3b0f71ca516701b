"""Speeds below which filtered torques do not show friction."""

import math
from dataclasses import replace

import numpy as np
import pytest

from moving_arms import JOINTS, arm, low_pass, protocol, recording
from stribeck.identify.arm.friction.width import resolved_speeds
from stribeck.identify.arm.motion import States, motion_of
from stribeck.identify.arm.signals import ZeroPhase

CUTOFF, RATE = 2.0, 500.0


def reversing(tmp_path, speed, frequency):
    """A motion whose first joint reverses sinusoidally; the others never reverse."""
    time = np.arange(0.0, 10.0, 1.0 / RATE)
    turn = 2.0 * math.pi * frequency
    velocity = np.stack([speed * np.cos(turn * time), np.ones_like(time), np.ones_like(time)], axis=1)
    acceleration = np.stack(
        [-speed * turn * np.sin(turn * time), np.zeros_like(time), np.zeros_like(time)], axis=1
    )
    motion = motion_of(recording(arm(tmp_path), seconds=2.0), protocol())
    return replace(motion, fine=States(RATE, velocity, velocity, acceleration))


def test_the_speed_is_reached_half_a_period_after_the_reversal(tmp_path):
    """|a| / (2 f) with the acceleration at reversals; joints without reversals have none."""
    motion = reversing(tmp_path, 1.5, 0.1)
    found = resolved_speeds([motion], CUTOFF)
    assert tuple(found) == tuple(JOINTS[:1])
    assert found[JOINTS[0]] == pytest.approx(1.5 * 2.0 * math.pi * 0.1 / (2.0 * CUTOFF), rel=1e-3)
    assert resolved_speeds([], CUTOFF) == {}


def test_filtered_friction_is_as_identified_above_that_speed_and_smeared_below(tmp_path):
    """Coulomb friction of 1, filtered as torques are: at least 0.9 above the speed, less than 0.6 below a quarter of it."""
    motion = reversing(tmp_path, 1.5, 0.1)
    velocity = motion.fine.velocity[:, :1]
    torque = np.abs(ZeroPhase(**vars(low_pass(CUTOFF)))(np.sign(velocity), RATE)[:, 0])
    lowest = resolved_speeds([motion], CUTOFF)[JOINTS[0]]
    speed, inner = np.abs(velocity[:, 0]), slice(1000, -1000)
    assert torque[inner][speed[inner] > lowest].min() > 0.9
    assert torque[inner][speed[inner] < 0.25 * lowest].max() < 0.6
