"""Current, duty and supply of a bridge: by hand, and as the inverse of the motor equation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stribeck.model.control_laws import ServoCommand, VoltageControl
from stribeck.model.electrics import duty_for_current, motor_current, sagging_supply, supply_current

MOTOR = {"kt": 0.4, "R": 3.0}
BRIDGE = VoltageControl(gain=0.003, duty_max=1.0)


def test_electrics_by_hand():
    """Duty, currents and sag at one point each; a bridge gives no more than full duty."""
    assert duty_for_current(MOTOR, 0.5, 5.0, 2.0) == pytest.approx((1.5 + 0.8) / 5.0)
    assert duty_for_current(MOTOR, 5.0, 5.0, 2.0) == 1.0
    assert motor_current(MOTOR, 0.2) == pytest.approx(0.5)
    assert supply_current(0.5, -0.2) == -0.1
    assert sagging_supply(5.0, 0.5, 0.4) == 4.8
    assert sagging_supply(5.0, 0.5, -0.4) == 5.0
    np.testing.assert_allclose(sagging_supply(5.0, np.array([0.0, 100.0]), 0.4), [5.0, 0.0])


def test_the_current_of_an_impossible_torque_is_finite_and_has_its_sign():
    """Above k_t/c no current gives the torque: the current grows on, without a pole."""
    saturated = {**MOTOR, "torque_saturation": 0.2}
    limit = MOTOR["kt"] / 0.2
    torques = np.array([0.5, 0.98, 1.0, 1.5, 100.0]) * limit
    currents = motor_current(saturated, torques)
    assert np.all(np.isfinite(currents))
    assert np.all(np.diff(currents) > 0.0)
    assert currents[0] == pytest.approx(limit / MOTOR["kt"])
    assert np.array_equal(motor_current(saturated, -torques), -currents)


@given(st.floats(-1.5, 1.5), st.floats(-10.0, 10.0), st.floats(3.0, 6.0))
def test_the_duty_for_a_current_drives_that_current(current, velocity, supply):
    """The motor equation with that duty gives the current back, where the supply suffices."""
    duty = duty_for_current(MOTOR, current, supply, velocity)
    torque = BRIDGE.torque(MOTOR, duty, ServoCommand(0.0, 1.0, supply), velocity)
    if abs(duty) < 1.0:
        assert motor_current(MOTOR, torque) == pytest.approx(current, abs=1e-12)
    else:
        assert abs(motor_current(MOTOR, torque) - current) <= abs(current) + 10.0 * 0.4 / 3.0
