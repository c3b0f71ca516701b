"""The energy account of compensation without goals: what may be drawn, what fills the tank again."""

import numpy as np
import pytest

from stribeck.live.learning.energy import FADING, STROKE, EnergyTank, SpeedLimit

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


def test_without_a_goal_the_tank_gives_what_has_been_learnt() -> None:
    """Nothing at first; in proportion to the work of the friction learnt, up to 30 % of the capacity; nothing once forgotten."""
    tank = EnergyTank(LEVEL)
    assert tank.share == 1.0
    assert tank.free_share == 0.0
    tank.fill(0.5 * FADING * tank.capacity)
    assert tank.free_share == pytest.approx(0.5)
    tank.fill(10.0 * tank.capacity)
    assert tank.free_share == 1.0
    np.testing.assert_array_equal(tank.filled, tank.capacity)
    tank.forget()
    assert tank.free_share == 0.0


def limited(inertia: float, ratio: float = 1.0) -> SpeedLimit:
    return SpeedLimit(STROKE * LEVEL, np.array([inertia]), np.array([ratio]))


@pytest.mark.parametrize(
    ("inertia", "ratio", "bound"),
    [
        (0.5, 1.0, np.sqrt(4.0 * 3.0 / 0.5)),
        (0.01, 1.0, 10.0),
        (100.0, 1.0, 2.0),
        (np.inf, 1.0, 10.0),
        (1.0, 9.0, 18.0),
    ],
)
def test_the_speed_at_which_compensation_ends(inertia: float, ratio: float, bound: float) -> None:
    """Two tanks of kinetic energy, from 2 to 10 rad/s of the joint behind its gear."""
    assert limited(inertia, ratio).bound == pytest.approx(bound)


def ends(limit: SpeedLimit, torque: float, speeds: np.ndarray, led: np.ndarray | None = None) -> int | None:
    """The step of 1 ms in which the compensation of a joint ends."""
    for k, speed in enumerate(speeds):
        limit.update(np.array([torque]), np.array([speed]), led, 0.001)
        if limit.ended[0]:
            return k
    return None


def test_compensation_ends_when_it_has_put_in_what_the_speed_takes() -> None:
    """Accelerated by it alone, at the bound; by a hand, when its own work since half the bound is as much; never if it is led."""
    ramp = np.arange(0.0, 14.0, 0.002)  # 2 rad/s²; the bound is 4.90 rad/s, its half passed at 1.22 s
    late = 0.03 * 2.0
    assert 0.001 * (ends(limited(0.5), 1.0, ramp) or 0) == pytest.approx(
        (np.sqrt(24.0) + late) / 2.0, abs=0.003
    )
    slow = ends(limited(0.5), 0.2, ramp)  # 3/8 J v² = 4.5 J = 0.2 N m · 1 rad/s² · (t² - 1.2²)
    assert slow is not None
    assert 0.001 * slow == pytest.approx(np.sqrt(4.5 / 0.2 + (0.5 * (np.sqrt(6.0) + late)) ** 2), abs=0.003)
    assert ends(limited(0.5), 1.0, ramp, YES) is None
    assert ends(limited(0.5), -1.0, ramp) is None
    assert ends(limited(0.5), 1.0, 0.99 * np.minimum(ramp, np.sqrt(24.0))) is None


def test_an_end_lasts_until_a_goal_leads() -> None:
    """Neither rest nor a restart begins again."""
    limit = limited(0.5)
    assert ends(limit, 1.0, np.full(3000, 6.0)) is not None
    limit.restart()
    limit.update(np.zeros(1), np.zeros(1), NO, 0.001)
    assert limit.ended[0]
    limit.update(np.zeros(1), np.zeros(1), YES, 0.001)
    assert not limit.ended[0]
