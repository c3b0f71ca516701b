"""The bench trajectories, evaluated by hand."""

import math

import numpy as np
import pytest

from helpers import refusal
from stribeck.model.trajectories import TRAJECTORIES, cubic, trajectory_named

GRID = np.linspace(0.0, 6.0, 6001)


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_every_trajectory_starts_at_rest_of_the_pendulum_and_lasts_6_s(name):
    """0 rad at 0 s, finite throughout, within the half turn that a bench allows."""
    trajectory = trajectory_named(name)
    goal = trajectory.goal(GRID)
    assert trajectory.name == name
    assert trajectory.duration == 6.0
    assert goal.shape == GRID.shape
    assert goal[0] == 0.0
    assert np.all(np.isfinite(goal))
    assert np.max(np.abs(goal)) < math.pi


@pytest.mark.parametrize(
    ("name", "time", "goal"),
    [
        ("sin_time_square", 1.5, math.sin(2.25)),
        ("sin_time_square", 6.0, math.sin(36.0)),
        ("sin_sin", 1.0, math.pi / 2 * math.sin(1.0) + 0.5 * math.sin(5.0) * math.sin(2.0)),
        ("up_and_down", 1.5, math.pi / 4),  # half way up
        ("up_and_down", 1.0, math.pi / 2 * 7 / 27),  # 3/9 - 2/27 of the way
        ("up_and_down", 3.0, math.pi / 2),
        ("up_and_down", 4.5, 0.9 * math.pi / 2),  # half way down to 0.8
        ("up_and_down", 6.0, 0.8 * math.pi / 2),
        ("lift_and_drop", 1.0, -math.pi / 4),
        ("lift_and_drop", 2.0, -math.pi / 2),
        ("lift_and_drop", 5.0, -math.pi / 2),
        ("steps", 0.999, 0.0),
        ("steps", 1.0, 0.75),
        ("steps", 2.5, 1.55),
        ("steps", 4.5, 0.75),
        ("steps", 6.0, 0.0),
        ("half_sine", math.pi, math.pi / 2),
        ("half_sine", 1.0, math.pi / 2 * math.sin(0.5)),
        ("nothing", 3.0, 0.0),
    ],
)
def test_the_goal_is_what_the_formula_gives_by_hand(name, time, goal):
    """One or more points of each trajectory."""
    found = trajectory_named(name).goal(np.array([time]))
    assert found[0] == pytest.approx(goal, abs=1e-14)


@pytest.mark.parametrize(("name", "ends"), [("up_and_down", (0.0, 3.0, 6.0)), ("lift_and_drop", (0.0, 2.0))])
def test_cubics_begin_and_end_at_rest(name, ends):
    """One-sided slopes at the ends of each stretch vanish with the width, as a parabola's do."""
    trajectory = trajectory_named(name)
    for end in ends:
        for width in (1e-3, -1e-3):
            if 0.0 <= end + width <= 6.0:
                moved = trajectory.goal(np.array([end + width])) - trajectory.goal(np.array([end]))
                # 3 (x1 - x0) (width / T)^2 is what a cubic with zero velocity leaves.
                assert abs(moved[0]) <= 3.0 * (math.pi / 2) * (1e-3 / 2.0) ** 2


def test_a_cubic_holds_its_end_values_outside():
    """Before t0 and after t1 nothing moves, whichever way it went."""
    found = cubic(np.array([-1.0, 1.0, 2.0, 3.0, 9.0]), 1.0, 4.0, 3.0, -2.0)
    assert found.tolist() == [4.0, 4.0, 1.0, -2.0, -2.0]


def test_trajectories_are_continuous_but_for_the_steps():
    """No jump of the goal within a millisecond that a servo could not follow: at most 15 rad/s."""
    for name, trajectory in TRAJECTORIES.items():
        largest = np.max(np.abs(np.diff(trajectory.goal(GRID))))
        assert (largest > 0.5) if name == "steps" else (largest <= 0.015)


@pytest.mark.parametrize(
    ("name", "on"),
    [("sin_sin", [1, 1, 1, 1]), ("lift_and_drop", [1, 1, 0, 0]), ("nothing", [0, 0, 0, 0])],
)
def test_torque_is_on_until_the_drop(name, on):
    """Torque flags at 0 s, just before 2 s, at 2 s and at 6 s are exactly 0.0 or 1.0."""
    flags = trajectory_named(name).torque_enable([0.0, 1.999, 2.0, 6.0])
    assert flags.dtype == np.float64
    assert flags.tolist() == on


def test_an_unknown_trajectory_is_refused_with_the_valid_names():
    """The message lists what would have been right."""
    refusal(lambda: trajectory_named("figure_eight"), "'figure_eight'", *TRAJECTORIES)
