"""How joints have moved lately: turns, ways, smooth velocities and their noise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stribeck.live.direction.travel import SMOOTHING, Travel

DT = 0.005


def travelled(positions: list[float], hysteresis: float = 0.01) -> Travel:
    travel, before = Travel(1), positions[0]
    for at in positions:
        travel.update(np.array([at]), np.array([(at - before) / DT]), hysteresis, DT)
        before = at
    return travel


def test_ways_by_hand() -> None:
    """There is no direction within the hysteresis; then the way counts from where the joint turned."""
    for positions, direction, distance in (
        ([0.0, 0.008], 0.0, 0.0),
        ([0.0, 0.02], 1.0, 0.02),
        ([0.0, -0.02, -0.05], -1.0, 0.05),
        ([0.0, 0.05, 0.045], 1.0, 0.045),  # back by less than the hysteresis is no turn
        ([0.0, 0.05, 0.03], -1.0, 0.02),
        ([0.0, 0.05, 0.03, 0.035, 0.05], 1.0, 0.02),
    ):
        found = travelled(positions)
        assert (found.direction[0], found.distance[0]) == pytest.approx((direction, distance)), positions


@settings(deadline=None)
@given(st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=30), st.floats(0.001, 0.2))
def test_ways_are_odd_and_never_negative(positions: list[float], hysteresis: float) -> None:
    """With all positions turned the direction turns and the way stays."""
    one = travelled(positions, hysteresis)
    other = travelled([-at for at in positions], hysteresis)
    assert one.direction[0] == -other.direction[0]
    assert one.distance[0] == other.distance[0] >= 0.0


def test_noise_within_the_hysteresis_is_no_way() -> None:
    """Encoder noise about a point: no direction for as long as one likes."""
    rng = np.random.default_rng(1)
    assert travelled(rng.uniform(-0.004, 0.004, 2000).tolist()).distance[0] == 0.0


def test_the_smooth_velocity_is_a_first_order_filter() -> None:
    """A step: 1 - (1 - dt/T)^k, by hand."""
    travel = Travel(1)
    for speed in [0.0] + [1.0] * 6:
        travel.update(np.zeros(1), np.array([speed]), 0.01, DT)
    assert travel.velocity[0] == pytest.approx(1.0 - (1.0 - DT / SMOOTHING) ** 6)


@pytest.mark.parametrize("sigma", [0.01, 0.3])
def test_the_noise_of_a_velocity_is_recovered(sigma: float) -> None:
    """White noise on a slow motion, within a tenth; the motion itself counts for nothing."""
    rng, travel = np.random.default_rng(2), Travel(2)
    for k in range(4000):
        speed = math.sin(2.0 * k * DT) + np.array([0.0, sigma * rng.standard_normal()])
        travel.update(np.zeros(2), speed, 0.01, DT)
    assert travel.noise[0] < 1e-3
    assert travel.noise[1] == pytest.approx(sigma, rel=0.1)


def test_a_restart_forgets_positions_and_velocity() -> None:
    """As if it were new."""
    travel = travelled([0.0, 0.05, 0.1])
    travel.restart()
    assert (travel.direction[0], travel.distance[0], travel.velocity[0]) == (0.0, 0.0, 0.0)
    travel.update(np.array([9.0]), np.zeros(1), 0.01, DT)
    assert travel.distance[0] == 0.0
