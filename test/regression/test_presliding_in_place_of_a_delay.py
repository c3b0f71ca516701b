"""Friction that follows a reversal late is presliding, and no delay: motion does not come before its torque."""

from dataclasses import replace

import numpy as np
import pytest

from moving_arms import FRICTION, NEAR, RATE, arm, linear_friction, low_pass, protocol, recording
from stribeck.identify.arm.config import IdentificationConfig, RecordingFormat
from stribeck.identify.arm.identify import Identification
from stribeck.identify.arm.regressor import machine_of

FILTERED = protocol(position_filter=low_pass(20.0), effort_filter=low_pass(20.0), every=10, fit="moving")

LENGTH = 3e-3


def presliding(velocity, acceleration):
    """Rotors, viscous friction, offsets, and Coulomb friction that grows with the motion after a reversal, to its whole in 6 mrad."""
    developed, state = np.zeros_like(velocity), np.zeros(velocity.shape[1])
    for k, speed in enumerate(velocity):
        developed[k] = state = np.clip(state + speed / RATE / LENGTH, -1.0, 1.0)
    found = acceleration * FRICTION["Ia"] + velocity * FRICTION["friction_viscous"]
    return found + developed * FRICTION["friction_base"] - np.asarray(FRICTION["torque_offset"])


def chosen(folder, friction, delay):
    """The model chosen for states that come late by a delay."""
    model = arm(folder)
    run = recording(model, noise=0.1, friction=friction)
    early = [np.interp(run.time + delay, run.time, column) for column in run.effort.T]
    runs = [replace(run, effort=np.stack(early, axis=1))]
    config = IdentificationConfig(RecordingFormat("bag"), FILTERED, {}, NEAR)
    return Identification(machine_of(model.joints, model, {}), config, runs).choice[0]


@pytest.mark.ci
def test_presliding_is_no_delay(tmp_path):
    """Of states that come at once: a delay of -20 ms was found, as if the arm moved before its torque."""
    choice = chosen(tmp_path, presliding, 0.0)
    assert choice.presliding == LENGTH
    assert choice.delay == pytest.approx(0.0, abs=0.002)


@pytest.mark.ci
def test_a_delay_is_no_presliding(tmp_path):
    """States that come 10 ms late, with friction that reverses at once."""
    choice = chosen(tmp_path, linear_friction, 0.01)
    assert choice.presliding is None
    assert choice.delay == pytest.approx(0.01, abs=0.002)
