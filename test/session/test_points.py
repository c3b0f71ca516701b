"""Points of a motion as a trajectory of a session: they are goals, velocities are continuous, and invalid files are refused."""

import numpy as np
import pytest

from stribeck.errors import ConfigError
from stribeck.session.config import read_robot_session
from stribeck.session.limits import extent, followed
from stribeck.session.points import MotionPointsFile


def circle(period=0.02, duration=4.0):
    """A sine and a cosine of 0.25 Hz."""
    time = np.linspace(0.0, duration, round(duration / period) + 1)
    rows = np.stack([np.sin(0.5 * np.pi * time), np.cos(0.5 * np.pi * time)], axis=1)
    return MotionPointsFile(
        schema=1, joints=("a", "b"), period=period, positions=tuple(map(tuple, rows.tolist()))
    )


def test_goals_go_through_the_points_and_follow_the_curve_between():
    """At 20 ms within 2 µrad of the sine, the velocity within 1 ‰ of its largest; it holds the ends outside."""
    play = circle().to_play("c")
    time = np.linspace(0.0, 4.0, 8001)
    goals = play.joint_goals["a"](time)
    np.testing.assert_allclose(
        play.joint_goals["b"](0.02 * np.arange(201)), np.cos(0.01 * np.pi * np.arange(201)), atol=1e-12
    )
    inner = (time > 0.02) & (time < 3.98)
    assert np.abs(goals - np.sin(0.5 * np.pi * time))[inner].max() < 2e-6
    velocity = np.gradient(goals, time)
    assert np.abs(velocity - 0.5 * np.pi * np.cos(0.5 * np.pi * time))[inner].max() < 1e-3 * 0.5 * np.pi
    assert play.joint_goals["b"](np.array([-1.0, 9.0])).tolist() == pytest.approx([1.0, 1.0])


def test_a_session_plays_a_file_and_checks_its_limits(tmp_path):
    """Velocity and acceleration are those of the motion; a limit below them refuses it."""
    circle().write(tmp_path / "circle.yaml")
    assert MotionPointsFile.read(tmp_path / "circle.yaml") == circle()
    text = """\
joints:
  a: &joint {{position_limits: [-2, 2], limits: {{velocity: {velocity}, acceleration: 3}}, bench: {{mass: 1, length: 0.1, arm_mass: 0}}, actuator: torque_joint}}
  b: *joint
plays: {{trajectories: [{path}], gains: [1.0]}}
output: bags
"""
    path = tmp_path / "session.yaml"
    path.write_text(text.format(velocity=2, path=tmp_path / "circle.yaml"))
    session = read_robot_session(path)
    found = extent(followed(session.plays[0].trajectory, session.joints[0])[0])
    assert found.velocity == pytest.approx(0.5 * np.pi, rel=1e-3)
    assert found.acceleration == pytest.approx(0.25 * np.pi**2, rel=0.02)
    assert session.plays[0].trajectory.name == "circle"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"positions": ((0.0, 0.0),)}, "at least two points, found 1"),
        ({"positions": ((0.0, 0.0), (1.0,))}, "point 1 has 1 numbers, but 2 joints"),
        ({"positions": ((0.0, 0.0), (1.0, float("nan")))}, "point 1 is not finite"),
        ({"joints": ("a", "a")}, "different names"),
    ],
)
def test_what_is_no_motion_is_refused(changes, said):
    """One point, rows of another length, a joint twice, NaN."""
    content = {"schema": 1, "joints": ("a", "b"), "period": 0.1, "positions": ((0.0, 0.0), (1.0, 1.0))}
    with pytest.raises((ValueError, ConfigError), match=said):
        MotionPointsFile(**{**content, **changes})
