"""The joint map: there and back, power on both sides, by hand."""

import numpy as np
import pytest

from helpers import refusal
from stribeck.files.actuators import load_actuator
from stribeck.model.joint_map import JointMap


def test_the_definition_by_hand() -> None:
    """q = s q_servo / n + q0 and tau = s n tau_servo, for one point."""
    mounted = JointMap(sign=-1.0, ratio=2.0, offset=0.5)
    assert mounted.position(1.0) == 0.0
    assert mounted.velocity(3.0) == -1.5
    assert mounted.torque(0.25) == -0.5
    assert mounted.effort(2.0, 0.125) == -0.5


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 3.0])
def test_there_and_back_and_equal_power(sign: float, ratio: float) -> None:
    """Positions and torques come back; torque times velocity is the same on both sides."""
    mounted = JointMap(sign, ratio, offset=-0.3)
    servo = np.linspace(-3.0, 3.0, 7)
    np.testing.assert_allclose(mounted.servo_position(mounted.position(servo)), servo, atol=1e-15)
    np.testing.assert_allclose(mounted.servo_torque(mounted.torque(servo)), servo, atol=1e-15)
    np.testing.assert_allclose(mounted.torque(2.0) * mounted.velocity(servo), 2.0 * servo, atol=1e-15)


def test_no_map_changes_nothing() -> None:
    """The map without arguments is the identity."""
    assert JointMap().position(0.7) == JointMap().servo_position(0.7) == 0.7


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"sign": 0.5}, "sign must be 1 or -1, found 0.5"),
        ({"ratio": -2.0}, "ratio must be positive"),
        ({"ratio": float("inf")}, "ratio"),
        ({"offset": float("nan")}, "offset must be finite"),
    ],
)
def test_impossible_maps_are_refused(values: dict[str, float], part: str) -> None:
    """A map says what is wrong with it."""
    refusal(lambda: JointMap(**values), part)


def test_torque_constant_by_the_datasheet() -> None:
    """Stall torque over stall current: 0.52 N m / 1.47 A for the XL330; none for a servo without figures."""
    assert load_actuator("xl330").datasheet_torque_constant == pytest.approx(0.3537, abs=1e-4)
    assert load_actuator("unitree_go1").datasheet_torque_constant is None
