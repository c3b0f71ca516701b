"""The energy account of compensation without goals: what may be drawn, what fills the tank again."""

import numpy as np
import pytest

from stribeck.core.energy import FADING, STROKE, EnergyTank

LEVEL = np.array([2.0])
NO, YES = np.array([False]), np.array([True])


def test_the_tank_holds_the_friction_at_rest_along_a_stroke() -> None:
    """Drawn at 1 N m beyond what is sure along 1.5 rad, a tank of 2 N m holds 3 J and keeps the half."""
    tank = EnergyTank(LEVEL)
    assert tank.capacity == pytest.approx(STROKE * 2.0)
    for _ in range(1500):
        tank.update(np.array([1.5]), np.array([0.5]), np.array([1.0]), NO, 0.001)
    assert tank.content == pytest.approx(0.5 * tank.capacity)


@pytest.mark.parametrize(("torque", "velocity"), [(0.5, 1.0), (-3.0, 1.0), (3.0, -1.0), (0.0, 5.0)])
def test_what_is_sure_or_brakes_draws_nothing(torque: float, velocity: float) -> None:
    """Only torque along the motion, and only what exceeds the sure part."""
    tank = EnergyTank(LEVEL)
    tank.update(np.array([torque]), np.array([0.5]), np.array([velocity]), NO, 1.0)
    assert tank.content == tank.capacity


def test_it_fades_below_a_share_and_never_falls_below_nothing() -> None:
    """Full torque until 30 % are left, then in proportion, then none; standstill fills it."""
    tank = EnergyTank(LEVEL)
    torque, sure, velocity = np.array([2.0]), np.array([0.0]), np.array([1.0])
    tank.update(torque, sure, velocity, NO, 0.7 * float(tank.capacity[0]) / 2.0)
    assert tank.share == pytest.approx(1.0)
    tank.update(torque, sure, velocity, NO, 0.5 * FADING * float(tank.capacity[0]) / 2.0)
    assert tank.share == pytest.approx(0.5)
    tank.update(torque, sure, velocity, NO, 100.0)
    assert tank.share == 0.0
    tank.update(torque, sure, velocity, YES, 0.001)
    assert tank.share == 1.0
