"""Friction that follows a reversal late is presliding, and no delay: motion does not come before its torque."""

from dataclasses import replace

import numpy as np
import pytest

from moving_arms import FRICTION, NEAR, RATE, arm, low_pass, protocol, recording
from stribeck.identify.arm.config import IdentificationConfig, RecordingFormat
from stribeck.identify.arm.identify import Identification
from stribeck.identify.arm.regressor import machine_of

FILTERED = protocol(position_filter=low_pass(20.0), effort_filter=low_pass(20.0), every=10, fit="moving")

LENGTH = 2e-3


def presliding(velocity, acceleration):
    """Rotors, viscous friction, offsets, and Coulomb friction that grows with the motion after a reversal, to its whole in 4 mrad."""
    developed, state = np.zeros_like(velocity), np.zeros(velocity.shape[1])
    for k, speed in enumerate(velocity):
        developed[k] = state = np.clip(state + speed / RATE / LENGTH, -1.0, 1.0)
    found = acceleration * FRICTION["Ia"] + velocity * FRICTION["friction_viscous"]
    return found + developed * FRICTION["friction_base"] - np.asarray(FRICTION["torque_offset"])


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("delay", [0.0, 0.01])
def test_presliding_and_a_delay_are_told_apart(tmp_path, delay):
    """Of states that come at once, and 10 ms late: delays of -20 and -10 ms were found, as if the arm moved before its torque."""
    model = arm(tmp_path)
    run = recording(model, noise=0.1, friction=presliding)
    early = [np.interp(run.time + delay, run.time, column) for column in run.effort.T]
    runs = [replace(run, effort=np.stack(early, axis=1))]
    config = IdentificationConfig(RecordingFormat("bag"), FILTERED, {}, NEAR)
    choice = Identification(machine_of(model.joints, model, {}), config, runs).choice[0]
    assert choice.presliding == pytest.approx(LENGTH, rel=0.25)
    assert choice.delay == pytest.approx(delay, abs=0.003)
