"""Files of exciting trajectories: round trip, bad input, points for ROS."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from stribeck.errors import ConfigError, StribeckError
from stribeck.session.excitation_file import (
    ExcitationFile,
    read_excitation_file,
    write_excitation,
    write_joint_trajectory,
)
from stribeck.session.fourier import FourierTrajectory, rest_basis


def trajectory() -> FourierTrajectory:
    z = np.random.default_rng(0).normal(size=(2, 5))
    return FourierTrajectory.from_coefficients(("elbow", "wrist"), 3.0, z @ rest_basis(3).T)


def edited(path: Path, **changes: Any) -> Path:
    """A file with other values of some keys; ``None`` leaves a key out."""
    write_excitation(path, ExcitationFile("arm", trajectory(), 1.5))
    data = {**yaml.safe_load(path.read_text()), **changes}
    path.write_text(yaml.safe_dump({key: value for key, value in data.items() if value is not None}))
    return path


def test_numbers_come_back_exactly(tmp_path: Path) -> None:
    """What is written is read."""
    path, motion = tmp_path / "motion.yaml", trajectory()
    write_excitation(path, ExcitationFile("arm", motion, 1.25))
    found = read_excitation_file(path)
    assert (found.robot, found.log_det, found.trajectory.joints) == ("arm", 1.25, motion.joints)
    assert found.trajectory.duration == motion.duration
    np.testing.assert_array_equal(found.trajectory.coefficients, motion.coefficients)


def test_information_may_be_left_out(tmp_path: Path) -> None:
    """Trajectories made by hand have none."""
    assert read_excitation_file(edited(tmp_path / "motion.yaml", log_det=None)).log_det is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "unknown schema 2; valid in this version of stribeck: 1"),
        ({"speed": 1}, "unknown key 'speed'; valid: schema, robot"),
        ({"offset": None}, "offset missing"),
        ({"joints": ["elbow", "elbow"]}, "names must be different"),
        ({"joints": []}, "expected a list of names"),
        ({"joints": ["elbow"]}, "coefficients for each of 1 joints"),
        ({"sine": [[1.0], [1.0, 2.0]]}, "equally many coefficients"),
        ({"sine": [[1.0, "x", 0.0], [0.0, 0.0, 0.0]]}, "expected a number"),
        ({"sine": [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]}, "does not start at rest"),
        ({"offset": 3}, "expected a list of numbers"),
        ({"duration": -1.0}, "positive duration"),
        ({"duration": float("inf")}, "finite"),
    ],
)
def test_what_is_not_valid_is_refused_in_one_line(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    """The file and what is wrong with it are named."""
    path = edited(tmp_path / "motion.yaml", **change)
    with pytest.raises(ConfigError) as caught:
        read_excitation_file(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_file_that_is_not_there(tmp_path: Path) -> None:
    """One line."""
    with pytest.raises(StribeckError, match="no such file"):
        read_excitation_file(tmp_path / "motion.yaml")


def test_points_are_those_of_the_series(tmp_path: Path) -> None:
    """Positions, velocities and accelerations at their times, the end among them."""
    path, motion = tmp_path / "points.yaml", trajectory()
    write_joint_trajectory(path, motion, 40.0)
    data = yaml.safe_load(path.read_text())
    assert data["joint_names"] == ["elbow", "wrist"]
    durations = [point["time_from_start"] for point in data["points"]]
    time = np.array([d["sec"] + 1e-9 * d["nanosec"] for d in durations])
    np.testing.assert_allclose(time, np.append(np.arange(120) / 40.0, 3.0), atol=1e-9)
    states = motion.states(time)
    for key, expected in zip(("positions", "velocities", "accelerations"), states, strict=True):
        np.testing.assert_allclose([point[key] for point in data["points"]], expected, atol=1e-7)


def test_points_make_a_message_of_ros(tmp_path: Path) -> None:
    """Field names and types are those of trajectory_msgs/JointTrajectory."""
    messages = pytest.importorskip("trajectory_msgs.msg")
    duration = pytest.importorskip("builtin_interfaces.msg").Duration
    write_joint_trajectory(tmp_path / "points.yaml", trajectory(), 10.0)
    data = yaml.safe_load((tmp_path / "points.yaml").read_text())
    points = [
        messages.JointTrajectoryPoint(**{**point, "time_from_start": duration(**point["time_from_start"])})
        for point in data["points"]
    ]
    message = messages.JointTrajectory(joint_names=data["joint_names"], points=points)
    assert len(message.points) == 31


def test_rate_must_be_positive(tmp_path: Path) -> None:
    """No points per second are none."""
    with pytest.raises(ConfigError, match="rate of points must be positive"):
        write_joint_trajectory(tmp_path / "points.yaml", trajectory(), 0.0)
