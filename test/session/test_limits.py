"""Plays that do not fit are refused before torque goes on, with figures."""

import math
from dataclasses import replace

import numpy as np
import pytest

from helpers import refusal
from stribeck.model.trajectories import TRAJECTORIES, Trajectory, trajectory_named
from stribeck.session.limits import Limits, Play, SessionJoint, check_plays, extent, goal_velocity, plays_of

WIDE = Limits(-2.0, 2.0, 12.5, 150.0)


def check(name, limits=WIDE, *, center=0.0, scale=1.0, releases_torque=True):
    """Check one trajectory on one joint."""
    joint = SessionJoint("elbow", limits, center, scale)
    check_plays([Play(trajectory_named(name), 200.0)], [joint], releases_torque=releases_torque)


def test_extents_are_those_of_the_formulas():
    """sin(t²) reaches 2t and about 4t² at its end; the cubic has the peaks 1.5 D/T and 6 D/T².

    Second differences end 1 ms before the ends, where these accelerations peak: 0.3 % of them.
    """
    fast = extent(trajectory_named("sin_time_square"))
    time = np.linspace(0.0, 6.0, 600_001)
    speed = 2.0 * time * np.cos(time**2)
    acceleration = 2.0 * np.cos(time**2) - 4.0 * time**2 * np.sin(time**2)
    assert fast.velocity == pytest.approx(np.max(np.abs(speed)), rel=1e-4)
    assert fast.acceleration == pytest.approx(np.max(np.abs(acceleration)), rel=3e-3)
    assert fast.end == pytest.approx(math.sin(36.0), abs=1e-12)
    assert fast.end_velocity == pytest.approx(12.0 * math.cos(36.0), rel=1e-4)
    lift = extent(trajectory_named("lift_and_drop"))
    assert lift.velocity == pytest.approx(1.5 * math.pi / 2 / 2.0, rel=1e-6)
    assert lift.acceleration == pytest.approx(6.0 * math.pi / 2 / 4.0, rel=2e-3)
    assert lift.end_velocity == 0.0


@pytest.mark.parametrize("name", sorted(TRAJECTORIES))
def test_wide_limits_admit_every_trajectory_but_steps(name):
    """12.5 rad/s and 150 rad/s² are enough for all; a goal that jumps needs limits of infinity."""
    if name == "steps":
        refusal(lambda: check(name), "steps", "elbow", "inf", "12.5 rad/s", "jumps", ".inf", "velocity")
        refusal(lambda: check(name, replace(WIDE, velocity=math.inf)), "jumps", "150 rad/s²", "acceleration")
        check(name, replace(WIDE, velocity=math.inf, acceleration=math.inf))
    else:
        check(name)


