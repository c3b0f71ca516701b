"""Friction that follows a reversal late is presliding, and no delay: motion does not come before its torque."""

from dataclasses import replace

import numpy as np
import pytest

from moving_arms import FRICTION, RATE, arm, recording
from test_arm_recordings import identification

LENGTH = 3e-3


def dahl(velocity, acceleration):
    """Rotors, viscous friction, offsets, and Coulomb friction by Dahl's model, z' = v/δ (1 - z sign v)."""
    developed, state = np.zeros_like(velocity), np.zeros(velocity.shape[1])
    for k, speed in enumerate(velocity):
        state = np.clip(state + speed / RATE / LENGTH * (1.0 - state * np.sign(speed)), -1.0, 1.0)
        developed[k] = state
    found = acceleration * FRICTION["Ia"] + velocity * FRICTION["friction_viscous"]
    return found + developed * FRICTION["friction_base"] - np.asarray(FRICTION["torque_offset"])


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("delay", [0.0, 0.01])
def test_presliding_and_a_delay_are_told_apart(tmp_path, delay):
    """Of states that come at once and 10 ms late; presliding alone had a delay of -5 ms, as if the arm moved before its torque."""
    model = arm(tmp_path)
    run = recording(model, noise=0.1, friction=dahl)
    early = [np.interp(run.time + delay, run.time, column) for column in run.effort.T]
    choice = identification(model, [replace(run, effort=np.stack(early, axis=1))]).choice[0]
    assert choice.presliding is not None
    assert choice.delay == pytest.approx(delay, abs=2.0 / RATE)
