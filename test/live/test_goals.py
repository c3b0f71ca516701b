"""Where goals lead joints: along their own path, and for how long after it has ended."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stribeck.live.direction.goals import ARRIVAL_TIME, HOLD_TIME, LEADING, LED_TIME, GoalPath

LENGTH = 0.003
FULL = 0.1
"""Command velocity at which the intention is full [rad/s]."""
DT = 0.005


def step(
    path: GoalPath, goal: float, rate: float, behind: float = 0.0, motion: float = 0.0, dt: float = DT
) -> None:
    one = np.ones(1)
    path.update(goal * one, rate * one, behind * one, motion * one, dt, LENGTH, FULL)


def moved(changes: list[float], rate: float = 0.2) -> GoalPath:
    """A path after a goal at 0 that moved by these."""
    path, goal = GoalPath(1), 0.0
    step(path, 0.0, 0.0)
    for change in changes:
        goal += change
        step(path, goal, math.copysign(rate, change))
    return path


def test_a_goal_that_moves_turns_the_direction_by_hand() -> None:
    """1 - exp(-s/l) from rest; after a reversal -1 + (1 + z) exp(-s/l)."""
    assert moved([0.002]).direction[0] == pytest.approx(1.0 - math.exp(-2.0 / 3.0))
    there = 1.0 - math.exp(-2.0)
    assert moved([0.006, -0.001]).direction[0] == pytest.approx(-1.0 + (1.0 + there) * math.exp(-1.0 / 3.0))


@pytest.mark.ci
@settings(deadline=None)
@given(st.lists(st.floats(-0.01, 0.01), min_size=1, max_size=20), st.integers(2, 10))
def test_the_direction_is_that_of_the_path_not_of_its_steps(changes: list[float], parts: int) -> None:
    """The same path in more steps gives the same direction; it is in [-1, 1] and turns with all signs."""
    whole = moved(changes).direction[0]
    split = moved([change / parts for change in changes for _ in range(parts)]).direction[0]
    assert split == pytest.approx(whole, abs=1e-9)
    assert abs(whole) <= 1.0
    assert moved([-change for change in changes]).direction[0] == pytest.approx(-whole, abs=1e-12)


def test_without_positions_the_commanded_velocity_is_the_path() -> None:
    """NaN goals: change = rate · dt."""
    path = GoalPath(1)
    for _ in range(4):
        step(path, math.nan, -0.2)
    assert path.direction[0] == pytest.approx(-(1.0 - math.exp(-4 * 0.2 * DT / LENGTH)))


def test_a_resting_goal_from_the_first_on_leads_nowhere() -> None:
    """However far behind the joint is: that is the affair of the error."""
    path = GoalPath(1)
    for _ in range(100):
        step(path, 0.3, 0.0, behind=0.3)
    assert (path.direction[0], path.led[0], path.leads[0], path.share[0]) == (0.0, 0.0, False, 0.0)


@pytest.mark.parametrize(("share", "led"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (7.0, 1.0)])
def test_a_goal_leads_by_its_velocity(share: float, led: float) -> None:
    """Fully from 0.3 of the command velocity on, linearly below."""
    path = GoalPath(1)
    step(path, 0.0, 0.0)
    step(path, 0.001, share * LEADING * FULL)
    assert path.led[0] == pytest.approx(led)
    assert path.leads[0] == (led > 0.5)


def test_a_joint_that_arrives_keeps_what_it_came_with() -> None:
    """At its goal the share goes with exp(-t/20 s): the torque holds."""
    path = moved([0.01] * 3)
    for _ in range(200):
        step(path, 0.03, 0.0)
    assert path.share[0] == pytest.approx(math.exp(-200 * DT / HOLD_TIME), rel=1e-3)
    assert not path.leads[0]


def test_a_joint_beyond_its_goal_is_led_no_more() -> None:
    """The share goes with exp(-t/0.1 s) where the goal lies behind the joint."""
    path = moved([0.01] * 3)
    for _ in range(40):
        step(path, 0.03, 0.0, behind=-0.01)
    assert path.share[0] == pytest.approx(math.exp(-40 * DT / LED_TIME), rel=0.06)


def test_a_joint_that_is_late_is_led_on_for_a_second() -> None:
    """Fully while it is behind a goal that has stopped, for ARRIVAL_TIME at most."""
    path, led = moved([0.01] * 3), []
    for k in range(round(1.5 * ARRIVAL_TIME / DT)):
        step(path, 0.03, 0.0, behind=0.02)
        led.append((k * DT, bool(path.leads[0]), float(path.led[0])))
    assert all(leads and share == 1.0 for t, leads, share in led if t < ARRIVAL_TIME - 2 * DT)
    assert not any(leads for t, leads, _ in led if t > ARRIVAL_TIME + 2 * DT)


def test_a_motion_against_the_goal_takes_over() -> None:
    """A hand that pushes a joint back: the share is gone after 0.15 s, and comes back when the joint follows again."""
    path, goal = moved([0.01] * 3), 0.03
    shares = []
    for k in range(120):
        goal += 0.001
        step(path, goal, 0.2, behind=0.05, motion=-1.0 if k < 60 else 1.0)
        shares.append(float(path.share[0]))
    assert shares[40] == 0.0
    assert all(after <= before for before, after in itertools.pairwise(shares[:60]))
    assert shares[-1] > 0.7


def test_the_path_can_be_forgotten_and_joints_are_apart() -> None:
    """After a restart nothing leads; one joint's path is not the other's."""
    path = GoalPath(2)
    for k in range(10):
        goal = np.array([0.01 * k, 0.5])
        path.update(goal, np.array([2.0, 0.0]), np.zeros(2), np.zeros(2), DT, LENGTH, FULL)
    assert path.direction[0] > 0.99
    assert (path.direction[1], path.share[1]) == (0.0, 0.0)
    path.restart()
    np.testing.assert_array_equal([path.direction, path.led, path.share], 0.0)
