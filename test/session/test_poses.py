"""Poses with rests: the trajectory, its order, its file."""

import numpy as np
import pytest

from stribeck.errors import ConfigError
from stribeck.session.config import read_robot_session
from stribeck.session.limits import extent, followed
from stribeck.session.poses import PosesFile, in_order

POSES = ((0.0, 0.0), (1.0, -0.5), (0.2, 0.9))


def file(**changes):
    return PosesFile(**{"schema": 1, "joints": ("a", "b"), "poses": POSES, **changes})


def test_every_pose_is_held_as_long_as_asked():
    """Goals equal the poses for the whole rest, and nowhere faster than the limits."""
    content = file(rest=1.0, speed=0.5, acceleration=1.0)
    play = content.to_play("p")
    time = np.arange(0.0, play.duration + 1e-9, 0.001)
    goals = np.stack([play.joint_goals[name](time) for name in ("a", "b")], axis=1)
    for pose in POSES:
        assert np.sum(np.abs(goals - pose).max(axis=1) < 1e-9) >= 999
    velocity = np.diff(goals, axis=0) / 0.001
    assert np.abs(velocity).max() <= 0.5 * (1 + 1e-3)
    assert np.abs(np.diff(velocity, axis=0)).max() / 0.001 <= 1.0 * (1 + 1e-2)
    np.testing.assert_allclose(goals[-1], POSES[-1], atol=1e-12)


def test_one_pose_is_a_rest():
    """Nothing moves."""
    play = file(poses=(POSES[1],)).to_play("p")
    assert play.duration == 1.5
    assert np.all(play.joint_goals["a"](np.linspace(0.0, 1.5, 9)) == 1.0)


def test_the_nearest_free_pose_is_next():
    """A blocked way is gone round; what no way leads to is left."""
    poses = [np.array(p) for p in ((0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (0.5, 0.0))]
    assert in_order(poses) == ([0, 3, 1, 2], [])
    blocked = lambda first, then: not (first[0] < 0.9 < then[0])  # noqa: E731
    assert in_order(poses, blocked) == ([0, 3], [1, 2])
    assert in_order([]) == ([], [])


def test_sessions_play_files_of_poses(tmp_path):
    """As a trajectory by the path of its file, within the joints' limits."""
    file().write(tmp_path / "poses.yaml")
    assert PosesFile.read(tmp_path / "poses.yaml") == file()
    joint = "{position_limits: [-2, 2], limits: {velocity: 1, acceleration: 2}, bench: {mass: 1, length: 0.1, arm_mass: 0}, actuator: torque_joint}"
    text = f"joints:\n  a: {joint}\n  b: {joint}\nplays: {{trajectories: [{tmp_path / 'poses.yaml'}], gains: [1.0]}}\noutput: bags\n"
    (tmp_path / "session.yaml").write_text(text)
    session = read_robot_session(tmp_path / "session.yaml")
    found = extent(followed(session.plays[0].trajectory, session.joints[0])[0])
    assert found.upper == pytest.approx(1.0)
    assert found.end_velocity == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"poses": ()}, "at least one"),
        ({"poses": ((1.0,),)}, "has 1 numbers, but 2 joints"),
        ({"joints": ("a", "a")}, "different"),
    ],
)
def test_what_is_no_visit_is_refused(tmp_path, changes, said):
    """No poses, rows of another length, a joint twice."""
    with pytest.raises(ValueError, match=said):
        file(**changes)
    (tmp_path / "p.yaml").write_text("schema: 1\njoints: [a]\nposes: []\n")
    with pytest.raises(ConfigError, match="at least one"):
        PosesFile.read(tmp_path / "p.yaml")