@pytest.mark.parametrize(
    ("limits", "found", "key"),
    [
        (replace(WIDE, position_upper=0.9), "0.9", "position"),
        (replace(WIDE, position_lower=-0.99), "-0.99", "position"),
        (replace(WIDE, velocity=11.0), "11.76", "velocity"),
        (replace(WIDE, acceleration=100.0), "142.3", "acceleration"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_figure_and_the_limit(limits, found, key):
    """Each of the four limits alone refuses sin(t²), naming trajectory, joint, figure and key."""
    refusal(lambda: check("sin_time_square", limits), "sin_time_square", "elbow", found, f"limits: {key}")


def test_the_way_to_brake_counts():
    """A run that ends in motion needs room behind its end: v²/2a, here 1.2² / (2·1.5) = 0.48 rad."""
    ramp = Trajectory("ramp", "a ramp", 1.0, lambda t: 1.2 * t)
    for upper, fits in ((1.69, True), (1.67, False)):
        joint = SessionJoint("elbow", Limits(-1.0, upper, 2.0, 1.5))
        if fits:
            check_plays([Play(ramp, 100.0)], [joint], releases_torque=True)
        else:
            refusal(lambda j=joint: check_plays([Play(ramp, 100.0)], [j], releases_torque=True), "1.68")


def test_center_and_scale_move_and_stretch_what_is_checked():
    """About 0.5 rad at half the amplitude sin(t²) spans [0, 1], with half the speed."""
    check("sin_time_square", Limits(-0.01, 1.01, 6.0, 75.0), center=0.5, scale=0.5)
    refusal(
        lambda: check("sin_time_square", Limits(0.01, 1.1, 6.0, 75.0), center=0.5, scale=0.5), "rest position"
    )
    refusal(lambda: check("sin_time_square", Limits(-0.1, 0.9, 6.0, 75.0), center=0.5, scale=-0.5), "1 rad")
    refusal(lambda: check("sin_time_square", Limits(-0.1, 1.1, 5.0, 75.0), center=0.5, scale=0.5), "5.879")


def test_the_part_without_torque_does_not_count():
    """A drop is no jump: the goal after torque has gone off is nobody's."""
    drop = Trajectory("drop", "", 2.0, lambda t: np.where(t < 1.0, 0.0, 9.0), torque_until=1.0 - 1e-9)
    check_plays([Play(drop, 100.0)], [SessionJoint("elbow", WIDE)], releases_torque=True)


@pytest.mark.parametrize("name", ["lift_and_drop", "nothing"])
def test_torque_goes_off_on_a_bench_only(name):
    """Lift-and-drop and nothing are refused for a commander that must not release torque."""
    refusal(lambda: check(name, releases_torque=False), name, "torque off", "servo")
    check(name, releases_torque=True)


def test_a_small_jump_is_found_beside_fast_motion():
    """A jump of 2 mrad needs 2000 rad/s² on the grid: no finite limit of a robot admits it."""
    jumpy = Trajectory("jumpy", "", 2.0, lambda t: np.sin(3.0 * t) + 0.002 * (t > 0.7003))
    refusal(
        lambda: check_plays([Play(jumpy, 100.0)], [SessionJoint("elbow", WIDE)], releases_torque=True),
        "acceleration",
    )


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: Limits(1.0, 1.0, 1.0, 1.0), ("not below",)),
        (lambda: Limits(math.nan, 1.0, 1.0, 1.0), ("not below",)),
        (lambda: Limits(-1.0, 1.0, 0.0, 1.0), ("velocity", "positive")),
        (lambda: Limits(-1.0, 1.0, 1.0, math.nan), ("acceleration", "positive")),
        (lambda: Limits(-1.0, 1.0, 1.0, 1.0, temperature=-1.0), ("temperature",)),
        (lambda: SessionJoint("elbow", WIDE, center=math.inf), ("elbow", "center")),
        (lambda: SessionJoint("elbow", WIDE, scale=0.0), ("elbow", "scale")),
        (lambda: Play(trajectory_named("steps"), 0.0), ("gain", "0.0")),
        (lambda: plays_of([], [100.0]), ("trajectory",)),
        (lambda: plays_of([trajectory_named("steps")], []), ("gain",)),
        (lambda: plays_of([trajectory_named("steps")], [1.0], 0), ("repetitions",)),
        (lambda: check_plays([], [SessionJoint("elbow", WIDE)], releases_torque=True), ("at least one",)),
        (
            lambda: check_plays(
                [Play(trajectory_named("sin_sin"), 1.0)], [SessionJoint("a", WIDE)] * 2, releases_torque=True
            ),
            ("'a'", "twice"),
        ),
    ],
)
def test_values_without_meaning_are_refused(make, parts):
    """Limits without room, centers that are no numbers, gains of zero, empty lists, a joint twice."""
    refusal(make, *parts)


def test_plays_go_through_all_trajectories_of_a_gain():
    """Gains change seldom: trajectories within gains within repetitions."""
    names = [
        (play.trajectory.name, play.kp)
        for play in plays_of([trajectory_named("steps"), trajectory_named("sin_sin")], [1.0, 2.0], 2)
    ]
    assert names == [("steps", 1.0), ("sin_sin", 1.0), ("steps", 2.0), ("sin_sin", 2.0)] * 2


def test_velocity_of_a_goal_is_its_derivative():
    """At both ends and between, to 1e-5."""
    fast = trajectory_named("sin_time_square")
    for time in (0.0, 1.3, 6.0):
        assert goal_velocity(fast, time) == pytest.approx(2 * time * math.cos(time**2), abs=2e-4)
